/* compiler/ops/recurrent.c -- ONNX RNN, GRU and LSTM, unrolled over the steps of the sequence.
 *
 * X [T,N,I], W [D,G H,I], R [D,G H,H], B [D,2 G H], sequence_lens [N], initial_h and initial_c
 * [D,N,H], P [D,3 H] -> Y [T,D,N,H], Y_h and Y_c [D,N,H]. T steps, N samples, D directions, G gates
 * of H units. With layout 1 the axis N comes first in X, Y and the states. One product makes W x of
 * all steps; every step is a product with R and pointwise nodes.
 *
 * A sample takes no part in steps from its length on: its state stays, and Y is 0. So the reverse
 * direction starts at the last step of each sample. */
#include "compiler/ops/recurrent_cell.h"
#include "compiler/ops/row.h"

enum { MAX_STEPS = 1 << 12 };   /* of all directions of a node */
enum { X, W, R, B, LENS, H0, C0, P };           /* operands */

typedef struct Kind {
    int gates, functions, operands;
    const char *names[3];       /* of the default activations */
    LsCellStep *step;
} Kind;

static const Kind rnn_kind = {1, 1, 6, {"Tanh"}, ls_rnn_step};
static const Kind gru_kind = {3, 2, 6, {"Sigmoid", "Tanh"}, ls_gru_step};
static const Kind lstm_kind = {4, 3, 8, {"Sigmoid", "Tanh", "Tanh"}, ls_lstm_step};

typedef struct Net {
    LsOnnxNode *n;
    const Kind *kind;
    int64_t steps, batch, inputs, hidden;
    int ndir;
    bool reverse;               /* the first direction is the reverse one */
    bool batch_first;
    LsActivation act[6];
    LsCell cell;                /* what all directions share */
    LsValueId x;                /* [T N,I] */
    LsValueId *y;               /* [N,H], by step, then direction */
    LsCellState last[2];        /* by direction */
} Net;

/* ---- operands and attributes ---- */

static bool read_direction(Net *t)
{
    LsOnnxNode *n = t->n;
    const char *d = ls_onnx_string(n, "direction", "forward");
    t->ndir = strcmp(d, "bidirectional") == 0 ? 2 : 1;
    t->reverse = strcmp(d, "reverse") == 0;
    if (t->ndir == 1 && !t->reverse && strcmp(d, "forward") != 0)
        return ls_onnx_error(n, LS_E_ATTR, "it is \"forward\", \"reverse\" or \"bidirectional\"",
                             "direction is \"%s\"", d);
    return true;
}

static bool has_shape(const Net *t, int k, LsShape want)
{
    static const char *const name[] = {"X", "W", "R", "B", "sequence_lens", "initial_h",
                                       "initial_c", "P"};
    LsOnnxNode *n = t->n;
    LsValueId v = ls_onnx_in(n, k);
    if (!ls_is(v) || ls_shape_same(ls_shape(n->g, v), &want))
        return true;
    return ls_onnx_error(n, LS_E_SHAPE, NULL, "%s is %s, it must be %s", name[k],
                         ls_dims(n->g, v), ls_shape_text(n->cx->arena, &want));
}

static LsShape state_shape(const Net *t)
{
    return t->batch_first ? (LsShape){3, {t->batch, t->ndir, t->hidden}}
                          : (LsShape){3, {t->ndir, t->batch, t->hidden}};
}

static bool read_shapes(Net *t)
{
    LsOnnxNode *n = t->n;
    const LsShape x = *ls_shape(n->g, n->in[X]), r = *ls_shape(n->g, n->in[R]);
    if (x.rank != 3 || r.rank != 3)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "X is %s and R is %s, both have rank 3",
                             ls_dims(n->g, n->in[X]), ls_dims(n->g, n->in[R]));
    t->steps = x.dim[t->batch_first ? 1 : 0];
    t->batch = x.dim[t->batch_first ? 0 : 1];
    t->inputs = x.dim[2];
    t->hidden = ls_onnx_int(n, "hidden_size", r.dim[2]);
    int64_t d = t->ndir, h = t->hidden, wide;
    if (h < 1 || __builtin_mul_overflow(h, 2 * t->kind->gates, &wide))
        return ls_onnx_error(n, LS_E_ATTR, NULL, "hidden_size is %" PRId64, h);
    wide = t->kind->gates * h;
    if (t->steps > MAX_STEPS / d)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, "train on shorter sequences",
                             "%" PRId64 " steps are unrolled into nodes; at most %" PRId64
                             " are handled", t->steps, MAX_STEPS / d);
    const LsShape state = state_shape(t);
    return has_shape(t, W, (LsShape){3, {d, wide, t->inputs}})
        && has_shape(t, R, (LsShape){3, {d, wide, h}})
        && has_shape(t, B, (LsShape){2, {d, 2 * wide}})
        && has_shape(t, LENS, (LsShape){1, {t->batch}})
        && has_shape(t, H0, state) && has_shape(t, C0, state)
        && has_shape(t, P, (LsShape){2, {d, 3 * h}});
}

