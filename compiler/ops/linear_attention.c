/* compiler/ops/linear_attention.c -- LinearAttention and CausalConvWithState (27), the layers of
 * networks with a linear recurrence. The recurrence is written out step by step, as those of LSTM
 * are. */
#include "compiler/ops/row.h"

#include <math.h>

enum { MOST_STEPS = 4096 };
enum { QUERY, KEY, VALUE, PAST, DECAY, BETA, OPERANDS };

typedef struct Linear {
    LsOnnxNode *n;
    int64_t batch, steps, heads, groups;    /* heads of keys and values, and queries of each */
    int64_t depth, width;                   /* of a key, of a value */
    double scale;
    bool gated, delta;
} Linear;

static LsValueId two(const Linear *r, LsOpCode op, LsValueId a, LsValueId b)
{
    return ls_append2(r->n->cx, r->n->g, op, a, b, NULL);
}

static LsValueId product(const Linear *r, LsValueId a, LsValueId b, double alpha)
{
    return ls_append2(r->n->cx, r->n->g, LS_OP_MATMUL, a, b, &(LsAttr){.gemm = {.alpha = alpha}});
}

/* Step t of operand k, [B,T,..], in the shape of so many rows and columns of each head. */
static LsValueId step_of(const Linear *r, int k, int64_t t, int64_t heads, int64_t rows,
                         int64_t cols)
{
    LsValueId v = ls_slice_axis(r->n->cx, r->n->g, r->n->in[k], 1, t, t + 1);
    return ls_is(v) ? ls_reshape(r->n->cx, r->n->g, v, &(LsShape){4, {r->batch, heads, rows, cols}})
                    : v;
}

static int64_t last(const Linear *r, int k) { return ls_shape(r->n->g, r->n->in[k])->dim[2]; }

/* The state [B,H,depth,width] after step t; none before the first step: zeros. */
static LsValueId next_state(const Linear *r, LsValueId s, int64_t t)
{
    LsCtx *cx = r->n->cx;
    LsGraph *g = r->n->g;
    LsValueId v = step_of(r, VALUE, t, r->heads, 1, r->width);
    if (r->gated && ls_is(s)) {
        LsValueId decay = step_of(r, DECAY, t, r->heads, last(r, DECAY) / r->heads, 1);
        s = two(r, LS_OP_MUL, s, ls_append1(cx, g, LS_OP_EXP, decay, NULL));
    }
    if (r->delta && ls_is(s))
        v = two(r, LS_OP_SUB, v, product(r, step_of(r, KEY, t, r->heads, 1, r->depth), s, 1));
    if (r->delta)
        v = two(r, LS_OP_MUL, v, step_of(r, BETA, t, last(r, BETA), 1, 1));
    v = two(r, LS_OP_MUL, step_of(r, KEY, t, r->heads, r->depth, 1), v);
    return ls_is(s) ? two(r, LS_OP_ADD, s, v) : v;
}

static bool run(const Linear *r, LsValueId out[])
{
    LsCtx *cx = r->n->cx;
    LsGraph *g = r->n->g;
    LsValueId state = ls_onnx_in(r->n, PAST),
              *y = ls_arena_alloc(cx->arena, (size_t)r->steps, sizeof *y);
    for (int64_t t = 0; t < r->steps; t++) {
        state = next_state(r, state, t);
        y[t] = product(r, step_of(r, QUERY, t, r->heads, r->groups, r->depth), state, r->scale);
        if (!ls_is(y[t]))
            return false;
        y[t] =
            ls_reshape(cx, g, y[t], &(LsShape){3, {r->batch, 1, r->heads * r->groups * r->width}});
    }
    out[0] = r->steps == 1
                 ? y[0]
                 : ls_append(cx, g, LS_OP_CONCAT, (int)r->steps, y, &(LsAttr){.axis = {1}});
    if (ls_onnx_gives(r->n, 1))
        out[1] = state;
    return ls_is(out[0]) && ls_is(state);
}

