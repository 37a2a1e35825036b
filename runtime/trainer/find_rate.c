/* runtime/trainer/find_rate.c -- see find_rate.h.
 *
 * Losses of single batches are noisy, so what is looked at is their running mean. The rate that is
 * named is where that falls fastest over the logarithm of the rate, before its least value; a fall
 * that the noise of the batches explains is none. */
#include "runtime/trainer/find_rate.h"

#include "runtime/base/number.h"
#include "runtime/trainer/epoch_report.h"
#include "runtime/trainer/run_place.h"
#include "runtime/update/update_run.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 100, ROWS = 20 };        /* updates by default; rows that are printed */
static const double MEAN = 0.9;         /* what of the running mean stays with each update */

typedef struct Point { double rate, loss, mean; } Point;
typedef struct Curve { Point *at; int64_t n, least; } Curve;

bool ls_find_rate_range(const char *text, double *low, double *high, LsError *e)
{
    char part[64];
    const char *colon = text != NULL ? strchr(text, ':') : NULL;
    *low = 1e-7;
    *high = 10;
    if (text == NULL)
        return true;
    if (colon != NULL && (size_t)(colon - text) < sizeof part) {
        snprintf(part, sizeof part, "%.*s", (int)(colon - text), text);
        if (ls_number_real(part, 0, FLT_MAX, low) && ls_number_real(colon + 1, 0, FLT_MAX, high)
            && *low > 0 && *high > *low)
            return true;
    }
    return ls_fail(e, LS_EXIT_USAGE, "--rate-range=%s: two rates above 0, the lower one first, as "
                   "1e-6:1", text);
}

bool ls_find_rate_plan(LsTrainer *t, LsError *e)
{
    const int64_t n = t->o.find_rate > 0 ? t->o.find_rate : STEPS;
    double low, high;
    if (!ls_find_rate_range(t->o.rate_range, &low, &high, e))
        return false;
    t->u.updates = t->u.place.update + n;
    t->u.rate = (LsRate){.kind = LS_RATE_RISING,
                       .lr = low,
                       .gamma = high / low,
                       .every = t->u.place.update - ls_scaling_read(&t->u.memory).skipped,
                       .total = n};
    return true;
}

/* Whether the losses have risen so far that rates above give no more. */
static bool has_risen(const Curve *c)
{
    const double now = c->at[c->n - 1].mean, least = c->at[c->least].mean, first = c->at[0].mean;
    return c->n > 5 && now - least > 3 * fmax(fabs(first), fabs(least));
}

static void add(Curve *c, double rate, double loss, double *sum)
{
    *sum = MEAN * *sum + (1 - MEAN) * loss;
    c->at[c->n] = (Point){rate, loss, *sum / (1 - pow(MEAN, (double)c->n + 1))};
    if (c->at[c->n].mean < c->at[c->least].mean)
        c->least = c->n;
    c->n++;
}

/* A loss that is not finite ends the search. */
static bool run(LsTrainer *t, Curve *c, LsError *e)
{
    double sum = 0;
    ls_train_begin_pass(t);
    t->saves.last = t->u.place.update;
    t->u.scale = ls_scaling_read(&t->u.memory);
    while (t->u.place.update < t->u.updates && !t->ending.agreed) {
        if (!ls_update_run(&t->u, e) || !ls_update_land(&t->u, e)) {
            if (e->code != LS_EXIT_DIVERGED)
                return false;
            *e = (LsError){0};
            return true;
        }
        if (t->group.comm == NULL)
            t->ending.agreed = (int)*t->ending.signal;
        t->u.place.epoch = t->u.place.cursor / t->u.epoch.batches;
        add(c, t->u.engine.run.lr, t->u.under_way.loss, &sum);
        if (!isfinite(sum) || has_risen(c))
            return true;
        if (ls_is_first(t))
            ls_train_show_progress(t);
    }
    return true;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The deviation of a difference of two running means, if all updates had the same loss but for
 * noise. Half of the squared differences of neighbours is the variance of the noise, whatever the
 * losses do in the long run; half of the differences that are found, from the smaller ones on, are
 * not of losses that have begun to jump. */
static double noise(const Curve *c)
{
    double *apart = calloc((size_t)c->n + 1, sizeof *apart), middle = 0;
    for (int64_t k = 1; k < c->n && apart != NULL; k++)
        apart[k - 1] = fabs(c->at[k].loss - c->at[k - 1].loss);
    if (apart != NULL && c->n > 1) {
        qsort(apart, (size_t)c->n - 1, sizeof *apart, by_size);
        middle = apart[(c->n - 1) / 2];
    }
    free(apart);
    /* the median of a normal difference is 0.6745 of its deviation, which is that of a loss times
     * sqrt(2) */
    return middle / 0.6745 * sqrt((1 - MEAN) / (1 + MEAN));
}

/* Where the mean falls fastest over the logarithm of the rate; -1: it does not fall. Slopes are
 * over the same distance, as rates rise by the same factor. */
static int64_t steepest(const Curve *c, int64_t all)
{
    const int64_t near = all / 12 > 1 ? all / 12 : 1;
    double most = 3 * noise(c);
    int64_t best = -1;
    for (int64_t k = near; k + near < c->n && k <= c->least; k++) {
        const double fall = c->at[k - near].mean - c->at[k + near].mean;
        if (fall > most) {
            most = fall;
            best = k;
        }
    }
    return best;
}

static void print(const LsTrainer *t, const Curve *c)
{
    const int digits = t->p->real_bytes == 8 ? 12 : 7;
    const int64_t each = (c->n + ROWS - 1) / ROWS, best = steepest(c, t->u.rate.total);
    printf("%12s %14s %14s\n", "rate", "loss", "running mean");
    for (int64_t k = 0; k < c->n; k += each > 0 ? each : 1)
        printf("%12.4g %14.*g %14.*g\n", c->at[k].rate, digits, c->at[k].loss, digits,
               c->at[k].mean);
    if (c->n < t->u.rate.total)
        printf("the loss rose too far after %" PRId64 " of %" PRId64 " updates\n", c->n,
               t->u.rate.total);
    if (best < 0)
        printf("the loss did not fall at any of these rates; try others (--rate-range)\n");
    else
        printf("rate %.3g: where the loss falls fastest (it is least at %.3g)\n", c->at[best].rate,
               c->at[c->least].rate);
}

static bool write_table(const LsTrainer *t, const Curve *c, LsError *e)
{
    char line[120];
    LsOut o;
    if (!ls_out_open(&o, t->o.rate_table, e))
        return false;
    ls_out_write(&o, "rate,loss,mean\n", 15);
    for (int64_t k = 0; k < c->n; k++) {
        const int n = snprintf(line, sizeof line, "%.9g,%.17g,%.17g\n", c->at[k].rate,
                               c->at[k].loss, c->at[k].mean);
        ls_out_write(&o, line, (size_t)n);
    }
    return ls_out_commit(&o, e);
}

bool ls_find_rate(LsTrainer *t, LsError *e)
{
    Curve c = {.at = calloc((size_t)t->u.rate.total, sizeof *c.at)};
    bool ok = c.at != NULL ? run(t, &c, e) : ls_fail(e, LS_EXIT_FAIL, "out of memory");
    t->ending.interrupted = t->ending.agreed != 0;
    ls_progress_clear(&t->reports.progress);
    if (ok && !t->ending.interrupted && ls_is_first(t)) {
        print(t, &c);
        ok = t->o.rate_table == NULL || write_table(t, &c, e);
    }
    free(c.at);
    return ok;
}