static bool read_lengths(const Net *t)
{
    LsOnnxNode *n = t->n;
    LsValueId v = ls_onnx_in(n, LENS);
    if (!ls_is(v))
        return true;
    if (ls_type(n->g, v) != LS_I32 && ls_type(n->g, v) != LS_I64)
        return ls_onnx_error(n, LS_E_TYPE, NULL, "sequence_lens is %s, it must be int32",
                             ls_type_name(ls_type(n->g, v)));
    for (int64_t i = 0; ls_is_const(n->g, v) && i < t->batch; i++)
        if (ls_const_int_at(n->g, v, i) < 0 || ls_const_int_at(n->g, v, i) > t->steps)
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "sequence_lens has the length %" PRId64 ", X has %" PRId64
                                 " steps", ls_const_int_at(n->g, v, i), t->steps);
    return true;
}

static bool read_cell(Net *t)
{
    LsOnnxNode *n = t->n;
    t->cell = (LsCell){.cx = n->cx,
                       .g = n->g,
                       .hidden = t->hidden,
                       .clip = ls_onnx_float(n, "clip", 0),
                       .input_forget = ls_onnx_int(n, "input_forget", 0) != 0,
                       .linear_before_reset = t->kind == &gru_kind
                           && ls_onnx_int(n, "linear_before_reset", 0) != 0};
    if (ls_onnx_has(n, "clip") && !(t->cell.clip > 0))
        return ls_onnx_error(n, LS_E_ATTR, "leave it out for no clipping", "clip is %g",
                             t->cell.clip);
    return ls_activations(n, t->kind->functions * t->ndir, t->kind->names, t->kind->functions,
                          t->act);
}

static bool read_net(Net *t)
{
    LsOnnxNode *n = t->n;
    if (!ls_onnx_takes(n, 3, t->kind->operands) || !read_direction(t))
        return false;
    for (int k = 0; k < t->kind->operands; k++)
        if (k != LENS && !ls_onnx_takes_real(n, k))
            return false;
    int64_t layout = n->version >= 14 ? ls_onnx_int(n, "layout", 0) : 0;
    t->batch_first = layout == 1;
    if (layout != 0 && layout != 1)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "layout is %" PRId64 ", it must be 0 or 1",
                             layout);
    return read_shapes(t) && read_lengths(t) && read_cell(t);
}

/* ---- parts of operands ---- */

static LsValueId part(const Net *t, LsValueId v, int axis, int64_t from, int64_t to)
{
    return ls_slice_axis(t->n->cx, t->n->g, v, axis, from, to);
}

static LsValueId shaped(const Net *t, LsValueId v, LsShape to)
{
    return ls_reshape(t->n->cx, t->n->g, v, &to);
}

/* Elements from .. to - 1 of a row of an operand [D,..]; none where the operand is left out. */
static LsValueId row_part(const Net *t, int k, int d, int64_t from, int64_t to)
{
    LsValueId v = ls_onnx_in(t->n, k);
    if (!ls_is(v))
        return v;
    v = part(t, part(t, v, 0, d, d + 1), 1, from, to);
    return shaped(t, v, (LsShape){1, {to - from}});
}

/* Rows of W or R of one direction. */
static LsValueId matrix(const Net *t, int k, int d)
{
    LsShape s = *ls_shape(t->n->g, t->n->in[k]);
    return shaped(t, part(t, t->n->in[k], 0, d, d + 1), (LsShape){2, {s.dim[1], s.dim[2]}});
}

static bool is_zero(const LsGraph *g, LsValueId v)
{
    bool zero = ls_is_const(g, v) && g->value[v.i].data != NULL;
    for (int64_t i = 0; zero && i < ls_count(ls_shape(g, v)); i++)
        zero = ls_const_at(g, v, i) == 0;
    return zero;
}

