/* compiler/ops/gather_onnx.c -- GatherElements, GatherND, ReverseSequence. Tuples of indices become
 * indices into a flattened tensor, so that one row of the IR and its gradient serve all of them. */
#include "compiler/ops/index.h"

/* ---- GatherElements: indices may be shorter than the operand along other axes ---- */
static bool gather_elements_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 2))
        return false;
    LsGraph *g = n->g;
    LsValueId x = n->in[0];
    const LsShape s = *ls_shape(g, x), by = *ls_shape(g, n->in[1]);
    int axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", 0), s.rank);
    if (axis < 0 || !ls_is(ls_index_ints(n, 1))
        || !ls_index_inside(n, n->in[1], s.dim[axis], s.dim[axis]))
        return false;
    bool fits = s.rank == by.rank;
    for (int k = 0; fits && k < s.rank; k++)
        fits = k == axis || by.dim[k] <= s.dim[k];
    if (!fits)
        return ls_onnx_error(
            n, LS_E_SHAPE, "only along the axis may there be more indices than elements",
            "the data is %s, the indices are %s", ls_dims(g, x), ls_dims(g, n->in[1]));
    for (int k = 0; k < s.rank && ls_is(x); k++)
        if (k != axis)
            x = ls_slice_axis(n->cx, g, x, k, 0, by.dim[k]);
    out[0] = ls_is(x) ? ls_append2(n->cx, g, LS_OP_GATHER_EACH, x, n->in[1],
                                   &(LsAttr){.gather = {.axis = axis}})
                      : x;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_gather_elements = {"GatherElements", 11, gather_elements_build};

/* ---- GatherND ---- */
typedef struct Tuples {         /* of GatherND: data axes are batch, indexed, inner */
    LsShape x, by;
    int batch, m;               /* leading axes that both share; indices in a tuple */
} Tuples;

static bool tuples_fit(LsOnnxNode *n, Tuples *t)
{
    t->x = *ls_shape(n->g, n->in[0]);
    t->by = *ls_shape(n->g, n->in[1]);
    int64_t batch = ls_onnx_int(n, "batch_dims", 0);
    bool fits = t->by.rank > 0 && batch >= 0 && batch < t->by.rank && batch < t->x.rank;
    t->batch = fits ? (int)batch : 0;
    int64_t m = t->by.rank > 0 ? t->by.dim[t->by.rank - 1] : 0;
    fits = fits && m >= 1 && m <= t->x.rank - t->batch;
    for (int k = 0; fits && k < t->batch; k++)
        fits = t->x.dim[k] == t->by.dim[k];
    t->m = (int)m;
    return fits
           || ls_onnx_error(n, LS_E_SHAPE,
                            "tuples of indices lie along the last axis of the indices",
                            "data %s and indices %s do not fit with batch_dims %" PRId64,
                            ls_dims(n->g, n->in[0]), ls_dims(n->g, n->in[1]), batch);
}

/* The index of each tuple into the rows of all batches; batches lie one behind the other. */
static LsValueId rows_of(LsOnnxNode *n, LsValueId tuples, const Tuples *t)
{
    LsGraph *g = n->g;
    int64_t batches = ls_index_span(&t->x, 0, t->batch),
            count = ls_index_span(&t->by, t->batch, t->by.rank - 1);
    LsValueId flat = ls_index_flat(n, tuples, &t->x, t->batch, batches > 1);
    if (!ls_is(flat))
        return flat;
    flat = ls_reshape(n->cx, g, flat, &(LsShape){2, {batches, count}});
    if (!ls_index_affords(n, batches))
        return (LsValueId){0};
    if (batches > 1)
        flat = ls_append2(
            n->cx, g, LS_OP_ADD, flat,
            ls_index_count(n, batches, ls_index_span(&t->x, t->batch, t->batch + t->m), 0, 2),
            NULL);
    return ls_is(flat) ? ls_reshape(n->cx, g, flat, &(LsShape){1, {batches * count}}) : flat;
}

/* Rows of x, which are often its own: exporters index what has a mask's elements in order. */
static LsValueId rows_at(LsOnnxNode *n, LsValueId x, LsValueId rows)
{
    const int64_t all = ls_shape(n->g, x)->dim[0], count = ls_count(ls_shape(n->g, rows));
    int64_t lo = 0;
    if (ls_index_is_run(n->g, rows, all, &lo) && lo >= 0 && lo + count <= all)
        return ls_slice_axis(n->cx, n->g, x, 0, lo, lo + count);
    return ls_append2(n->cx, n->g, LS_OP_GATHER, x, rows, &(LsAttr){.gather = {.axis = 0}});
}

