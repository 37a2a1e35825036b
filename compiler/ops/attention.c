/* compiler/ops/attention.c -- attention and its gradient as one node each (see net.def), and as
 * products for masks that need a gradient. */
#include "compiler/ops/attention_shape.h"
#include "compiler/ops/row.h"

#include <inttypes.h>
#include <math.h>

enum { DY, Y, LSE, FIRST };     /* operands of ATTENTION_GRAD before q, k, v, mask */

bool ls_attention_is_back(const LsGraph *g, LsNodeId n)
{
    return g->node[n.i].op == LS_OP_ATTENTION_GRAD || g->node[n.i].op == LS_OP_ATTENTION_JOINT_GRAD;
}

bool ls_attention_is_joint(const LsGraph *g, LsNodeId n)
{
    return g->node[n.i].op == LS_OP_ATTENTION_JOINT
           || g->node[n.i].op == LS_OP_ATTENTION_JOINT_GRAD;
}

/* Operand index of q, k or v, by number. */
static int operand(const LsGraph *g, LsNodeId n, int k)
{
    return (ls_attention_is_back(g, n) ? FIRST : 0) + (ls_attention_is_joint(g, n) ? 0 : k);
}

int ls_attention_mask(const LsGraph *g, LsNodeId n) { return operand(g, n, 2) + 1; }
int ls_attention_spans(const LsGraph *g, LsNodeId n) { return operand(g, n, 2) + 2; }

LsAttentionSize ls_attention_size(const LsGraph *g, LsNodeId n)
{
    const LsAttentionAttr *at = &g->node[n.i].attr.attention;
    if (ls_attention_is_joint(g, n)) {
        const LsShape *x = ls_in_shape(g, n, operand(g, n, 0));
        return (LsAttentionSize){x->dim[0], at->heads, at->groups, x->dim[1], x->dim[1], at->depth,
                                 at->width};
    }
    const LsShape *q = ls_in_shape(g, n, operand(g, n, 0));
    const LsShape *k = ls_in_shape(g, n, operand(g, n, 1));
    const LsShape *v = ls_in_shape(g, n, operand(g, n, 2));
    return (LsAttentionSize){.batch = q->dim[0],
                             .heads = q->dim[ls_head_axis(at, LS_Q_BY_TOKEN)],
                             .groups = k->dim[ls_head_axis(at, LS_K_BY_TOKEN)],
                             .rows = q->dim[ls_token_axis(at, LS_Q_BY_TOKEN)],
                             .cols = k->dim[ls_token_axis(at, LS_K_BY_TOKEN)],
                             .depth = q->dim[3],
                             .width = v->dim[3]};
}

LsHeadsAt ls_attention_heads(const LsGraph *g, LsNodeId n, LsAttentionPart part)
{
    const LsAttentionSize s = ls_attention_size(g, n);
    bool of_q = part == LS_ATT_Q || part == LS_ATT_Y;
    int64_t heads = of_q ? s.heads : s.groups, tokens = of_q ? s.rows : s.cols;
    int64_t size = part == LS_ATT_Q || part == LS_ATT_K ? s.depth : s.width;
    bool by_token = g->node[n.i].attr.attention.by_token & 1u << part;
    LsHeadsAt at = {.operand = part == LS_ATT_Y ? -1 : operand(g, n, (int)part),
                    .sample = heads * tokens * size, .head = by_token ? size : tokens * size,
                    .row = by_token ? heads * size : size};
    if (!ls_attention_is_joint(g, n) || part == LS_ATT_Y)
        return at;
    at.row = s.heads * s.depth + s.groups * (s.depth + s.width);
    at.sample = tokens * at.row;
    at.from =
        part == LS_ATT_Q ? 0 : s.heads * s.depth + (part == LS_ATT_V ? s.groups * s.depth : 0);
    return at;
}

bool ls_attention_fits_cores(const LsGraph *g, LsNodeId n)
{
    enum { PIECE = 8, MOST = 256, BACK_MOST = 128 };        /* columns: of a fragment; of q and y
                                                             * together */
    const LsAttentionSize s = ls_attention_size(g, n);
    const int64_t columns =
        (s.depth + PIECE - 1) / PIECE * PIECE + (s.width + PIECE - 1) / PIECE * PIECE;
    return columns <= (ls_attention_is_back(g, n) ? BACK_MOST : MOST);
}

