/* compiler/ops/crop.c -- CenterCropPad: a pad that crops where its widths are negative. */
#include "compiler/ops/row.h"

/* The axes that the shape is for: all, or as listed. Their number; negative after an error. */
static int crop_axes(LsOnnxNode *n, int rank, int axis[])
{
    int64_t list[LS_MAX_RANK];
    int count = ls_onnx_ints(n, "axes", LS_MAX_RANK, list);
    uint32_t seen = 0;
    for (int k = 0; k < (count < 0 ? rank : count); k++) {
        axis[k] = count < 0 ? k : ls_onnx_axis(n, list[k], rank);
        if (axis[k] < 0)
            return -1;
        if (seen >> axis[k] & 1)
            return ls_onnx_error(n, LS_E_ATTR, NULL, "axes name axis %d twice", axis[k]), -1;
        seen |= 1u << axis[k];
    }
    return count < 0 ? rank : count;
}

/* Half of a difference, rounded down, goes before; the rest behind. */
static bool center_crop_pad_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 2))
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    int axis[LS_MAX_RANK], naxis = crop_axes(n, x.rank, axis);
    int64_t to[LS_MAX_RANK];
    int given = naxis < 0 ? -2 : ls_onnx_const_ints(n, 1, LS_MAX_RANK, to);
    if (given == -2)
        return false;
    if (given != naxis)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "shape has %d entries for %d axes", given, naxis);
    LsAttr at = {.pad = {.mode = LS_PAD_CONSTANT}};
    bool changes = false;
    for (int k = 0; k < naxis; k++) {
        int64_t dim = x.dim[axis[k]];
        if (to[k] < 1 || to[k] > LS_MOST_ELEMENTS)
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "shape asks for length %" PRId64 " along axis %d", to[k], axis[k]);
        at.pad.lo[axis[k]] = to[k] < dim ? -((dim - to[k]) / 2) : (to[k] - dim) / 2;
        at.pad.hi[axis[k]] = to[k] - dim - at.pad.lo[axis[k]];
        changes |= to[k] != dim;
    }
    out[0] = changes ? ls_append1(n->cx, n->g, LS_OP_PAD, n->in[0], &at) : n->in[0];
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_center_crop_pad = {"CenterCropPad", 18, center_crop_pad_build};
