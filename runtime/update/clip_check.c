/* runtime/update/clip_check.c -- looks whether the sums of private updates are clipped.
 *
 * The first update of a run, and then one in --check-clip N, begins with a micro-batch that no
 * update sees: the sum of its first batch with the factors of all samples but one as 0, and without
 * noise. That sum is what the one sample adds to an update, made in the very way in which the
 * update makes it, whatever ways the plan took to norms and sums. Its norm must not exceed the
 * clip. */
#include "runtime/update/clip_check.h"

#include "runtime/base/tensor_copy.h"
#include "runtime/update/micro_batch.h"
#include "runtime/update/update_loss.h"

#include <inttypes.h>
#include <math.h>

enum { USUALLY = 100 };         /* updates from a check to the next */

/* By how much a norm that is right may exceed the clip, relatively: norms and sums are rounded,
 * with 16 bits every factor of them. */
static double rounding(const LsProgram *p)
{
    return p->real_bytes == 8 ? 1e-9 : p->about.precision == NULL ? 1e-3 : 2e-2;
}

/* The norm of the sum that the accumulators have. */
static double norm_of_sum(const LsMemory *m)
{
    const int size = m->p->real_bytes;
    double sum = 0;
    for (uint32_t k = 0; k < m->p->nstate; k++) {
        const LsStateTensor *s = &m->p->state[k];
        const int64_t n = s->kind == LS_STATE_SUM ? ls_tensor_count(&s->t) : 0;
        const char *at = n > 0 ? ls_memory_view(m, s->t.at, n * size) : NULL;
        for (int64_t i = 0; i < n; i++)
            sum += ls_real_at(at + i * size, size) * ls_real_at(at + i * size, size);
    }
    return sqrt(sum) * m->p->privacy.expected;
}

static bool is_due(LsTraining *t, const LsBatch *b)
{
    const int64_t every = t->rules.check_clip < 0 ? USUALLY : t->rules.check_clip;
    if (every == 0 || b->valid == 0 || t->place.update < t->privacy.next_check)
        return false;
    t->privacy.next_check = t->place.update + every;
    return true;
}

bool ls_clip_check(LsTraining *t, const LsBatch *b, LsError *e)
{
    LsRun *run = &t->engine.run;
    if (!is_due(t, b))
        return true;
    const int64_t place = t->privacy.checks++ % b->valid;
    ls_part_run(t, b, 0, 0);
    run->apply = run->alone = false;            /* the sum goes to the accumulators, which the
                                                 * update begins anew */
    run->only = 1 + place;
    const bool ran = ls_engine_run(&t->engine, ls_part_table(t, false), NULL, 0, e);
    run->only = 0;
    if (!ran)
        return false;
    const double norm = norm_of_sum(&t->memory), clip = t->p->privacy.clip;
    return norm <= clip * (1 + rounding(t->p))
           || ls_fail(e, LS_EXIT_CHECK,
                      "step %" PRId64
                      ": a sample's clipped gradient has norm %.9g, above the clip of %g, so the "
                      "guarantee would not hold; this update was not made. Compile with "
                      "--sample-norms=terms and sums=terms in "
                      "--dp; if that does not help, the program is wrong: please report it",
                      t->place.update + 1, norm, clip);
}
