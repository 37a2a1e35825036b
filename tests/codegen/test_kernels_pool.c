/* tests/codegen/test_kernels_pool.c -- pooling windows of many kinds against plain loops. */
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

static const int real_bytes[] = {4, 8};

typedef struct Case { LsShape x; LsWindowAttr w; } Case;
#define D2(k0, k1, s0, s1, d0, d1, l0, l1, h0, h1, y0, y1) \
    {.n = 2, .kernel = {k0, k1}, .stride = {s0, s1}, .dilation = {d0, d1}, .pad_lo = {l0, l1}, \
     .pad_hi = {h0, h1}, .x_dim = {y0, y1}}
static const Case cases[] = {
    {{4, {2, 5, 8, 6}}, D2(2, 2, 2, 2, 1, 1, 0, 0, 0, 0, 4, 3)},
    {{4, {2, 19, 7, 9}}, D2(3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 4, 5)},
    {{4, {1, 3, 9, 7}}, D2(3, 2, 1, 3, 2, 1, 2, 0, 1, 1, 8, 3)},
    {{4, {1, 4, 6, 6}}, D2(3, 3, 2, 2, 1, 1, 0, 0, 0, 0, 3, 3)}, /* ceil: the last window is cut */
    {{4, {1, 2, 20, 18}}, D2(17, 16, 1, 1, 1, 1, 0, 0, 0, 0, 4, 3)}, /* more than 256 positions */
    {{4, {1, 33, 5, 5}}, D2(5, 5, 1, 1, 1, 1, 2, 2, 2, 2, 5, 5)},
    {{3, {2, 6, 11}},
     {.n = 1,
      .kernel = {3},
      .stride = {2},
      .dilation = {1},
      .pad_lo = {1},
      .pad_hi = {0},
      .x_dim = {5}}},
    {{5, {1, 3, 5, 4, 6}},
     {.n = 3,
      .kernel = {2, 2, 2},
      .stride = {2, 1, 2},
      .dilation = {1, 1, 1},
      .pad_lo = {1, 0, 0},
      .pad_hi = {0, 0, 0},
      .x_dim = {3, 3, 3}}},
};
enum { NCASE = sizeof cases / sizeof *cases };

/* Flat logical index of the pixel of image (b, c); -1 outside. */
static int64_t flat(const LsShape *s, int64_t bc, const int64_t i[])
{
    for (int d = 0; d < s->rank - 2; d++) {
        if (i[d] < 0 || i[d] >= s->dim[2 + d])
            return -1;
        bc = bc * s->dim[2 + d] + i[d];
    }
    return bc;
}

static void split(int n, const int64_t size[], int64_t v, int64_t i[])
{
    for (int d = n - 1; d >= 0; d--) {
        i[d] = v % size[d];
        v /= size[d];
    }
}

typedef struct Expect { double max, sum, count; int64_t index, at; } Expect;

/* What pixel p of the small side sees. */
static Expect see(const Rig *r, LsValueId x, const LsWindowAttr *w, int64_t bc, const int64_t p[])
{
    const LsShape *s = ls_shape(r->g, x);
    Expect e = {.max = -INFINITY, .at = -1};
    int64_t size = w->kernel[0] * (w->n > 1 ? w->kernel[1] : 1) * (w->n > 2 ? w->kernel[2] : 1);
    for (int64_t k = 0; k < size; k++) {
        int64_t i[3];
        bool counted = true;
        split(w->n, w->kernel, k, i);
        for (int d = 0; d < w->n; d++) {
            i[d] = p[d] * w->stride[d] - w->pad_lo[d] + i[d] * w->dilation[d];
            counted &= i[d] < s->dim[2 + d] + w->pad_hi[d];
        }
        int64_t at = flat(s, bc, i);
        e.count += w->count_pad ? counted : at >= 0;
        if (at < 0)
            continue;
        double v = rig_get(r, x, at);
        e.sum += v;
        if (e.at < 0 || v > e.max || isnan(v)) {
            e.max = v;
            e.index = k;
            e.at = at;
        }
    }
    return e;
}

