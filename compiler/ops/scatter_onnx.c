/* compiler/ops/scatter_onnx.c -- ScatterElements, Scatter, ScatterND, TensorScatter. */
#include "compiler/ops/index.h"

/* The reduction: "none" before opset 16, "max" and "min" from opset 18. */
static bool how_of(LsOnnxNode *n, LsScatterHow *how)
{
    static const char *const name[] = {"add", "none", "mul", "max", "min"};
    const char *given = ls_onnx_string(n, "reduction", "none");
    for (int k = 0; k < 5; k++)
        if (strcmp(given, name[k]) == 0) {
            *how = (LsScatterHow)k;
            return true;
        }
    return ls_onnx_error(n, LS_E_ATTR, "it is \"none\", \"add\", \"mul\", \"max\" or \"min\"",
                         "reduction is \"%s\"", given);
}

/* v, followed along other axes than `axis` by copies of `with`, up to the lengths of x. */
static LsValueId padded(LsOnnxNode *n, LsValueId v, const LsShape *x, int axis, double with)
{
    LsAttr at = {.pad = {.mode = LS_PAD_CONSTANT, .value = with}};
    bool more = false;
    for (int k = 0; k < x->rank; k++)
        if (k != axis) {
            at.pad.hi[k] = x->dim[k] - ls_shape(n->g, v)->dim[k];
            more |= at.pad.hi[k] > 0;
        }
    return more ? ls_append1(n->cx, n->g, LS_OP_PAD, v, &at) : v;
}

