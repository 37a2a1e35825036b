/* scheduler/algorithms/min_norm_point.c -- min |E u - f|, u >= 0, E = (rows, levels) transposed, f
 * = (0, .., 0, 1); the residual r = E u - f gives x = -r[0 .. n) / r[n], and is 0 if there is no
 * x. */
#include "scheduler/algorithms/min_norm_point.h"

#include <math.h>
#include <string.h>

typedef struct Squares {
    uint32_t n, m;
    const double *row, *level;
    double *gram;               /* m * m: E' E */
    double *u, *w, *r;          /* by column, column, coordinate */
    uint32_t *set, nset;        /* columns that may be above 0 */
    bool *in;                   /* by column */
    double *chol, *s;           /* of the set */
} Squares;

static double product(const Squares *q, uint32_t i, uint32_t j)
{
    double sum = q->level[i] * q->level[j];
    for (uint32_t k = 0; k < q->n; k++)
        sum += q->row[i * q->n + k] * q->row[j * q->n + k];
    return sum;
}

/* Writes to q->s the best u on the set, ignoring signs. Returns false if the columns hardly
 * differ. */
static bool solve_set(Squares *q)
{
    uint32_t n = q->nset;
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b <= a; b++) {
            double x = q->gram[q->set[a] * q->m + q->set[b]];
            for (uint32_t c = 0; c < b; c++)
                x -= q->chol[a * n + c] * q->chol[b * n + c];
            if (a == b && x <= 1e-13 * q->gram[q->set[a] * q->m + q->set[a]])
                return false;
            q->chol[a * n + b] = a == b ? sqrt(x) : x / q->chol[b * n + b];
        }
    }
    for (uint32_t a = 0; a < n; a++) {
        double x = q->level[q->set[a]];
        for (uint32_t c = 0; c < a; c++)
            x -= q->chol[a * n + c] * q->s[c];
        q->s[a] = x / q->chol[a * n + a];
    }
    for (uint32_t a = n; a-- > 0;) {
        double x = q->s[a];
        for (uint32_t c = a + 1; c < n; c++)
            x -= q->chol[c * n + a] * q->s[c];
        q->s[a] = x / q->chol[a * n + a];
    }
    return true;
}

static void leave(Squares *q, uint32_t at)
{
    q->in[q->set[at]] = false;
    q->u[q->set[at]] = 0;
    q->set[at] = q->set[--q->nset];
}

/* Moves u to the best point on the set; columns whose u would turn negative leave the set. */
static void settle(Squares *q)
{
    while (q->nset > 0) {
        if (!solve_set(q)) {
            leave(q, q->nset - 1);
            continue;
        }
        double part = 1;
        for (uint32_t a = 0; a < q->nset; a++) {
            double u = q->u[q->set[a]];
            if (q->s[a] <= 0 && u / (u - q->s[a]) < part)
                part = u / (u - q->s[a]);
        }
        for (uint32_t a = 0; a < q->nset; a++)
            q->u[q->set[a]] += part * (q->s[a] - q->u[q->set[a]]);
        if (part >= 1)
            return;
        for (uint32_t a = q->nset; a-- > 0;)
            if (q->u[q->set[a]] <= 1e-14)
                leave(q, a);
    }
}

/* Computes r = E u - f and w = -E' r; returns the column with the greatest w outside the set, or
 * m. */
static uint32_t steepest(Squares *q)
{
    uint32_t best = q->m;
    memset(q->r, 0, (q->n + 1) * sizeof *q->r);
    q->r[q->n] = -1;
    for (uint32_t i = 0; i < q->m; i++) {
        for (uint32_t k = 0; k < q->n && q->u[i] > 0; k++)
            q->r[k] += q->u[i] * q->row[i * q->n + k];
        q->r[q->n] += q->u[i] * q->level[i];
    }
    double most = 0;
    for (uint32_t i = 0; i < q->m; i++) {
        double w = -q->level[i] * q->r[q->n];
        for (uint32_t k = 0; k < q->n; k++)
            w -= q->row[i * q->n + k] * q->r[k];
        w /= sqrt(q->gram[i * q->m + i]) + 1e-30;
        if (!q->in[i] && w > most && q->w[i] == 0) {
            most = w;
            best = i;
        }
    }
    return most > 1e-9 ? best : q->m;
}

bool ls_nearest_point(LsArena *a, uint32_t n, uint32_t m, const double *row, const double *level,
                      double *x, double *weight)
{
    Squares q = {.n = n, .m = m, .row = row, .level = level};
    q.gram = ls_arena_alloc(a, (size_t)m * m + 1, sizeof *q.gram);
    q.chol = ls_arena_alloc(a, (size_t)m * m + 1, sizeof *q.chol);
    q.u = ls_arena_alloc(a, m + 1u, sizeof *q.u);
    q.w = ls_arena_alloc(a, m + 1u, sizeof *q.w);
    q.s = ls_arena_alloc(a, m + 1u, sizeof *q.s);
    q.r = ls_arena_alloc(a, n + 1u, sizeof *q.r);
    q.set = ls_arena_alloc(a, m + 1u, sizeof *q.set);
    q.in = ls_arena_alloc(a, m + 1u, sizeof *q.in);
    for (uint32_t i = 0; i < m; i++)
        for (uint32_t j = 0; j < m; j++)
            q.gram[i * m + j] = product(&q, i, j);
    for (uint32_t round = 0; round < 4 * (n + m); round++) {
        uint32_t best = steepest(&q);
        if (best == m)
            break;
        q.in[best] = true;
        q.set[q.nset++] = best;
        settle(&q);
        /* a column that drops out at once is retried only after another column has moved u */
        memset(q.w, 0, m * sizeof *q.w);
        q.w[best] = q.in[best] ? 0 : 1;
    }
    steepest(&q);
    bool found = -q.r[n] >= 1e-9;
    for (uint32_t k = 0; k < n && found; k++)
        x[k] = -q.r[k] / q.r[n];
    for (uint32_t i = 0; i < m; i++)
        weight[i] = found ? -q.u[i] / q.r[n] : q.u[i];
    return found;
}
