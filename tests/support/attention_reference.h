/* tests/support/attention_reference.h -- attention by its formulas, one row of scores at a time, in
 * double precision: the reference for kernels and rows. */
#ifndef LS_TESTS_SUPPORT_ATTENTION_REFERENCE_H
#define LS_TESTS_SUPPORT_ATTENTION_REFERENCE_H

#include "compiler/ops/attention_shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Operands and results of a node, row-major; without a gradient dq, dk and dv are NULL. For joint
 * operands q, k and v are the same array, and so are their gradients. */
typedef struct AttentionData {
    const LsGraph *g;
    LsNodeId n;
    double *q, *k, *v, *mask, *y, *lse, *dy, *dq, *dk, *dv;
    double *spans;              /* NULL: there are none */
} AttentionData;

/* Where head h of token t begins; by the text of ops/net.def, not by ls_attention_heads. */
static inline int64_t attention_at(const AttentionData *d, LsAttentionPart part, int64_t n,
                                   int64_t h, int64_t t)
{
    LsAttentionSize s = ls_attention_size(d->g, d->n);
    bool of_q = part == LS_ATT_Q || part == LS_ATT_Y;
    int64_t heads = of_q ? s.heads : s.groups, tokens = of_q ? s.rows : s.cols;
    int64_t size = part == LS_ATT_Q || part == LS_ATT_K ? s.depth : s.width;
    if (ls_attention_is_joint(d->g, d->n) && part != LS_ATT_Y) {
        int64_t q = s.heads * s.depth, k = s.groups * s.depth, v = s.groups * s.width;
        int64_t before = part == LS_ATT_Q ? 0 : part == LS_ATT_K ? q : q + k;
        return (n * tokens + t) * (q + k + v) + before + h * size;
    }
    bool by_token = d->g->node[d->n.i].attr.attention.by_token & 1u << part;
    return (by_token ? (n * tokens + t) * heads + h : (n * heads + h) * tokens + t) * size;
}

static inline double attention_dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t c = 0; c < n; c++)
        sum += a[c] * b[c];
    return sum;
}

/* The score of row i and column j; *moves: a change of q or k would change it. */
static inline double attention_score(const AttentionData *d, const double *q, const double *k,
                                     const int64_t place[4], bool *moves)
{
    const LsAttentionAttr *at = &d->g->node[d->n.i].attr.attention;
    LsAttentionSize s = ls_attention_size(d->g, d->n);
    LsValueId mask = ls_in(d->g, d->n, ls_attention_mask(d->g, d->n));
    double score = at->scale * attention_dot(q, k, s.depth);
    *moves = !at->causal || place[3] <= place[2] + at->past;
    if (d->spans != NULL) {
        const double *span = d->spans + (place[0] * s.rows + place[2]) * 2;
        *moves = *moves && place[3] >= span[0] && place[3] < span[1];
    }
    if (!*moves || d->mask == NULL)
        return *moves ? score : -INFINITY;
    int64_t m = 0;
    const LsShape *ms = ls_shape(d->g, mask);
    for (int a = 0; a < 4; a++)
        m = m * ms->dim[a] + (ms->dim[a] == 1 ? 0 : place[a]);
    if (ls_type(d->g, mask) != LS_BOOL)
        return score + d->mask[m];
    *moves = (d->mask[m] != 0) == at->keep;
    return *moves ? score : at->fill;
}

/* One row: its weights to p, which of its scores move; the logarithm of its sum. Where all scores
 * are minus infinity, zeros. */
static inline double attention_row(const AttentionData *d, int64_t n, int64_t h, int64_t i,
                                   double *p, bool *moves)
{
    LsAttentionSize s = ls_attention_size(d->g, d->n);
    int64_t kv = h / (s.heads / s.groups);
    const double *q = d->q + attention_at(d, LS_ATT_Q, n, h, i);
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < s.cols; j++) {
        const double *k = d->k + attention_at(d, LS_ATT_K, n, kv, j);
        p[j] = attention_score(d, q, k, (int64_t[]){n, h, i, j}, &moves[j]);
        top = fmax(top, p[j]);
    }
    if (top == -INFINITY) {
        memset(p, 0, (size_t)s.cols * sizeof *p);
        return 0;
    }
    for (int64_t j = 0; j < s.cols; j++)
        sum += exp(p[j] - top);
    for (int64_t j = 0; j < s.cols; j++)
        p[j] = exp(p[j] - top) / sum;
    return top + log(sum);
}

static inline void attention_row_back(const AttentionData *d, int64_t n, int64_t h, int64_t i,
                                      const double *p, const bool *moves)
{
    const double scale = d->g->node[d->n.i].attr.attention.scale;
    LsAttentionSize s = ls_attention_size(d->g, d->n);
    int64_t kv = h / (s.heads / s.groups);
    int64_t qi = attention_at(d, LS_ATT_Q, n, h, i);
    int64_t yi = attention_at(d, LS_ATT_Y, n, h, i);
    double dot = attention_dot(d->dy + yi, d->y + yi, s.width);
    for (int64_t j = 0; j < s.cols; j++) {
        int64_t kj = attention_at(d, LS_ATT_K, n, kv, j);
        int64_t vj = attention_at(d, LS_ATT_V, n, kv, j);
        double w = p[j] * (attention_dot(d->dy + yi, d->v + vj, s.width) - dot) * scale;
        for (int64_t c = 0; c < s.depth && moves[j]; c++) {
            d->dq[qi + c] += w * d->k[kj + c];
            d->dk[kj + c] += w * d->q[qi + c];
        }
        for (int64_t c = 0; c < s.width; c++)
            d->dv[vj + c] += p[j] * d->dy[yi + c];
    }
}

static inline void attention_reference(const AttentionData *d)
{
    LsAttentionSize s = ls_attention_size(d->g, d->n);
    double *p = malloc((size_t)s.cols * sizeof *p);
    bool *moves = malloc((size_t)s.cols);
    if (d->dq != NULL) {
        double *const to[] = {d->dq, d->dk, d->dv};
        for (int k = 0; k < d->g->node[d->n.i].nout; k++)
            memset(to[k], 0,
                   (size_t)ls_count(ls_shape(d->g, ls_out(d->g, d->n, k))) * sizeof(double));
    }
    for (int64_t r = 0; r < s.batch * s.heads * s.rows; r++) {
        int64_t n = r / s.rows / s.heads, h = r / s.rows % s.heads, i = r % s.rows;
        double lse = attention_row(d, n, h, i, p, moves);
        if (d->dq != NULL) {
            attention_row_back(d, n, h, i, p, moves);
            continue;
        }
        double *y = d->y + attention_at(d, LS_ATT_Y, n, h, i);
        d->lse[r] = lse;
        memset(y, 0, (size_t)s.width * sizeof *y);
        for (int64_t j = 0; j < s.cols; j++)
            for (int64_t c = 0; c < s.width; c++)
                y[c] += p[j] * d->v[attention_at(d, LS_ATT_V, n, h / (s.heads / s.groups), j) + c];
    }
    free(p);
    free(moves);
}

#endif
