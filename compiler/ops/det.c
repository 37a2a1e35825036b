/* compiler/ops/det.c -- Det: determinants of small matrices, by Laplace's expansion along rows.
 *
 * The minors of the last rows are computed for every set of columns, so n 2^(n - 1) products make a
 * determinant. It is a polynomial: its gradient is right at singular matrices, too, where a formula
 * with the inverse has none. */
#include "compiler/ops/row.h"

enum { MOST = 6 };              /* rows of a matrix */

typedef struct Matrix { LsOnnxNode *n; int size; LsValueId x[MOST][MOST]; } Matrix;

/* x[row][column] times the minor without that column, with the sign of the column's place in the
 * set. */
static LsValueId term(const Matrix *m, int row, int column, unsigned set, const LsValueId minor[])
{
    LsCtx *cx = m->n->cx;
    LsGraph *g = m->n->g;
    unsigned rest = set & ~(1u << column);
    LsValueId t = m->x[row][column];
    if (rest != 0)
        t = ls_append2(cx, g, LS_OP_MUL, t, minor[rest], NULL);
    bool odd = __builtin_popcount(set & ((1u << column) - 1)) % 2 == 1;
    return odd && ls_is(t) ? ls_append1(cx, g, LS_OP_NEG, t, NULL) : t;
}

static LsValueId determinant(const Matrix *m)
{
    LsValueId minor[1 << MOST] = {{0}};
    for (int count = 1; count <= m->size; count++)
        for (unsigned set = 1; set < 1u << m->size; set++) {
            if (__builtin_popcount(set) != count)
                continue;
            LsValueId sum = {0};
            for (int c = 0; c < m->size; c++) {
                if (!(set >> c & 1))
                    continue;
                LsValueId t = term(m, m->size - count, c, set, minor);
                sum = ls_is(sum) ? ls_append2(m->n->cx, m->n->g, LS_OP_ADD, sum, t, NULL) : t;
            }
            minor[set] = sum;
        }
    return minor[(1u << m->size) - 1];
}

static bool det_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_real(n, 0))
        return false;
    LsShape x = *ls_shape(n->g, n->in[0]), y = x;
    int64_t size = x.rank < 2 ? 0 : x.dim[x.rank - 1];
    if (size < 1 || x.dim[x.rank - 2] != size)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "X is %s, it needs square matrices",
                             ls_shape_text(n->cx->arena, &x));
    if (size > MOST)
        return ls_onnx_error(
            n, LS_E_UNSUPPORTED, "compute the determinant from a factorization in the model",
            "determinants of matrices with %" PRId64 " rows; at most %d are supported", size, MOST);
    y.rank -= 2;
    LsShape flat = {3, {ls_count(&y), size, size}};
    LsValueId v = ls_reshape(n->cx, n->g, n->in[0], &flat);
    Matrix m = {.n = n, .size = (int)size};
    for (int i = 0; i < m.size; i++)
        for (int j = 0; j < m.size && ls_is(v); j++)
            m.x[i][j] =
                ls_slice_axis(n->cx, n->g, ls_slice_axis(n->cx, n->g, v, 1, i, i + 1), 2, j, j + 1);
    out[0] = ls_is(v) ? ls_reshape(n->cx, n->g, determinant(&m), &y) : v;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_det = {"Det", 11, det_build};
