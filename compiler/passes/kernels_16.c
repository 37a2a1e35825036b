/* compiler/passes/kernels_16.c -- see kernels_16.h. */
#include "compiler/passes/kernels_16.h"

#include "compiler/ops/attention_shape.h"

enum {
    LONGEST = 1 << 16,          /* elements of a row of reals on a kernel's stack */
    WIDEST = 1 << 13,           /* the same in the shared memory of a GPU's block */
};

bool ls_takes_any(LsOpCode op)
{
    LsKernelId k = ls_op[op]->kernel;
    return k == LS_K_MAP || k == LS_K_REDUCE || k == LS_K_VIEW;
}

static bool is_innermost(const LsGraph *g, LsValueId v, int axis)
{
    const LsValue *x = &g->value[v.i];
    return axis == (x->layout == LS_LAST && x->shape.rank >= 3 ? 1 : x->shape.rank - 1);
}

/* The axis of the rows over which a softmax or a loss sums. */
static bool has_rows(const LsGraph *g, LsNodeId n, int64_t longest)
{
    const LsNode *node = &g->node[n.i];
    bool loss = ls_op[node->op]->kernel == LS_K_LOSS;
    LsValueId v = !loss ? ls_out(g, n, 0) : ls_in(g, n, node->op == LS_OP_XENT ? 0 : 1);
    int axis = loss ? node->attr.loss.axis : node->attr.axis.axis;
    return is_innermost(g, v, axis) && ls_shape(g, v)->dim[axis] <= longest;
}

/* Tiles of bfloat16 factors fit on a thread's stack. */
static bool has_tiles(const LsAttentionSize *s)
{
    enum { DEEPEST = 1024 };
    return s->depth <= DEEPEST && s->width <= DEEPEST;
}

/* What the kernel keeps of a head besides tiles fits on a thread's stack as reals. bfloat16: the
 * sums of the gradient; float16: all rows, and the gradient takes one head at a time. */
static bool is_small_attention(const LsGraph *g, LsNodeId n, LsType type)
{
    enum { MOST = 1 << 19, MOST_SUMS = 1 << 20 };
    const LsAttentionSize s = ls_attention_size(g, n);
    const bool back = ls_attention_is_back(g, n);
    if (type == LS_BF16)
        return has_tiles(&s)
               && (!back || s.rows * s.depth + s.cols * (s.depth + s.width) <= MOST_SUMS);
    int64_t elements = (s.rows + s.cols) * (s.depth + s.width) * (back ? 2 : 1);
    return elements <= MOST && (!back || s.heads == s.groups);
}

bool ls_multiplies_16(const LsGraph *g, LsNodeId n, LsType type)
{
    const LsKernelId kernel = ls_op[g->node[n.i].op]->kernel;
    if (kernel != LS_K_ATTENTION)
        return kernel == LS_K_CONV || kernel == LS_K_MATMUL;
    const LsAttentionSize s = ls_attention_size(g, n);
    return type == LS_BF16 && has_tiles(&s);
}

static bool cpu_takes(const LsGraph *g, LsNodeId n, LsType type)
{
    LsOpCode op = g->node[n.i].op;
    switch (ls_op[op]->kernel) {
    case LS_K_CONV: case LS_K_MATMUL: return true;
    case LS_K_ATTENTION: return is_small_attention(g, n, type);
    case LS_K_MOVE:    return op != LS_OP_PAD_GRAD;
    case LS_K_GATHER:  return op == LS_OP_GATHER || op == LS_OP_GATHER_EACH;
    case LS_K_POOL:    return ls_shape(g, ls_out(g, n, 0))->dim[1] <= LONGEST;
    case LS_K_SOFTMAX: return has_rows(g, n, LONGEST);
    case LS_K_NORM: return ls_count(ls_in_shape(g, n, op == LS_OP_LAYER_NORM ? 1 : 2)) <= LONGEST;
    case LS_K_LOSS: return (op == LS_OP_XENT || op == LS_OP_XENT_GRAD) && has_rows(g, n, LONGEST);
    default:           return false;
    }
}

/* A loss that sums classes' weights times scores. */
static bool weighs_smoothing(const LsGraph *g, LsNodeId n)
{
    return g->node[n.i].attr.loss.smoothing != 0
           && ls_is(ls_in(g, n, g->node[n.i].op == LS_OP_XENT ? 2 : 3));
}

static bool gpu_takes(const LsGraph *g, LsNodeId n)
{
    LsOpCode op = g->node[n.i].op;
    switch (ls_op[op]->kernel) {
    case LS_K_CONV: case LS_K_MATMUL: return true;
    case LS_K_ATTENTION: return ls_attention_fits_cores(g, n);
    case LS_K_MOVE:    return op != LS_OP_PAD_GRAD;
    case LS_K_GATHER:  return op == LS_OP_GATHER || op == LS_OP_GATHER_EACH;
    case LS_K_POOL:    return ls_shape(g, ls_out(g, n, 0))->dim[1] <= WIDEST;
    case LS_K_SOFTMAX: return has_rows(g, n, INT64_MAX);
    case LS_K_NORM:    return op == LS_OP_LAYER_NORM || op == LS_OP_LAYER_NORM_GRAD;
    case LS_K_LOSS:
        return (op == LS_OP_XENT || op == LS_OP_XENT_GRAD) && has_rows(g, n, INT64_MAX)
               && !weighs_smoothing(g, n);
    default:           return false;
    }
}

bool ls_takes_16(const LsGraph *g, LsNodeId n, LsType type, bool gpu)
{
    return ls_takes_any(g->node[n.i].op) || (gpu ? gpu_takes(g, n) : cpu_takes(g, n, type));
}

unsigned ls_either_width(LsOpCode op)
{
    if (ls_takes_any(op))
        return ~0u;
    switch (ls_op[op]->kernel) {
    case LS_K_GATHER: case LS_K_POOL: return 1;
    case LS_K_SOFTMAX: return 1 | 2;
    case LS_K_NORM:    return op == LS_OP_LAYER_NORM ? 1 : 1 | 2 | 32;
    case LS_K_LOSS:    return op == LS_OP_XENT_GRAD ? 2 : 1;
    default:           return 0;
    }
}

unsigned ls_same_width(LsOpCode op, bool gpu)
{
    LsKernelId k = ls_op[op]->kernel;
    return gpu && (k == LS_K_SOFTMAX || k == LS_K_NORM) ? ls_either_width(op) : 0;
}

bool ls_writes_alike(LsOpCode op, bool gpu)
{
    LsKernelId k = ls_op[op]->kernel;
    return gpu && (k == LS_K_CONV || k == LS_K_SOFTMAX || k == LS_K_NORM) && op != LS_OP_CONV_DW;
}
