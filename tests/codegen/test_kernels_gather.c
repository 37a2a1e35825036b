/* tests/codegen/test_kernels_gather.c -- gathering rows, resizing, and the transposes of both. */
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

static const int real_bytes[] = {4, 8};

typedef struct Table { LsShape x, index; int axis; LsType type; } Table;
static const Table tables[] = {
    {{2, {11, 200}}, {2, {3, 9}}, 0, LS_I64},
    {{3, {2, 5, 7}}, {1, {6}}, 1, LS_I32},
    {{2, {4, 9}}, {1, {13}}, 1, LS_I64},
    {{3, {3, 6, 1}}, {0, {0}}, 1, LS_I64},
    {{2, {700, 3}}, {2, {2, 333}}, 0, LS_I64},      /* many blocks' worth of indices */
    {{3, {2, 9, 300}}, {1, {150}}, 1, LS_I32},
};

/* What the rows of dy give to each place, in their order. */
static void expect_sum(const Rig *r, const Table *t, LsValueId dy, LsValueId at, LsValueId dx,
                       LsValueId base)
{
    int64_t all = ls_count(&t->x), length = t->x.dim[t->axis], count = ls_count(&t->index),
            inner = 1;
    double *want = calloc((size_t)all, sizeof *want), sum = 0;
    for (int a = t->axis + 1; a < t->x.rank; a++)
        inner *= t->x.dim[a];
    for (int64_t p = 0; p < all && ls_is(base); p++)
        want[p] = rig_get(r, base, p);
    for (int64_t p = 0; p < all / length * count; p++) {
        int64_t i = p % inner, o = p / inner / count,
                row = (int64_t)rig_get(r, at, p / inner % count);
        row += row < 0 ? length : 0;
        if (row >= 0 && row < length) {
            double *to = &want[(o * length + row) * inner + i];
            *to += rig_get(r, dy, p);
            *to = r->real_bytes == 4 ? (float)*to : *to;
        }
    }
    for (int64_t p = 0; p < all; p++) {
        rig_close_to(r, dx, p, want[p], 0);
        sum += fabs(want[p]);
    }
    ck_assert(sum > 0);
    free(want);
}

START_TEST(test_gathered_rows_and_their_sum_back)
{
    for (size_t c = 0; c < sizeof tables / sizeof *tables; c++) {
        Rig r;
        rig_open(&r, real_bytes[_i]);
        const Table *t = &tables[c];
        LsShape y = {0};
        int64_t length = t->x.dim[t->axis], count = ls_count(&t->index), inner = 1;
        for (int a = 0; a < t->x.rank; a++)
            if (a != t->axis)
                y.dim[y.rank++] = t->x.dim[a];
            else
                for (int b = 0; b < t->index.rank; b++)
                    y.dim[y.rank++] = t->index.dim[b];
        for (int a = t->axis + 1; a < t->x.rank; a++)
            inner *= t->x.dim[a];
        LsValueId x = rig_operand(&r, LS_REAL, LS_ROW, t->x),
                  at = rig_operand(&r, t->type, LS_ROW, t->index);
        for (int64_t j = 0; j < count; j++)
            rig_set(&r, at, j, floor(rig_random(&r) * (double)length));     /* from -length on */
        for (int64_t j = 0; j < 2 && count > 20; j++)
            rig_set(&r, at, 4 + 9 * j, (double)(j == 0 ? length : -length - 1));    /* outside */
        LsAttr attr = {.gather = {.axis = t->axis, .x = t->x}};
        LsNodeId f = rig_node(&r, LS_OP_GATHER, VALUES(x, at), 1, &attr);
        LsValueId out = rig_result(&r, f, 0, LS_REAL, LS_ROW, y),
                  dy = rig_operand(&r, LS_REAL, LS_ROW, y);
        LsNodeId b = rig_node(&r, LS_OP_GATHER_GRAD, VALUES(dy, at), 1, &attr);
        LsValueId dx = rig_result(&r, b, 0, LS_REAL, LS_ROW, t->x);
        LsValueId base = rig_operand(&r, LS_REAL, LS_ROW, t->x);
        LsNodeId on = rig_node(&r, LS_OP_GATHER_GRAD, VALUES(dy, at, base), 1, &attr);
        LsValueId sum = rig_result(&r, on, 0, LS_REAL, LS_ROW, t->x);
        ck_assert(ls_kernel_inplace(r.g, on, 0, 2) && !ls_kernel_inplace(r.g, on, 0, 0));
        rig_run(&r);
        for (int64_t p = 0; p < ls_count(&y); p++) {
            int64_t i = p % inner, j = p / inner % count, o = p / inner / count;
            int64_t row = (int64_t)rig_get(&r, at, j);
            row += row < 0 ? length : 0;
            if (row < 0 || row >= length) {
                ck_assert(isnan(rig_get(&r, out, p)));
                continue;
            }
            rig_close_to(&r, out, p, rig_get(&r, x, (o * length + row) * inner + i), 0);
        }
        expect_sum(&r, t, dy, at, dx, (LsValueId){0});
        expect_sum(&r, t, dy, at, sum, base);
        rig_close(&r);
    }
}
END_TEST

