/* compiler/ops/sample.c -- IR rows that read images at computed places; see move.def. */
#include "compiler/ops/row.h"

/* The operands that place the samples: `at` is operand k, the next one `of`. */
static bool places_fit(LsCtx *cx, LsGraph *g, LsNodeId n, int k, const LsShape *x)
{
    const LsShape *at = ls_in_shape(g, n, k);
    LsValueId of = ls_in(g, n, k + 1);
    LsType type = ls_is(of) ? ls_type(g, of) : LS_I64;
    if (x->rank < 3 || x->rank > 2 + LS_MAX_SPATIAL)
        return ls_error(cx, ls_where(g, n), LS_E_UNSUPPORTED, NULL,
                        "X is %s: 1 to %d spatial axes are supported", ls_shape_text(g->arena, x),
                        LS_MAX_SPATIAL);
    if (at->rank < 2 || at->dim[at->rank - 1] != x->rank - 2)
        return ls_error(
            cx, ls_where(g, n), LS_E_SHAPE, "the last axis has a coordinate per spatial axis of X",
            "X is %s, the places are %s", ls_shape_text(g->arena, x), ls_shape_text(g->arena, at));
    if (type != LS_I64 && type != LS_I32)
        return ls_error(cx, ls_where(g, n), LS_E_TYPE, NULL,
                        "the numbers of the images are %s, not integers", ls_type_name(type));
    if (ls_is(of) ? ls_shape(g, of)->rank != 1 || ls_shape(g, of)->dim[0] != at->dim[0]
                  : at->dim[0] != x->dim[0])
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                        "there are %" PRId64 " rows of places for %" PRId64 " images", at->dim[0],
                        ls_is(of) ? ls_count(ls_shape(g, of)) : x->dim[0]);
    return true;
}

static bool sample_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsShape *x = ls_in_shape(g, n, 0), *at = ls_in_shape(g, n, 1);
    if (!places_fit(cx, g, n, 1, x))
        return false;
    LsShape y = {.rank = at->rank, .dim = {at->dim[0], x->dim[1]}};
    for (int k = 1; k < at->rank - 1; k++)
        y.dim[1 + k] = at->dim[k];
    return ls_infer_out(cx, g, n, LS_REAL, &y);
}

static bool sample_dx_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsShape *x = &g->node[n.i].attr.sample.x;
    return places_fit(cx, g, n, 1, x) && ls_infer_out(cx, g, n, LS_REAL, x);
}

static bool sample_dat_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    return places_fit(cx, g, n, 2, ls_in_shape(g, n, 1))
           && ls_infer_out(cx, g, n, LS_REAL, ls_in_shape(g, n, 2));
}

static void sample_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                        LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    LsValueId x = ls_in(g, n, 0), places = ls_in(g, n, 1), of = ls_in(g, n, 2);
    at.sample.x = *ls_shape(g, x);
    if (want[0])
        dx[0] = ls_append3(cx, g, LS_OP_SAMPLE_DX, dy[0], places, of, &at);
    if (want[1] && at.sample.mode != LS_SAMPLE_NEAREST)
        dx[1] = ls_append(cx, g, LS_OP_SAMPLE_DAT, 4, (LsValueId[]){dy[0], x, places, of}, &at);
}

/* Two operations per tap of every sample. */
static double sample_flops(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    bool back = node->op != LS_OP_SAMPLE;
    const LsShape *y = back ? ls_in_shape(g, n, 0) : ls_shape(g, ls_out(g, n, 0));
    const LsShape *at = ls_in_shape(g, n, node->op == LS_OP_SAMPLE_DAT ? 2 : 1);
    double taps = 2;
    for (int64_t k = 0; k < at->dim[at->rank - 1]; k++)
        taps *= node->attr.sample.mode == LS_SAMPLE_CUBIC    ? 4
                : node->attr.sample.mode == LS_SAMPLE_LINEAR ? 2
                                                             : 1;
    return (double)ls_count(y) * taps;
}