/* ---- operands and attributes ---- */
static bool read_rule(Linear *r)
{
    const char *rule = ls_onnx_string(r->n, "update_rule", "gated_delta");
    r->gated = strncmp(rule, "gated", 5) == 0;
    r->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    if (strcmp(rule, "linear") != 0 && strcmp(rule, "gated") != 0 && !r->delta)
        return ls_onnx_error(r->n, LS_E_ATTR, NULL, "update_rule is \"%s\"", rule);
    if (r->gated != ls_is(ls_onnx_in(r->n, DECAY)) || r->delta != ls_is(ls_onnx_in(r->n, BETA)))
        return ls_onnx_error(r->n, LS_E_NAME, "gated rules read decay, delta rules beta",
                             "update_rule \"%s\" does not fit the operands that are given", rule);
    return true;
}

/* Operand k, if there, is [B,T,last] with one of two lengths. */
static bool is_packed(const Linear *r, int k, const char *name, int64_t one, int64_t other)
{
    LsValueId v = ls_onnx_in(r->n, k);
    const LsShape *s = ls_shape(r->n->g, v);
    return !ls_is(v)
           || (s->rank == 3 && s->dim[0] == r->batch && s->dim[1] == r->steps
               && (s->dim[2] == one || s->dim[2] == other))
           || ls_onnx_error(r->n, LS_E_SHAPE, NULL,
                            "%s is %s, not %" PRId64 "x%" PRId64 "x%" PRId64, name,
                            ls_dims(r->n->g, v), r->batch, r->steps, one);
}

static bool read_sizes(Linear *r)
{
    LsOnnxNode *n = r->n;
    const LsShape *q = ls_shape(n->g, n->in[QUERY]), *v = ls_shape(n->g, n->in[VALUE]);
    int64_t queries = ls_onnx_int(n, "q_num_heads", 0), heads = ls_onnx_int(n, "kv_num_heads", 0);
    if (q->rank != 3 || v->rank != 3)
        return ls_onnx_error(n, LS_E_SHAPE, "give batch, steps, heads * depth",
                             "query is %s, value is %s", ls_dims(n->g, n->in[QUERY]),
                             ls_dims(n->g, n->in[VALUE]));
    if (heads < 1 || queries < heads || queries % heads != 0 || q->dim[2] % queries != 0
        || v->dim[2] % heads != 0)
        return ls_onnx_error(
            n, LS_E_ATTR,
            "q_num_heads is a multiple of kv_num_heads, and both divide the last axes",
            "q_num_heads is %" PRId64 " and kv_num_heads %" PRId64 ", query is %s, value is %s",
            queries, heads, ls_dims(n->g, n->in[QUERY]), ls_dims(n->g, n->in[VALUE]));
    *r = (Linear){.n = n,
                  .batch = q->dim[0],
                  .steps = q->dim[1],
                  .heads = heads,
                  .groups = queries / heads,
                  .depth = q->dim[2] / queries,
                  .width = v->dim[2] / heads,
                  .scale = ls_onnx_float(n, "scale", 0)};
    r->scale = r->scale == 0 ? 1 / sqrt((double)r->depth) : r->scale;
    return r->steps <= MOST_STEPS
           || ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                            "%" PRId64 " steps: at most %d are written out", r->steps, MOST_STEPS);
}

static bool linear_attention_build(LsOnnxNode *n, LsValueId out[])
{
    Linear r = {.n = n};
    if (!ls_onnx_takes(n, 3, OPERANDS))
        return false;
    for (int k = 0; k < OPERANDS; k++)
        if (!ls_onnx_takes_real(n, k))
            return false;
    if (!read_sizes(&r) || !read_rule(&r)
        || !is_packed(&r, KEY, "key", r.heads * r.depth, r.heads * r.depth)
        || !is_packed(&r, VALUE, "value", r.heads * r.width, r.heads * r.width)
        || !is_packed(&r, DECAY, "decay", r.heads * r.depth, r.heads)
        || !is_packed(&r, BETA, "beta", r.heads, 1))
        return false;
    LsValueId past = ls_onnx_in(n, PAST);
    const LsShape state = {4, {r.batch, r.heads, r.depth, r.width}};
    if (ls_is(past) && !ls_shape_same(ls_shape(n->g, past), &state))
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "past_state is %s, not %s", ls_dims(n->g, past),
                             ls_shape_text(n->cx->arena, &state));
    return run(&r, out);
}
const LsOnnxOp ls_onnx_linear_attention = {"LinearAttention", 27, linear_attention_build};

