/* codegen/toolchain.c -- finds the runtime beside the program and runs the C compiler. */
#include "codegen/toolchain.h"

#include "build_config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MAX_ARG = 48 };

/* The folder this program lies in. */
static const char *own_folder(LsArena *a)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return ".";
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    return ls_arena_strdup(a, path);
}

/* Where a part of the runtime is: $LOWERSET_HOME, the build folder, the
 * installed place. NULL: nowhere. */
static const char *find_part(LsCtx *cx, const char *const *place)
{
    const char *home = getenv("LOWERSET_HOME"), *own = own_folder(cx->arena);
    for (int k = 0; place[k] != NULL; k++) {
        const char *path = place[k];
        if (strncmp(path, "HOME/", 5) == 0)
            path = home != NULL ? ls_arena_printf(cx->arena, "%s/%s", home, path + 5) : "";
        else if (path[0] != '/')
            path = ls_arena_printf(cx->arena, "%s/%s", own, path);
        if (path[0] != '\0' && access(path, R_OK) == 0)
            return path;
    }
    ls_error(cx, LS_NOWHERE, LS_E_TOOL, "set LOWERSET_HOME to the folder that has lib/lowerset",
             "the runtime library of lowerset is not where it was installed");
    return NULL;
}

static const char *find_library(LsCtx *cx)
{
    return find_part(cx, (const char *const[]){"HOME/lib/lowerset/libls_runtime.a",
                     "runtime/libls_runtime.a", "../lib/lowerset/libls_runtime.a", NULL});
}

static const char *find_sources(LsCtx *cx)
{
    return find_part(cx,
                     (const char *const[]){"HOME/lib/lowerset/runtime", "../lib/lowerset/runtime",
                                           LS_RUNTIME_SOURCES, NULL});
}

static void print_command(const char *const *argv)
{
    for (int k = 0; argv[k] != NULL; k++)
        fprintf(stderr, "%s%s", k > 0 ? " " : "", argv[k]);
    fprintf(stderr, "\n");
}

static bool run(LsCtx *cx, const LsToolchain *t, const char *const *argv)
{
    if (t->verbose || t->dry_run)
        print_command(argv);
    if (t->dry_run)
        return true;
    pid_t pid;
    int failed = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ), status = 0;
    if (failed != 0)
        return ls_error(cx, LS_NOWHERE, LS_E_TOOL,
                        "install a C compiler (Debian: apt-get install gcc), or name one with --cc",
                        "cannot run '%s': %s", argv[0], strerror(failed));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return ls_error(cx, LS_NOWHERE, LS_E_TOOL,
                        "run again with --save-temps=DIR -v to see the command and the C file",
                        "the C compiler '%s' failed", argv[0]);
    return true;
}

typedef struct Command { const char *argv[MAX_ARG]; int n; LsArena *arena; } Command;

static void add(Command *c, const char *arg)
{
    if (c->n < MAX_ARG - 1)
        c->argv[c->n++] = arg;
}

/* Words of a text, as --cc "ccache gcc" or the extra flags of a sanitizer build have. */
static void add_words(Command *c, const char *text)
{
    char *copy = ls_arena_strdup(c->arena, text), *save = NULL;
    for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
        add(c, w);
}

static const char *compiler_of(const LsToolchain *t)
{
    const char *env = getenv("CC");
    return t->cc != NULL ? t->cc : env != NULL && env[0] != '\0' ? env : "cc";
}

bool ls_toolchain_build(LsCtx *cx, const LsToolchain *t, const char *dir, const char *base,
                        LsEmitKind kind, const char *output)
{
    LsArena *a = cx->arena;
    const char *lib = find_library(cx), *sources = lib != NULL ? find_sources(cx) : NULL;
    if (sources == NULL)
        return false;
    Command c = {.arena = a};
    add_words(&c, compiler_of(t));
    add(&c, "-std=gnu11");
    add(&c, ls_arena_printf(a, "-O%s", t->opt != NULL ? t->opt : "3"));
    add(&c, ls_arena_printf(a, "-march=%s", t->march != NULL ? t->march : "native"));
    add_words(&c, "-fno-math-errno -fno-trapping-math -Wall -Wno-unused");
    add_words(&c, LS_EXTRA_CFLAGS);
    add(&c, ls_arena_printf(a, "-I%s", sources));
    add(&c, ls_arena_printf(a, "-I%s/..", sources));    /* the runtime says "runtime/x.h" */
    add(&c, ls_arena_printf(a, "%s/%s.c", dir, base));
    add(&c, ls_arena_printf(a, "%s/%s_data.S", dir, base));
    if (kind == LS_EMIT_OBJ)
        add_words(&c, "-r -nostdlib");
    else
        add(&c, lib);
    if (kind == LS_EMIT_EXE)
        add_words(&c, "-lm -lpthread");
    add(&c, "-o");
    add(&c, output);
    return run(cx, t, c.argv);
}

static bool copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = in != NULL ? fopen(to, "wb") : NULL;
    char buf[1 << 16];
    bool ok = out != NULL;
    for (size_t n; ok && (n = fread(buf, 1, sizeof buf, in)) > 0; )
        ok = fwrite(buf, 1, n, out) == n;
    ok = in != NULL && out != NULL && ok && !ferror(in);
    if (in != NULL)
        fclose(in);
    if (out != NULL)
        ok &= fclose(out) == 0;
    return ok;
}

bool ls_toolchain_copy_runtime(LsCtx *cx, const char *dir)
{
    const char *from = find_sources(cx);
    if (from == NULL)
        return false;
    DIR *d = opendir(from);
    if (d == NULL || (mkdir(dir, 0777) != 0 && errno != EEXIST)) {
        if (d != NULL)
            closedir(d);
        return ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot make folder '%s': %s", dir,
                        strerror(errno));
    }
    bool ok = true;
    for (struct dirent *e; ok && (e = readdir(d)) != NULL; ) {
        size_t n = strlen(e->d_name);
        if (n < 3 || (strcmp(e->d_name + n - 2, ".c") != 0 && strcmp(e->d_name + n - 2, ".h") != 0))
            continue;
        ok = copy_file(ls_arena_printf(cx->arena, "%s/%s", from, e->d_name),
                       ls_arena_printf(cx->arena, "%s/%s", dir, e->d_name));
    }
    closedir(d);
    return ok || ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot copy the runtime to '%s'", dir);
}

const char *ls_toolchain_hint(LsCtx *cx, const char *c_file, const char *data_file,
                              const char *runtime_dir, const char *output)
{
    return ls_arena_printf(cx->arena,
                           "cc -std=gnu11 -D_GNU_SOURCE -O3 -march=native -fno-math-errno "
                           "-fno-trapping-math -I%s -I%s/.. %s %s %s/*.c -lm -lpthread -o %s",
                           runtime_dir, runtime_dir, c_file, data_file, runtime_dir, output);
}
