/* tests/support/kernel_harness.h -- kernels of single hand-built nodes, compiled and loaded.
 *
 * A batch of nodes is printed into one C file, built as a shared object together with the thread
 * pool, and run on arrays that the caller fills. On this side all values are `double`; arrays are
 * converted to the precision of the object. With LS_KEEP in the environment the files stay in /tmp,
 * for a profiler. */
#ifndef KERNEL_HARNESS_H
#define KERNEL_HARNESS_H

#include "codegen/emit/kernel_emit.h"
#include "runtime/ls_program.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/ls_half.h"     /* takes memcpy and integers from the headers above */

#ifndef H_ASSERT                /* bench/ has its own */
#include <check.h>
#define H_ASSERT ck_assert_msg
#endif

enum { H_MAX_CASES = 512, H_GUARD = 64 };

typedef struct HNode {          /* one node in a graph of its own */
    LsGraph g;
    LsValue value[10];
    LsNode node[2];
    LsValueId operand[6];
    LsArena *arena;
} HNode;

static inline void h_free(HNode *h)
{
    ls_arena_free(h->arena);
    free(h);
}

/* Operands in[0..nin) (rank < 0: absent) and one result. */
static inline HNode *h_node(LsOpCode op, int nin, const LsShape in[], const LsShape *out,
                            LsLayout layout, const LsAttr *attr)
{
    HNode *h = calloc(1, sizeof *h);
    h->arena = ls_arena_new();
    h->g = (LsGraph){.value = h->value, .nvalue = (uint32_t)nin + 2, .node = h->node, .nnode = 2,
                     .operand = h->operand, .noperand = (uint32_t)nin, .arena = h->arena};
    for (int k = 0; k <= nin; k++) {
        const LsShape *s = k < nin ? &in[k] : out;
        h->value[k + 1] = (LsValue){.name = "v", .kind = LS_V_TEMP, .shape = *s,
                                    .layout = s->rank > 2 ? layout : LS_ROW};
        if (k < nin)
            h->operand[k].i = s->rank < 0 ? 0 : (uint32_t)k + 1;
    }
    h->node[1] = (LsNode){.op = (uint16_t)op, .nin = (uint16_t)nin, .nout = 1, .in = 0,
                          .out = (uint32_t)nin + 1, .name = "n", .attr = *attr};
    return h;
}

typedef struct HObject {
    void *so;
    int real_bytes;
    LsKernel kernel[H_MAX_CASES];
    struct LsPool *(*pool_create)(int);
    void (*pool_destroy)(struct LsPool *);
} HObject;

/* Compiles the kernels of all nodes with `flags`; "cc" is the compiler. direct: see
 * LsTarget. */
static inline HObject h_build(const char *cc, const char *flags, int real_bytes, bool direct, int n,
                       HNode *const node[])
{
    char dir[] = "/tmp/ls_kernels_XXXXXX", path[64], command[1024];
    HObject o = {.real_bytes = real_bytes};
    H_ASSERT(mkdtemp(dir) != NULL, "%s", dir);
    snprintf(path, sizeof path, "%s/k.c", dir);
    FILE *to = fopen(path, "w");
    H_ASSERT(to != NULL, "%s", path);
    char *text = NULL;
    size_t size;
    LsEmit e = {.to = open_memstream(&text, &size)};
    H_ASSERT(e.to != NULL, "%s", path);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        const LsTarget target = {.real_bytes = real_bytes, .direct = direct};
        LsKernelText k = {.e = &e,
                          .host = &e,
                          .g = &node[i]->g,
                          .n = {1},
                          .name = name,
                          .target = &target};
        const LsOp *row = ls_op[node[i]->node[1].op];
        LsKernelId id = row != NULL ? row->kernel
                      : node[i]->node[1].op == LS_OP_MATMUL ? LS_K_MATMUL : LS_K_CONV;
        ls_emitter_of(LS_TARGET_CPU, id)->emit(&k);
        H_ASSERT(e.depth == 0, "case %d: braces", i);
    }
    fclose(e.to);
    fprintf(to,
            "%s#include \"runtime/kernels/ls_kernel.h\"\n#include \"runtime/kernels/ls_conv.h\"\n"
            "#include \"runtime/kernels/ls_matmul.h\"\n%s%s",
            e.needs & LS_NEEDS_DOT16 ? LS_DEFINES_DOT16 : "",
            e.needs & (LS_NEEDS_ATTENTION | LS_NEEDS_ATTENTION16)
                ? "#include \"runtime/kernels/ls_attention16.h\"\n" : "", text);
    free(text);
    fprintf(to, "const LsKernel kernels[] = {");
    for (int i = 0; i < n; i++)
        fprintf(to, "k%d, ", i);
    fprintf(to, "};\n");
    fclose(to);
    snprintf(command, sizeof command,
             "%s -std=gnu11 -Wall -Wextra -Werror -shared -fPIC %s %s -I%s "
             "%s %s/runtime/engine/thread_pool.c -o %s/k.so -lm -lpthread",
             cc, flags, real_bytes == 8 ? "-DLS_F64" : "", LS_SOURCE, path, LS_SOURCE,
             dir);
    H_ASSERT(system(command) == 0, "%s", command);
    snprintf(path, sizeof path, "%s/k.so", dir);
    o.so = dlopen(path, RTLD_NOW);
    H_ASSERT(o.so != NULL, "%s", dlerror());
    memcpy(o.kernel, dlsym(o.so, "kernels"), (size_t)n * sizeof *o.kernel);
    *(void **)&o.pool_create = dlsym(o.so, "ls_pool_create");
    *(void **)&o.pool_destroy = dlsym(o.so, "ls_pool_destroy");
    snprintf(command, sizeof command, "rm -r %s", dir);
    H_ASSERT(getenv("LS_KEEP") != NULL || system(command) == 0, "%s", command);
    return o;
}

