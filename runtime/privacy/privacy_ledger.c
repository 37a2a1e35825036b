/* runtime/privacy/privacy_ledger.c -- see privacy_ledger.h. */
#include "runtime/privacy/privacy_ledger.h"

#include "runtime/privacy/renyi.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static double order_of(int k)
{
    return k < 99 ? 1 + (k + 1) / 10.0 : k < 99 + 53 ? k - 99 + 11 : 128 << (k - 99 - 53);
}

/* The epsilon that a divergence gives: Canonne, Kamath, Steinke 2020, arXiv:2004.00010, proposition
 * 12. A divergence so small that delta covers it alone gives 0: the total variation is at most
 * sqrt(1 - e^-KL) (Bretagnolle and Huber 1979), and KL is at most the divergence of any order. */
static double epsilon_of(double order, double renyi, double delta)
{
    if (renyi == 0 || delta * delta + expm1(-renyi) > 0)
        return 0;
    const double epsilon = renyi + log1p(-1 / order) - (log(delta) + log(order)) / (order - 1);
    return epsilon < 0 ? 0 : epsilon;
}

/* total: by order */
static LsPrivacyBound best(const double total[LS_PRIVACY_ORDERS], double delta)
{
    LsPrivacyBound b = {INFINITY, 0};
    for (int k = 0; k < LS_PRIVACY_ORDERS; k++) {
        const double epsilon = epsilon_of(order_of(k), total[k], delta);
        if (epsilon < b.epsilon)
            b = (LsPrivacyBound){epsilon, order_of(k)};
    }
    return b;
}

static double of_updates(double renyi, int64_t updates)
{
    return updates > 0 ? (double)updates * renyi : 0;   /* no update publishes nothing, also without
                                                         * noise */
}

__attribute__((format(printf, 2, 3)))
static bool refuse(char *why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, LS_PRIVACY_WHY, fmt, ap);
    va_end(ap);
    return false;
}

static bool sound(double rate, double noise, int64_t updates, char *why)
{
    if (!(rate >= 0 && rate <= 1))
        return refuse(why, "the sampling rate is %g, not a number from 0 to 1", rate);
    if (!(noise >= 0 && noise < INFINITY))
        return refuse(why, "the noise multiplier is %g, not a number of at least 0", noise);
    return updates >= 0 || refuse(why, "the number of updates is %" PRId64 ", below 0", updates);
}

/* ---- the ledger ---- */

static LsPrivacyRun *find_run(const LsPrivacyLedger *l, double rate, double noise)
{
    for (int k = 0; k < l->n; k++)
        if (l->run[k].rate == rate && l->run[k].noise == noise)
            return &l->run[k];
    return NULL;
}

static LsPrivacyRun *new_run(LsPrivacyLedger *l, double rate, double noise)
{
    LsPrivacyRun *more = realloc(l->run, ((size_t)l->n + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    l->run = more;
    LsPrivacyRun *r = &more[l->n++];
    *r = (LsPrivacyRun){.rate = rate, .noise = noise};
    for (int k = 0; k < LS_PRIVACY_ORDERS; k++)
        r->renyi[k] = ls_renyi_update(rate, noise, order_of(k));
    return r;
}

bool ls_privacy_add(LsPrivacyLedger *l, double rate, double noise, int64_t updates,
                    char why[LS_PRIVACY_WHY])
{
    if (!sound(rate, noise, updates, why))
        return false;
    LsPrivacyRun *r = find_run(l, rate, noise);
    if (r == NULL && (r = new_run(l, rate, noise)) == NULL)
        return refuse(why, "out of memory for the privacy ledger");
    int64_t sum;
    if (__builtin_add_overflow(r->updates, updates, &sum))
        return refuse(why, "too many updates for one privacy ledger");
    r->updates = sum;
    return true;
}

LsPrivacyBound ls_privacy_epsilon(const LsPrivacyLedger *l, double delta)
{
    double total[LS_PRIVACY_ORDERS] = {0};
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < LS_PRIVACY_ORDERS; k++)
            total[k] += of_updates(l->run[i].renyi[k], l->run[i].updates);
    return best(total, delta);
}

void ls_privacy_free(LsPrivacyLedger *l)
{
    free(l->run);
    *l = (LsPrivacyLedger){0};
}

/* ---- the search for the noise ---- */

typedef struct Wish { double rate, delta, epsilon; int64_t updates; } Wish;

static bool fits(const Wish *w, double noise)
{
    double total[LS_PRIVACY_ORDERS];
    for (int k = 0; k < LS_PRIVACY_ORDERS; k++)
        total[k] = of_updates(ls_renyi_update(w->rate, noise, order_of(k)), w->updates);
    return best(total, w->delta).epsilon <= w->epsilon;
}

enum { PARTS = 10000 };         /* of 1, in the noise multipliers that are tried */

/* The least multiple that fits, in parts; above `most`: none fits up to there. Epsilon falls as the
 * noise grows. `low` does not fit or is not to be tried; `high` fits after the first loop, or is
 * above `most`. */
static int64_t least_parts(const Wish *w, int64_t least, int64_t most)
{
    int64_t low = least - 1, high = PARTS;
    while (high <= most && !fits(w, (double)high / PARTS)) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (fits(w, (double)middle / PARTS))
            high = middle;
        else
            low = middle;
    }
    return high;
}

bool ls_privacy_noise(double rate, int64_t updates, double delta, double epsilon, double *noise,
                      char why[LS_PRIVACY_WHY])
{
    const Wish w = {rate, delta, epsilon, updates};
    const int64_t least = llround(LS_LEAST_NOISE * PARTS), most = llround(LS_MOST_NOISE * PARTS);
    if (!sound(rate, 0, updates, why))
        return false;
    const int64_t parts = fits(&w, 0) ? 0 : least_parts(&w, least, most);
    if (parts > most)
        return refuse(why, "no noise multiplier up to %g keeps epsilon within %g", LS_MOST_NOISE,
                      epsilon);
    *noise = (double)parts / PARTS;
    return true;
}
