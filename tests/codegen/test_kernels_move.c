/* tests/codegen/test_kernels_move.c -- copies by index: layouts of either side, types, negative
 * pads. */
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

/* Splits a flat logical index and joins one. */
static void split_index(const LsShape *s, int64_t flat, int64_t i[])
{
    for (int k = s->rank - 1; k >= 0; k--) {
        i[k] = flat % s->dim[k];
        flat /= s->dim[k];
    }
}

static int64_t join_index(const LsShape *s, const int64_t i[])
{
    int64_t flat = 0;
    for (int k = 0; k < s->rank; k++)
        flat = flat * s->dim[k] + i[k];
    return flat;
}

/* Where result index `to` of the node reads: operand, index; -1: the constant. */
typedef int (*Source)(const Rig *r, LsNodeId n, const int64_t to[], int64_t from[]);

static void check_moves(Rig *r, LsNodeId n, Source source, double otherwise)
{
    LsValueId y = ls_out(r->g, n, 0);
    const LsShape *s = ls_shape(r->g, y);
    for (int64_t p = 0; p < ls_count(s); p++) {
        int64_t to[LS_MAX_RANK], from[LS_MAX_RANK];
        split_index(s, p, to);
        int operand = source(r, n, to, from);
        LsValueId x = operand < 0 ? y : ls_in(r->g, n, operand);
        double want = operand < 0 ? otherwise : rig_get(r, x, join_index(ls_shape(r->g, x), from));
        ck_assert_msg(rig_get(r, y, p) == want, "node %u element %" PRId64 ": %g, want %g", n.i, p,
                      rig_get(r, y, p), want);
    }
}

static const LsAttr *attr_of(const Rig *r, LsNodeId n) { return &r->g->node[n.i].attr; }

static int from_transpose(const Rig *r, LsNodeId n, const int64_t to[], int64_t from[])
{
    for (int k = 0; k < ls_in_shape(r->g, n, 0)->rank; k++)
        from[attr_of(r, n)->perm.perm[k]] = to[k];
    return 0;
}

static int from_same(const Rig *r, LsNodeId n, const int64_t to[], int64_t from[])
{
    memcpy(from, to, sizeof *to * (size_t)ls_in_shape(r->g, n, 0)->rank);
    return 0;
}

static int from_slice(const Rig *r, LsNodeId n, const int64_t to[], int64_t from[])
{
    for (int k = 0; k < ls_in_shape(r->g, n, 0)->rank; k++)
        from[k] = attr_of(r, n)->slice.start[k] + to[k] * attr_of(r, n)->slice.step[k];
    return 0;
}

static int from_slice_grad(const Rig *r, LsNodeId n, const int64_t to[], int64_t from[])
{
    const LsSliceAttr *at = &attr_of(r, n)->slice;
    for (int k = 0; k < at->x.rank; k++) {
        int64_t d = to[k] - at->start[k];
        from[k] = d / at->step[k];
        if (d % at->step[k] != 0 || from[k] < 0 || from[k] >= ls_in_shape(r->g, n, 0)->dim[k])
            return -1;
    }
    return 0;
}

static int from_tile(const Rig *r, LsNodeId n, const int64_t to[], int64_t from[])
{
    const LsShape *x = ls_in_shape(r->g, n, 0);
    for (int k = 0; k < x->rank; k++)
        from[k] = to[k] % x->dim[k];
    return 0;
}

static int from_concat(const Rig *r, LsNodeId n, const int64_t to[], int64_t from[])
{
    int axis = attr_of(r, n)->axis.axis, x = 0;
    from_same(r, n, to, from);
    while (from[axis] >= ls_in_shape(r->g, n, x)->dim[axis])
        from[axis] -= ls_in_shape(r->g, n, x++)->dim[axis];
    return x;
}

static int from_pad(const Rig *r, LsNodeId n, const int64_t to[], int64_t from[])
{
    const LsPadAttr *at = &attr_of(r, n)->pad;
    const LsShape *x = ls_in_shape(r->g, n, 0);
    for (int k = 0; k < x->rank; k++) {
        int64_t i = to[k] - at->lo[k], d = x->dim[k];
        if ((i < 0 || i >= d) && at->mode == LS_PAD_CONSTANT)
            return -1;
        while ((i < 0 || i >= d) && at->mode == LS_PAD_REFLECT)
            i = i < 0 ? -i : 2 * (d - 1) - i;
        from[k] = i < 0 ? 0 : i >= d ? d - 1 : i;
    }
    return 0;
}

static const int real_bytes[] = {4, 8};
static const LsLayout layouts[][2] = {{LS_ROW, LS_ROW}, {LS_LAST, LS_LAST}, {LS_ROW, LS_LAST},
                                      {LS_LAST, LS_ROW}};

