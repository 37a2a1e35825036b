/* compiler/passes/mixed_precision.c -- mixed precision: which values are stored in 16 bits, and where reals are rounded.
 *
 * requires layouts and gradients; keeps results, names and order; gives results of nodes the types LS_BF16 or LS_F16 by
 * the table compiler/ir/precision.def. Products that read a value of 32 bits round it themselves (LsNode.rounds). CAST
 * nodes stand around kernels that cannot read or write 16 bits (takes_16): they widen and round exactly as a kernel would.
 *
 * Parameters, state and gradients of parameters stay f32. Weights and constants, and what only moves them, do not widen
 * the results of pointwise operators. */
#include "compiler/ir/precision.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ops/attention_shape.h"
#include "compiler/passes/passes.h"

#include <fnmatch.h>
#include <string.h>

typedef struct Precision {
    const LsPrecision *o;
    bool *gradient;             /* by old value: makes the gradient of a parameter, or the loss: f32 */
    bool *light;                /* by old value: a weight or a constant, perhaps moved */
    bool *narrow;               /* by old value: counts as a value of 16 bits */
    LsValueId (*cast)[2];       /* by old value: its copy in 16 bits; in 32 bits */
    LsPhase *cast_phase;        /* of the copy in 32 bits: it is not kept from the forward part */
    LsPhase phase;              /* of the node that is visited */
} Precision;

enum { LONGEST = 1 << 16 };     /* elements of a row of reals on a kernel's stack */

/* The axis is the innermost in memory, and not too long to be widened as a row. */
static bool is_row(const LsGraph *g, LsValueId v, int axis)
{
    const LsValue *x = &g->value[v.i];
    int innermost = x->layout == LS_LAST && x->shape.rank >= 3 ? 1 : x->shape.rank - 1;
    return axis == innermost && x->shape.dim[axis] <= LONGEST;
}

/* All rows of a head fit on a thread's stack as reals. The gradient takes one head at a time. */
static bool is_small_attention(const LsGraph *g, LsNodeId n)
{
    enum { MOST = 1 << 19 };
    const LsAttentionSize s = ls_attention_size(g, n);
    bool back = ls_attention_is_back(g, n);
    int64_t elements = (s.rows + s.cols) * (s.depth + s.width) * (back ? 2 : 1);
    return elements <= MOST && (!back || s.heads == s.groups);
}

static bool is_pointwise(LsOpCode op)
{
    LsKernelId k = ls_op[op]->kernel;
    return k == LS_K_MAP || k == LS_K_REDUCE || k == LS_K_VIEW;
}

/* The kernel reads and writes elements of 16 bits. */
static bool takes_16(const Precision *p, const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    LsOpCode op = node->op;
    LsValueId y = ls_out(g, n, 0);
    if (is_pointwise(op) || p->o->copies)
        return is_pointwise(op);
    switch (ls_op[op]->kernel) {
    case LS_K_CONV: case LS_K_MATMUL: return true;
    case LS_K_ATTENTION: return is_small_attention(g, n);
    case LS_K_MOVE:    return op != LS_OP_PAD_GRAD;
    case LS_K_GATHER:  return op == LS_OP_GATHER || op == LS_OP_GATHER_EACH;
    case LS_K_POOL:    return ls_shape(g, y)->dim[1] <= LONGEST;
    case LS_K_SOFTMAX: return is_row(g, y, node->attr.axis.axis);
    case LS_K_NORM:    return ls_count(ls_in_shape(g, n, op == LS_OP_LAYER_NORM ? 1 : 2)) <= LONGEST;
    case LS_K_LOSS:
        return (op == LS_OP_XENT && is_row(g, ls_in(g, n, 0), node->attr.loss.axis))
            || (op == LS_OP_XENT_GRAD && is_row(g, ls_in(g, n, 1), node->attr.loss.axis));
    default:           return false;
    }
}

/* ---- gradients of parameters ---- */
static bool passes_on(const LsGraph *g, LsNodeId n)
{
    LsKernelId k = ls_op[g->node[n.i].op]->kernel;
    return k == LS_K_VIEW || k == LS_K_MOVE || g->node[n.i].op == LS_OP_ADD;
}