double ls_attention_scores(const LsGraph *g, LsNodeId n)
{
    const LsAttentionAttr *at = &g->node[n.i].attr.attention;
    LsAttentionSize s = ls_attention_size(g, n);
    double rows = (double)s.rows, cols = (double)s.cols, all = (double)(s.batch * s.heads);
    if (!at->causal || at->past >= s.cols - 1)
        return all * rows * cols;
    double first = (double)at->past + 1, part = cols - first;     /* rows until a row sees all
                                                                   * columns */
    double grow = rows < part ? rows : part;
    return all * (grow * (first + (grow - 1) / 2) + (rows - grow) * cols);
}

/* ---- shapes ---- */
static bool misfit(LsCtx *cx, LsGraph *g, LsNodeId n, const char *why)
{
    LsArena *a = cx->arena;
    int k = operand(g, n, 0);
    return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "q is %s, k is %s, v is %s: %s",
                    ls_shape_text(a, ls_in_shape(g, n, k)),
                    ls_shape_text(a, ls_in_shape(g, n, k + 1)),
                    ls_shape_text(a, ls_in_shape(g, n, k + 2)), why);
}

/* Spans are those of the tokens that are rows and columns. */
static bool spans_fit(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsAttentionSize s = ls_attention_size(g, n);
    const LsValueId spans = ls_in(g, n, ls_attention_spans(g, n));
    const LsShape want = {3, {s.batch, s.rows, 2}};
    if (!ls_is(spans)
        || (ls_type(g, spans) == LS_I32 && s.rows == s.cols
            && ls_shape_same(ls_shape(g, spans), &want)))
        return true;
    return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "the spans are %s, the tokens %s",
                    ls_dims(g, spans), ls_shape_text(cx->arena, &want));
}

/* The mask broadcasts to the scores. */
static bool mask_fits(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    LsAttentionSize s = ls_attention_size(g, n);
    LsValueId mask = ls_in(g, n, ls_attention_mask(g, n));
    LsShape all = {4, {s.batch, s.heads, s.rows, s.cols}}, with = all;
    if (ls_is(mask) && (ls_shape(g, mask)->rank != 4
                        || !ls_shape_broadcast(&with, ls_shape(g, mask))
                        || !ls_shape_same(&with, &all)))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "the mask is %s, the scores are %s",
                        ls_shape_text(cx->arena, ls_shape(g, mask)),
                        ls_shape_text(cx->arena, &all));
    return spans_fit(cx, g, n);
}

static bool joint_fits(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsAttentionAttr *at = &g->node[n.i].attr.attention;
    const LsShape *x = ls_in_shape(g, n, operand(g, n, 0));
    const unsigned all = LS_Q_BY_TOKEN | LS_K_BY_TOKEN | LS_V_BY_TOKEN;
    bool sizes = at->heads > 0 && at->groups > 0 && at->depth > 0 && at->width > 0
        && at->heads % at->groups == 0 && (at->by_token & all) == all;
    if (!sizes || x->rank != 3
        || x->dim[2] != at->heads * at->depth + at->groups * (at->depth + at->width))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                        "%s does not hold heads side by side: %" PRId64 " of %" PRId64 ", %" PRId64
                        " of %" PRId64 " and %" PRId64, ls_shape_text(cx->arena, x), at->heads,
                        at->depth, at->groups, at->depth, at->width);
    return mask_fits(cx, g, n);
}

static bool fits(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    if (ls_attention_is_joint(g, n))
        return joint_fits(cx, g, n);
    const LsAttentionAttr *at = &g->node[n.i].attr.attention;
    const LsShape *q = ls_in_shape(g, n, operand(g, n, 0));
    const LsShape *k = ls_in_shape(g, n, operand(g, n, 1));
    const LsShape *v = ls_in_shape(g, n, operand(g, n, 2));
    if (q->rank != 4 || k->rank != 4 || v->rank != 4)
        return misfit(cx, g, n, "all must have four axes");
    LsAttentionSize s = ls_attention_size(g, n);
    if (k->dim[0] != s.batch || v->dim[0] != s.batch)
        return misfit(cx, g, n, "numbers of samples differ");
    if (v->dim[ls_head_axis(at, LS_V_BY_TOKEN)] != s.groups || s.heads % s.groups != 0)
        return misfit(cx, g, n, "numbers of heads do not fit");
    if (v->dim[ls_token_axis(at, LS_V_BY_TOKEN)] != s.cols || k->dim[3] != s.depth)
        return misfit(cx, g, n, "sizes of heads or numbers of tokens do not fit");
    return mask_fits(cx, g, n);
}

