/* runtime/predict/token_draw.c -- see token_model.h. */
#include "runtime/base/seed_mix.h"
#include "runtime/predict/token_model.h"

#include <math.h>
#include <stdlib.h>

/* The likeliest first; of equal ones the first. */
static int by_score(const void *a, const void *b)
{
    const LsTokenRank *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score)
                                : (x->token > y->token) - (x->token < y->token);
}

int64_t ls_token_draw(const double *score, int64_t n, const LsDrawHow *how, int64_t index,
                      LsTokenRank *room)
{
    int64_t best = 0, kept = n;
    double sum = 0, at = 0;
    for (int64_t c = 1; c < n; c++)
        best = score[c] > score[best] ? c : best;
    if (how->temperature == 0)
        return best;
    for (int64_t c = 0; c < n; c++) {
        room[c] = (LsTokenRank){exp((score[c] - score[best]) / how->temperature), c};
        sum += room[c].score;
    }
    if ((how->top_k > 0 && how->top_k < n) || how->top_p < 1) {
        qsort(room, (size_t)n, sizeof *room, by_score);
        if (how->top_k > 0 && how->top_k < n)
            kept = how->top_k;
        sum = 0;
        for (int64_t c = 0; c < kept; c++)
            sum += room[c].score;
        for (int64_t c = 0; how->top_p < 1 && c < kept; c++) {
            at += room[c].score;
            if (at >= how->top_p * sum) {
                kept = c + 1;
                sum = at;
            }
        }
    }
    const uint64_t bits = ls_mix(ls_mix(how->seed + 0x9e3779b97f4a7c15u) + (uint64_t)index);
    double left = (double)(bits >> 11) * 0x1p-53 * sum;
    for (int64_t c = 0; c < kept; c++) {
        left -= room[c].score;
        if (left < 0)
            return room[c].token;
    }
    return room[kept - 1].token;
}
