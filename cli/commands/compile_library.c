/* cli/commands/compile_library.c -- see the header. */
#include "cli/commands/compile_library.h"

#include "cli/report/output.h"
#include "codegen/program/library_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Options that change what a program does around its updates, and a library has no function for.
 * The first one that was given, in words; NULL: none. */
static const char *lacking(const LsJob *job)
{
    const LsOptions *o = job->options;
    const char *schedule = o->update.schedule;
    const struct { bool given; const char *words; } option[] = {
        {ls_options_stages(o) > 1, "does not do --stages yet; a program does"},
        {o->ranks.count != 0, "does not do --ranks yet; a program does"},
        {job->pipeline.ensemble.members > 0, "does not do --ensemble yet; a program does"},
        {schedule != NULL && strcmp(schedule, "constant") != 0,
         "has no --schedule: its caller gives every step a rate"},
        {job->pipeline.grads.mode != LS_GRADS_MEAN,
         "gives no gradients of single samples (--grads); a program's --dump does"},
        {o->trained.merge, "exports no model, which --merge is for; a program of the same options "
                           "does, from the library's checkpoint (--resume FILE --export MODEL)"},
    };
    for (size_t k = 0; k < sizeof option / sizeof *option; k++)
        if (option[k].given)
            return option[k].words;
    return NULL;
}

int ls_library_check(const LsJob *job)
{
    const char *prefix = job->options->output.prefix, *what = lacking(job);
    if (prefix != NULL && !ls_library_prefix_is(prefix))
        fprintf(stderr,
                "lowerset: --prefix: '%s' does not begin a C name: letters, digits and _ do\n",
                prefix);
    else if (what != NULL)
        fprintf(stderr, "lowerset: a library (--emit=lib) %s\n", what);
    else
        return 0;
    return LS_EXIT_USAGE;
}

static const char *prefix_of(LsJob *job, const char *base)
{
    const char *given = job->options->output.prefix;
    return given != NULL ? given : ls_library_prefix(job->cx.arena, base);
}

bool ls_library_write(LsJob *job, const LsCode *code, const char *dir, const char *base)
{
    LsArena *a = job->cx.arena;
    const char *prefix = prefix_of(job, base);
    FILE *header = fopen(ls_arena_printf(a, "%s/%s.h", dir, base), "w");
    FILE *functions = fopen(ls_arena_printf(a, "%s/%s_library.c", dir, base), "w");
    bool ok = header != NULL && functions != NULL;
    if (ok) {
        ls_library_print_header(code, prefix, header);
        ls_library_print_functions(code, prefix, ls_arena_printf(a, "%s.h", base), functions);
    }
    if (header != NULL)
        ok &= fclose(header) == 0;
    if (functions != NULL)
        ok &= fclose(functions) == 0;
    return ok
           || ls_error(&job->cx, LS_NOWHERE, LS_E_IO, NULL, "cannot write in '%s': %s", dir,
                       strerror(errno));
}

bool ls_library_emit(LsJob *job, const LsToolchain *tool, const char *dir, const char *base,
                     const char *path)
{
    LsArena *a = job->cx.arena;
    const char *slash = strrchr(path, '/');
    const char *folder =
        slash != NULL ? ls_arena_printf(a, "%.*s/", (int)(slash - path), path) : "";
    const char *object = ls_arena_printf(a, "%s/%s_all.o", dir, base);
    const char *archive = ls_arena_printf(a, "%slib%s.a", folder, base);
    const char *shared = ls_arena_printf(a, "%slib%s.so", folder, base);
    const char *part[] = {ls_output_part(a, archive), ls_output_part(a, shared)};
    bool ok = ls_toolchain_build(&job->cx, tool, dir, base, LS_EMIT_LIB, object)
              && ls_library_build(&job->cx, tool, object, prefix_of(job, base), part[0], part[1]);
    if (tool->dry_run)
        return ok;
    ok &= ls_output_take(part[0], archive, ok);
    ok &= ls_output_take(part[1], shared, ok);
    if (job->options->output.save_temps == NULL)
        unlink(object);
    return ok
           && ls_output_copy(ls_arena_printf(a, "%s/%s.h", dir, base),
                             ls_arena_printf(a, "%s%s.h", folder, base));
}
