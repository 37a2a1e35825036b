/* compiler/ops/trilu.c -- Trilu (opset 14): the upper or lower triangle of each matrix, zeros
 * elsewhere. The triangle is a constant mask, so that constants fold and the gradient is
 * Where's. */
#include "compiler/ops/row.h"

#include <inttypes.h>

enum { MOST = 1 << 28 };        /* most elements of a matrix whose triangle is stored */

static LsValueId triangle(LsOnnxNode *n, int64_t rows, int64_t columns, int64_t k, bool upper)
{
    uint8_t *mask = ls_arena_alloc(n->cx->arena, (size_t)(rows * columns) + 1, 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            mask[i * columns + j] = upper ? j - i >= k : j - i <= k;
    return ls_const_add(n->cx, n->g, LS_BOOL, &(LsShape){2, {rows, columns}}, mask);
}

static bool trilu_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 2))
        return false;
    LsGraph *g = n->g;
    const LsShape x = *ls_shape(g, n->in[0]);
    int64_t k = 0;
    if (x.rank < 2)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "X is %s, it needs matrices",
                             ls_shape_text(n->cx->arena, &x));
    if (ls_onnx_const_ints(n, 1, 1, &k) == -2)
        return false;
    int64_t rows = x.dim[x.rank - 2], columns = x.dim[x.rank - 1];
    k = k < -rows ? -rows : k > columns ? columns : k;
    if (columns > 0 && rows > MOST / columns)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "a triangle of %" PRId64 "x%" PRId64
                             " is too large to be stored", rows, columns);
    LsValueId inside = triangle(n, rows, columns, k, ls_onnx_int(n, "upper", 1) != 0);
    if (ls_type(g, n->in[0]) == LS_BOOL) {
        out[0] = ls_append2(n->cx, g, LS_OP_AND, inside, n->in[0], NULL);
        return ls_is(out[0]);
    }
    LsValueId zero = ls_const_real(n->cx, g, 0);
    if (ls_type(g, n->in[0]) != LS_REAL)
        zero = ls_append1(n->cx, g, LS_OP_CAST, zero, &(LsAttr){.cast = ls_type(g, n->in[0])});
    out[0] = ls_append3(n->cx, g, LS_OP_WHERE, inside, n->in[0], zero, NULL);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_trilu = {"Trilu", 14, trilu_build};
