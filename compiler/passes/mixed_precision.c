/* compiler/passes/mixed_precision.c -- mixed precision: which values are stored in 16 bits, and
 * where reals are rounded.
 *
 * requires layouts and gradients; keeps results, names and order; gives results of nodes the types
 * LS_BF16 or LS_F16 by the table compiler/ir/precision.def. Products that read a value of 32 bits
 * round it themselves (LsNode.rounds). CAST nodes stand around kernels that cannot read or write 16
 * bits (takes_16): they widen and round exactly as a kernel would.
 *
 * Parameters, state and gradients of parameters stay f32. Weights and constants, and what only
 * moves them, do not widen the results of pointwise operators. */
#include "compiler/fold/append.h"
#include "compiler/ir/precision.h"
#include "compiler/ir/rewrite.h"
#include "compiler/passes/kernels_16.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/soft_scores.h"

#include <fnmatch.h>
#include <string.h>

typedef struct Precision {
    const LsPrecision *o;
    bool *gradient;             /* by old value: makes the gradient of a parameter, or the loss:
                                 * f32 */
    bool *light;                /* by old value: a weight or a constant, perhaps moved */
    bool *narrow;               /* by old value: counts as a value of 16 bits */
    LsValueId (*cast)[2];       /* by old value: its copy in 16 bits; in 32 bits */
    LsPhase *cast_phase;        /* of the copy in 32 bits: it is not kept from the forward part */
    LsPhase phase;              /* of the node that is visited */
} Precision;

/* ---- gradients of parameters ---- */
static bool passes_on(const LsGraph *g, LsNodeId n)
{
    LsKernelId k = ls_op[g->node[n.i].op]->kernel;
    return k == LS_K_VIEW || k == LS_K_MOVE || g->node[n.i].op == LS_OP_ADD;
}

/* Values that become gradients of parameters through sums, views and moves alone, and that nothing
 * else reads. */
static void find_gradients(LsCtx *cx, const LsGraph *g, bool *gradient)
{
    uint32_t *left = ls_readers(cx->arena, g, false);
    for (uint32_t k = 0; k < g->ngrad; k++)
        gradient[g->grad[k].grad.i] = true;
    gradient[g->objective.loss.i] = true;         /* trainers read it as f32, whatever the file adds
                                                   * up to a loss */
    for (uint32_t i = g->nnode - 1; i > 0; i--) {
        LsNodeId n = {i};
        if (g->node[i].op == LS_OP_NOP)
            continue;
        bool made = gradient[ls_out(g, n, 0).i];
        for (int k = 0; k < g->node[i].nin; k++) {
            LsValueId v = ls_in(g, n, k);
            left[v.i] -= left[v.i] > 0 && made && passes_on(g, n);
            gradient[v.i] |=
                made && passes_on(g, n) && left[v.i] == 0 && g->value[v.i].kind == LS_V_TEMP;
        }
    }
}

/* ---- types ---- */
static bool names(const char *glob, const LsGraph *g, LsNodeId n)
{
    const char *name = g->node[n.i].name;
    bool hit = name != NULL && fnmatch(glob, name, 0) == 0;
    for (int k = 0; k < g->node[n.i].nout && !hit; k++)
        hit = fnmatch(glob, g->value[ls_out(g, n, k).i].name, 0) == 0;
    return hit;
}

static bool is_named(const Precision *p, const LsGraph *g, LsNodeId n)
{
    for (int i = 0; i < p->o->nwide; i++)
        if (names(p->o->wide[i], g, n))
            return true;
    return false;
}

/* The graph of training has all names, also where evaluation alone computes in 16 bits; not that of
 * ranks' updates, which has no loss. */
static bool all_name_something(LsCtx *cx, const LsGraph *g, const LsPrecision *o)
{
    bool all = true;
    for (int i = 0; i < o->nwide && g->training && ls_is(g->objective.loss); i++) {
        bool hit = false;
        for (uint32_t n = 1; n < g->nnode && !hit; n++)
            hit = names(o->wide[i], g, (LsNodeId){n});
        if (!hit)
            all = ls_error(
                cx, LS_NOWHERE, LS_E_OPTION,
                "it is a pattern of names of nodes or of their results; -d import prints them",
                "--precision-of: nothing is called '%s'", o->wide[i]);
    }
    return all;
}

/* A product with a value that the optimizer makes, as of Muon or APOLLO: optimizers compute in
 * f32. The other one may be a gradient, which ranks' updates have as a sum in their state. */
static bool is_of_optimizer(const Precision *p, const LsGraph *g, LsNodeId n)
{
    bool own = false;
    for (int k = 0; k < 2 && g->node[n.i].op == LS_OP_MATMUL; k++) {
        const LsValueId v = ls_viewed(g, ls_in(g, n, k));
        const LsNodeId def = ls_is(v) ? g->value[v.i].def : (LsNodeId){0};
        own |= def.i != 0 && g->node[def.i].phase == LS_UPDATE && !p->narrow[v.i];
    }
    return own && g->node[n.i].phase == LS_UPDATE;
}

