/* tests/support/matmul_cases.h -- products of all kinds as nodes, and their results in double
 * precision. */
#ifndef LS_TESTS_SUPPORT_MATMUL_CASES_H
#define LS_TESTS_SUPPORT_MATMUL_CASES_H

#include "tests/support/kernel_harness.h"

typedef struct Case {
    int64_t m, n, k;
    bool ta, tb, bias;
    double alpha;
    LsShape a, b;       /* leading axes */
} Case;

static const Case cases[] = {
    {1, 1, 1, 0, 0, 0, 1, {0}, {0}},
    {14, 32, 8, 0, 0, 0, 1, {0}, {0}},
    {13, 33, 7, 0, 0, 1, 1, {0}, {0}},
    {27, 31, 300, 0, 1, 1, 0.5, {0}, {0}},
    {5, 16, 9, 1, 0, 0, -2, {0}, {0}},
    {300, 70, 40, 1, 1, 1, 1, {0}, {0}},
    {256, 10, 520, 0, 1, 1, 1, {0}, {0}},
    {10, 530, 256, 1, 0, 0, 1, {0}, {0}},
    {260, 300, 5, 0, 0, 1, 1, {0}, {0}},
    {1, 600, 70, 0, 0, 1, 1, {0}, {0}},
    {70, 1, 33, 0, 0, 1, 1, {0}, {0}},
    {130, 600, 303, 0, 1, 1, 1, {0}, {0}},                      /* several blocks each way */
    {250, 40, 563, 1, 0, 1, 0.5, {0}, {0}},
    {1100, 50, 9, 1, 0, 0, 1, {0}, {0}},
    {30, 1100, 20, 1, 1, 0, 1, {0}, {0}},
    {45, 12, 1024, 0, 1, 0, 1, {0}, {0}},                       /* rows that crowd */
    {45, 40, 1024, 0, 0, 1, 1, {0}, {0}},
    {5, 3, 2049, 0, 0, 1, 1, {0}, {0}},
    {113, 65, 273, 1, 0, 1, 1, {1, {3}}, {1, {3}}},
    {19, 17, 12, 0, 1, 0, 1, {2, {3, 2}}, {2, {3, 2}}},         /* attention */
    {19, 17, 12, 0, 0, 0, 0.125, {2, {3, 2}}, {2, {3, 2}}},
    {6, 8, 5, 1, 0, 0, 1, {2, {2, 3}}, {2, {2, 3}}},
    {9, 7, 11, 0, 0, 1, 1, {2, {4, 3}}, {0}},                   /* one B for all: rows */
    {9, 7, 11, 1, 0, 1, 1, {2, {4, 3}}, {0}},
    {9, 7, 11, 0, 0, 0, 1, {0}, {1, {5}}},                      /* one A for all */
    {4, 5, 6, 0, 1, 0, 1, {3, {2, 1, 3}}, {2, {4, 1}}},         /* both broadcast */
    {4, 5, 6, 0, 0, 0, 1, {3, {2, 4, 3}}, {2, {1, 3}}},
    {4, 5, 6, 0, 0, 0, 1, {2, {4, 1}}, {3, {2, 4, 3}}},
};
enum { NCASES = sizeof cases / sizeof *cases };

static inline LsShape with_matrix(LsShape s, int64_t rows, int64_t cols)
{
    s.dim[s.rank++] = rows;
    s.dim[s.rank++] = cols;
    return s;
}

static inline HNode *node_of(const Case *c)
{
    LsShape y = c->a;
    ck_assert(ls_shape_broadcast(&y, &c->b));
    y = with_matrix(y, c->m, c->n);
    LsShape in[3] = {with_matrix(c->a, c->ta ? c->k : c->m, c->ta ? c->m : c->k),
                     with_matrix(c->b, c->tb ? c->n : c->k, c->tb ? c->k : c->n),
                     {c->bias ? 1 : -1, {c->n}}};
    return h_node(LS_OP_MATMUL, 3, in, &y, LS_ROW,
                  &(LsAttr){.gemm = {.trans_a = c->ta, .trans_b = c->tb, .alpha = c->alpha}});
}

/* Offset of the matrix of operand `s` that belongs to matrix `at` of the result. */
static inline int64_t matrix_at(const LsShape *y, const LsShape *s, int64_t at)
{
    int64_t place = 0, step = s->dim[s->rank - 1] * s->dim[s->rank - 2];
    for (int i = y->rank - 3; i >= 0; i--) {
        int k = i - y->rank + s->rank;
        if (k >= 0) {
            place += s->dim[k] == 1 ? 0 : at % y->dim[i] * step;
            step *= s->dim[k];
        }
        at /= y->dim[i];
    }
    return place;
}

static inline double *reference(const Case *c, const HNode *h, const double *const in[])
{
    const LsShape *y = &h->value[4].shape;
    int64_t n = ls_count(y);
    double *want = malloc((size_t)n * sizeof *want);
    for (int64_t q = 0; q < n; q++) {
        int64_t j = q % c->n, i = q / c->n % c->m, at = q / c->n / c->m;
        const double *a = in[0] + matrix_at(y, &h->value[1].shape, at);
        const double *b = in[1] + matrix_at(y, &h->value[2].shape, at);
        double s = 0;
        for (int64_t k = 0; k < c->k; k++)
            s += a[c->ta ? k * c->m + i : i * c->k + k] * b[c->tb ? j * c->k + k : k * c->n + j];
        want[q] = c->alpha * s + (c->bias ? in[2][j] : 0);
    }
    return want;
}

#endif