const LsOp ls_op_sample = {
    /* X, at, of */
    .name = "sample",      .min_in = 2,         .max_in = 3,           .nout = 1,
    .infer = sample_infer, .grad = sample_grad, .flops = sample_flops, .kernel = LS_K_SAMPLE,
    .layout = LS_LAY_ROW,
};
const LsOp ls_op_sample_dx = {
    /* dY, at, of */
    .name = "sample_dx",      .min_in = 2,           .max_in = 3,           .nout = 1,
    .infer = sample_dx_infer, .flops = sample_flops, .kernel = LS_K_SAMPLE, .layout = LS_LAY_ROW,
};
const LsOp ls_op_sample_dat = {
    /* dY, X, at, of */
    .name = "sample_dat",      .min_in = 3,           .max_in = 4,           .nout = 1,
    .infer = sample_dat_infer, .flops = sample_flops, .kernel = LS_K_SAMPLE, .layout = LS_LAY_ROW,
};

/* ---- boxes ---- */

/* The operands behind operand 0 fit images of shape x; Y or dY is y. */
static bool boxes_fit(LsCtx *cx, LsGraph *g, LsNodeId n, const LsShape *x, LsShape *y)
{
    const LsShape *box = ls_in_shape(g, n, 1), *of = ls_in_shape(g, n, 2);
    const LsType type = ls_type(g, ls_in(g, n, 2));
    if (x->rank != 4 || box->rank != 2 || box->dim[1] != 4 || of->rank != 1
        || of->dim[0] != box->dim[0] || (type != LS_I64 && type != LS_I32))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                        "X is %s, boxes are %s, their images %s", ls_shape_text(g->arena, x),
                        ls_shape_text(g->arena, box), ls_shape_text(g->arena, of));
    const LsRoiAttr *a = &g->node[n.i].attr.roi;
    *y = (LsShape){4, {box->dim[0], x->dim[1], a->height, a->width}};
    return true;
}

static bool roi_mean_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    LsShape y;
    return boxes_fit(cx, g, n, ls_in_shape(g, n, 0), &y) && ls_infer_out(cx, g, n, LS_REAL, &y);
}

static bool roi_mean_dx_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsShape x = g->node[n.i].attr.roi.x;
    LsShape y;
    return boxes_fit(cx, g, n, &x, &y) && ls_infer_out(cx, g, n, LS_REAL, &x);
}

/* Boxes are places, which get no gradient. */
static void roi_mean_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                          const bool want[], LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    at.roi.x = *ls_in_shape(g, n, 0);
    if (want[0])
        dx[0] = ls_append3(cx, g, LS_OP_ROI_MEAN_DX, dy[0], ls_in(g, n, 1), ls_in(g, n, 2), &at);
}

/* As if every box had four samples to a bin: the number is not known. */
static double roi_mean_flops(const LsGraph *g, LsNodeId n)
{
    enum { SAMPLES = 4, EACH = 8 };
    const LsShape *y =
        g->node[n.i].op == LS_OP_ROI_MEAN ? ls_shape(g, ls_out(g, n, 0)) : ls_in_shape(g, n, 0);
    return (double)ls_count(y) * SAMPLES * EACH;
}

const LsOp ls_op_roi_mean = {
    /* X, box, of */
    .name = "roi_mean",
    .min_in = 3,
    .max_in = 3,
    .nout = 1,
    .infer = roi_mean_infer,
    .grad = roi_mean_grad,
    .flops = roi_mean_flops,
    .kernel = LS_K_SAMPLE,
    .layout = LS_LAY_ROW,
};
const LsOp ls_op_roi_mean_dx = {
    /* dY, box, of */
    .name = "roi_mean_dx",
    .min_in = 3,
    .max_in = 3,
    .nout = 1,
    .infer = roi_mean_dx_infer,
    .flops = roi_mean_flops,
    .kernel = LS_K_SAMPLE,
    .layout = LS_LAY_ROW,
};