START_TEST(test_transposes_of_small_and_large_tensors)
{
    static const int perm[][4] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {3, 2, 1, 0},
                                  {0, 2, 3, 1}, {1, 0, 3, 2}, {2, 3, 0, 1}};
    Rig r;
    rig_open(&r, real_bytes[_i]);
    LsNodeId n[64];
    int count = 0;
    for (size_t p = 0; p < sizeof perm / sizeof *perm; p++)
        for (int l = 0; l < 4; l++) {
            LsShape x = p % 2 ? SHAPE(2, 37, 3, 41) : SHAPE(3, 2, 5, 4), y = {.rank = 4};
            LsAttr at = {0};
            for (int k = 0; k < 4; k++) {
                at.perm.perm[k] = perm[p][k];
                y.dim[k] = x.dim[perm[p][k]];
            }
            LsValueId v = rig_operand(&r, l == 3 ? LS_I32 : LS_REAL, layouts[l][0], x);
            n[count] = rig_node(&r, LS_OP_TRANSPOSE, VALUES(v), 1, &at);
            rig_result(&r, n[count++], 0, l == 3 ? LS_I32 : LS_REAL, layouts[l][1], y);
        }
    LsValueId v = rig_operand(&r, LS_I64, LS_ROW, SHAPE(130, 200));
    n[count] = rig_node(&r, LS_OP_TRANSPOSE, VALUES(v), 1, &(LsAttr){.perm = {{1, 0}}});
    rig_result(&r, n[count++], 0, LS_I64, LS_ROW, SHAPE(200, 130));
    rig_run(&r);
    for (int k = 0; k < count; k++)
        check_moves(&r, n[k], from_transpose, 0);
    rig_close(&r);
}
END_TEST

START_TEST(test_conversions_between_layouts)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    LsNodeId n[8];
    int count = 0;
    for (int l = 2; l < 4; l++)
        for (int large = 0; large < 2; large++) {
            LsShape s = large ? SHAPE(2, 70, 9, 13) : SHAPE(2, 3, 2, 2);
            LsValueId v = rig_operand(&r, LS_REAL, layouts[l][0], s);
            n[count] = rig_node(&r, LS_OP_CONVERT, VALUES(v), 1, NULL);
            rig_result(&r, n[count++], 0, LS_REAL, layouts[l][1], s);
        }
    rig_run(&r);
    for (int k = 0; k < count; k++)
        check_moves(&r, n[k], from_same, 0);
    rig_close(&r);
}
END_TEST

START_TEST(test_slices_with_steps_and_their_gradients)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    LsNodeId n[32], grad[32];
    int count = 0;
    static const int64_t range[][2][3] = {/* start, step, count: of axis 1, of axis 3 */
                                          {{0, 1, 6}, {2, 1, 5}},
                                          {{1, 2, 2}, {8, -1, 9}},
                                          {{5, -3, 2}, {0, 1, 9}},
                                          {{4, 1, 1}, {0, 4, 3}}};
    for (int l = 0; l < 4; l++)
        for (size_t s = 0; s < sizeof range / sizeof *range; s++) {
            LsShape x = SHAPE(2, 6, 3, 9), y = x;
            LsAttr at = {.slice = {.step = {1, 1, 1, 1}, .x = x}};
            for (int k = 0; k < 2; k++) {
                at.slice.start[1 + 2 * k] = range[s][k][0];
                at.slice.step[1 + 2 * k] = range[s][k][1];
                y.dim[1 + 2 * k] = range[s][k][2];
            }
            LsValueId v = rig_operand(&r, LS_REAL, layouts[l][0], x);
            LsValueId dy = rig_operand(&r, LS_REAL, layouts[l][0], y);
            n[count] = rig_node(&r, LS_OP_SLICE, VALUES(v), 1, &at);
            rig_result(&r, n[count], 0, LS_REAL, layouts[l][1], y);
            grad[count] = rig_node(&r, LS_OP_SLICE_GRAD, VALUES(dy), 1, &at);
            rig_result(&r, grad[count++], 0, LS_REAL, layouts[l][1], x);
        }
    rig_run(&r);
    for (int k = 0; k < count; k++) {
        check_moves(&r, n[k], from_slice, 0);
        check_moves(&r, grad[k], from_slice_grad, 0);
    }
    rig_close(&r);
}
END_TEST

