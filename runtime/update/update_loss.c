/* runtime/update/update_loss.c -- the loss of an update, from those of its parts: what is wrong
 * with it, and who hears it. */
#include "runtime/update/update_loss.h"

#include "runtime/base/note.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

bool ls_part_watched(const LsTraining *t)
{
    const bool last =
        ls_has_scaling(t->p) && t->scale.row + 1 >= ls_most_skipped(t->rules.most_skipped);
    return (t->rules.check_values || last) && !t->rules.blind;
}

const LsPhaseTable *ls_part_table(const LsTraining *t, bool last)
{
    return last && t->p->phase.last.nstep > 0 ? &t->p->phase.last : &t->p->phase.train;
}

int ls_part_hooks(LsTraining *t, const LsPhaseTable *table, bool last, LsHook hook[LS_PART_HOOKS])
{
    int n = 0;
    if (ls_part_watched(t)) {
        ls_check_start(&t->check, &t->engine, table);
        hook[n++] = ls_check_hook(&t->check);
    }
    if (t->watch.hooks != NULL)
        n += t->watch.hooks(t->watch.self, table, last, hook + n);
    return n;
}

static void report(const LsTraining *t, const LsInFlight *f, double loss)
{
    if (t->watch.landed != NULL)
        t->watch.landed(t->watch.self, f, loss);
}

/* Before a note. */
static void announce(const LsTraining *t)
{
    if (t->watch.before_note != NULL)
        t->watch.before_note(t->watch.self);
}

/* Reports a divergence. Names the node with --check-numerics, and the data when they are not
 * finite. */
static bool diverged(const LsTraining *t, const LsInFlight *f, double loss, LsError *e)
{
    LsError data = {0}, node = *e;
    *e = (LsError){0};
    if (!ls_is_private(t->p) && !ls_batch_is_finite(&t->feed.pass, f->batch, &data)
        && node.code != LS_EXIT_DONE)
        return ls_fail(e, node.code, "%s; the data are not finite: %s", node.text, data.text);
    if (data.code != LS_EXIT_DONE)
        return ls_fail(e, LS_EXIT_DIVERGED, "step %" PRId64 ": the loss is %g, because the data "
                       "are not finite: %s", f->update, loss, data.text);
    if (node.code != LS_EXIT_DONE)
        return ls_fail(e, node.code, "%s", node.text);
    return ls_fail(e, LS_EXIT_DIVERGED,
                   "step %" PRId64 ": the loss is %g; training has diverged (lower "
                   "--lr?); --check-numerics names the first node that gives such a value",
                   f->update, loss);
}

/* Prints a warning once, as the printed losses hardly show it. */
static void tell_of_none(LsTraining *t, int64_t update)
{
    if (t->under_way.mean.weight != 0 || t->p->target.sums || t->no_label)
        return;
    t->no_label = true;
    announce(t);
    ls_note(t->notes,
            "note: step %" PRId64 ": no label counts, all are ignored or of weight 0; its loss "
            "and its gradients are 0\n",
            update);
}

/* The end of an update, whose gradients were scaled. */
static bool end_scaled(LsTraining *t, const LsInFlight *f, LsError *e)
{
    const LsScaleSeen was = t->scale;
    const LsError why =
        t->under_way.broken.code != LS_EXIT_DONE ? t->under_way.broken : t->under_way.suspect;
    t->scale = ls_scaling_read(&t->memory);
    const bool skipped = t->scale.skipped != was.skipped;
    if ((t->scale.scale != was.scale || skipped) && t->watch.scaled != NULL)
        t->watch.scaled(t->watch.self, f, was.scale, t->scale.scale, skipped);
    if (skipped) {
        announce(t);
        ls_scaling_tell(t->notes, &was, &t->scale, f->update,
                        t->rules.check_values ? &why : NULL);
        return t->scale.row < ls_most_skipped(t->rules.most_skipped)
               || ls_scaling_give_up(&t->scale, f->update, &why, &t->feed.pass, f->batch, e);
    }
    if (t->rules.check_values && t->under_way.broken.code != LS_EXIT_DONE)
        *e = t->under_way.broken;
    return (isfinite(t->under_way.loss) && e->code == LS_EXIT_DONE)
           || diverged(t, f, t->under_way.loss, e);
}

