/* tests/support/attention16_reference.h -- attention_reference with factors of bfloat16: a model of
 * runtime/kernels/ls_attention16.h in double precision, which rounds where the kernel does. Weights
 * are rounded relative to the greatest score so far, block by block. */
#ifndef LS_TESTS_SUPPORT_ATTENTION16_REFERENCE_H
#define LS_TESTS_SUPPORT_ATTENTION16_REFERENCE_H

#include "tests/support/attention_reference.h"

#include <stdint.h>

/* To the nearest bfloat16, halves to even. */
static inline double brain_of(double x)
{
    float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if (isfinite(f))
        u = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline int64_t attention16_block(const AttentionData *d)
{
    const LsAttentionSize s = ls_attention_size(d->g, d->n);
    const int64_t deep = s.depth > s.width ? s.depth : s.width;
    return deep <= 128 ? 224 : deep <= 320 ? 96 : 32;
}

/* One row of y and its statistic. p, moves: room for a row of scores. */
static inline void attention16_row(const AttentionData *d, const int64_t at[3], double *p,
                                   bool *moves)
{
    const LsAttentionSize s = ls_attention_size(d->g, d->n);
    const int64_t kv = at[1] / (s.heads / s.groups), block = attention16_block(d);
    const double *q = d->q + attention_at(d, LS_ATT_Q, at[0], at[1], at[2]);
    double *y = d->y + attention_at(d, LS_ATT_Y, at[0], at[1], at[2]), top = -INFINITY, sum = 0;
    memset(y, 0, (size_t)s.width * sizeof *y);
    for (int64_t from = 0; from < s.cols; from += block) {
        const int64_t end = from + block < s.cols ? from + block : s.cols;
        double most = top;
        for (int64_t j = from; j < end; j++) {
            const double *k = d->k + attention_at(d, LS_ATT_K, at[0], kv, j);
            p[j] = attention_score(d, q, k, (int64_t[]){at[0], at[1], at[2], j}, &moves[j]);
            most = fmax(most, p[j]);
        }
        if (most == -INFINITY)
            continue;
        sum *= exp(top - most);
        for (int64_t c = 0; c < s.width; c++)
            y[c] *= exp(top - most);
        for (int64_t j = from; j < end; j++) {
            const double *v = d->v + attention_at(d, LS_ATT_V, at[0], kv, j), e = exp(p[j] - most);
            sum += e;
            for (int64_t c = 0; c < s.width; c++)
                y[c] += brain_of(e) * v[c];
        }
        top = most;
    }
    for (int64_t c = 0; c < s.width && sum > 0; c++)
        y[c] /= sum;
    d->lse[(at[0] * s.heads + at[1]) * s.rows + at[2]] = sum > 0 ? top + log(sum) : 0;
}

static inline void attention16_row_back(const AttentionData *d, const int64_t at[3])
{
    const double scale = d->g->node[d->n.i].attr.attention.scale;
    const LsAttentionSize s = ls_attention_size(d->g, d->n);
    const int64_t kv = at[1] / (s.heads / s.groups);
    const int64_t qi = attention_at(d, LS_ATT_Q, at[0], at[1], at[2]);
    const int64_t yi = attention_at(d, LS_ATT_Y, at[0], at[1], at[2]);
    const double dot = attention_dot(d->dy + yi, d->y + yi, s.width),
                 lse = d->lse[(at[0] * s.heads + at[1]) * s.rows + at[2]];
    for (int64_t j = 0; j < s.cols; j++) {
        const int64_t kj = attention_at(d, LS_ATT_K, at[0], kv, j);
        const int64_t vj = attention_at(d, LS_ATT_V, at[0], kv, j);
        bool moves;
        const double p = exp(attention_score(d, d->q + qi, d->k + kj,
                                             (int64_t[]){at[0], at[1], at[2], j}, &moves)
                             - lse);
        const double w = brain_of(p * (attention_dot(d->dy + yi, d->v + vj, s.width) - dot));
        for (int64_t c = 0; c < s.depth && moves; c++) {
            d->dq[qi + c] += scale * w * d->k[kj + c];
            d->dk[kj + c] += scale * w * d->q[qi + c];
        }
        for (int64_t c = 0; c < s.width; c++)
            d->dv[vj + c] += brain_of(p) * d->dy[yi + c];
    }
}

/* The gradient's results hold zeros before. */
static inline void attention16_reference(const AttentionData *d)
{
    const LsAttentionSize s = ls_attention_size(d->g, d->n);
    double *p = malloc((size_t)s.cols * sizeof *p);
    bool *moves = malloc((size_t)s.cols);
    for (int64_t r = 0; r < s.batch * s.heads * s.rows; r++) {
        const int64_t at[3] = {r / s.rows / s.heads, r / s.rows % s.heads, r % s.rows};
        if (d->dq != NULL)
            attention16_row_back(d, at);
        else
            attention16_row(d, at, p, moves);
    }
    free(p);
    free(moves);
}

#endif
