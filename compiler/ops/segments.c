/* compiler/ops/segments.c -- where the samples that share a row of tokens begin and end; see
 * net.def. */
#include "compiler/ops/row.h"

static bool segments_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsShape s = *ls_in_shape(g, n, 0);
    const LsType type = ls_type(g, ls_in(g, n, 0));
    if ((type != LS_I64 && type != LS_I32) || s.rank != 2)
        return ls_error(cx, ls_where(g, n), LS_E_TYPE, NULL,
                        "segments are %s of %s, not a row of integers for each sample",
                        ls_shape_text(cx->arena, &s), ls_type_name(type));
    ls_set_out(g, n, 1, LS_I32, &s);
    return ls_infer_out(cx, g, n, LS_I32, &(LsShape){3, {s.dim[0], s.dim[1], 2}});
}

const LsOp ls_op_segments = {
    .name = "segments",
    .min_in = 1,
    .max_in = 1,
    .nout = 2,
    .infer = segments_infer,
    .kernel = LS_K_SCAN,
    .layout = LS_LAY_ROW,
};
