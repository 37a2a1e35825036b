/* tests/support/gpu_nodes.h -- a graph for GPUs node by node: its kernels, run by the executor and
 * by stand-ins of the libraries, give what the CPU's kernels give of the same operands. */
#ifndef LS_TESTS_SUPPORT_GPU_NODES_H
#define LS_TESTS_SUPPORT_GPU_NODES_H

#include "tests/support/kernel_rig.h"

#include "compiler/passes/kernels_16.h"
#include "runtime/kernels/ls_kernel.h"
#include "tests/support/cublas_stand_in.h"
#include "tests/support/cudnn_stand_in.h"

static inline bool has_kernel(const Rig *r, uint32_t i)
{
    return r->g->node[i].op != LS_OP_NOP && rig_emitter(r, (LsNodeId){i}) != NULL;
}

/* The CPU has no such kernel in 16 bits: of reals it gives what is rounded here. Updates round
 * their moments themselves. */
static inline bool is_wide_on_cpu(const Rig *r, LsNodeId n)
{
    if (ls_op[r->g->node[n.i].op]->kernel == LS_K_UPDATE)
        return false;
    const LsNode *node = &r->g->node[n.i];
    return node->op == LS_OP_CONV_DW || !ls_takes_16(r->g, n, node->rounds, false);
}

typedef struct Wide {           /* a node's operands and results before they became reals */
    LsType type[LS_MAX_IN + LS_MAX_OUT];
    char *buffer[LS_MAX_IN + LS_MAX_OUT];
    LsType rounds;
} Wide;

static inline LsValueId argument(const Rig *r, LsNodeId n, int k)
{
    const LsNode *node = &r->g->node[n.i];
    return k < node->nin ? ls_in(r->g, n, k) : ls_out(r->g, n, k - node->nin);
}

static inline double round_to(LsType type, double v)
{
    return (double)(type == LS_BF16  ? ls_from_bf16(ls_to_bf16(ls_round_brain((float)v)))
                    : type == LS_F16 ? ls_from_f16(ls_to_f16(ls_round_half((float)v))) : (float)v);
}

/* Changes the type of value v. filled: its numbers, rounded, go to a new buffer; returns the old
 * one. */
static inline char *retype(Rig *r, LsValueId v, LsType to, bool filled)
{
    LsValue *x = &r->g->value[v.i];
    const int64_t count = ls_count(&x->shape);
    char *old = r->buffer[v.i];
    double *all = calloc((size_t)count + 1, sizeof *all);
    for (int64_t i = 0; i < count && filled; i++)
        all[i] = round_to(to, rig_get(r, v, i));
    x->type = to;
    if (filled)
        rig_buffer(r, v);
    for (int64_t i = 0; i < count && filled; i++)
        rig_set(r, v, i, all[i]);
    free(all);
    return old;
}

/* Operands and results of 16 bits of node n become reals. */
static inline void widen(Rig *r, LsNodeId n, Wide *w, bool filled)
{
    LsNode *node = &r->g->node[n.i];
    *w = (Wide){.rounds = node->rounds};
    node->rounds = LS_REAL;
    for (int k = 0; k < node->nin + node->nout; k++) {
        const LsValueId v = argument(r, n, k);
        w->type[k] = ls_type(r->g, v);
        if (ls_is(v) && ls_is_16(w->type[k]))
            w->buffer[k] = retype(r, v, LS_REAL, filled);
    }
}

/* And back: results are rounded. */
static inline void narrow(Rig *r, LsNodeId n, const Wide *w, bool filled)
{
    LsNode *node = &r->g->node[n.i];
    node->rounds = w->rounds;
    for (int k = 0; k < node->nin + node->nout; k++) {
        const LsValueId v = argument(r, n, k);
        if (w->buffer[k] == NULL)
            continue;
        char *wide = retype(r, v, w->type[k], filled && k >= node->nin);
        if (!filled)
            continue;
        free(wide);
        if (k < node->nin)
            r->buffer[v.i] = w->buffer[k];
        else
            free(w->buffer[k]);
    }
}

static inline void run_on_cpu(Rig *r, void *so, LsNodeId n)
{
    Wide w;
    const bool wide = is_wide_on_cpu(r, n);
    r->target.kind = LS_TARGET_CPU;
    if (wide)
        widen(r, n, &w, true);
    rig_step(r, so, n, -1, -1);
    if (wide)
        narrow(r, n, &w, true);
}