/* Neither the operands nor the results of the node are rounded. Nor are logarithms of probabilities
 * that a loss sums: XENT keeps its own in f32, too. */
static bool stays_wide(const Precision *p, const LsGraph *g, LsNodeId n)
{
    return ls_makes_soft_scores(g, n) || is_of_optimizer(p, g, n) || is_named(p, g, n);
}

static bool is_real(const LsGraph *g, LsValueId v) { return ls_is(v) && ls_type(g, v) == LS_REAL; }

/* A scatter of largest or least elements: its gradient compares the operands with the result, which
 * so is as wide as all of them. */
static bool selects(const LsNode *n)
{
    return (n->op == LS_OP_SCATTER || n->op == LS_OP_SCATTER_EACH)
        && (n->attr.gather.how == LS_SCATTER_MAX || n->attr.gather.how == LS_SCATTER_MIN);
}

/* Whether the result of a pointwise operator is stored in 16 bits. */
static bool widest_is_narrow(const Precision *p, const LsGraph *g, LsNodeId n)
{
    const LsShape *y = ls_shape(g, ls_out(g, n, 0));
    /* of all operands; of those of the result's shape */
    bool any[2] = {false, false}, wide[2] = {false, false};
    for (int k = 0; k < g->node[n.i].nin; k++) {
        LsValueId v = ls_in(g, n, k);
        if (!is_real(g, v) || (p->light[v.i] && !selects(&g->node[n.i])))
            continue;       /* of a scatter that selects, weights and inputs count, too */
        for (int same = 0; same <= ls_shape_same(ls_shape(g, v), y); same++) {
            any[same] = true;
            wide[same] |=
                !p->narrow[v.i] || (selects(&g->node[n.i]) && g->value[v.i].kind != LS_V_TEMP);
        }
    }
    return any[1] && !selects(&g->node[n.i]) ? !wide[1] : any[0] && !wide[0];
}

/* An embedding: what it makes of a weight are activations. The gathers of gradients are none: that
 * of a scatter of maxima compares what it takes with the updates, which are not rounded. */
static bool is_lookup(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    return (node->op == LS_OP_GATHER || node->op == LS_OP_GATHER_EACH) && node->phase == LS_FORWARD;
}

/* The result is a sum that another node goes on with: rounded once, at its end. */
static bool is_continued(const LsGraph *g, LsNodeId n)
{
    for (uint32_t i = n.i + 1; g->node[n.i].op == LS_OP_MATMUL_PART && i < g->nnode; i++)
        if (g->node[i].op == LS_OP_MATMUL_PART && ls_in(g, (LsNodeId){i}, 2).i == ls_out(g, n, 0).i)
            return true;
    return false;
}

