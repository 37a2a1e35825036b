/* codegen/toolchain/host_toolchain.c -- finds the runtime beside the program and runs the C
 * compiler. */
#include "codegen/toolchain/host_toolchain.h"

#include "build_config.h"
#include "codegen/toolchain/compiler_version.h"
#include "codegen/toolchain/cuda_toolchain.h"
#include "codegen/toolchain/run_command.h"
#include "runtime/folders.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder that contains this program. */
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

/* The path of a part of the runtime: in $LOWERSET_HOME, the build folder or the installed place.
 * NULL: not found. */
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
    return NULL;
}

static const char *find_library(LsCtx *cx)
{
    return find_part(cx, (const char *const[]){"HOME/lib/lowerset/libls_runtime.a",
                     "runtime/libls_runtime.a", "../lib/lowerset/libls_runtime.a", NULL});
}

static const char *find_cuda_library(LsCtx *cx)
{
    return find_part(cx, (const char *const[]){"HOME/lib/lowerset/libls_runtime_cuda.a",
                     "runtime/libls_runtime_cuda.a", "../lib/lowerset/libls_runtime_cuda.a", NULL});
}

static const char *find_mpi_library(LsCtx *cx)
{
    return find_part(cx, (const char *const[]){"HOME/lib/lowerset/libls_runtime_mpi.a",
                                               "runtime/libls_runtime_mpi.a",
                                               "../lib/lowerset/libls_runtime_mpi.a", NULL});
}

static const char *find_sources(LsCtx *cx)
{
    return find_part(cx,
                     (const char *const[]){"HOME/lib/lowerset/runtime", "../lib/lowerset/runtime",
                                           LS_RUNTIME_SOURCES, NULL});
}

static bool no_runtime(LsCtx *cx)
{
    return ls_error(cx, LS_NOWHERE, LS_E_TOOL,
                    "set LOWERSET_HOME to the folder that has lib/lowerset",
                    "the runtime library of lowerset is not where it was installed");
}

static bool no_compiler(LsCtx *cx, const char *name, int failed)
{
    return ls_error(cx, LS_NOWHERE, LS_E_TOOL,
                    "install a C compiler (Debian: apt-get install gcc; Python: pip install "
                    "lowerset[cc]), or name one with --cc",
                    "cannot run '%s': %s", name, strerror(failed));
}

bool ls_toolchain_run(LsCtx *cx, const LsCommand *c)
{
    int failed = ls_command_run(c);
    if (failed > 0)
        return no_compiler(cx, c->word[0], failed);
    if (failed < 0)
        return ls_error(cx, LS_NOWHERE, LS_E_TOOL,
                        "run again with --save-temps=DIR -v to see the command and the C file",
                        "the C compiler '%s' failed", c->word[0]);
    return true;
}

const char *ls_toolchain_compiler(const LsToolchain *t)
{
    const char *env = getenv("CC");
    return t->cc != NULL ? t->cc : env != NULL && env[0] != '\0' ? env : "cc";
}

static const char *level_of(const LsToolchain *t) { return t->opt != NULL ? t->opt : "3"; }
static const char *machine_of(const LsToolchain *t)
{
    return t->march != NULL ? t->march : "native";
}

/* Refuses a compiler that says it is too old. One that says nothing known may try. */
static bool is_new_enough(LsCtx *cx, const LsToolchain *t)
{
    enum { MOST = 1 << 12 };            /* bytes of --version that are looked at */
    LsCommand c = {.arena = cx->arena};
    ls_command_add_words(&c, ls_toolchain_compiler(t));
    ls_command_add(&c, "--version");
    const char *said = ls_command_output(&c, MOST);
    LsCompiler is = ls_compiler_of(said != NULL ? said : "");
    return is.major >= ls_compiler_least(is.kind)
           || ls_error(cx, LS_NOWHERE, LS_E_TOOL,
                       "name another with --cc or in CC, e.g. CC=clang; or --emit=c prints the "
                       "program, to be built "
                       "elsewhere",
                       "'%s' is %s %d.%d, and programs need gcc %d or clang %d, or later",
                       ls_toolchain_compiler(t), is.kind == LS_CC_GCC ? "gcc" : "clang", is.major,
                       is.minor, LS_GCC_LEAST, LS_CLANG_LEAST);
}

/* Whether the parts for MPI are there. */
static bool has_mpi(LsCtx *cx)
{
    return (LS_MPI_LIBS[0] != '\0' && find_mpi_library(cx) != NULL)
           || ls_error(
               cx, LS_NOWHERE, LS_E_TOOL,
               "install MPI (Debian: apt-get install libopenmpi-dev) and build lowerset again; or "
               "--emit=c prints the program, to be built elsewhere",
               "this lowerset was built without MPI");
}