/* Whether the CPU's kernels may need products of bfloat16 factors. */
static inline bool has_dot_products(const Rig *r)
{
    bool any = false;
    for (uint32_t i = 1; i < r->g->nvalue; i++)
        any |= r->g->value[i].type == LS_BF16;
    return any;
}

/* The kernels of all nodes for the rig's target. */
static inline void *build(Rig *r)
{
    const bool cuda = r->target.kind == LS_TARGET_CUDA;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!cuda && has_dot_products(r))
        fputs(LS_DEFINES_DOT16, f);
    fprintf(f, cuda ? "#define LS_EXECUTOR\n#include <tests/support/cuda_executor.h>\n"
                      "#include <runtime/cuda/cublaslt_matmul.h>\n#include "
                      "<runtime/cuda/cudnn_conv_step.h>\n"
                      "void ls_cuda_matmul(LsRun *, const LsCudaMatmul *, void *const[]);\n"
                      "void ls_cuda_conv(LsRun *, const LsCudaConv *, void *const[]);\n"
                    : "#include <tests/support/rig_products.h>\n");
    fprintf(f, "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"); /* statements that nothing
                                                                             reads */
    for (uint32_t i = 1; i < r->g->nnode; i++) {
        const bool wide = !cuda && has_kernel(r, i) && is_wide_on_cpu(r, (LsNodeId){i});
        Wide w;
        if (wide)
            widen(r, (LsNodeId){i}, &w, false);
        for (int numbers = 0; has_kernel(r, i) && numbers <= cuda; numbers++)
            rig_print_kernel(r, i, numbers, f);
        if (wide)
            narrow(r, (LsNodeId){i}, &w, false);
    }
    fclose(f);
    void *so = rig_load(r, text);
    free(text);
    return so;
}

/* The largest difference that rounding explains: sums in another order, by the largest number in
 * sight, then rounded elements that fall to the next number of the type. tf32: factors are rounded
 * to that. */
static inline double bound(LsType type, bool tf32, double most, double v)
{
    return (tf32 ? 2e-3 : 1e-5) * most
           + (type == LS_BF16  ? 0x1p-7
              : type == LS_F16 ? 0x1p-10
                               : 0)
                 * fabs(v)
           + (type == LS_F16 ? 0x1p-24 : 0);
}

/* The largest of the value's reals. */
static inline double largest(const Rig *r, LsValueId v)
{
    double most = 0;
    for (int64_t i = 0;
         ls_is(v) && ls_is_float(ls_type(r->g, v)) && i < ls_count(ls_shape(r->g, v)); i++)
        most = fmax(most, isfinite(rig_get(r, v, i)) ? fabs(rig_get(r, v, i)) : 0);
    return most;
}

/* Value v, in its buffer, against `want`. most: the largest real of the node's operands. */
static inline void compare(Rig *r, LsNodeId n, LsValueId v, char *want, double most, bool exact)
{
    const LsValue *x = &r->g->value[v.i];
    /* weights of rows */
    const bool tf32 = ls_op[r->g->node[n.i].op]->kernel == LS_K_ATTENTION;
    char *got = r->buffer[v.i];
    most = fmax(most, largest(r, v));
    for (int64_t i = 0; i < ls_count(&x->shape); i++) {
        const double a = rig_get(r, v, i);
        r->buffer[v.i] = want;
        const double b = rig_get(r, v, i);
        r->buffer[v.i] = got;
        const bool same = a == b ? !exact || signbit(a) == signbit(b) : isnan(a) && isnan(b);
        if (!same && (exact || !(fabs(a - b) <= bound(x->type, tf32, most, b))))
            ck_abort_msg("node %u: %s (%s)[%d]: %.9g on a GPU, not %.9g%s", n.i, x->name,
                         ls_op[r->g->node[n.i].op]->name, (int)i, a, b,
                         exact ? ", to the bit" : "");
    }
}

/* Copies the state that node n overwrites into saved[], or back. */
static inline void copy_state(Rig *r, LsNodeId n, char *saved[], bool back)
{
    for (int k = 0; k < r->g->node[n.i].nin; k++) {
        const LsValueId v = ls_in(r->g, n, k);
        if (!ls_is(v) || !ls_writes(&r->g->node[n.i], k))
            continue;
        const size_t bytes = (size_t)ls_value_bytes(r->g, v, 4);
        if (!back)
            saved[k] = malloc(bytes);
        memcpy(back ? r->buffer[v.i] : saved[k], back ? saved[k] : r->buffer[v.i], bytes);
    }
}

/* The kernel, whose results lie in their buffers, gives the same bits where a result takes an
 * operand's place. */