/* ---- CausalConvWithState: every channel is convolved alone with what came before ---- */
/* X [N,C,L] behind the state, [N,C,k-1]; without a state, zeros. */
static LsValueId with_state(LsOnnxNode *n, int64_t before)
{
    LsValueId past = ls_onnx_in(n, 3);
    if (before == 0)
        return n->in[0];
    if (ls_is(past))
        return ls_append2(n->cx, n->g, LS_OP_CONCAT, past, n->in[0], &(LsAttr){.axis = {2}});
    return ls_append1(n->cx, n->g, LS_OP_PAD, n->in[0], &(LsAttr){.pad = {.lo = {0, 0, before}}});
}

static bool conv_fits(LsOnnxNode *n)
{
    const LsShape *x = ls_shape(n->g, n->in[0]), *w = ls_shape(n->g, n->in[1]);
    LsValueId bias = ls_onnx_in(n, 2), past = ls_onnx_in(n, 3);
    if (x->rank != 3 || w->rank != 3 || w->dim[0] != x->dim[1] || w->dim[1] != 1)
        return ls_onnx_error(n, LS_E_SHAPE, "input is N x C x L, weight C x 1 x k",
                             "input is %s, weight is %s", ls_dims(n->g, n->in[0]),
                             ls_dims(n->g, n->in[1]));
    if (ls_is(bias)
        && (ls_shape(n->g, bias)->rank != 1 || ls_shape(n->g, bias)->dim[0] != x->dim[1]))
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "bias is %s for %" PRId64 " channels",
                             ls_dims(n->g, bias), x->dim[1]);
    const LsShape state = {3, {x->dim[0], x->dim[1], w->dim[2] - 1}};
    return !ls_is(past) || ls_shape_same(ls_shape(n->g, past), &state)
        || ls_onnx_error(n, LS_E_SHAPE, NULL, "past_state is %s, not %s", ls_dims(n->g, past),
                         ls_shape_text(n->cx->arena, &state));
}

static bool causal_conv_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 4))
        return false;
    for (int k = 0; k < 4; k++)
        if (!ls_onnx_takes_real(n, k))
            return false;
    const char *then = ls_onnx_string(n, "activation", "none");
    bool swish = strcmp(then, "silu") == 0 || strcmp(then, "swish") == 0;
    if (!swish && strcmp(then, "none") != 0)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "activation is \"%s\", not silu, swish or none",
                             then);
    if (!conv_fits(n))
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    int64_t before = ls_shape(n->g, n->in[1])->dim[2] - 1;
    LsValueId all = with_state(n, before), bias = ls_onnx_in(n, 2);
    LsAttr at = {.window = {.n = 1,
                            .kernel = {before + 1},
                            .stride = {1},
                            .dilation = {1},
                            .group = x.dim[1],
                            .x_dim = {x.dim[2]}}};
    LsValueId y = ls_is(all) ? ls_append(n->cx, n->g, LS_OP_CONV, ls_is(bias) ? 3 : 2,
                                         (LsValueId[]){all, n->in[1], bias}, &at) : all;
    out[0] = !ls_is(y) || !swish
                 ? y
                 : ls_append2(n->cx, n->g, LS_OP_MUL, y,
                              ls_append1(n->cx, n->g, LS_OP_SIGMOID, y, NULL), NULL);
    if (!ls_is(out[0]) || !ls_onnx_gives(n, 1))
        return ls_is(out[0]);
    out[1] = before > 0 ? ls_slice_axis(n->cx, n->g, all, 2, x.dim[2], x.dim[2] + before)
                        : ls_const_add(n->cx, n->g, LS_REAL, &(LsShape){3, {x.dim[0], x.dim[1], 0}},
                                       ls_arena_alloc(n->g->arena, 1, sizeof(float)));
    return ls_is(out[1]);
}
const LsOnnxOp ls_onnx_causal_conv = {"CausalConvWithState", 27, causal_conv_build};