/* Values that become gradients of parameters through sums, views and moves alone, and that nothing else reads. */
static void find_gradients(LsCtx *cx, const LsGraph *g, bool *gradient)
{
    uint32_t *left = ls_readers(cx->arena, g, false);
    for (uint32_t k = 0; k < g->ngrad; k++)
        gradient[g->grad[k].grad.i] = true;
    gradient[g->loss.i] = true;         /* trainers read it as f32, whatever the file adds up to a loss */
    for (uint32_t i = g->nnode - 1; i > 0; i--) {
        LsNodeId n = {i};
        if (g->node[i].op == LS_OP_NOP)
            continue;
        bool made = gradient[ls_out(g, n, 0).i];
        for (int k = 0; k < g->node[i].nin; k++) {
            LsValueId v = ls_in(g, n, k);
            left[v.i] -= left[v.i] > 0 && made && passes_on(g, n);
            gradient[v.i] |= made && passes_on(g, n) && left[v.i] == 0 && g->value[v.i].kind == LS_V_TEMP;
        }
    }
}

/* ---- types ---- */
static bool is_named(const Precision *p, const LsGraph *g, LsNodeId n)
{
    for (int i = 0; i < p->o->nwide; i++) {
        const char *glob = p->o->wide[i], *name = g->node[n.i].name;
        if (name != NULL && fnmatch(glob, name, 0) == 0)
            return true;
        for (int k = 0; k < g->node[n.i].nout; k++)
            if (fnmatch(glob, g->value[ls_out(g, n, k).i].name, 0) == 0)
                return true;
    }
    return false;
}

static bool is_real(const LsGraph *g, LsValueId v) { return ls_is(v) && ls_type(g, v) == LS_REAL; }

/* A scatter of largest or least elements: its gradient compares the operands with the result, which so is as wide as all of
 * them. */
static bool selects(const LsNode *n)
{
    return (n->op == LS_OP_SCATTER || n->op == LS_OP_SCATTER_EACH)
        && (n->attr.gather.how == LS_SCATTER_MAX || n->attr.gather.how == LS_SCATTER_MIN);
}

/* Whether the result of a pointwise operator is stored in 16 bits. */
static bool widest_is_narrow(const Precision *p, const LsGraph *g, LsNodeId n)
{
    const LsShape *y = ls_shape(g, ls_out(g, n, 0));
    bool any[2] = {false, false}, wide[2] = {false, false};     /* of all operands; of those of the result's shape */
    for (int k = 0; k < g->node[n.i].nin; k++) {
        LsValueId v = ls_in(g, n, k);
        if (!is_real(g, v) || (p->light[v.i] && !selects(&g->node[n.i])))
            continue;       /* of a scatter that selects, weights and inputs count, too */
        for (int same = 0; same <= ls_shape_same(ls_shape(g, v), y); same++) {
            any[same] = true;
            wide[same] |= !p->narrow[v.i] || (selects(&g->node[n.i]) && g->value[v.i].kind != LS_V_TEMP);
        }
    }
    return any[1] && !selects(&g->node[n.i]) ? !wide[1] : any[0] && !wide[0];
}

/* An embedding: what it makes of a weight are activations. The gathers of gradients are none: that of a scatter of maxima
 * compares what it takes with the updates, which are not rounded. */
static bool is_lookup(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    return (node->op == LS_OP_GATHER || node->op == LS_OP_GATHER_EACH) && node->phase == LS_FORWARD;
}

/* The results' number that are stored in 16 bits. */
static int narrow_results(const Precision *p, const LsGraph *g, LsNodeId n)
{
    const LsPrecisionRow *row = &ls_precision_row[g->node[n.i].op];
    LsValueId like = ls_in(g, n, row->like);
    if (p->gradient[ls_out(g, n, 0).i] || is_named(p, g, n))
        return 0;
    switch (row->rule) {
    case LS_PR_PRODUCT: return row->results;
    case LS_PR_LIKE:    return p->narrow[like.i] || (p->light[like.i] && is_lookup(g, n)) ? row->results : 0;
    case LS_PR_WIDEST:  return widest_is_narrow(p, g, n);
    default:            return 0;
    }
}