/* The state before the first step, [N,H]; none: zeros. */
static LsValueId initial(const Net *t, int k, int d)
{
    LsValueId v = ls_onnx_in(t->n, k);
    if (!ls_is(v) || is_zero(t->n->g, v))
        return (LsValueId){0};
    return shaped(t, part(t, v, t->batch_first ? 1 : 0, d, d + 1),
                  (LsShape){2, {t->batch, t->hidden}});
}

/* W x plus the biases, for all steps: [T N,G H]. */
static LsValueId inputs(const Net *t, int d)
{
    LsCtx *cx = t->n->cx;
    LsGraph *g = t->n->g;
    int64_t wide = t->kind->gates * t->hidden;
    LsValueId in[3] = {t->x, matrix(t, W, d), row_part(t, B, d, 0, wide)};
    if (ls_is(in[2]) && !t->cell.linear_before_reset)
        in[2] = ls_append2(cx, g, LS_OP_ADD, in[2], row_part(t, B, d, wide, 2 * wide), NULL);
    return ls_append(cx, g, LS_OP_MATMUL, ls_is(in[2]) ? 3 : 2, in,
                     &(LsAttr){.gemm = {.trans_b = true, .alpha = 1}});
}

static LsCell cell_of(const Net *t, int d)
{
    LsCell cell = t->cell;
    int64_t h = t->hidden, wide = t->kind->gates * h;
    cell.r = matrix(t, R, d);
    if (cell.linear_before_reset)
        cell.bias = row_part(t, B, d, wide, 2 * wide);
    for (int k = 0; k < 3; k++)
        cell.peephole[k] = row_part(t, P, d, k * h, (k + 1) * h);
    for (int k = 0; k < t->kind->functions; k++)
        cell.act[k] = t->act[d * t->kind->functions + k];
    return cell;
}

/* ---- lengths of samples ---- */

/* [N,1]: the samples that are longer than `step` steps; none: all of them are. */
static LsValueId longer(const Net *t, int64_t step)
{
    LsGraph *g = t->n->g;
    LsValueId lens = ls_onnx_in(t->n, LENS);
    bool all = !ls_is(lens) || ls_is_const(g, lens);
    for (int64_t i = 0; all && ls_is(lens) && i < t->batch; i++)
        all = ls_const_int_at(g, lens, i) > step;
    if (all)
        return (LsValueId){0};
    lens = shaped(t, lens, (LsShape){2, {t->batch, 1}});
    return ls_append2(t->n->cx, g, LS_OP_GREATER, lens,
                      ls_const_int(t->n->cx, g, ls_type(g, lens), step), NULL);
}

/* `yes` for the samples of the mask, `no` for the others; no mask: `yes`. A value of none is
 * zero. */
static LsValueId choose(const Net *t, LsValueId mask, LsValueId yes, LsValueId no)
{
    if (!ls_is(mask) || !ls_is(yes))
        return yes;
    if (!ls_is(no))
        no = ls_const_real(t->n->cx, t->n->g, 0);
    return ls_append3(t->n->cx, t->n->g, LS_OP_WHERE, mask, yes, no, NULL);
}

/* ---- steps and results ---- */

static void run(Net *t, int d)
{
    const LsCell cell = cell_of(t, d);
    LsValueId x = inputs(t, d);
    LsCellState s = {initial(t, H0, d), {0}};
    if (t->kind == &lstm_kind)
        s.c = initial(t, C0, d);
    for (int64_t i = 0; i < t->steps; i++) {
        int64_t at = t->reverse || d == 1 ? t->steps - 1 - i : i;
        LsValueId mask = longer(t, at), now = part(t, x, 0, at * t->batch, (at + 1) * t->batch);
        LsCellState next = t->kind->step(&cell, now, s);
        t->y[at * t->ndir + d] = choose(t, mask, next.h, (LsValueId){0});
        s = (LsCellState){choose(t, mask, next.h, s.h), choose(t, mask, next.c, s.c)};
    }
    t->last[d] = s;
}

static LsValueId join(const Net *t, int n, const LsValueId part[], int axis)
{
    return n == 1 ? part[0]
                  : ls_append(t->n->cx, t->n->g, LS_OP_CONCAT, n, part, &(LsAttr){.axis = {axis}});
}

