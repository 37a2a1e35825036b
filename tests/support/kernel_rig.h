/* tests/support/kernel_rig.h -- runs kernels alone: nodes made by hand, printed, compiled to a
 * shared object, run with their units cut in different ways (the bits must not change), results
 * left for the test to judge. Then the kernels that GPUs have of the same nodes, by the executor,
 * their threads in different orders, against the results of the former. */
#ifndef LS_TESTS_SUPPORT_KERNEL_RIG_H
#define LS_TESTS_SUPPORT_KERNEL_RIG_H

#include <check.h>

#include "codegen/emit/kernel_emit.h"
#include "codegen/emit/lift_constants.h"
#include "compiler/passes/fuse.h"
#include "runtime/ls_program.h"
#include "tests/kernel_flags.h"
#include "tests/support/cuda_executor.h"
#include "tests/support/less.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/ls_half.h"     /* takes memcpy and integers from the headers above */

enum { RIG_VALUES = 4096 };

typedef struct Rig {
    LsCtx cx;
    LsGraph *g;
    int real_bytes;
    LsTarget target;            /* whose kernels are printed */
    bool cuda;                  /* run the GPU's kernels alone */
    bool numbers;               /* run those of its kernels that take their numbers as arguments */
    const LsEmitter *emitter;   /* of all nodes; NULL: the target's */
    bool products;              /* there are convolutions or products among the nodes */
    const char *flags;          /* of the compiler; NULL: rig_flags() chooses */
    char *buffer[RIG_VALUES];   /* by value, in the value's layout */
    uint64_t random;
    LsRun run;
} Rig;

#define SHAPE(...) (LsShape){sizeof (int64_t[]){__VA_ARGS__} / 8, {__VA_ARGS__}}
#define VALUES(...)                                                                                \
    sizeof(LsValueId[]){__VA_ARGS__} / sizeof(LsValueId), (LsValueId[])                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static inline void rig_open(Rig *r, int real_bytes)
{
    *r = (Rig){.real_bytes = real_bytes, .random = 1};
    r->target = ls_target_cpu(real_bytes);
    r->cx.arena = ls_arena_new();
    r->g = ls_graph_new(&r->cx);
    r->g->batch = 1;
    r->run = (LsRun){.seed = 7,
                     .step = 3,
                     .valid = 1 << 30,
                     .first = true,
                     .apply = true,
                     .share = 1,
                     .lr = 0.1,
                     .update = 2};
}

/* A rig for convolutions and products, compiled with `flags`. */
static inline Rig rig_of_products(int real_bytes, const char *flags)
{
    Rig r;
    rig_open(&r, real_bytes);
    r.products = true;
    r.flags = flags;
    return r;
}

static inline void rig_close(Rig *r)
{
    for (int k = 0; k < RIG_VALUES; k++)
        free(r->buffer[k]);
    ls_arena_free(r->cx.arena);
}

static inline double rig_random(Rig *r)     /* in [-1, 1) */
{
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(r->random >> 11) / (1ll << 52) - 1;
}

/* Offset in memory of the element with that index in logical row-major order. */
static inline int64_t rig_place(const Rig *r, LsValueId v, int64_t index)
{
    const LsValue *x = &r->g->value[v.i];
    int64_t stride[LS_MAX_RANK], at = 0;
    ls_strides(&x->shape, x->layout, stride);
    for (int k = x->shape.rank - 1; k >= 0; k--) {
        at += index % x->shape.dim[k] * stride[k];
        index /= x->shape.dim[k];
    }
    return at;
}

static inline double rig_get(const Rig *r, LsValueId v, int64_t index)
{
    const char *b = r->buffer[v.i];
    int64_t at = rig_place(r, v, index);
    switch (r->g->value[v.i].type) {
    case LS_REAL: return r->real_bytes == 4 ? ((const float *)b)[at] : ((const double *)b)[at];
    case LS_I64:  return (double)((const int64_t *)b)[at];
    case LS_I32:  return ((const int32_t *)b)[at];
    case LS_BF16: return (double)ls_from_bf16(((const ls_bf16 *)b)[at]);
    case LS_F16:  return (double)ls_from_f16(((const ls_f16 *)b)[at]);
    default:      return ((const uint8_t *)b)[at];
    }
}