static bool is_light(const Precision *p, const LsGraph *g, LsNodeId n)
{
    for (int k = 0; k < g->node[n.i].nin; k++) {
        LsValueId v = ls_in(g, n, k);
        if (is_real(g, v) && !p->light[v.i])
            return false;
    }
    return !is_lookup(g, n);
}

/* ---- casts ---- */
/* Appends a CAST of the image `v` of an old value; `name` is the cast's own. */
static LsValueId append_cast(LsRewrite *r, LsValueId v, LsType to, const char *name)
{
    LsNodeId n = ls_append_bare(r->to, LS_OP_CAST, 1, &v, 1, &(LsAttr){.cast = to});
    LsValueId y = ls_out(r->to, n, 0);
    r->to->value[y.i].name = name;
    r->to->value[y.i].layout = r->to->value[v.i].layout;
    ls_set_out(r->to, n, 0, to, ls_shape(r->to, v));
    return y;
}

/* "x.f32", and "x.f32.backward" for the copy that the backward part makes. */
static const char *cast_name(const LsRewrite *r, LsValueId old, const char *what)
{
    const Precision *p = r->user;
    return ls_arena_printf(r->cx->arena, "%s.%s%s", r->from->value[old.i].name, what,
                           p->phase == LS_FORWARD ? "" : ".backward");
}

/* The copy of an old value in the other width, made from v. One in 16 bits serves all readers, one in 32 bits those of its
 * part. */
static LsValueId copy_of(LsRewrite *r, LsValueId old, LsValueId v, LsType to, const char *what)
{
    Precision *p = r->user;
    bool wide = to == LS_REAL;
    LsValueId *copy = &p->cast[old.i][wide];
    if (ls_is(*copy) && (!wide || p->cast_phase[old.i] == p->phase))
        return *copy;
    if (wide)
        p->cast_phase[old.i] = p->phase;
    return *copy = append_cast(r, v, to, cast_name(r, old, what));
}

/* The image of an old value as a value of this type. */
static LsValueId as_type(LsRewrite *r, LsValueId old, LsType to)
{
    LsValueId v = ls_image(r, old);
    if (!ls_is(v) || !ls_is_float(ls_type(r->to, v)) || ls_type(r->to, v) == to)
        return v;
    return copy_of(r, old, v, to, ls_precision_name(to));
}

/* Operands that the kernel reads in 16 bits as well as in 32, by bits. */
static unsigned either(LsOpCode op)
{
    if (is_pointwise(op))
        return ~0u;
    switch (ls_op[op]->kernel) {
    case LS_K_GATHER: case LS_K_POOL: return 1;
    case LS_K_SOFTMAX: return 1 | 2;
    case LS_K_NORM:    return op == LS_OP_LAYER_NORM ? 1 : 1 | 2 | 32;
    case LS_K_LOSS:    return op == LS_OP_XENT_GRAD ? 2 : 1;
    default:           return 0;
    }
}

/* Operand k of this node as its kernel reads it. Copies have one type on both sides. */
static LsValueId operand(LsRewrite *r, LsNodeId n, int k, int nnarrow)
{
    const Precision *p = r->user;
    LsOpCode op = r->from->node[n.i].op;
    LsValueId old = ls_in(r->from, n, k);
    bool takes = takes_16(p, r->from, n), narrow = ls_op[op]->kernel == LS_K_MOVE && nnarrow > 0;
    if (takes && k < 32 && either(op) >> k & 1)
        return ls_image(r, old);
    return as_type(r, old, takes && narrow ? p->o->compute : LS_REAL);
}

