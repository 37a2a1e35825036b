/* runtime/privacy/ledger_text.c -- see ledger_text.h. */
#include "runtime/privacy/ledger_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

char *ls_privacy_bound_text(LsPrivacyBound b, double delta, char text[LS_PRIVACY_WHY])
{
    if (isfinite(b.epsilon))
        snprintf(text, LS_PRIVACY_WHY, "epsilon %.4f at delta %g (order %g)",
                 ceil(b.epsilon * 1e4) / 1e4, delta, b.order);
    else
        snprintf(text, LS_PRIVACY_WHY, "epsilon is infinite: without noise nothing is guaranteed");
    return text;
}

char *ls_privacy_run_text(const LsPrivacyRun *r, char text[LS_PRIVACY_WHY])
{
    snprintf(text, LS_PRIVACY_WHY, "%.17g %.17g %" PRId64, r->rate, r->noise, r->updates);
    return text;
}

bool ls_privacy_read(LsPrivacyLedger *l, const char *text, char why[LS_PRIVACY_WHY])
{
    for (const char *at = text;; at++) {
        char *end[3];
        const double rate = strtod(at, &end[0]), noise = strtod(end[0], &end[1]);
        const int64_t updates = strtoll(end[1], &end[2], 10);
        if (end[0] == at || end[1] == end[0] || end[2] == end[1]
            || (*end[2] != '\0' && *end[2] != ';')) {
            snprintf(why, LS_PRIVACY_WHY, "'%.40s' is no run of private updates", at);
            return false;
        }
        if (!ls_privacy_add(l, rate, noise, updates, why))
            return false;
        at = end[2];
        if (*at == '\0')
            return true;
    }
}