static inline void rig_set(Rig *r, LsValueId v, int64_t index, double x)
{
    char *b = r->buffer[v.i];
    int64_t at = rig_place(r, v, index);
    switch (r->g->value[v.i].type) {
    case LS_REAL:
        if (r->real_bytes == 4)
            ((float *)b)[at] = (float)x;
        else
            ((double *)b)[at] = x;
        break;
    case LS_I64: ((int64_t *)b)[at] = (int64_t)x; break;
    case LS_I32: ((int32_t *)b)[at] = (int32_t)x; break;
    case LS_BF16: ((ls_bf16 *)b)[at] = ls_to_bf16((float)x); break; /* cut to the type's numbers */
    case LS_F16: ((ls_f16 *)b)[at] = ls_to_f16((float)x); break;
    default:     ((uint8_t *)b)[at] = (uint8_t)x; break;
    }
}

/* Exactly the bytes of the value, so that a kernel that leaves it is found by ASan and valgrind. */
static inline void rig_buffer(Rig *r, LsValueId v)
{
    ck_assert_uint_lt(v.i, RIG_VALUES);
    size_t bytes = (size_t)ls_value_bytes(r->g, v, r->real_bytes);
    void *b = NULL;
    ck_assert_int_eq(posix_memalign(&b, 64, bytes), 0);
    r->buffer[v.i] = memset(b, 0x5a, bytes);
}

/* An operand: random in [-1, 1), small integers, bits, or any bytes. */
static inline LsValueId rig_operand(Rig *r, LsType type, LsLayout layout, LsShape shape)
{
    LsValueId v = ls_value_add(&r->cx, r->g, LS_V_INPUT, "x", type, &shape, NULL);
    r->g->value[v.i].layout = layout;
    rig_buffer(r, v);
    for (int64_t i = 0; i < ls_count(&shape); i++) {
        double x = rig_random(r);
        rig_set(r, v, i, ls_is_float(type) ? x : type == LS_BOOL ? x > 0
                                           : type == LS_U8   ? floor((x + 1) * 128)
                                                             : floor(x * 5));
    }
    return v;
}

/* A constant of one element. */
static inline LsValueId rig_literal(Rig *r, double x)
{
    LsValueId v = ls_const_real(&r->cx, r->g, x);
    rig_buffer(r, v);
    rig_set(r, v, 0, x);
    return v;
}

static inline LsNodeId rig_node(Rig *r, LsOpCode op, size_t nin, const LsValueId in[], int nout,
                                const LsAttr *attr)
{
    LsNodeId n = ls_append_bare(r->g, op, (int)nin, in, nout, attr);
    return n;
}

static inline LsValueId rig_result(Rig *r, LsNodeId n, int k, LsType type, LsLayout layout,
                                   LsShape shape)
{
    LsValueId v = ls_out(r->g, n, k);
    ls_set_out(r->g, n, k, type, &shape);
    r->g->value[v.i].layout = layout;
    rig_buffer(r, v);
    return v;
}

/* ---- running ---- */
static int rig_split;       /* how ls_parallel cuts: units of a range */
static size_t rig_dirty;    /* bytes of the stack below that hold NaN before each of them */

/* What a kernel reads of its own room before it wrote there shows. */
static __attribute__((noinline)) void rig_dirty_stack(void)
{
    if (rig_dirty > 0) {
        char *room = __builtin_alloca(rig_dirty);
        memset(room, 0xff, rig_dirty);
        __asm__ volatile("" : : "r"(room) : "memory");
    }
}

void ls_parallel(LsRun *run, LsPart fn, int64_t units, void *const arg[]);
void ls_parallel(LsRun *run, LsPart fn, int64_t units, void *const arg[])
{
    int64_t step = rig_split == 0 ? units : rig_split;
    int64_t last = (units + step - 1) / step - 1;
    for (int64_t k = last; k >= 0; k--) {       /* backwards: units are independent */
        rig_dirty_stack();
        fn(run, arg, k * step, (k + 1) * step < units ? (k + 1) * step : units);
    }
}

static inline LsKernelId rig_kernel(const Rig *r, LsNodeId n)
{
    const LsNode *node = &r->g->node[n.i];
    return node->op == LS_OP_FUSED ? LS_K_FUSED : ls_op[node->op]->kernel;
}

static inline const LsEmitter *rig_emitter(const Rig *r, LsNodeId n)
{
    return r->emitter != NULL ? r->emitter : ls_emitter_of(r->target.kind, rig_kernel(r, n));
}

static inline void rig_emit(Rig *r, const LsKernelText *like, FILE *parts, FILE *host,
                            LsMarks *marks)
{
    LsEmit e = {.to = parts, .marks = marks}, h = {.to = host};
    LsKernelText k = *like;
    k.e = &e;
    k.host = parts == host ? &e : &h;
    rig_emitter(r, k.n)->emit(&k);
    ck_assert_int_eq(e.depth + h.depth, 0);
}

