/* runtime/metrics/auroc.c -- see auroc.h. */
#include "runtime/metrics/auroc.h"

#include <math.h>
#include <stdlib.h>

int64_t ls_curve_bytes(int64_t columns, int64_t most, bool bits)
{
    const int64_t row = columns * (int64_t)sizeof(double)
                        + (bits ? columns : 1) * (int64_t)sizeof(int32_t)
                        + (int64_t)(sizeof(double) + sizeof(int32_t));  /* what is sorted */
    int64_t bytes;
    return __builtin_mul_overflow(row, most, &bytes) ? INT64_MAX : bytes;
}

LsCurve *ls_curve_new(int64_t columns, int64_t most, bool bits)
{
    LsCurve *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    *c = (LsCurve){.columns = columns, .most = most, .bits = bits};
    c->score = calloc((size_t)(columns * most) + 1, sizeof *c->score);
    c->truth = calloc((size_t)((bits ? columns : 1) * most) + 1, sizeof *c->truth);
    if (c->score != NULL && c->truth != NULL)
        return c;
    ls_curve_free(c);
    return NULL;
}

void ls_curve_free(LsCurve *c)
{
    if (c == NULL)
        return;
    free(c->score);
    free(c->truth);
    free(c);
}

typedef struct Scored { double score; bool yes; } Scored;

static int by_score(const void *a, const void *b)
{
    const double x = ((const Scored *)a)->score, y = ((const Scored *)b)->score;
    return (x > y) - (x < y);
}

/* The share of pairs, one of each kind, that the score puts in order: the ranks of those that are
 * yes, less their ranks among themselves. Equal scores share their mean rank. */
double ls_curve_area(LsCurve *c, int64_t column)
{
    const double *score = c->score + column * c->most;
    const int32_t *truth = c->truth + (c->bits ? column * c->most : 0);
    const int32_t yes_is = c->bits ? 1 : c->columns == 1 ? 1 : (int32_t)column;
    Scored *s = calloc((size_t)c->n + 1, sizeof *s);
    double ranks = 0, yes = 0;
    for (int64_t i = 0; s != NULL && i < c->n; i++) {
        s[i] = (Scored){score[i], truth[i] == yes_is};
        yes += s[i].yes;
    }
    if (s == NULL || yes == 0 || yes == (double)c->n) {
        free(s);
        return NAN;
    }
    qsort(s, (size_t)c->n, sizeof *s, by_score);
    for (int64_t i = 0, end; i < c->n; i = end) {
        for (end = i + 1; end < c->n && s[end].score == s[i].score;)
            end++;
        for (int64_t k = i; k < end; k++)
            ranks += s[k].yes ? 0.5 * (double)(i + 1 + end) : 0;
    }
    free(s);
    return (ranks - yes * (yes + 1) / 2) / (yes * ((double)c->n - yes));
}