bool ls_toolchain_find(LsCtx *cx, const LsToolchain *t)
{
    LsCommand c = {.arena = cx->arena};
    ls_command_add_words(&c, ls_toolchain_compiler(t));
    if (c.n == 0 || ls_command_find(cx->arena, c.word[0]) == NULL)
        return no_compiler(cx, c.n > 0 ? c.word[0] : "", ENOENT);
    if (t->mpi && !has_mpi(cx))
        return false;
    return is_new_enough(cx, t)
           && ((find_library(cx) != NULL && find_sources(cx) != NULL) || no_runtime(cx));
}

/* The static CUDA runtime beside the runtime library, or that of the toolkit that the library was
 * built with. */
static const char *find_cudart(LsArena *a)
{
    const char *home = getenv("LOWERSET_HOME");
    const char *own = home == NULL ? NULL
                    : ls_arena_printf(a, "%s/lib/lowerset/libcudart_static.a", home);
    if (own != NULL && access(own, R_OK) == 0)
        return own;
    static const char *const folder[] = {"lib64", "lib", "targets/x86_64-linux/lib",
                                         "lib/x86_64-linux-gnu"};
    for (size_t k = 0; k < sizeof folder / sizeof *folder; k++) {
        const char *file = ls_arena_printf(a, LS_CUDA_HOME "/%s/libcudart_static.a", folder[k]);
        if (access(file, R_OK) == 0)
            return file;
    }
    return NULL;
}

/* Adds the libraries of a program for GPUs. cuDNN and cuBLASLt are opened at run time: first along
 * LD_LIBRARY_PATH, then in the toolkit's folder. object: static ones alone. */
static bool add_cuda(LsCtx *cx, LsCommand *c, bool object)
{
    const char *lib = find_cuda_library(cx), *cudart = find_cudart(cx->arena);
    if (lib == NULL)
        return ls_error(
            cx, LS_NOWHERE, LS_E_TOOL,
            "--emit=c prints the program, to be built elsewhere; or build lowerset again "
            "where the toolkit is",
            "this lowerset was built without the CUDA toolkit");
    if (cudart == NULL)
        return ls_error(cx, LS_NOWHERE, LS_E_TOOL, "install the CUDA toolkit again",
                        "libcudart_static.a is not in " LS_CUDA_HOME);
    ls_command_add(c, lib);
    ls_command_add(c, cudart);
    if (!object)
        ls_command_add_words(c, LS_CUDA_LIBS);
    return true;
}

