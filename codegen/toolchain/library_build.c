/* codegen/toolchain/library_build.c -- a static and a shared library from one object. */
#include "codegen/toolchain/host_toolchain.h"

#include "base/arena.h"
#include "build_config.h"
#include "codegen/toolchain/object_file.h"
#include "codegen/toolchain/run_command.h"

#include <stdio.h>

static bool shared_of(LsCtx *cx, const LsToolchain *t, const char *object, const char *shared)
{
    LsCommand c = {.arena = cx->arena, .print = t->verbose, .dry = t->dry_run};
    ls_command_add_words(&c, ls_toolchain_compiler(t));
    ls_command_add_words(&c, "-shared -Wl,-z,noexecstack");
    ls_command_add_words(&c, LS_EXTRA_CFLAGS);
    ls_command_add(&c, object);
    if (t->cuda != NULL)
        ls_command_add_words(&c, LS_CUDA_LIBS);
    ls_command_add_words(&c, LS_EXTRA_LIBS " -lm -lpthread -o");
    ls_command_add(&c, shared);
    return ls_toolchain_run(cx, &c);
}

bool ls_library_build(LsCtx *cx, const LsToolchain *t, const char *object, const char *prefix,
                      const char *archive, const char *shared)
{
    /* Everything but the library's own functions becomes local, so that one process may have
     * several libraries. */
    if (t->verbose || t->dry_run)
        fprintf(stderr, "# %s: symbols that do not begin with %s_ become local; %s: that object\n",
                object, prefix, archive);
    return (t->dry_run || (ls_hide_symbols(cx, object, prefix)
                           && ls_archive_write(cx, archive, object)))
           && shared_of(cx, t, object, shared);
}