/* Where there are fewer indices than elements along another axis, the rest get an index outside. */
static bool scatter_elements_build(LsOnnxNode *n, LsValueId out[])
{
    LsAttr at = {0};
    if (!ls_onnx_takes(n, 3, 3) || !how_of(n, &at.gather.how))
        return false;
    LsGraph *g = n->g;
    const LsShape x = at.gather.x = *ls_shape(g, n->in[0]), by = *ls_shape(g, n->in[1]);
    int axis = at.gather.axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", 0), x.rank);
    if (axis < 0 || !ls_is(ls_index_ints(n, 1))
        || !ls_index_inside(n, n->in[1], x.dim[axis], x.dim[axis]))
        return false;
    bool fits = x.rank == by.rank && ls_shape_same(&by, ls_shape(g, n->in[2]));
    for (int k = 0; fits && k < x.rank; k++)
        fits = k == axis || by.dim[k] <= x.dim[k];
    if (!fits)
        return ls_onnx_error(n, LS_E_SHAPE,
                             "indices and updates have one shape, not larger than the data's",
                             "the data is %s, the indices are %s, the updates %s",
                             ls_dims(g, n->in[0]), ls_dims(g, n->in[1]), ls_dims(g, n->in[2]));
    LsValueId index = padded(n, n->in[1], &x, axis, (double)x.dim[axis]);
    LsValueId updates = padded(n, n->in[2], &x, axis, 0);
    if (ls_is(index) && ls_is(updates))
        out[0] = ls_append3(n->cx, g, LS_OP_SCATTER_EACH, updates, index, n->in[0], &at);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_scatter_elements = {"ScatterElements", 11, scatter_elements_build};
const LsOnnxOp ls_onnx_scatter = {"Scatter", 9, scatter_elements_build};

/* updates, scattered to rows of x, which is seen as `rows` rows of `inner` elements. */
static bool to_rows(LsOnnxNode *n, LsValueId updates, LsValueId index, int64_t rows, int64_t inner,
                    LsScatterHow how, LsValueId out[])
{
    LsGraph *g = n->g;
    const LsShape x = *ls_shape(g, n->in[0]), flat = {2, {rows, inner}};
    int64_t count = ls_count(ls_shape(g, index));
    LsValueId base = ls_reshape(n->cx, g, n->in[0], &flat);
    updates = ls_reshape(n->cx, g, updates, &(LsShape){2, {count, inner}});
    index = ls_reshape(n->cx, g, index, &(LsShape){1, {count}});
    LsValueId y = ls_append3(n->cx, g, LS_OP_SCATTER, updates, index, base,
                             &(LsAttr){.gather = {.axis = 0, .x = flat, .how = how}});
    out[0] = ls_is(y) ? ls_reshape(n->cx, g, y, &x) : y;
    return ls_is(out[0]);
}

static bool scatter_nd_build(LsOnnxNode *n, LsValueId out[])
{
    LsScatterHow how = LS_SCATTER_SET;
    if (!ls_onnx_takes(n, 3, 3) || !how_of(n, &how))
        return false;
    LsGraph *g = n->g;
    const LsShape x = *ls_shape(g, n->in[0]), by = *ls_shape(g, n->in[1]);
    if (ls_count(&by) == 0) {       /* no tuple: nothing is written, whatever shape exporters give
                                     * to no updates */
        out[0] = n->in[0];
        return true;
    }
    int64_t m = by.rank > 0 ? by.dim[by.rank - 1] : 0;
    LsShape want = {.rank = by.rank - 1 + x.rank - (int)(m <= x.rank ? m : 0)};
    bool fits = m >= 1 && m <= x.rank && want.rank == ls_shape(g, n->in[2])->rank;
    for (int k = 0; fits && k < want.rank; k++)
        want.dim[k] = k < by.rank - 1 ? by.dim[k] : x.dim[k - (by.rank - 1) + m];
    if (!fits || !ls_shape_same(&want, ls_shape(g, n->in[2])))
        return ls_onnx_error(n, LS_E_SHAPE,
                             "tuples of indices lie along the last axis of the indices",
                             "the data is %s, the indices are %s, the updates %s",
                             ls_dims(g, n->in[0]), ls_dims(g, n->in[1]), ls_dims(g, n->in[2]));
    LsValueId tuples = ls_index_ints(n, 1),
              index = ls_is(tuples) ? ls_index_flat(n, tuples, &x, 0, false) : tuples;
    return ls_is(index)
           && to_rows(n, n->in[2], index, ls_index_span(&x, 0, (int)m),
                      ls_index_span(&x, (int)m, x.rank), how, out);
}
const LsOnnxOp ls_onnx_scatter_nd = {"ScatterND", 11, scatter_nd_build};

/* ---- TensorScatter: writes a run of steps into each sample of a cache, from the sample's index on
 * ---- */
typedef struct Cache { int axis; int64_t batch, rest, steps, length; bool ring; } Cache;

static bool cache_of(LsOnnxNode *n, Cache *c)
{
    LsGraph *g = n->g;
    const LsShape x = *ls_shape(g, n->in[0]), u = *ls_shape(g, n->in[1]);
    const char *mode = ls_onnx_string(n, "mode", "linear");
    c->ring = strcmp(mode, "circular") == 0;
    if (!c->ring && strcmp(mode, "linear") != 0)
        return ls_onnx_error(n, LS_E_ATTR, "it is \"linear\" or \"circular\"", "mode is \"%s\"",
                             mode);
    if ((c->axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", -2), x.rank)) < 0)
        return false;
    bool fits = x.rank == u.rank && c->axis > 0;
    for (int k = 0; fits && k < x.rank; k++)
        fits = k == c->axis ? u.dim[k] <= x.dim[k] : u.dim[k] == x.dim[k];
    if (!fits)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "the update %s does not fit the cache %s along axis %d",
                             ls_dims(g, n->in[1]), ls_dims(g, n->in[0]), c->axis);
    c->batch = x.dim[0];
    c->rest = ls_index_span(&x, 1, c->axis);
    c->steps = u.dim[c->axis];
    c->length = x.dim[c->axis];
    return true;
}

/* The step of the cache that takes each step of the update; outside where there is none. */
static LsValueId cache_steps(LsOnnxNode *n, const Cache *c, LsValueId start)
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    LsValueId at = ls_index_count(n, c->steps, 1, 2, 3), length = ls_index_const(n, c->length);
    if (ls_is(start))
        at = ls_append2(cx, g, LS_OP_ADD, at,
                        ls_reshape(cx, g, start, &(LsShape){3, {c->batch, 1, 1}}), NULL);
    if (c->ring)
        return ls_append2(cx, g, LS_OP_MOD, at, length, NULL);
    LsValueId inside = ls_append2(
        cx, g, LS_OP_AND, ls_append2(cx, g, LS_OP_GREATER_EQUAL, at, ls_index_const(n, 0), NULL),
        ls_append2(cx, g, LS_OP_LESS, at, length, NULL), NULL);
    return ls_append3(cx, g, LS_OP_WHERE, inside, at, ls_index_const(n, LS_INDEX_OUTSIDE), NULL);
}

static bool tensor_scatter_build(LsOnnxNode *n, LsValueId out[])
{
    Cache c = {0};
    if (!ls_onnx_takes(n, 2, 3) || !cache_of(n, &c))
        return false;
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    LsValueId start = ls_onnx_in(n, 2);
    if (ls_is(start) && !ls_is(start = ls_index_ints(n, 2)))
        return false;
    if (ls_is(start) && ls_count(ls_shape(g, start)) != c.batch)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "write_indices is %s for %" PRId64 " samples",
                             ls_dims(g, start), c.batch);
    int64_t groups = c.batch * c.rest;
    if (!ls_index_affords(n, c.steps) || !ls_index_affords(n, groups))
        return false;
    LsValueId at = cache_steps(n, &c, start);
    LsValueId first = ls_reshape(cx, g, ls_index_count(n, groups, c.length, 0, 1),
                                 &(LsShape){3, {c.batch, c.rest, 1}});
    LsValueId index = ls_append2(cx, g, LS_OP_ADD, at, first, NULL);
    const LsShape *x = ls_shape(g, n->in[0]);
    return to_rows(n, n->in[1], index, groups * c.length, ls_index_span(x, c.axis + 1, x->rank),
                   LS_SCATTER_SET, out);
}
const LsOnnxOp ls_onnx_tensor_scatter = {"TensorScatter", 24, tensor_scatter_build};