START_TEST(test_tiles_and_concatenations)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    LsNodeId tile[8], cat[16];
    int ntile = 0, ncat = 0;
    for (int l = 0; l < 4; l++) {
        LsShape x = SHAPE(2, 3, 2, 5), y = SHAPE(4, 3, 6, 10);
        LsValueId v = rig_operand(&r, LS_REAL, layouts[l][0], x);
        tile[ntile] =
            rig_node(&r, LS_OP_TILE, VALUES(v), 1, &(LsAttr){.shape = {SHAPE(2, 1, 3, 2)}});
        rig_result(&r, tile[ntile++], 0, LS_REAL, layouts[l][1], y);
        for (int axis = 0; axis < 4; axis++) {
            LsShape a = SHAPE(2, 3, 4, 5), b = a, c = a, all = a;
            b.dim[axis] = 1;
            c.dim[axis] = 7;
            all.dim[axis] = a.dim[axis] + 8;
            LsValueId va = rig_operand(&r, LS_REAL, layouts[l][0], a);
            LsValueId vb = rig_operand(&r, LS_REAL, layouts[l][1], b);
            LsValueId vc = rig_operand(&r, LS_REAL, layouts[l][0], c);
            cat[ncat] =
                rig_node(&r, LS_OP_CONCAT, VALUES(va, vb, vc), 1, &(LsAttr){.axis = {axis}});
            rig_result(&r, cat[ncat++], 0, LS_REAL, layouts[l][1], all);
        }
    }
    rig_run(&r);
    for (int k = 0; k < ntile; k++)
        check_moves(&r, tile[k], from_tile, 0);
    for (int k = 0; k < ncat; k++)
        check_moves(&r, cat[k], from_concat, 0);
    rig_close(&r);
}
END_TEST

/* Pads with each mode, borders on some axes, some of them negative; gradients of the repeating
 * ones. */
START_TEST(test_pads_of_every_mode)
{
    static const int64_t border[][4][2] = {{{0, 0}, {0, 0}, {1, 2}, {3, 1}},
                                           {{1, 0}, {2, 1}, {0, 0}, {0, 0}},
                                           {{0, 0}, {0, 0}, {-1, 1}, {2, -2}},
                                           {{0, -1}, {0, 0}, {1, 1}, {-3, -1}},
                                           {{1, 1}, {1, 1}, {1, 1}, {1, 1}}};
    Rig r;
    rig_open(&r, real_bytes[_i]);
    LsNodeId n[64], grad[64];
    int count = 0;
    for (int mode = LS_PAD_CONSTANT; mode <= LS_PAD_EDGE; mode++)
        for (int l = 0; l < 4; l++)
            for (size_t b = 0; b < sizeof border / sizeof *border; b++) {
                LsShape x = SHAPE(2, 3, 4, 6), y = x;
                LsAttr at = {.pad = {.mode = (LsPadMode)mode, .value = 0.5}};
                for (int k = 0; k < 4; k++) {
                    at.pad.lo[k] = border[b][k][0];
                    at.pad.hi[k] = border[b][k][1];
                    y.dim[k] += at.pad.lo[k] + at.pad.hi[k];
                }
                LsValueId v = rig_operand(&r, LS_REAL, layouts[l][0], x);
                n[count] = rig_node(&r, LS_OP_PAD, VALUES(v), 1, &at);
                LsValueId out = rig_result(&r, n[count], 0, LS_REAL, layouts[l][1], y);
                grad[count] = (LsNodeId){0};
                if (mode != LS_PAD_CONSTANT) {
                    grad[count] = rig_node(&r, LS_OP_PAD_GRAD, VALUES(out), 1, &at);
                    rig_result(&r, grad[count], 0, LS_REAL, layouts[l][0], x);
                }
                count++;
            }
    rig_run(&r);
    for (int c = 0; c < count; c++) {
        check_moves(&r, n[c], from_pad, 0.5);
        if (grad[c].i == 0)
            continue;
        LsValueId dy = ls_in(r.g, grad[c], 0), dx = ls_out(r.g, grad[c], 0);
        double want[2 * 3 * 4 * 6] = {0};
        for (int64_t p = 0; p < ls_count(ls_shape(r.g, dy)); p++) {
            int64_t to[LS_MAX_RANK], from[LS_MAX_RANK];
            split_index(ls_shape(r.g, dy), p, to);
            from_pad(&r, n[c], to, from);
            want[join_index(ls_shape(r.g, dx), from)] += rig_get(&r, dy, p);
        }
        for (int64_t p = 0; p < ls_count(ls_shape(r.g, dx)); p++)
            rig_close_to(&r, dx, p, want[p], 1e-6);
    }
    rig_close(&r);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernels_move");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_transposes_of_small_and_large_tensors, 0, 2);
    tcase_add_loop_test(t, test_conversions_between_layouts, 0, 2);
    tcase_add_loop_test(t, test_slices_with_steps_and_their_gradients, 0, 2);
    tcase_add_loop_test(t, test_tiles_and_concatenations, 0, 2);
    tcase_add_loop_test(t, test_pads_of_every_mode, 0, 2);
    return run_tests("kernels_move", t);
}