bool ls_toolchain_build(LsCtx *cx, const LsToolchain *t, const char *dir, const char *base,
                        LsEmitKind kind, const char *output)
{
    LsArena *a = cx->arena;
    const char *lib = find_library(cx), *sources = lib != NULL ? find_sources(cx) : NULL;
    if (sources == NULL)
        return no_runtime(cx);
    const char *include = ls_arena_printf(a, "%s/..", sources); /* programs say "runtime/x.h" */
    if (t->cuda != NULL && !ls_cuda_build(cx, t->cuda, dir, base, include))
        return false;
    LsCommand c = {.arena = a, .print = t->verbose, .dry = t->dry_run};
    ls_command_add_words(&c, ls_toolchain_compiler(t));
    ls_command_add(&c, "-std=gnu11");
    ls_command_add(&c, ls_arena_printf(a, "-O%s", level_of(t)));
    ls_command_add(&c, ls_arena_printf(a, "-march=%s", machine_of(t)));
    ls_command_add_words(&c, "-fno-math-errno -fno-trapping-math -Wall -Wno-unused");
    /* A kernel that gets a pointer to elements of another width would write beyond them. */
    ls_command_add_words(&c, "-Werror=incompatible-pointer-types -Werror=int-conversion");
    ls_command_add_words(&c, LS_EXTRA_CFLAGS);
    ls_command_add(&c, ls_arena_printf(a, "-I%s", include));
    ls_command_add(&c, ls_arena_printf(a, "%s/%s.c", dir, base));
    ls_command_add(&c, ls_arena_printf(a, "%s/%s_data.S", dir, base));
    if (kind == LS_EMIT_LIB) {
        ls_command_add(&c, ls_arena_printf(a, "%s/%s_library.c", dir, base));
        ls_command_add(&c, "-fPIC");
    }
    if (kind == LS_EMIT_OBJ || kind == LS_EMIT_LIB)
        ls_command_add(&c, "-r");      /* leaves out libraries, as -nostdlib does; but with that
                                         * zig has no headers of C either */
    if (kind != LS_EMIT_OBJ && t->cuda != NULL && !add_cuda(cx, &c, kind == LS_EMIT_LIB))
        return false;
    if (kind == LS_EMIT_EXE && t->mpi)
        ls_command_add(&c, find_mpi_library(cx));
    if (kind == LS_EMIT_EXE || kind == LS_EMIT_LIB)
        ls_command_add(&c, lib);
    if (kind == LS_EMIT_EXE && t->mpi)
        ls_command_add_words(&c, LS_MPI_LIBS);
    if (kind == LS_EMIT_EXE)
        ls_command_add_words(&c, LS_EXTRA_LIBS " -lm -lpthread");
    ls_command_add(&c, "-o");
    ls_command_add(&c, output);
    return ls_toolchain_run(cx, &c);
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

/* Copies the sources and headers in folder `from` to `dir`, which is made if missing. */
static bool copy_folder(LsCtx *cx, const char *from, const char *dir)
{
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

/* Copies each of the folders that a text names. */
static bool copy_folders(LsCtx *cx, const char *names, const char *from, const char *dir)
{
    char *copy = ls_arena_strdup(cx->arena, names), *save = NULL;
    bool ok = true;
    for (char *f = strtok_r(copy, " ", &save); ok && f != NULL; f = strtok_r(NULL, " ", &save))
        ok = copy_folder(cx, ls_arena_printf(cx->arena, "%s/%s", from, f),
                         ls_arena_printf(cx->arena, "%s/%s", dir, f));
    return ok;
}

bool ls_toolchain_copy_runtime(LsCtx *cx, const LsToolchain *t, const char *dir)
{
    const char *from = find_sources(cx);
    if (from == NULL)
        return no_runtime(cx);
    return copy_folder(cx, from, dir) && copy_folders(cx, LS_FOLDERS_ALL, from, dir)
           && (t->cuda == NULL || copy_folders(cx, LS_FOLDERS_CUDA, from, dir))
           && (!t->mpi || copy_folders(cx, LS_FOLDERS_MPI, from, dir));
}

/* A path as a word for a shell: in single quotes unless it is plain. */
static const char *shell_word(LsArena *a, const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%=";
    if (path[0] != '\0' && path[strspn(path, plain)] == '\0')
        return path;
    char *word = ls_arena_alloc(a, 4 * strlen(path) + 3, 1), *to = word;
    *to++ = '\'';
    for (; *path != '\0'; path++) {
        if (*path == '\'')
            to = stpcpy(to, "'\\'");
        *to++ = *path;
    }
    *to = '\'';
    return word;
}

/* The sources of the folders that a text names, for a shell. */
static const char *sources_of(LsArena *a, const char *names, const char *dir)
{
    char *copy = ls_arena_strdup(a, names), *save = NULL;
    const char *all = "";
    dir = shell_word(a, dir);
    for (char *f = strtok_r(copy, " ", &save); f != NULL; f = strtok_r(NULL, " ", &save))
        all = ls_arena_printf(a, "%s %s/%s/*.c", all, dir, f);
    return all + (all[0] == ' ');
}

static const char *device_hint(LsCtx *cx, const LsCudaArchs *archs, const char *file,
                               const char *runtime_dir)
{
    LsArena *a = cx->arena;
    const char *code = "";
    file = shell_word(a, file);
    runtime_dir = shell_word(a, runtime_dir);
    for (int k = 0; k < archs->n; k++) {
        const char *suffix = archs->arch[k].exact ? "a" : "";
        code = ls_arena_printf(a, "%s -gencode arch=compute_%d%s,code=sm_%d%s", code,
                               archs->arch[k].number, suffix, archs->arch[k].number, suffix);
    }
    return ls_arena_printf(a, "nvcc -fatbin -O3 -std=c++17 -fmad=false%s -gencode "
                           "arch=compute_%d,code=compute_%d -I%s/.. %s.cu -o %s.fatbin\n", code,
                           archs->ptx, archs->ptx, runtime_dir, file, file);
}

const char *ls_toolchain_hint(LsCtx *cx, const LsToolchain *t, const char *dir, const char *base,
                              const char *runtime_dir)
{
    LsArena *a = cx->arena;
    const char *file = ls_arena_printf(a, "%s/%s", dir, base);
    const char *device = "", *sources = sources_of(a, LS_FOLDERS_SOURCE, runtime_dir);
    if (t->mpi)
        sources = ls_arena_printf(a, "%s %s", sources, sources_of(a, LS_FOLDERS_MPI, runtime_dir));
    if (t->cuda != NULL) {
        device = device_hint(cx, &t->cuda->archs, file, runtime_dir);
        sources = ls_arena_printf(
            a, "%s %s -isystem $CUDA_HOME/include $CUDA_HOME/lib64/libcudart_static.a -ldl -lrt",
            sources, sources_of(a, LS_FOLDERS_CUDA_SOURCE, runtime_dir));
    }
    return ls_arena_printf(a,
                           "%s%s -std=gnu11 -D_GNU_SOURCE -O%s -march=%s -fno-math-errno "
                           "-fno-trapping-math -I%s/.. %s.c %s_data.S %s -lm -lpthread -o %s",
                           device, t->mpi ? "mpicc" : ls_toolchain_compiler(t), level_of(t),
                           machine_of(t), shell_word(a, runtime_dir), shell_word(a, file),
                           shell_word(a, file), sources, shell_word(a, base));
}