static bool attention_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    if (!fits(cx, g, n))
        return false;
    const LsAttentionAttr *at = &g->node[n.i].attr.attention;
    LsAttentionSize s = ls_attention_size(g, n);
    LsShape y = {4, {s.batch, 0, 0, s.width}};
    y.dim[ls_head_axis(at, LS_Y_BY_TOKEN)] = s.heads;
    y.dim[ls_token_axis(at, LS_Y_BY_TOKEN)] = s.rows;
    ls_set_out(g, n, 1, LS_REAL, &(LsShape){4, {s.batch, s.heads, s.rows, 1}});
    return ls_infer_out(cx, g, n, LS_REAL, &y);
}

static bool attention_grad_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    if (!fits(cx, g, n))
        return false;
    for (int k = 0; k < g->node[n.i].nout; k++) {
        const LsShape x = *ls_in_shape(g, n, FIRST + k);
        ls_set_out(g, n, k, LS_REAL, &x);
    }
    return true;
}

/* ---- cost: two operations a term, ten for exp ---- */
static double attention_flops(const LsGraph *g, LsNodeId n)
{
    LsAttentionSize s = ls_attention_size(g, n);
    return ls_attention_scores(g, n) * (double)(2 * s.depth + 2 * s.width + 14);
}

/* Recomputed scores, dy vT, and three products for dq, dk, dv. */
static double attention_grad_flops(const LsGraph *g, LsNodeId n)
{
    LsAttentionSize s = ls_attention_size(g, n);
    return ls_attention_scores(g, n) * (double)(6 * s.depth + 4 * s.width + 14);
}

static void attention_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                           const bool want[], LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    int nin = g->node[n.i].nin;
    if (!ls_is(dy[0]))
        return;
    LsValueId in[FIRST + 5] = {dy[0], ls_out(g, n, 0), ls_out(g, n, 1)};
    for (int k = 0; k < nin; k++)
        in[FIRST + k] = ls_in(g, n, k);
    bool joint = ls_attention_is_joint(g, n);
    LsValueId dq = ls_append(cx, g, joint ? LS_OP_ATTENTION_JOINT_GRAD : LS_OP_ATTENTION_GRAD,
                             FIRST + nin, in, &at);
    for (int k = 0; k < (joint ? 1 : 3) && ls_is(dq); k++)
        if (want[k])
            dx[k] = (LsValueId){dq.i + (uint32_t)k};
}

const LsOp ls_op_attention = {
    .name = "Attention", .min_in = 3, .max_in = 5, .nout = 2, .infer = attention_infer,
    .grad = attention_grad, .flops = attention_flops, .kernel = LS_K_ATTENTION,
    .layout = LS_LAY_ROW,
};
const LsOp ls_op_attention_grad = {
    .name = "attention_grad", .min_in = FIRST + 3, .max_in = FIRST + 5, .nout = 3,
    .infer = attention_grad_infer, .flops = attention_grad_flops, .kernel = LS_K_ATTENTION,
    .layout = LS_LAY_ROW,
};

const LsOp ls_op_attention_joint = {
    .name = "Attention", .min_in = 1, .max_in = 3, .nout = 2, .infer = attention_infer,
    .grad = attention_grad, .flops = attention_flops, .kernel = LS_K_ATTENTION,
    .layout = LS_LAY_ROW,
};
const LsOp ls_op_attention_joint_grad = {
    .name = "attention_grad", .min_in = FIRST + 1, .max_in = FIRST + 3, .nout = 1,
    .infer = attention_grad_infer, .flops = attention_grad_flops, .kernel = LS_K_ATTENTION,
    .layout = LS_LAY_ROW,
};

/* ---- as products ---- */
bool ls_is_trained(LsCtx *cx, const LsGraph *g, LsValueId v)
{
    bool *seen = ls_arena_alloc(cx->arena, g->nvalue, sizeof *seen);
    LsValueId *stack = ls_arena_alloc(cx->arena, g->nvalue, sizeof *stack);
    uint32_t depth = 0;
    seen[v.i] = true;
    stack[depth++] = v;
    while (depth > 0) {
        LsValueId at = stack[--depth];
        LsNodeId n = g->value[at.i].def;
        if (g->value[at.i].kind == LS_V_PARAM)
            return true;
        for (int k = 0; n.i != 0 && k < g->node[n.i].nin; k++) {
            LsValueId x = ls_in(g, n, k);
            if (!seen[x.i])
                stack[depth++] = x;
            seen[x.i] = true;
        }
    }
    return false;
}