/* The form that kernels have which share a text, of one that is alone: what may be an argument
 * is. */
static inline bool rig_emit_numbers(Rig *r, const LsKernelText *k, FILE *f)
{
    char *text[2] = {0};
    size_t size[2];
    FILE *to[2] = {open_memstream(&text[0], &size[0]), open_memstream(&text[1], &size[1])};
    LsMarks marks = {.arena = r->cx.arena};
    rig_emit(r, k, to[0], to[1], &marks);
    fclose(to[0]);
    fclose(to[1]);
    const LsNumbers *n = ls_numbers_find(r->cx.arena, text[0], &marks, text[1]);
    const LsShared *s = n != NULL ? ls_numbers_share(r->cx.arena, &n, 1, true) : NULL;
    if (s != NULL)
        fprintf(f, "%s%s", ls_numbers_text(r->cx.arena, s),
                ls_numbers_host(r->cx.arena, s, 0, k->name, k->name));
    free(text[0]);
    free(text[1]);
    return s != NULL;
}

/* The kernel of node i, called run_k<i> or, with numbers as arguments, run_n<i>. */
static inline void rig_print_kernel(Rig *r, uint32_t i, bool numbers, FILE *f)
{
    char name[16];
    snprintf(name, sizeof name, "%c%u", numbers ? 'n' : 'k', i);
    const LsKernelText k = {.g = r->g, .n = {i}, .name = name, .target = &r->target};
    if (!numbers || !rig_emit_numbers(r, &k, f))
        rig_emit(r, &k, f, f, NULL);
    fprintf(f, "void run_%s(LsRun *run, void *const arg[]) { %s(run, arg); }\n", name, name);
}

/* All kernels in one text; those for GPUs in both forms. To be freed. */
static inline char *rig_print(Rig *r)
{
    char *text = NULL;
    size_t size;
    const bool cuda = r->target.kind == LS_TARGET_CUDA;
    FILE *f = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(f);
    fprintf(f, cuda ? "#define LS_EXECUTOR\n#include <tests/support/cuda_executor.h>\n"
               : r->products ? "#include <tests/support/rig_products.h>\n"
                             : "#include <runtime/kernels/ls_kernel.h>\n");
    for (uint32_t i = 1; i < r->g->nnode; i++)
        if (r->g->node[i].op == LS_OP_ADAM_CODES)
            fprintf(f, "#include <runtime/kernels/ls_codes.h>\n");
    for (uint32_t i = 1; i < r->g->nnode; i++)
        for (int numbers = 0; numbers <= cuda; numbers++)
            rig_print_kernel(r, i, numbers, f);
    fclose(f);
    return text;
}

/* Without flags of a test: $LS_RIG_CFLAGS, else -O0, as compiling takes most of the time of these
 * tests, and -O1 where whole sets of cases are run. */
static inline const char *rig_flags(const Rig *r)
{
    const char *asked = getenv("LS_RIG_CFLAGS");
    return r->flags != NULL ? r->flags : asked != NULL ? asked : tests_do_all() ? "-O1" : "-O0";
}

/* Compiles and loads a text, by $LS_RIG_CC, or cc. Functions of libc and libm are found in the
 * test's own process: to read those libraries takes a linker as long as the rest of its work. */