static LsValueId all_steps(const Net *t)
{
    static const int to_batch_first[] = {2, 0, 1, 3};
    LsValueId y = join(t, (int)t->steps * t->ndir, t->y, 0);
    y = shaped(t, y, (LsShape){4, {t->steps, t->ndir, t->batch, t->hidden}});
    return t->batch_first ? ls_transpose(t->n->cx, t->n->g, y, to_batch_first) : y;
}

static LsValueId final_state(const Net *t, bool c)
{
    LsValueId each[2];
    LsShape one = state_shape(t);
    int axis = t->batch_first ? 1 : 0;
    one.dim[axis] = 1;
    for (int d = 0; d < t->ndir; d++)
        each[d] = shaped(t, c ? t->last[d].c : t->last[d].h, one);
    return join(t, t->ndir, each, axis);
}

/* The model input whose first axis is the first axis of v: v is made of it row by row; none: there
 * is no such input. */
static LsValueId row_source(const LsGraph *g, LsValueId v)
{
    while (g->value[v.i].kind == LS_V_TEMP) {
        const LsNodeId n = g->value[v.i].def;
        const LsNode *node = &g->node[n.i];
        const int from = node->op == LS_OP_GATHER && node->attr.gather.axis == 0 ? 1 : 0;
        const LsValueId x = ls_in(g, n, from);
        const bool by_rows = ls_op[node->op]->kernel == LS_K_MAP || node->op == LS_OP_MATMUL
            || node->op == LS_OP_RESHAPE || from == 1;
        if (!by_rows || ls_shape(g, x)->rank == 0
            || ls_shape(g, x)->dim[0] != ls_shape(g, v)->dim[0])
            return (LsValueId){0};
        v = x;
    }
    return g->value[v.i].kind == LS_V_INPUT ? v : (LsValueId){0};
}

/* Samples lie along the first axis of the inputs, and data are shuffled and cut along it. Where
 * that axis holds the steps, all inputs together are one sample. */
static void find_samples(const Net *t)
{
    LsOnnxNode *n = t->n;
    LsValueId x = t->batch_first ? (LsValueId){0} : row_source(n->g, n->in[X]);
    if (!ls_is(x) || n->g->batch == 1)
        return;
    ls_warn(n->cx, (LsWhere){n->g->node[0].onnx, n->name, n->op},
            "export the model with batch_first=True to train on any number of samples",
            "the first axis of input '%s' holds %" PRId64
            " steps, not samples: data files must hold whole "
            "blocks of %s, and a batch is one block",
            n->g->value[x.i].name, t->steps, ls_dims(n->g, x));
    n->g->batch = 1;
}

static bool recurrent(LsOnnxNode *n, LsValueId out[], const Kind *kind)
{
    static const int by_step[] = {1, 0, 2};
    Net t = {.n = n, .kind = kind};
    int before = n->cx->nerror;
    if (!read_net(&t))
        return false;
    find_samples(&t);
    LsValueId x = t.batch_first ? ls_transpose(n->cx, n->g, n->in[X], by_step) : n->in[X];
    t.x = shaped(&t, x, (LsShape){2, {t.steps * t.batch, t.inputs}});
    t.y = ls_arena_alloc(n->cx->arena, (size_t)t.steps * 2, sizeof *t.y);
    for (int d = 0; d < t.ndir && n->cx->nerror == before; d++)
        run(&t, d);
    if (n->cx->nerror > before)
        return false;
    if (ls_onnx_gives(n, 0))
        out[0] = all_steps(&t);
    if (ls_onnx_gives(n, 1))
        out[1] = final_state(&t, false);
    if (ls_onnx_gives(n, 2) && kind == &lstm_kind)
        out[2] = final_state(&t, true);
    return n->cx->nerror == before;
}

static bool rnn_build(LsOnnxNode *n, LsValueId out[]) { return recurrent(n, out, &rnn_kind); }
const LsOnnxOp ls_onnx_rnn = {"RNN", 7, rnn_build};
static bool gru_build(LsOnnxNode *n, LsValueId out[]) { return recurrent(n, out, &gru_kind); }
const LsOnnxOp ls_onnx_gru = {"GRU", 7, gru_build};
static bool lstm_build(LsOnnxNode *n, LsValueId out[]) { return recurrent(n, out, &lstm_kind); }
const LsOnnxOp ls_onnx_lstm = {"LSTM", 7, lstm_build};