/* x as [N,G,rows,..]: heads before tokens, and the heads of a group one after the other. */
static LsValueId by_group(LsCtx *cx, LsGraph *g, LsValueId x, bool by_token, int64_t groups)
{
    if (by_token)
        x = ls_transpose(cx, g, x, (int[]){0, 2, 1, 3});
    LsShape s = *ls_shape(g, x);
    return ls_reshape(cx, g, x,
                      &(LsShape){5, {s.dim[0], groups, s.dim[1] / groups, s.dim[2], s.dim[3]}});
}

/* The mask with the axes [N,G,heads of a group,T,S]. */
static LsValueId mask_by_group(LsCtx *cx, LsGraph *g, LsValueId mask, int64_t groups)
{
    LsShape s = *ls_shape(g, mask);
    int64_t outer = s.dim[1] == 1 ? 1 : groups;
    LsShape to = {5, {s.dim[0], outer, s.dim[1] / outer, s.dim[2], s.dim[3]}};
    return ls_reshape(cx, g, mask, &to);
}

/* 1 x 1 x 1 x rows x cols: the summand of a causal mask. */
static LsValueId future(LsCtx *cx, LsGraph *g, int64_t rows, int64_t cols, int64_t past)
{
    float *m = ls_arena_alloc(cx->arena, (size_t)(rows * cols), sizeof *m);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i + past + 1; j < cols; j++)
            m[i * cols + j] = -__builtin_inff();
    return ls_const_add(cx, g, LS_REAL, &(LsShape){5, {1, 1, 1, rows, cols}}, m);
}

static LsValueId put_mask(LsCtx *cx, LsGraph *g, LsValueId s, LsValueId mask,
                          const LsAttentionAttr *at)
{
    if (ls_type(g, mask) != LS_BOOL)
        return ls_append2(cx, g, LS_OP_ADD, s, mask, NULL);
    LsValueId fill = ls_const_real(cx, g, at->fill);
    return at->keep ? ls_append3(cx, g, LS_OP_WHERE, mask, s, fill, NULL)
                    : ls_append3(cx, g, LS_OP_WHERE, mask, fill, s, NULL);
}

/* N x G x 1 x T x 1 (or broadcast to it): rows in which everything is hidden, whatever the scores
 * are; none where the mask is known to hide no row. */
static LsValueId hidden_rows(LsCtx *cx, LsGraph *g, LsValueId mask, LsValueId causal,
                             const LsAttentionAttr *at)
{
    const LsValueId none = {0};
    LsValueId hidden = ls_const_real(cx, g, -INFINITY), zero = ls_const_real(cx, g, 0);
    if (!ls_is(mask) || (ls_type(g, mask) == LS_BOOL && !isinf(at->fill)))
        return none;
    if (ls_type(g, mask) == LS_BOOL)
        mask = ls_append3(cx, g, LS_OP_WHERE, mask, at->keep ? zero : hidden,
                          at->keep ? hidden : zero, NULL);
    if (ls_is(causal))
        mask = ls_append2(cx, g, LS_OP_ADD, mask, causal, NULL);
    LsValueId most = ls_append1(cx, g, LS_OP_REDUCE_MAX, mask,
                                &(LsAttr){.reduce = {.axes = 1u << 4, .keep = true}});
    LsValueId rows = ls_append2(cx, g, LS_OP_EQUAL, most, hidden, NULL);
    bool known = ls_is_const(g, rows) && g->value[rows.i].data != NULL;
    for (int64_t i = 0; known && i < ls_count(ls_shape(g, rows)); i++)
        known = ls_const_at(g, rows, i) == 0;
    return known ? none : rows;
}

/* The softmax over columns; 0 in hidden rows, where its own result and gradient would be NaN. */
static LsValueId softmax_of(LsCtx *cx, LsGraph *g, LsValueId s, LsValueId rows)
{
    LsValueId zero = ls_const_real(cx, g, 0);
    if (ls_is(rows))
        s = ls_append3(cx, g, LS_OP_WHERE, rows, zero, s, NULL);
    s = ls_append1(cx, g, LS_OP_SOFTMAX, s, &(LsAttr){.axis = {4}});
    return ls_is(rows) ? ls_append3(cx, g, LS_OP_WHERE, rows, zero, s, NULL) : s;
}

