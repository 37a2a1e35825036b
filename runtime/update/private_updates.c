/* runtime/update/private_updates.c -- see private_updates.h. */
#include "runtime/update/private_updates.h"

#include "runtime/base/note.h"
#include "runtime/base/tensor_copy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { MOST_SPOILT = LS_MAX_SKIPPED };

bool ls_private_continues(const LsProgram *p, const LsPlace *at, const char *from, LsError *e)
{
    if (ls_is_private(p) == (at->ledger.n > 0) || at->update == 0)
        return true;
    return ls_is_private(p) ? ls_fail(
               e, LS_EXIT_DATA,
               "%s: its %" PRId64 " updates were not private, so no guarantee would hold (if they "
               "saw other, public data: --export the model there, and compile that with --dp)",
               from, at->update)
                            : ls_fail(e, LS_EXIT_DATA,
                                      "%s: is of private training; updates of this program, which "
                                      "was compiled without "
                                      "--dp, would void its guarantee",
                                      from);
}

/* New keys: a resumed run draws noise that no run has drawn before, also for updates that the run
 * before lost. */
static bool take_secrets(LsPrivateRun *r, int64_t noise_seed, LsPlace *at, LsError *e)
{
    if (noise_seed >= 0) {
        r->draw = ls_key_of_seed((uint64_t)noise_seed, 0);
        r->noise = ls_key_of_seed((uint64_t)noise_seed, 1);
    } else if (!ls_key_new(&r->draw) || !ls_key_new(&r->noise)) {
        return ls_fail(e, LS_EXIT_FAIL, "the system gives no random numbers for the noise");
    }
    if (at->update > 0 && noise_seed < 0)
        ls_note(r->notes, "note: draws and noise go on under new keys, as no checkpoint has them: "
                        "the updates to come are not those "
                        "of an unbroken run\n");
    at->seeded |= noise_seed >= 0;
    if (at->seeded)
        ls_note(r->notes,
                "warning: --noise-seed%s: who knows the seed can subtract the noise, so this run "
                "is not private\n",
                noise_seed >= 0 ? "" : " was given to the checkpoint's run");
    return true;
}

int64_t ls_private_epoch(const LsProgram *p, int64_t samples)
{
    return (int64_t)ceil((double)samples / p->privacy.expected);
}

bool ls_private_begin(LsPrivateRun *r, const LsProgram *p, int64_t noise_seed, LsPlace *at,
                      int64_t samples, LsError *e)
{
    char why[LS_PRIVACY_WHY];
    *r = (LsPrivateRun){.rate = p->privacy.expected / (double)samples, .notes = r->notes};
    if (!(r->rate <= 1))
        return ls_fail(e, LS_EXIT_USAGE,
                       "the expected batch of %g is more than all %" PRId64
                       " samples; compile with "
                       "--dp=...,expected-batch=N",
                       p->privacy.expected, samples);
    if (p->privacy.delta * (double)samples >= 1)
        ls_note(r->notes,
                "warning: delta %g is large: a program that publishes one of %" PRId64
                " samples unchanged would "
                "pass; compile with one well below %.2g\n",
                p->privacy.delta, samples, 1 / (double)samples);
    if (at->ledger.n > 0 && at->samples != samples)
        ls_note(
            r->notes,
            "note: the data are not those of the checkpoint; epsilon counts the updates on both\n");
    if (!take_secrets(r, noise_seed, at, e))
        return false;
    return ls_privacy_add(&at->ledger, r->rate, p->privacy.noise, 0, why)
           || ls_fail(e, LS_EXIT_FAIL, "%s", why);
}

bool ls_private_spend(const LsPrivateRun *r, const LsProgram *p, LsPlace *at, LsError *e)
{
    char why[LS_PRIVACY_WHY];
    return ls_privacy_add(&at->ledger, r->rate, p->privacy.noise, 1, why)
           || ls_fail(e, LS_EXIT_FAIL, "%s", why);
}

LsPrivacyBound ls_private_bound(const LsProgram *p, const LsPlace *at)
{
    return ls_privacy_epsilon(&at->ledger, p->privacy.delta);
}

/* The first parameter that is not finite; NULL: all are. */
static const char *broken_parameter(const LsMemory *m)
{
    const int64_t size = m->p->real_bytes;
    for (uint32_t k = 0; k < m->p->nstate; k++) {
        const LsStateTensor *s = &m->p->state[k];
        const int64_t n = s->kind == LS_STATE_PARAM ? ls_tensor_count(&s->t) : 0;
        const char *at = n > 0 ? ls_memory_view(m, s->t.at, n * size) : NULL;
        for (int64_t i = 0; i < n; i++)
            if (!isfinite(ls_real_at(at + i * size, m->p->real_bytes)))
                return s->t.name;
    }
    return NULL;
}

bool ls_private_check(LsPrivateRun *r, const LsMemory *m, int64_t update, bool spoilt, LsError *e)
{
    r->row = spoilt ? r->row + 1 : 0;
    if (!spoilt)
        return true;
    const char *name = broken_parameter(m);
    if (name != NULL)
        return ls_fail(e, LS_EXIT_DIVERGED,
                       "step %" PRId64
                       ": parameter '%s' is not finite; training has diverged (lower "
                       "--lr?)",
                       update, name);
    if (r->row >= MOST_SPOILT)
        return ls_fail(e, LS_EXIT_DIVERGED,
                       "step %" PRId64
                       ": the losses of %d updates in a row are not finite; training has "
                       "diverged (lower --lr?), or the data are not finite",
                       update, MOST_SPOILT);
    if (!r->told)
        ls_note(r->notes,
                "note: step %" PRId64
                ": the loss is not finite; samples whose gradients are not finite count as "
                "zero\n",
                update);
    return r->told = true;
}
