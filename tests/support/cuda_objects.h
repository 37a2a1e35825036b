/* tests/support/cuda_objects.h -- the text that the compiler prints for nodes whose GPU kernels
 * call a library, built as a shared object for this machine: parts run as on the CPU, and calls go
 * to a stand-in of the library. Its kernels[] are the nodes' kernels, in order. */
#ifndef TESTS_CUDA_OBJECTS_H
#define TESTS_CUDA_OBJECTS_H

#include "tests/support/kernel_harness.h"

#include <check.h>

/* The function that launches call here. */
void ls_parallel(LsRun *run, LsPart fn, int64_t units, void *const arg[])
{
    for (int64_t u = units - 1; u >= 0; u--)
        fn(run, arg, u, u + 1);
}

/* Parts, then pointers to them by the names that launches use, then host functions. */
static void cuda_print_all(FILE *to, const LsEmitter *emitter, const char *header, int n,
                           HNode *const node[], const LsTarget *target)
{
    char *text[2] = {0};
    size_t size[2];
    FILE *host = open_memstream(&text[0], &size[0]), *table = open_memstream(&text[1], &size[1]);
    LsEmit e = {.to = to}, h = {.to = host}, t = {.to = table};
    LsArena *arena = ls_arena_new();
    fprintf(to,
            "#include \"runtime/kernels/ls_kernel.h\"\n#include \"%s\"\n"
            "#define ls_cuda_launch(run, part, n, arg) ls_parallel(run, part, n, arg)\n",
            header);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        node[i]->g.arena = arena;
        emitter->emit(&(LsKernelText){.e = &e, .host = &h, .table = &t, .g = &node[i]->g,
                                      .n = {1}, .name = name, .target = target});
        ck_assert(e.depth == 0 && h.depth == 0 && t.depth == 0);
        node[i]->g.arena = NULL;
    }
    ls_arena_free(arena);
    fclose(host);
    fclose(table);
    fprintf(to, "#undef LS_ROW\n"
                "#define LS_ROW(name, narg, x, y) static const LsPart p_##name = name;\n%s%s",
            text[1], text[0]);
    fprintf(to, "const LsKernel kernels[] = {");
    for (int i = 0; i < n; i++)
        fprintf(to, "k%d, ", i);
    fprintf(to, "};\n");
    free(text[0]);
    free(text[1]);
}

/* header: declares the library's calls. Returns the opened object. */
static void *cuda_build(const LsEmitter *emitter, const char *header, int n, HNode *const node[],
                        const LsTarget *target)
{
    char path[] = "/tmp/ls_cuda_object_XXXXXX.c", so_path[64], command[512];
    FILE *to = fdopen(mkstemps(path, 2), "w");
    ck_assert_ptr_nonnull(to);
    cuda_print_all(to, emitter, header, n, node, target);
    fclose(to);
    snprintf(so_path, sizeof so_path, "%s.so", path);
    snprintf(command, sizeof command,
             "cc -std=gnu11 -O1 -Wall -Wextra -Werror -Wno-unused-function %s -shared -fPIC -I%s "
             "%s -o %s -lm", target->real_bytes == 8 ? "-DLS_F64" : "", LS_SOURCE, path, so_path);
    ck_assert_msg(system(command) == 0, "%s", command);
    void *so = dlopen(so_path, RTLD_NOW);
    ck_assert_msg(so != NULL, "%s", dlerror());
    unlink(path);
    unlink(so_path);
    return so;
}

#endif