static inline void check_in_place(Rig *r, void *gpu, LsNodeId n, char *saved[])
{
    const LsNode *node = &r->g->node[n.i];
    for (int out = 0; out < node->nout; out++)
        for (int in = 0; in < node->nin; in++) {
            const LsValueId x = ls_in(r->g, n, in), y = ls_out(r->g, n, out);
            if (!ls_is(x) || !rig_reads_once(r, n, in) || !ls_kernel_inplace(r->g, n, out, in))
                continue;
            const size_t bytes = (size_t)ls_value_bytes(r->g, x, 4);
            char *operand = r->buffer[x.i];
            rig_buffer(r, x);
            memcpy(r->buffer[x.i], operand, bytes);
            copy_state(r, n, saved, true);
            rig_step(r, gpu, n, out, in);
            ck_assert_msg(memcmp(r->buffer[x.i], r->buffer[y.i], bytes) == 0,
                          "node %u (%s): result %d in place of operand %d", n.i,
                          ls_op[node->op]->name, out, in);
            free(r->buffer[x.i]);
            r->buffer[x.i] = operand;
        }
}

/* Runs node n on the GPU from the operands that the CPU's kernels gave, and leaves the CPU's
 * results. */
static inline void check_node(Rig *r, void *cpu, void *gpu, LsNodeId n, bool numbers)
{
    const LsNode *node = &r->g->node[n.i];
    char *want[LS_MAX_OUT] = {0};
    char *saved[LS_MAX_IN] = {0};
    double most = 0;
    copy_state(r, n, saved, false);
    run_on_cpu(r, cpu, n);
    copy_state(r, n, saved, true);
    const bool exact = rig_same_order(r, n);
    for (int k = 0; k < node->nout; k++) {
        LsValueId y = ls_out(r->g, n, k);
        want[k] = r->buffer[y.i];
        rig_buffer(r, y);
    }
    r->target.kind = LS_TARGET_CUDA;
    r->numbers = numbers;
    rig_step(r, gpu, n, -1, -1);
    check_in_place(r, gpu, n, saved);
    for (int k = 0; k < LS_MAX_IN; k++)
        free(saved[k]);
    r->numbers = false;
    const char *error = exec_error();
    ck_assert_msg(error == NULL, "%s", error);
    for (int k = 0; k < node->nin; k++)
        most = fmax(most, largest(r, ls_in(r->g, n, k)));
    for (int k = 0; k < node->nout; k++) {
        LsValueId y = ls_out(r->g, n, k);
        compare(r, n, y, want[k], most, exact);
        free(r->buffer[y.i]);
        r->buffer[y.i] = want[k];
    }
}

/* Runs all nodes but updates, which are of reals alone. The rig's graph has its operands in the
 * buffers. */
static inline void check_all_nodes(Rig *r)
{
    int kept, again;
    r->products = true;
    stand_in_open(LS_FAKE_CUBLASLT);
    cudnn_stand_in_open();
    r->target.kind = LS_TARGET_CPU;
    void *cpu = build(r);
    r->target.kind = LS_TARGET_CUDA;
    void *gpu = build(r);
    for (uint32_t i = 1; i < r->g->nnode; i++) {
        const LsNodeId id = {i};
        exec_order(i % 3);
        if (has_kernel(r, i) && r->g->node[i].nout > 0)
            check_node(r, cpu, gpu, id, i % 2 == 1);
        else if (!has_kernel(r, i) && r->g->node[i].op != LS_OP_NOP)      /* a view */
            memcpy(r->buffer[ls_out(r->g, id, 0).i], r->buffer[ls_in(r->g, id, 0).i],
                   (size_t)ls_value_bytes(r->g, ls_out(r->g, id, 0), 4));
    }
    cudnn_stand_in_close(&kept, &again);
    stand_in_close();
    dlclose(cpu);
    dlclose(gpu);
}

/* Buffers for all values; constants have their numbers. */
static inline void open_buffers(Rig *r)
{
    for (uint32_t i = 1; i < r->g->nvalue; i++) {
        const LsValueId v = {i};
        const LsValue *x = &r->g->value[i];
        rig_buffer(r, v);
        for (int64_t k = 0; x->kind == LS_V_CONST && x->data != NULL && k < ls_count(&x->shape);
             k++)
            rig_set(r, v, k,
                    ls_is_float(x->type) ? ls_const_at(r->g, v, k)
                                         : (double)ls_const_int_at(r->g, v, k));
    }
}

#endif