static bool gather_nd_build(LsOnnxNode *n, LsValueId out[])
{
    Tuples t;
    if (!ls_onnx_takes(n, 2, 2) || !tuples_fit(n, &t))
        return false;
    LsGraph *g = n->g;
    LsValueId tuples = ls_index_ints(n, 1), rows = ls_is(tuples) ? rows_of(n, tuples, &t) : tuples;
    if (!ls_is(rows))
        return false;
    int64_t inner = ls_index_span(&t.x, t.batch + t.m, t.x.rank);
    LsShape to = {.rank = t.by.rank - 1 + t.x.rank - t.batch - t.m};
    if (to.rank > LS_MAX_RANK)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                             "the result would have %d axes, %d are handled", to.rank, LS_MAX_RANK);
    for (int k = 0; k < to.rank; k++)
        to.dim[k] = k < t.by.rank - 1 ? t.by.dim[k] : t.x.dim[k - (t.by.rank - 1) + t.batch + t.m];
    LsShape flat = {2, {ls_index_span(&t.x, 0, t.batch + t.m), inner}};
    LsValueId x = ls_reshape(n->cx, g, n->in[0], &flat);
    LsValueId y = ls_is(x) ? rows_at(n, x, rows) : x;
    out[0] = ls_is(y) ? ls_reshape(n->cx, g, y, &to) : y;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_gather_nd = {"GatherND", 11, gather_nd_build};

/* ---- ReverseSequence: of each sample the first steps, as many as its length says ---- */
static LsValueId reversed_rows(LsOnnxNode *n, LsValueId lengths, int64_t steps, int64_t batch,
                               bool time_first)
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    int time = time_first ? 0 : 1;
    LsShape s = {2, {1, 1}};
    s.dim[1 - time] = batch;
    LsValueId length = ls_reshape(cx, g, lengths, &s), t = ls_index_count(n, steps, 1, time, 2);
    LsValueId last = ls_append2(cx, g, LS_OP_SUB, length, ls_index_const(n, 1), NULL);
    LsValueId turned = ls_append2(cx, g, LS_OP_SUB, last, t, NULL);
    LsValueId from = ls_append3(cx, g, LS_OP_WHERE, ls_append2(cx, g, LS_OP_LESS, t, length, NULL),
                                turned, t, NULL);
    from = ls_append2(cx, g, LS_OP_MUL, from, ls_index_const(n, time_first ? batch : 1), NULL);
    return ls_append2(cx, g, LS_OP_ADD, from,
                      ls_index_count(n, batch, time_first ? 1 : steps, 1 - time, 2), NULL);
}

static bool reverse_sequence_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 2))
        return false;
    LsGraph *g = n->g;
    const LsShape x = *ls_shape(g, n->in[0]), by = *ls_shape(g, n->in[1]);
    int64_t time = ls_onnx_int(n, "time_axis", 0), batch = ls_onnx_int(n, "batch_axis", 1);
    LsValueId lengths = ls_index_ints(n, 1);
    if (!ls_is(lengths))
        return false;
    if (time + batch != 1 || time * batch != 0 || x.rank < 2)
        return ls_onnx_error(n, LS_E_ATTR, "one of them is 0, the other 1",
                             "time_axis is %" PRId64 " and batch_axis is %" PRId64
                             ", the operand is %s",
                             time, batch, ls_dims(g, n->in[0]));
    if (by.rank != 1 || by.dim[0] != x.dim[batch])
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "sequence_lens is %s for %" PRId64 " samples",
                             ls_dims(g, n->in[1]), x.dim[batch]);
    if (!ls_index_inside(n, lengths, 0, x.dim[time] + 1) || !ls_index_affords(n, x.dim[0])
        || !ls_index_affords(n, x.dim[1]))
        return false;
    LsValueId rows = reversed_rows(n, lengths, x.dim[time], x.dim[batch], time == 0);
    int64_t count = x.dim[0] * x.dim[1];
    LsValueId flat =
        ls_reshape(n->cx, g, n->in[0], &(LsShape){2, {count, ls_index_span(&x, 2, x.rank)}});
    LsValueId y =
        ls_append2(n->cx, g, LS_OP_GATHER, flat, ls_reshape(n->cx, g, rows, &(LsShape){1, {count}}),
                   &(LsAttr){.gather = {.axis = 0}});
    out[0] = ls_is(y) ? ls_reshape(n->cx, g, y, &x) : y;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_reverse_sequence = {"ReverseSequence", 10, reverse_sequence_build};