START_TEST(test_windows_see_what_plain_loops_see)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    LsNodeId max[NCASE], avg[2][NCASE];
    LsValueId x[NCASE];
    for (int c = 0; c < NCASE; c++) {
        LsShape y = cases[c].x;
        LsAttr at = {.window = cases[c].w};
        for (int d = 0; d < at.window.n; d++)
            y.dim[2 + d] = at.window.x_dim[d];
        x[c] = rig_operand(&r, LS_REAL, LS_LAST, cases[c].x);
        max[c] = rig_node(&r, LS_OP_MAX_POOL, VALUES(x[c]), 2, &at);
        rig_result(&r, max[c], 0, LS_REAL, LS_LAST, y);
        rig_result(&r, max[c], 1, c == 4 ? LS_I32 : LS_BOOL, LS_LAST, y);
        for (int pad = 0; pad < 2; pad++) {
            at.window.count_pad = pad;
            avg[pad][c] = rig_node(&r, LS_OP_AVERAGE_POOL, VALUES(x[c]), 1, &at);
            rig_result(&r, avg[pad][c], 0, LS_REAL, LS_LAST, y);
        }
    }
    rig_set(&r, x[1], 30, NAN);
    rig_set(&r, x[1], 31, NAN);
    rig_run(&r);
    for (int c = 0; c < NCASE; c++) {
        LsWindowAttr w = cases[c].w;
        int64_t pixels = 1, images = cases[c].x.dim[0] * cases[c].x.dim[1];
        for (int d = 0; d < w.n; d++)
            pixels *= w.x_dim[d];
        for (int64_t q = 0; q < images * pixels; q++) {
            int64_t p[3];
            split(w.n, w.x_dim, q % pixels, p);
            w.count_pad = false;
            Expect e = see(&r, x[c], &w, q / pixels, p);
            rig_close_to(&r, ls_out(r.g, max[c], 0), q, e.max, 0);
            ck_assert_int_eq((int64_t)rig_get(&r, ls_out(r.g, max[c], 1), q), e.index);
            rig_close_to(&r, ls_out(r.g, avg[0][c], 0), q, e.sum / e.count, 1e-6);
            w.count_pad = true;
            e = see(&r, x[c], &w, q / pixels, p);
            rig_close_to(&r, ls_out(r.g, avg[1][c], 0), q, e.sum / e.count, 1e-6);
        }
    }
    rig_close(&r);
}
END_TEST

START_TEST(test_gradients_go_where_the_windows_looked)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    LsNodeId max[NCASE], avg[NCASE];
    LsValueId x[NCASE], dy[NCASE], index[NCASE];
    for (int c = 0; c < NCASE; c++) {
        LsShape y = cases[c].x;
        LsAttr at = {.window = cases[c].w};
        at.window.count_pad = c % 2;
        for (int d = 0; d < at.window.n; d++) {
            y.dim[2 + d] = at.window.x_dim[d];
            at.window.x_dim[d] = cases[c].x.dim[2 + d];
        }
        x[c] = rig_operand(&r, LS_REAL, LS_LAST, cases[c].x);
        dy[c] = rig_operand(&r, LS_REAL, LS_LAST, y);
        index[c] = rig_operand(&r, c == 4 ? LS_I32 : LS_BOOL, LS_LAST, y);
        for (int64_t q = 0; q < ls_count(&y); q++) {
            int64_t p[3], pixels = ls_count(&y) / (y.dim[0] * y.dim[1]);
            split(cases[c].w.n, cases[c].w.x_dim, q % pixels, p);
            rig_set(&r, index[c], q, (double)see(&r, x[c], &cases[c].w, q / pixels, p).index);
        }
        max[c] = rig_node(&r, LS_OP_MAX_POOL_GRAD, VALUES(dy[c], index[c]), 1, &at);
        rig_result(&r, max[c], 0, LS_REAL, LS_LAST, cases[c].x);
        avg[c] = rig_node(&r, LS_OP_AVERAGE_POOL_GRAD, VALUES(dy[c]), 1, &at);
        rig_result(&r, avg[c], 0, LS_REAL, LS_LAST, cases[c].x);
    }
    rig_run(&r);
    for (int c = 0; c < NCASE; c++) {
        const LsShape *s = &cases[c].x, *y = ls_shape(r.g, dy[c]);
        double *want = calloc((size_t)ls_count(s) * 2, sizeof *want),
               *want_avg = want + ls_count(s);
        int64_t pixels = ls_count(y) / (y->dim[0] * y->dim[1]);
        LsWindowAttr w = cases[c].w;
        w.count_pad = c % 2;
        for (int64_t q = 0; q < ls_count(y); q++) {
            int64_t p[3], size = 1;
            split(w.n, w.x_dim, q % pixels, p);
            Expect e = see(&r, x[c], &w, q / pixels, p);
            want[e.at] += rig_get(&r, dy[c], q);
            for (int d = 0; d < w.n; d++)
                size *= w.kernel[d];
            for (int64_t k = 0; k < size; k++) {
                int64_t i[3];
                split(w.n, w.kernel, k, i);
                for (int d = 0; d < w.n; d++)
                    i[d] = p[d] * w.stride[d] - w.pad_lo[d] + i[d] * w.dilation[d];
                int64_t at = flat(s, q / pixels, i);
                if (at >= 0)
                    want_avg[at] += rig_get(&r, dy[c], q) / e.count;
            }
        }
        for (int64_t q = 0; q < ls_count(s); q++) {
            rig_close_to(&r, ls_out(r.g, max[c], 0), q, want[q], 1e-6);
            rig_close_to(&r, ls_out(r.g, avg[c], 0), q, want_avg[q], 1e-6);
        }
        free(want);
    }
    rig_close(&r);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernels_pool");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_windows_see_what_plain_loops_see, 0, 2);
    tcase_add_loop_test(t, test_gradients_go_where_the_windows_looked, 0, 2);
    return run_tests("kernels_pool", t);
}