/* The results' number that are stored in 16 bits. */
static int narrow_results(const Precision *p, const LsGraph *g, LsNodeId n)
{
    const LsPrecisionRow *row = &ls_precision_row[g->node[n.i].op];
    LsValueId like = ls_in(g, n, row->like);
    if (p->gradient[ls_out(g, n, 0).i] || stays_wide(p, g, n) || is_continued(g, n))
        return 0;
    switch (row->rule) {
    case LS_PR_PRODUCT: return row->results;
    case LS_PR_LIKE:
        return p->narrow[like.i] || (p->light[like.i] && is_lookup(g, n)) ? row->results : 0;
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

/* The copy of an old value in the other width, made from v. One in 16 bits serves all readers, one
 * in 32 bits those of its part. */
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

/* The kernel of node n reads and writes elements of 16 bits, as they now lie. */
static bool takes_16(const LsRewrite *r, LsNodeId n)
{
    const Precision *p = r->user;
    const LsNode *node = &r->from->node[n.i];
    const unsigned same = ls_same_width((LsOpCode)node->op, p->o->gpu);
    if (p->o->copies)
        return ls_takes_any((LsOpCode)node->op);
    if (ls_writes_alike((LsOpCode)node->op, p->o->gpu) && narrow_results(p, r->from, n) == 0)
        return false;
    for (int k = 0; k < node->nin && k < 32; k++) {
        LsValueId v = ls_image(r, ls_in(r->from, n, k));
        if (same >> k & 1 && ls_is(v) && !ls_is_16(ls_type(r->to, v)))
            return false;
    }
    return ls_takes_16(r->from, n, p->o->compute, p->o->gpu);
}

/* Operand k of this node as its kernel reads it. Copies have one type on both sides. */
static LsValueId operand(LsRewrite *r, LsNodeId n, int k, int nnarrow)
{
    const Precision *p = r->user;
    LsOpCode op = r->from->node[n.i].op;
    LsValueId old = ls_in(r->from, n, k);
    bool takes = takes_16(r, n), narrow = ls_op[op]->kernel == LS_K_MOVE && nnarrow > 0;
    if (takes && k < 32 && ls_either_width(op) >> k & 1)
        return ls_image(r, old);
    return as_type(r, old, takes && narrow ? p->o->compute : LS_REAL);
}

/* Operand k of a product, rounded. The kernel rounds it itself, or on a GPU reads a rounded copy;
 * if it cannot take 16 bits, it reads that widened again. */
static LsValueId rounded(LsRewrite *r, LsValueId old, LsNodeId n)
{
    const Precision *p = r->user;
    if (takes_16(r, n))
        return p->o->gpu ? as_type(r, old, p->o->compute) : ls_image(r, old);
    LsValueId narrow = as_type(r, old, p->o->compute);
    if (narrow.i == ls_image(r, old).i)
        return as_type(r, old, LS_REAL);
    return copy_of(r, old, narrow, LS_REAL, "rounded");
}

/* ---- products on GPUs ---- */
/* The operand with the bias of a product that a library computes; else none. */
static LsValueId bias_apart(const LsRewrite *r, LsNodeId n)
{
    const Precision *p = r->user;
    LsKernelId kernel = ls_op[r->from->node[n.i].op]->kernel;
    bool product = kernel == LS_K_CONV || kernel == LS_K_MATMUL;
    return p->o->gpu && product && takes_16(r, n) ? ls_in(r->from, n, 2) : (LsValueId){0};
}

/* Adds the bias of a convolution or a matrix product, a vector, in a node of its own: libraries add
 * it only in 16 bits. */
static void add_bias(LsRewrite *r, LsNodeId n, LsValueId bias)
{
    LsValueId old = ls_out(r->from, n, 0), y = ls_image(r, old), in[2] = {y, ls_image(r, bias)};
    const LsShape *shape = ls_shape(r->to, y);
    const char *name = r->to->value[y.i].name;
    if (ls_op[r->from->node[n.i].op]->kernel == LS_K_CONV) {        /* along the channels */
        LsShape channels = {.rank = shape->rank - 1, .dim = {shape->dim[1]}};
        for (int d = 1; d < channels.rank; d++)
            channels.dim[d] = 1;
        in[1] = ls_reshape(r->cx, r->to, in[1], &channels);
    }
    r->to->value[y.i].name = ls_arena_printf(r->cx->arena, "%s.product", name);
    LsNodeId add = ls_append_bare(r->to, LS_OP_ADD, 2, in, 1, &(LsAttr){.cast = LS_REAL});
    r->to->node[add.i].phase = r->from->node[n.i].phase;
    LsValueId sum = ls_out(r->to, add, 0);
    ls_set_out(r->to, add, 0, ls_type(r->to, y), ls_shape(r->to, y));
    r->to->value[sum.i].name = name;
    r->to->value[sum.i].layout = r->to->value[y.i].layout;
    r->map[old.i] = sum;
}

/* cuDNN writes gradients of weights in 16 bits alone: they are widened. */
static void widen_weights(LsRewrite *r, LsNodeId n)
{
    const Precision *p = r->user;
    LsValueId old = ls_out(r->from, n, 0), y = ls_image(r, old);
    const char *name = r->to->value[y.i].name;
    r->to->value[y.i].type = p->o->compute;
    r->to->value[y.i].name =
        ls_arena_printf(r->cx->arena, "%s.%s", name, p->o->compute == LS_BF16 ? "bf16" : "f16");
    r->map[old.i] = append_cast(r, y, LS_REAL, name);
}

/* The kernel rounds the product's factors, or would find them rounded. On processors, copies around
 * a product change only the widths in memory: bits depend on the type of the factors. */
static bool rounds_factors(const LsRewrite *r, LsNodeId n)
{
    const Precision *p = r->user;
    return takes_16(r, n) || (!p->o->gpu && ls_multiplies_16(r->from, n, p->o->compute));
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
        if (takes_16(r, n)) {
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
    bool view = ls_op[node->op]->kernel == LS_K_VIEW, wide = stays_wide(p, g, n);
    int nnarrow = narrow_results(p, g, n);
    for (int k = 0; k < node->nin; k++) {
        LsValueId old = ls_in(g, n, k);
        bool product = row->rule == LS_PR_PRODUCT && !wide && k < 32 && row->rounded >> k & 1;
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
    if (view && ls_is(in[0]))       /* a view of an input counts as 16 bits, and is stored as the
                                     * input is */
        nnarrow = ls_is_16(ls_type(r->to, in[0]));
    const LsValueId bias = bias_apart(r, n);
    const bool rounds = row->rule == LS_PR_PRODUCT && !wide && rounds_factors(r, n);
    if (rounds && ls_is(bias))
        in[2].i = 0;
    append_node(r, n, in, nnarrow);
    if (rounds)
        r->to->node[r->image.i].rounds = p->o->compute;
    if (rounds && ls_is(bias))
        add_bias(r, n, bias);
    if (rounds && p->o->gpu && node->op == LS_OP_CONV_DW && nnarrow == 0)
        widen_weights(r, n);
    return true;
}

bool ls_precision(LsCtx *cx, LsGraph *g, const LsPrecision *o)
{
    if (!all_name_something(cx, g, o))
        return false;
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