/* ---- resize ---- */
static double coordinate(const LsResizeAttr *at, int k, int64_t i)
{
    double half = (i + 0.5) / at->scale[k] - 0.5;
    if (at->coord == LS_COORD_ALIGN_CORNERS)
        return at->y.dim[k] == 1
                   ? 0
                   : i * (double)(at->x.dim[k] - 1) / (at->scale[k] * (double)at->x.dim[k] - 1);
    if (at->coord == LS_COORD_ASYMMETRIC)
        return i / at->scale[k];
    return at->coord == LS_COORD_PYTORCH_HALF_PIXEL && at->y.dim[k] == 1 ? 0 : half;
}

static int64_t inside(double v, int64_t n)
{
    return v < 0 ? 0 : v > (double)(n - 1) ? n - 1 : (int64_t)v;
}

/* Weight with which operand index j takes part in result index i along axis k. */
static double weight(const LsResizeAttr *at, int k, int64_t i, int64_t j)
{
    int64_t n = at->x.dim[k];
    if (n == at->y.dim[k] && at->scale[k] == 1)
        return i == j;
    double c = coordinate(at, k, i), low = floor(c);
    if (at->mode == LS_RESIZE_LINEAR)
        return (j == inside(low, n)) * (1 - (c - low)) + (j == inside(low + 1, n)) * (c - low);
    double down = at->nearest == LS_ROUND_FLOOR  ? floor(c)
                  : at->nearest == LS_ROUND_CEIL ? ceil(c)
                  : c - low == 0.5 ? (at->nearest == LS_ROUND_PREFER_FLOOR ? low : low + 1)
                                   : floor(c + 0.5);
    return j == inside(down, n);
}

static void split(const LsShape *s, int64_t flat, int64_t i[])
{
    for (int k = s->rank - 1; k >= 0; k--) {
        i[k] = flat % s->dim[k];
        flat /= s->dim[k];
    }
}

static double entry(const LsResizeAttr *at, int64_t y, int64_t x)
{
    int64_t i[LS_MAX_RANK], j[LS_MAX_RANK];
    double by = 1;
    split(&at->y, y, i);
    split(&at->x, x, j);
    for (int k = 0; k < at->x.rank && by != 0; k++)
        by *= weight(at, k, i[k], j[k]);
    return by;
}

static const LsShape sizes[][2] = {
    {{4, {1, 3, 4, 5}}, {4, {1, 3, 8, 10}}}, {{4, {2, 2, 7, 6}}, {4, {2, 2, 3, 9}}},
    {{4, {1, 2, 4, 3}}, {4, {1, 2, 1, 3}}},  {{3, {2, 3, 5}}, {3, {2, 3, 13}}},
    {{5, {1, 2, 2, 3, 2}}, {5, {1, 2, 4, 3, 3}}},
};

/* Every mode and way of coordinates in one layout, both layouts by whole sets alone. */
START_TEST(test_resizing_and_its_transpose)
{
    int coord = _i % 4, layout = _i / 4 % 2, mode = _i / 8;
    Rig r;
    if (!tests_do_all() && (coord / 2 + layout + mode) % 2 != 0)
        return;
    rig_open(&r, real_bytes[_i % 2]);
    LsNodeId f[20], b[20];
    int count = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int round = 0; round < (mode == LS_RESIZE_NEAREST ? 4 : 1); round++) {
            LsAttr at = {.resize = {.mode = (LsResizeMode)mode, .coord = (LsResizeCoord)coord,
                                    .nearest = (LsRound)round, .x = sizes[s][0], .y = sizes[s][1]}};
            for (int k = 0; k < at.resize.x.rank; k++)
                at.resize.scale[k] = (double)at.resize.y.dim[k] / (double)at.resize.x.dim[k];
            LsValueId x = rig_operand(&r, LS_REAL, layout, at.resize.x);
            LsValueId dy = rig_operand(&r, LS_REAL, layout, at.resize.y);
            f[count] = rig_node(&r, LS_OP_RESIZE, VALUES(x), 1, &at);
            rig_result(&r, f[count], 0, LS_REAL, layout, at.resize.y);
            b[count] = rig_node(&r, LS_OP_RESIZE_GRAD, VALUES(dy), 1, &at);
            rig_result(&r, b[count++], 0, LS_REAL, layout, at.resize.x);
        }
    rig_run(&r);
    for (int c = 0; c < count; c++) {
        const LsResizeAttr *at = &r.g->node[f[c].i].attr.resize;
        int64_t nx = ls_count(&at->x), ny = ls_count(&at->y);
        double *dx = calloc((size_t)nx, sizeof *dx);
        for (int64_t p = 0; p < ny; p++) {
            double want = 0;
            for (int64_t q = 0; q < nx; q++) {
                double by = entry(at, p, q);
                want += by == 0 ? 0 : by * rig_get(&r, ls_in(r.g, f[c], 0), q);
                dx[q] += by * rig_get(&r, ls_in(r.g, b[c], 0), p);
            }
            rig_close_to(&r, ls_out(r.g, f[c], 0), p, want, 1e-6);
        }
        for (int64_t q = 0; q < nx; q++)
            rig_close_to(&r, ls_out(r.g, b[c], 0), q, dx[q], 1e-6);
        free(dx);
    }
    rig_close(&r);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernels_gather");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_gathered_rows_and_their_sum_back, 0, 2);
    tcase_add_loop_test(t, test_resizing_and_its_transpose, 0, 16);
    return run_tests("kernels_gather", t);
}