static LsValueId capped(LsCtx *cx, LsGraph *g, LsValueId s, double cap)
{
    if (cap == 0)
        return s;
    s = ls_append1(cx, g, LS_OP_TANH, ls_scale(cx, g, s, 1 / cap), NULL);
    return ls_scale(cx, g, s, cap);
}

static LsValueId in_products(LsCtx *cx, LsGraph *g, const LsValueId in[4],
                             const LsAttentionAttr *at, const LsOpenAttention *o)
{
    int64_t groups = ls_shape(g, in[1])->dim[ls_head_axis(at, LS_K_BY_TOKEN)];
    LsValueId q = by_group(cx, g, in[0], at->by_token & LS_Q_BY_TOKEN, groups);
    LsValueId k = by_group(cx, g, in[1], at->by_token & LS_K_BY_TOKEN, groups);
    LsValueId v = by_group(cx, g, in[2], at->by_token & LS_V_BY_TOKEN, groups);
    LsAttr scaled = {.gemm = {.trans_b = true, .alpha = at->scale}}, plain = {.gemm = {.alpha = 1}};
    LsValueId stage[LS_SCORES_STAGES], mask = {0}, causal = {0};
    LsValueId s = stage[LS_SCORES_RAW] = ls_append2(cx, g, LS_OP_MATMUL, q, k, &scaled);
    LsShape y = *ls_shape(g, s);
    s = stage[LS_SCORES_CAPPED] = capped(cx, g, s, o->cap);
    if (ls_is(in[3]))
        s = put_mask(cx, g, s, mask = mask_by_group(cx, g, in[3], groups), at);
    if (at->causal)
        s = ls_append2(cx, g, LS_OP_ADD, s, causal = future(cx, g, y.dim[3], y.dim[4], at->past),
                       NULL);
    stage[LS_SCORES_MASKED] = s;
    s = stage[LS_SCORES_SOFTMAX] =
        softmax_of(cx, g, s, o->guard ? hidden_rows(cx, g, mask, causal, at) : (LsValueId){0});
    if (o->scores != NULL)
        *o->scores = ls_reshape(cx, g, stage[o->stage],
                                &(LsShape){4, {y.dim[0], y.dim[1] * y.dim[2], y.dim[3], y.dim[4]}});
    s = ls_append2(cx, g, LS_OP_MATMUL, s, v, &plain);
    LsShape to = {4, {y.dim[0], y.dim[1] * y.dim[2], y.dim[3], ls_shape(g, v)->dim[4]}};
    s = ls_reshape(cx, g, s, &to);
    return at->by_token & LS_Y_BY_TOKEN ? ls_transpose(cx, g, s, (int[]){0, 2, 1, 3}) : s;
}

/* Its infer function checks the shapes. */
static LsValueId as_one_node(LsCtx *cx, LsGraph *g, const LsValueId in[4],
                             const LsAttentionAttr *at)
{
    return ls_append(cx, g, LS_OP_ATTENTION, ls_is(in[3]) ? 4 : 3, in, &(LsAttr){.attention = *at});
}

LsValueId ls_attention_open(LsCtx *cx, LsGraph *g, const LsValueId in[4], const LsAttentionAttr *at,
                            const LsOpenAttention *o)
{
    LsValueId y = as_one_node(cx, g, in, at);
    return ls_is(y) ? in_products(cx, g, in, at, o) : y;
}

LsValueId ls_attention(LsCtx *cx, LsGraph *g, const LsValueId in[4], const LsAttentionAttr *at)
{
    LsValueId y = as_one_node(cx, g, in, at);
    bool learned = ls_is(in[3]) && ls_type(g, in[3]) == LS_REAL && ls_is_trained(cx, g, in[3]);
    bool deep = ls_shape(g, in[0])->dim[3] > LS_DEEPEST_HEAD
        || ls_shape(g, in[2])->dim[3] > LS_DEEPEST_HEAD;
    return ls_is(y) && (learned || deep)
               ? in_products(cx, g, in, at, &(LsOpenAttention){.guard = !learned})
               : y;
}