static inline int64_t h_workspace(const HNode *h, LsKernelId id, int real_bytes)
{
    const LsEmitter *em = ls_emitter_of(LS_TARGET_CPU, id);
    const LsTarget target = ls_target_cpu(real_bytes);
    return em->workspace == NULL ? 0 : em->workspace(&h->g, (LsNodeId){1}, &target);
}

/* n elements followed by a guard, all NaN. */
static inline void *h_array(int64_t n, int real_bytes)
{
    int64_t all = (n + H_GUARD) * real_bytes;
    void *p = aligned_alloc(64, (size_t)((all + 63) / 64 * 64));
    memset(p, 0xff, (size_t)all);
    return p;
}

static inline bool h_guarded(const void *p, int64_t n, int real_bytes)
{
    const unsigned char *end = (const unsigned char *)p + n * real_bytes;
    for (int i = 0; i < H_GUARD * real_bytes; i++)
        if (end[i] != 0xff)
            return false;
    return true;
}

static inline double h_at(const void *p, int64_t i, int real_bytes)
{
    return real_bytes == 4 ? (double)((const float *)p)[i] : ((const double *)p)[i];
}

/* Element i of an array of that type, read or written. */
static inline double h_get(LsType type, const void *p, int64_t i, int real_bytes)
{
    if (type == LS_BF16)
        return (double)ls_from_bf16(((const ls_bf16 *)p)[i]);
    if (type == LS_F16)
        return (double)ls_from_f16(((const ls_f16 *)p)[i]);
    return h_at(p, i, real_bytes);
}

/* v must be a number of the type. */
static inline void h_put(LsType type, void *p, int64_t i, double v, int real_bytes)
{
    if (type == LS_BF16)
        ((ls_bf16 *)p)[i] = ls_to_bf16((float)v);
    else if (type == LS_F16)
        ((ls_f16 *)p)[i] = ls_to_f16((float)v);
    else if (real_bytes == 4)
        ((float *)p)[i] = (float)v;
    else
        ((double *)p)[i] = v;
}

/* Runs kernel i with `threads`; result in its type, to be freed. */
static inline void *h_run(const HObject *o, int i, const HNode *h, LsKernelId id,
                          const double *const in[], int threads)
{
    int nin = h->node[1].nin, rb = o->real_bytes,
        result = ls_type_bytes(h->value[nin + 1].type, rb);
    void *arg[6] = {0};
    int64_t out = ls_count(&h->value[nin + 1].shape), work = h_workspace(h, id, rb);
    for (int k = 0; k < nin; k++) {
        if (h->operand[k].i == 0)
            continue;
        int64_t n = ls_count(&h->value[k + 1].shape);
        arg[k] = h_array(n, ls_type_bytes(h->value[k + 1].type, rb));
        for (int64_t j = 0; j < n; j++)
            h_put(h->value[k + 1].type, arg[k], j, in[k][j], rb);
    }
    arg[nin] = h_array(out, result);
    arg[nin + 1] = h_array((work + rb - 1) / rb, rb);
    LsRun run = {.pool = o->pool_create(threads)};
    o->kernel[i](&run, arg);
    o->pool_destroy(run.pool);
    H_ASSERT(h_guarded(arg[nin], out, result), "case %d wrote behind its result", i);
    H_ASSERT(h_guarded(arg[nin + 1], (work + rb - 1) / rb, rb),
                  "case %d wrote behind its workspace", i);
    for (int k = 0; k <= nin + 1; k++)
        if (k != nin)
            free(arg[k]);
    return arg[nin];
}

/* The next values are numbers of both types of 16 bits. */
static bool h_coarse __attribute__((unused));

/* Values in -1..1 that float holds exactly, from a small counter-based generator. */
static inline double *h_random(int64_t n, uint64_t seed)
{
    double *x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        uint64_t z = (seed * 1000003 + (uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9u;
        x[i] = h_coarse ? (double)(int64_t)((z >> 40) & 0x7f) / 64 - 1
                        : (double)(int64_t)((z >> 40) & 0xffff) / 32768 - 1;
    }
    return x;
}

/* n such values as elements of a type. */
static inline void *h_elements(LsType type, int64_t n, uint64_t seed)
{
    void *to = h_array(n, ls_type_bytes(type, 4));
    double *x = h_random(n, seed);
    for (int64_t i = 0; i < n; i++)
        h_put(type, to, i, x[i], 4);
    free(x);
    return to;
}

/* The same bits for 1, 2 and 3 threads, and `want` within `tolerance` of its largest element. */
static inline void h_check(const HObject *o, int i, const HNode *h, LsKernelId id,
                           const double *const in[], const double *want, double tolerance)
{
    const LsValue *y = &h->value[h->node[1].nin + 1];
    int64_t n = ls_count(&y->shape);
    void *got = h_run(o, i, h, id, in, 1);
    double scale = 1e-30, worst = 0;
    for (int64_t j = 0; j < n; j++)
        scale = fmax(scale, fabs(want[j]));
    for (int64_t j = 0; j < n; j++) {
        double err = fabs(h_get(y->type, got, j, o->real_bytes) - want[j]) / scale;
        worst = err <= worst ? worst : err;     /* NaN is kept */
    }
    H_ASSERT(worst <= tolerance, "case %d: error %g", i, worst);
    for (int threads = 2; threads <= 3; threads++) {
        void *again = h_run(o, i, h, id, in, threads);
        H_ASSERT(memcmp(got, again, (size_t)(n * ls_type_bytes(y->type, o->real_bytes))) == 0,
                      "case %d: other bits with %d threads", i, threads);
        free(again);
    }
    free(got);
}

#endif
