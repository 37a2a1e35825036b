/* compiler/ops/grid_sample.c -- GridSample (16, 20, 22): a sample whose places are computed from
 * the grid, so that their gradients are those of the arithmetic. */
#include "compiler/ops/row.h"

typedef struct Grid {
    LsOnnxNode *n;
    int axes;                       /* spatial */
    bool corners;
    int64_t length[LS_MAX_SPATIAL]; /* along the axes, the last first, as the grid has them */
} Grid;

static LsValueId two(const Grid *r, LsOpCode op, LsValueId a, LsValueId b)
{
    return ls_append2(r->n->cx, r->n->g, op, a, b, NULL);
}

static LsValueId number(const Grid *r, double v) { return ls_const_real(r->n->cx, r->n->g, v); }

static LsValueId where(const Grid *r, LsValueId c, LsValueId a, LsValueId b)
{
    return ls_append3(r->n->cx, r->n->g, LS_OP_WHERE, c, a, b, NULL);
}

/* by * length + plus, per axis. */
static LsValueId lengths(const Grid *r, double by, double plus)
{
    float *v = ls_arena_alloc(r->n->g->arena, LS_MAX_SPATIAL, sizeof *v);
    for (int k = 0; k < r->axes; k++)
        v[k] = (float)(by * (double)r->length[k] + plus);
    return ls_const_add(r->n->cx, r->n->g, LS_REAL, &(LsShape){1, {r->axes}}, v);
}

/* Coordinates -1 .. 1 as indices; every step rounds as in PyTorch, as `nearest` compares with
 * halves. */
static LsValueId places(const Grid *r)
{
    LsValueId v = two(r, LS_OP_ADD, r->n->in[1], number(r, 1));
    if (r->corners)
        return two(r, LS_OP_MUL, two(r, LS_OP_MUL, v, number(r, 0.5)), lengths(r, 1, -1));
    v = two(r, LS_OP_SUB, two(r, LS_OP_MUL, v, lengths(r, 1, 0)), number(r, 1));
    return two(r, LS_OP_MUL, v, number(r, 0.5));
}

/* Reflected until inside: at the middle of the ends' elements, or at their borders. */
static LsValueId reflect(const Grid *r, LsValueId v)
{
    LsValueId low = number(r, r->corners ? 0 : -0.5),
              span = r->corners ? lengths(r, 1, -1) : lengths(r, 1, 0);
    LsValueId turn = two(r, LS_OP_ADD, span, span), from = two(r, LS_OP_SUB, v, low),
              zero = number(r, 0);
    LsValueId minus = ls_append1(r->n->cx, r->n->g, LS_OP_NEG, from, NULL);
    LsValueId away = where(r, two(r, LS_OP_LESS, from, zero), minus, from);
    LsValueId once = two(r, LS_OP_FMOD, away, turn);
    LsValueId back = two(r, LS_OP_SUB, turn, once);
    LsValueId inside = where(r, two(r, LS_OP_LESS, once, span), once, back);
    inside = two(r, LS_OP_ADD, inside, low);
    /* An axis of one element is reflected to it. */
    return r->corners ? where(r, two(r, LS_OP_EQUAL, span, zero), zero, inside) : inside;
}

/* To 0 .. length - 1; as in PyTorch the ends count as outside, and have no gradient. */
static LsValueId clamp(const Grid *r, LsValueId v)
{
    LsValueId zero = number(r, 0), last = lengths(r, 1, -1);
    LsValueId below = where(r, two(r, LS_OP_GREATER_EQUAL, v, last), last, v);
    return where(r, two(r, LS_OP_LESS_EQUAL, v, zero), zero, below);
}

/* Index of the attribute among the names, which are in pairs; -1 after an error. */
static int choice(LsOnnxNode *n, const char *attr, const char *otherwise, const char *const name[])
{
    const char *said = ls_onnx_string(n, attr, otherwise);
    for (int k = 0; name[k] != NULL; k++)
        if (strcmp(said, name[k]) == 0)
            return k / 2;
    ls_onnx_error(n, LS_E_ATTR, NULL, "%s is \"%s\"", attr, said);
    return -1;
}

static bool shapes_fit(LsOnnxNode *n)
{
    const LsShape *x = ls_shape(n->g, n->in[0]), *grid = ls_shape(n->g, n->in[1]);
    bool fits = x->rank >= 3 && grid->rank == x->rank && grid->dim[0] == x->dim[0]
        && grid->dim[grid->rank - 1] == x->rank - 2;
    if (!fits)
        return ls_onnx_error(
            n, LS_E_SHAPE, "the grid is N x the spatial axes of the result x a coordinate per axis",
            "X is %s, the grid is %s", ls_dims(n->g, n->in[0]), ls_dims(n->g, n->in[1]));
    return x->rank <= 2 + LS_MAX_SPATIAL
           || ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                            "X has %d spatial axes, at most %d are supported", x->rank - 2,
                            LS_MAX_SPATIAL);
}

static bool grid_sample_build(LsOnnxNode *n, LsValueId out[])
{
    static const char *const mode[] = {"nearest", "nearest", "linear", "bilinear",
                                       "cubic",   "bicubic", NULL};
    static const char *const padding[] = {"zeros", "zeros", "border", "border", "reflection", NULL};
    enum { ZEROS, BORDER, REFLECTION };
    if (!ls_onnx_takes(n, 2, 2) || !ls_onnx_takes_real(n, 0) || !ls_onnx_takes_real(n, 1)
        || !shapes_fit(n))
        return false;
    int m = choice(n, "mode", "linear", mode), pad = choice(n, "padding_mode", "zeros", padding);
    if (m < 0 || pad < 0)
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    Grid r = {.n = n, .axes = x.rank - 2, .corners = ls_onnx_int(n, "align_corners", 0) != 0};
    for (int k = 0; k < r.axes; k++)
        r.length[k] = x.dim[x.rank - 1 - k];
    bool cubic = m == LS_SAMPLE_CUBIC;
    LsValueId at = places(&r);
    at = pad == REFLECTION ? reflect(&r, at) : at;
    at = pad != ZEROS && !cubic ? clamp(&r, at) : at;       /* of a cubic, only the taps */
    LsBeyond beyond = !cubic || pad == ZEROS ? LS_BEYOND_NOTHING
                      : pad == BORDER        ? LS_BEYOND_CLAMP
                      : r.corners            ? LS_BEYOND_MIDDLE
                                             : LS_BEYOND_BORDER;
    out[0] = ls_append2(
        n->cx, n->g, LS_OP_SAMPLE, n->in[0], at,
        &(LsAttr){.sample = {.mode = (LsSampleMode)m, .beyond = beyond, .last_first = true}});
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_grid_sample = {"GridSample", 16, grid_sample_build};
