/* runtime/library/net_private.c -- see net.h: what only private nets have. */
#include "runtime/library/net.h"
#include "runtime/library/net_state.h"

static bool is_private(const LsNet *n, LsError *e)
{
    return ls_is_private(n->t.p) || ls_fail(e, LS_EXIT_USAGE, "this net's updates are not private");
}

bool ls_net_seed_noise(LsNet *n, int64_t seed, LsError *e)
{
    if (!is_private(n, e))
        return false;
    if (n->begun || seed < 0)
        return ls_fail(e, LS_EXIT_USAGE,
                       "a seed of the noise is at least 0, and is given before the first step");
    n->noise_seed = seed;
    return true;
}

bool ls_net_spent(const LsNet *n, double *epsilon, double *delta, LsError *e)
{
    if (!is_private(n, e))
        return false;
    *epsilon = ls_private_bound(n->t.p, &n->t.place).epsilon;
    *delta = n->t.p->privacy.delta;
    return true;
}