/* With a loss scale, values that are not finite are no error where they come up: at the end of the
 * update, it shows whether the update was skipped. */
static bool land_scaled(LsTraining *t, const LsInFlight *f, LsLoss one, LsError *e)
{
    ls_mean_add(&t->under_way.mean, one);
    if (!f->apply)
        return true;
    tell_of_none(t, f->update);
    t->under_way.loss = ls_mean(&t->under_way.mean);
    if (isfinite(t->under_way.loss))
        ls_mean_join(&t->epoch.mean, &t->under_way.mean);
    t->epoch.has_loss |= isfinite(t->under_way.loss);
    t->under_way.mean = (LsMean){0};
    report(t, f, t->under_way.loss);
    bool ok = end_scaled(t, f, e);
    t->under_way.broken = t->under_way.suspect = (LsError){0};
    return ok;
}

/* In private training a sample whose gradient is not finite counts as zero: its batch has no loss,
 * but training goes on. A batch without samples has none either. */
static bool land_private(LsTraining *t, const LsInFlight *f, LsLoss one, LsError *e)
{
    const bool finite = isfinite(one.value);
    if (f->valid > 0 && finite)
        ls_mean_add(&t->under_way.mean, one);
    t->under_way.spoilt |= f->valid > 0 && !finite;
    if (!f->apply)
        return true;
    const bool has_loss = !t->under_way.spoilt || t->under_way.mean.weight != 0;
    t->under_way.loss = has_loss ? ls_mean(&t->under_way.mean) : NAN;
    ls_mean_join(&t->epoch.mean, &t->under_way.mean);
    t->epoch.has_loss |= has_loss;
    t->under_way.mean = (LsMean){0};
    report(t, f, t->under_way.loss);
    if (t->under_way.spoilt)
        announce(t);
    const bool ok = ls_private_check(&t->privacy, &t->memory, f->update, t->under_way.spoilt, e);
    t->under_way.spoilt = false;
    return ok;
}

static void end_members(LsTraining *t, int64_t update)
{
    ls_member_state_end(&t->members);
    for (int64_t k = 0; k < t->members.n; k++)
        if (!isfinite(t->members.loss[k]) && !t->members.told[k])
            announce(t);
    ls_member_state_tell(&t->members, update, t->notes);
}

bool ls_part_check(LsTraining *t, const LsInFlight *f, LsLoss one, LsError *e)
{
    const bool scaled = ls_has_scaling(t->p);
    if (scaled && ls_part_watched(t) && t->under_way.broken.code == LS_EXIT_DONE
        && ls_check_end(&t->check, one.value, f->update, &t->under_way.broken)
        && t->under_way.suspect.code == LS_EXIT_DONE)
        ls_check_clean(&t->check, f->update, &t->under_way.suspect);
    return scaled || !t->rules.check_values
           || ls_check_end(&t->check, one.value, f->update, e)
           || diverged(t, f, one.value, e);
}

bool ls_part_loss(LsTraining *t, const LsInFlight *f, LsLoss one, LsError *e)
{
    if (ls_has_scaling(t->p))
        return land_scaled(t, f, one, e);
    if (ls_is_private(t->p))
        return land_private(t, f, one, e);
    if (!isfinite(one.value)) {
        report(t, f, one.value);
        return diverged(t, f, one.value, e);
    }
    ls_mean_add(&t->under_way.mean, one);
    if (!f->apply)
        return true;
    tell_of_none(t, f->update);
    end_members(t, f->update);
    t->under_way.loss = ls_mean(&t->under_way.mean);
    ls_mean_join(&t->epoch.mean, &t->under_way.mean);
    t->epoch.has_loss = true;
    t->under_way.mean = (LsMean){0};
    report(t, f, t->under_way.loss);
    return isfinite(t->under_way.loss) || diverged(t, f, t->under_way.loss, e);
}