/* Operand k of a product, rounded; the kernel reads it widened again if it cannot take 16 bits. */
static LsValueId rounded(LsRewrite *r, LsValueId old, LsNodeId n)
{
    const Precision *p = r->user;
    if (takes_16(p, r->from, n))
        return ls_image(r, old);
    LsValueId narrow = as_type(r, old, p->o->compute);
    if (narrow.i == ls_image(r, old).i)
        return as_type(r, old, LS_REAL);
    return copy_of(r, old, narrow, LS_REAL, "rounded");
}

static void append_node(LsRewrite *r, LsNodeId n, const LsValueId in[], int nnarrow)
{
    const LsNode *node = &r->from->node[n.i];
    const Precision *p = r->user;
    LsNodeId id = ls_append_bare(r->to, node->op, node->nin, in, node->nout, &node->attr);
    r->to->node[id.i].phase = node->phase;
    r->image = id;
    for (int k = 0; k < node->nout; k++)
        ls_rewrite_result(r, id, k, ls_out(r->from, n, k));
    for (int k = 0; k < nnarrow; k++) {
        LsValueId old = ls_out(r->from, n, k), y = ls_out(r->to, id, k);
        const char *name = r->to->value[y.i].name;
        if (ls_type(r->to, y) != LS_REAL)
            continue;
        if (takes_16(p, r->from, n)) {
            r->to->value[y.i].type = p->o->compute;
            continue;
        }
        r->to->value[y.i].name = ls_arena_printf(r->cx->arena, "%s.unrounded", name);
        r->map[old.i] = append_cast(r, y, p->o->compute, name);
    }
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    Precision *p = r->user;
    const LsGraph *g = r->from;
    const LsNode *node = &g->node[n.i];
    const LsPrecisionRow *row = &ls_precision_row[node->op];
    LsValueId *in = ls_arena_alloc(r->cx->arena, (size_t)node->nin, sizeof *in);
    p->phase = node->phase;
    bool view = ls_op[node->op]->kernel == LS_K_VIEW, named = is_named(p, g, n);
    int nnarrow = narrow_results(p, g, n);
    for (int k = 0; k < node->nin; k++) {
        LsValueId old = ls_in(g, n, k);
        bool product = row->rule == LS_PR_PRODUCT && !named && k < 32 && row->rounded >> k & 1;
        in[k] = !is_real(g, old) ? ls_image(r, old)
            : product            ? rounded(r, old, n)
                                 : operand(r, n, k, nnarrow);
    }
    bool light = is_light(p, g, n);
    for (int k = 0; k < node->nout; k++) {
        LsValueId y = ls_out(g, n, k);
        p->light[y.i] = light;
        p->narrow[y.i] = k < nnarrow;
    }
    if (view && ls_is(in[0]))       /* a view of an input counts as 16 bits, and is stored as the input is */
        nnarrow = ls_is_16(ls_type(r->to, in[0]));
    append_node(r, n, in, nnarrow);
    if (row->rule == LS_PR_PRODUCT && !named && takes_16(p, g, n))
        r->to->node[r->image.i].rounds = p->o->compute;
    return true;
}

bool ls_precision(LsCtx *cx, LsGraph *g, const LsPrecision *o)
{
    if (o->compute == LS_REAL)
        return true;
    Precision p = {.o = o, .gradient = ls_arena_alloc(cx->arena, g->nvalue, sizeof *p.gradient),
                   .light = ls_arena_alloc(cx->arena, g->nvalue, sizeof *p.light),
                   .narrow = ls_arena_alloc(cx->arena, g->nvalue, sizeof *p.narrow),
                   .cast = ls_arena_alloc(cx->arena, g->nvalue, sizeof *p.cast),
                   .cast_phase = ls_arena_alloc(cx->arena, g->nvalue, sizeof *p.cast_phase)};
    find_gradients(cx, g, p.gradient);
    for (uint32_t i = 1; i < g->nvalue; i++) {
        LsValueKind kind = g->value[i].kind;
        p.narrow[i] = kind == LS_V_INPUT;
        p.light[i] = kind == LS_V_PARAM || kind == LS_V_STATE || kind == LS_V_CONST;
    }
    ls_rewrite(cx, g, visit, &p);
    return true;
}