static inline void *rig_load(const Rig *r, const char *text)
{
    static int serial;
    const char *cc = getenv("LS_RIG_CC");
    char source[64], object[64], command[1024];
    snprintf(source, sizeof source, "/tmp/ls_rig_%d_%d.c", (int)getpid(), serial);
    snprintf(object, sizeof object, "/tmp/ls_rig_%d_%d.so", (int)getpid(), serial++);
    FILE *f = fopen(source, "w");
    ck_assert(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
    snprintf(command, sizeof command,
             "%s " LS_KERNEL_FLAGS " %s -Wall -Wextra "
             "-Werror -Wno-unused-function %s %s -I" LS_PRECOMPILED
             " -I%s -shared -nostdlib %s -o %s -lgcc",
             cc != NULL ? cc : "cc", rig_flags(r), r->real_bytes == 8 ? "-DLS_F64=" : "",
             r->target.kind == LS_TARGET_CPU ? "" : "-ffp-contract=off", LS_SOURCE, source, object);
    ck_assert_msg(system(command) == 0, "the kernels do not compile: %s", source);
    void *so = dlopen(object, RTLD_NOW);
    ck_assert_msg(so != NULL, "%s", dlerror());
    if (getenv("LS_RIG_KEEP") == NULL) {
        unlink(source);
        unlink(object);
    }
    return so;
}

/* The object of the rig's kernels. What a test has compiled before is not compiled again. */
static inline void *rig_compile(Rig *r)
{
    enum { KEPT = 16 };
    static struct { char *text; const char *flags; int real_bytes; void *so; } kept[KEPT];
    static int next;
    char *text = rig_print(r);
    for (int k = 0; k < KEPT; k++)
        if (kept[k].text != NULL && kept[k].real_bytes == r->real_bytes
            && strcmp(kept[k].flags, rig_flags(r)) == 0 && strcmp(kept[k].text, text) == 0)
            return free(text), kept[k].so;
    int k = next++ % KEPT;
    if (kept[k].text != NULL) {
        dlclose(kept[k].so);
        free(kept[k].text);
    }
    kept[k].text = text;
    kept[k].flags = rig_flags(r);
    kept[k].real_bytes = r->real_bytes;
    return kept[k].so = rig_load(r, text);
}

/* Runs n; result `out`, if not negative, takes the place of operand `in`. */
static inline void rig_step(Rig *r, void *so, LsNodeId n, int out, int in)
{
    const LsNode *node = &r->g->node[n.i];
    const LsEmitter *em = rig_emitter(r, n);
    void *arg[64] = {0};
    char name[16];
    int64_t scratch = em->workspace != NULL ? em->workspace(r->g, n, &r->target) : 0;
    for (int k = 0; k < node->nin; k++)
        arg[k] = ls_is_read(node, k) ? r->buffer[ls_in(r->g, n, k).i] : NULL;
    for (int k = 0; k < node->nout; k++)
        arg[node->nin + k] = r->buffer[ls_out(r->g, n, k).i];
    if (out >= 0)
        arg[node->nin + out] = arg[in];
    if (scratch > 0)
        ck_assert_int_eq(posix_memalign(&arg[node->nin + node->nout], 64, (size_t)scratch), 0);
    snprintf(name, sizeof name, "run_%c%u", r->numbers ? 'n' : 'k', n.i);
    LsKernel *fn = &(LsKernel){0};
    *(void **)fn = dlsym(so, name);
    (*fn)(&r->run, arg);
    free(arg[node->nin + node->nout]);
}

/* Bytes of everything that a node may write. */
static inline char *rig_snapshot(const Rig *r, char *into)
{
    size_t size = 0;
    for (uint32_t v = 1; v < r->g->nvalue; v++)
        if (r->buffer[v] != NULL) {
            size_t bytes = (size_t)ls_value_bytes(r->g, (LsValueId){v}, r->real_bytes);
            if (into != NULL)
                memcpy(into + size, r->buffer[v], bytes);
            size += bytes;
        }
    return into != NULL ? into : calloc(1, size + 1);
}

static inline void rig_restore(Rig *r, const char *from)
{
    for (uint32_t v = 1; v < r->g->nvalue; v++)
        if (r->buffer[v] != NULL) {
            size_t bytes = (size_t)ls_value_bytes(r->g, (LsValueId){v}, r->real_bytes);
            memcpy(r->buffer[v], from, bytes);
            from += bytes;
        }
}

/* The node computes the same when result `out` overwrites operand `in`: `done` holds its results,
 * `start` is what was there before it ran. */
static inline void rig_check_inplace(Rig *r, void *so, LsNodeId n, int out, int in,
                                     const char *start, const char *done)
{
    LsValueId x = ls_in(r->g, n, in), y = ls_out(r->g, n, out);
    size_t bytes = (size_t)ls_value_bytes(r->g, y, r->real_bytes);
    char *want = calloc(1, bytes + 1);
    rig_restore(r, done);
    memcpy(want, r->buffer[y.i], bytes);
    rig_restore(r, start);
    rig_step(r, so, n, out, in);
    ck_assert_msg(memcmp(want, r->buffer[x.i], bytes) == 0,
                  "%s: result %d may not take the place of operand %d",
                  ls_op[r->g->node[n.i].op]->name, out, in);
    free(want);
}

static inline bool rig_reads_once(const Rig *r, LsNodeId n, int in)
{
    int reads = 0;
    for (int k = 0; k < r->g->node[n.i].nin; k++)
        reads += ls_in(r->g, n, k).i == ls_in(r->g, n, in).i;
    return reads == 1;
}

static inline void rig_check_all_inplace(Rig *r, void *so, const char *start)
{
    rig_restore(r, start);
    char *before = rig_snapshot(r, rig_snapshot(r, NULL)), *done = rig_snapshot(r, NULL);
    for (uint32_t i = 1; i < r->g->nnode; i++) {
        const LsNodeId n = {i};
        rig_snapshot(r, before);
        rig_step(r, so, n, -1, -1);
        rig_snapshot(r, done);
        for (int out = 0; out < r->g->node[i].nout; out++)
            for (int in = 0; in < r->g->node[i].nin; in++)
                if (ls_is(ls_in(r->g, n, in)) && rig_reads_once(r, n, in)
                    && ls_kernel_inplace(r->g, n, out, in))
                    rig_check_inplace(r, so, n, out, in, before, done);
        rig_restore(r, done);
    }
    free(before);
    free(done);
}

/* The values' bytes are those of `want`. */
static inline void rig_same_bits(const Rig *r, const char *want, const char *what, int number)
{
    for (uint32_t v = 1; v < r->g->nvalue; v++)
        if (r->buffer[v] != NULL) {
            size_t bytes = (size_t)ls_value_bytes(r->g, (LsValueId){v}, r->real_bytes);
            ck_assert_msg(memcmp(want, r->buffer[v], bytes) == 0,
                          "value %u of k%u: the bits depend on %s (%d)", v, r->g->value[v].def.i,
                          what, number);
            want += bytes;
        }
}

static inline void rig_run_all(Rig *r, void *so, const char *start)
{
    rig_restore(r, start);
    for (uint32_t i = 1; i < r->g->nnode; i++)
        rig_step(r, so, (LsNodeId){i}, -1, -1);
    const char *error = exec_error();
    ck_assert_msg(error == NULL, "%s", error);
}

/* ---- the same on a GPU ---- */
/* No node is left to libraries there, nor computes an operand. */
static inline bool rig_has_cuda(const Rig *r)
{
    for (uint32_t i = 1; i < r->g->nnode; i++) {
        LsKernelId id = rig_kernel(r, (LsNodeId){i});
        if (r->g->node[i].computed != NULL
            || ls_emitter_of(LS_TARGET_CUDA, id) != ls_emitter_of(LS_TARGET_CPU, id))
            return false;
    }
    return true;
}

/* The kernel does every element's operations in the same order on both machines, and rounds each of
 * them. */
static inline bool rig_same_order(const Rig *r, LsNodeId n)
{
    const LsNode *node = &r->g->node[n.i];
    bool reduces = false;
    if (node->op == LS_OP_FUSED)
        for (int k = 0; k < node->nout; k++)
            reduces |= node->attr.fused.body->out[k].reduce;
    switch (rig_kernel(r, n)) {
    case LS_K_FUSED:                   return !reduces;
    case LS_K_UPDATE: case LS_K_MOVE: case LS_K_GATHER: case LS_K_SCAN: case LS_K_POOL:
    case LS_K_RESIZE: case LS_K_SAMPLE: return r->flags == NULL;     /* else it may contract them */
    default:                           return false;
    }
}

/* Values that need not agree to the bit, as a sum in another order went into them. */
static inline void rig_find_inexact(const Rig *r, bool inexact[RIG_VALUES])
{
    for (uint32_t i = 1; i < r->g->nnode; i++) {
        const LsNode *node = &r->g->node[i];
        bool loose = !rig_same_order(r, (LsNodeId){i});
        for (int k = 0; k < node->nin; k++)
            loose |= inexact[ls_in(r->g, (LsNodeId){i}, k).i];
        for (int k = 0; k < node->nout; k++)
            inexact[ls_out(r->g, (LsNodeId){i}, k).i] = loose;
        for (int k = 0; k < node->nin && loose && rig_kernel(r, (LsNodeId){i}) == LS_K_UPDATE; k++)
            inexact[ls_in(r->g, (LsNodeId){i}, k).i] = true;
    }
}

/* Exact values agree to the bit, except that the sign and the payload of a NaN are free: a compiler
 * may swap the operands of a sum. */
static inline bool rig_near(double a, double b, bool loose, int real_bytes)
{
    double bound = (real_bytes == 4 ? 5e-6 : 1e-13) * (fabs(b) > 1 ? fabs(b) : 1);
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return (a == b && signbit(a) == signbit(b)) || (loose && (a == b || fabs(a - b) <= bound));
}

static inline void rig_compare(const Rig *r, LsValueId v, const char *want, bool loose)
{
    int64_t bytes = ls_value_bytes(r->g, v, r->real_bytes);
    int64_t n = loose ? ls_count(ls_shape(r->g, v)) : bytes / r->real_bytes;
    if (ls_type(r->g, v) != LS_REAL) {
        ck_assert_msg(memcmp(r->buffer[v.i], want, (size_t)bytes) == 0,
                      "value %u of k%u: other bits on a GPU", v.i, r->g->value[v.i].def.i);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        double a =
            r->real_bytes == 4 ? ((float *)r->buffer[v.i])[k] : ((double *)r->buffer[v.i])[k];
        double b = r->real_bytes == 4 ? ((const float *)want)[k] : ((const double *)want)[k];
        if (!rig_near(a, b, loose, r->real_bytes))
            ck_abort_msg("value %u of k%u, element %" PRId64
                         " in memory: %.9g on a GPU, not %.9g%s",
                         v.i, r->g->value[v.i].def.i, k, a, b, loose ? "" : ", to the bit");
    }
}

/* Leaves the results, which are near those of the CPU, if given. */
static inline void rig_run_cuda(Rig *r, const char *start, const char *cpu)
{
    char *first = NULL;
    bool inexact[RIG_VALUES] = {0};
    r->target.kind = LS_TARGET_CUDA;
    rig_find_inexact(r, inexact);
    void *so = rig_compile(r);
    for (unsigned order = 0; order < 3; order++) {
        exec_order(order);
        r->numbers = order == 2;
        rig_run_all(r, so, start);
        if (order == 0)
            first = rig_snapshot(r, rig_snapshot(r, NULL));
        rig_same_bits(r, first, "the order of threads, or whether numbers are arguments",
                      (int)order);
    }
    r->numbers = false;
    for (uint32_t v = 1; v < r->g->nvalue && cpu != NULL; v++)
        if (r->buffer[v] != NULL) {
            rig_compare(r, (LsValueId){v}, cpu, inexact[v]);
            cpu += ls_value_bytes(r->g, (LsValueId){v}, r->real_bytes);
        }
    rig_check_all_inplace(r, so, start);
    rig_restore(r, first);
    free(first);
    r->target.kind = LS_TARGET_CPU;
}

/* The text alone, with numbers and with arguments in their place. */
static inline void rig_print_cuda(Rig *r)
{
    r->target.kind = LS_TARGET_CUDA;
    free(rig_print(r));
    r->target.kind = LS_TARGET_CPU;
}

/* Several times with differently cut units. To be freed: the results. */
static inline char *rig_run_cpu(Rig *r, const char *start)
{
    static const int split[] = {0, 1, 2, 3, 7};
    void *so = rig_compile(r);
    char *first = NULL;
    for (size_t s = 0; s < sizeof split / sizeof *split; s++) {
        rig_split = split[s];
        rig_run_all(r, so, start);
        if (first == NULL)
            first = rig_snapshot(r, rig_snapshot(r, NULL));
        rig_same_bits(r, first, "how units are cut, so many at a time", split[s]);
    }
    rig_check_all_inplace(r, so, start);
    return first;
}

/* Runs every node in order from the same start, in all ways that must agree. Kernels are compiled
 * without sanitizers: what prints those for GPUs is all that these can see of them. */
static inline void rig_run(Rig *r)
{
    char *start = rig_snapshot(r, rig_snapshot(r, NULL));
    char *first = r->cuda ? NULL : rig_run_cpu(r, start);
    if (!r->cuda && rig_has_cuda(r) && tests_do_less())
        rig_print_cuda(r);
    else if (r->cuda || rig_has_cuda(r))
        rig_run_cuda(r, start, first);
    if (first != NULL)
        rig_restore(r, first);
    free(start);
    free(first);
}

/* |got - want| <= tolerance of the precision, relative to the larger of |want| and 1. Check writes
 * a line of every assertion that holds: too many for single elements. */
static inline void rig_close_to(const Rig *r, LsValueId v, int64_t index, double want,
                                double tolerance)
{
    double got = rig_get(r, v, index), scale = fabs(want) > 1 ? fabs(want) : 1;
    double bound = tolerance * (r->real_bytes == 4 ? 1 : 1e-8) * scale;
    bool near = isnan(want) ? isnan(got) : got == want || fabs(got - want) <= bound;
    if (!near)
        ck_abort_msg("element %" PRId64 ": %.9g, want %.9g", index, got, want);
}

#endif
