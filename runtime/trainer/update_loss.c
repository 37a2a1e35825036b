/* runtime/trainer/update_loss.c -- the loss of an update, from those of its parts: what is wrong
 * with it, and who hears it. */
#include "runtime/trainer/update_loss.h"

#include "runtime/base/clock.h"
#include "runtime/base/note.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

bool ls_part_watched(const LsTrainer *t)
{
    const bool last = ls_has_scaling(t->p) && !t->o.eval
                      && t->told.scale.row + 1 >= ls_most_skipped(t->o.max_skipped);
    return (t->o.check_numerics || last) && !ls_has_stage_ranks(t);
}

const LsPhaseTable *ls_part_table(const LsTrainer *t, bool last)
{
    return last && t->p->phase.last.nstep > 0 ? &t->p->phase.last : &t->p->phase.train;
}

int ls_part_hooks(LsTrainer *t, const LsPhaseTable *table, bool last_batch,
                  LsHook hook[LS_PART_HOOKS])
{
    int n = 0;
    if (ls_part_watched(t)) {
        ls_check_start(&t->reports.check, &t->engine, table);
        hook[n++] = ls_check_hook(&t->reports.check);
    }
    if ((t->o.trace || t->o.profile) && t->reports.trace.t == table)
        hook[n++] = ls_trace_hook(&t->reports.trace);
    if (t->o.dump && (t->o.eval || (last_batch && ls_is_last_update(t))))
        hook[n++] = ls_dump_hook(&t->reports.dump);
    if (t->o.measure && t->reports.measure.t == table)
        hook[n++] = ls_measure_hook(&t->reports.measure);
    if (t->o.log_grad_norm && !t->o.eval && last_batch)
        hook[n++] = ls_grad_norm_hook(&t->reports.norm, &t->engine, table);
    return n;
}

/* Reports an update. Its time goes from its start, or from the report before, if that is later. */
static void report(LsTrainer *t, const LsInFlight *f, double loss)
{
    const int64_t now = ls_now_ns();
    const double seconds = (double)(now - t->told.since_ns) * 1e-9;
    LsStepValues v = {f->update, f->epoch, loss, f->lr, f->grad_norm, 0, 0};
    t->told.since_ns = now;
    if (!ls_is_private(t->p) && seconds > 0) {
        v.samples = (double)t->under_way.samples
                    * (t->feed.pass.members > 0 ? (double)t->feed.pass.members : 1) / seconds;
        v.tokens = v.samples * (double)t->told.tokens;
    }
    ls_log_step(&t->reports.log, &v);
    LsEvents *to = &t->reports.events;
    ls_events_scalar(to, v.update, "train/loss", v.loss);
    ls_events_scalar(to, v.update, "train/rate", v.rate);
    if (f->grad_norm >= 0 || isnan(f->grad_norm))
        ls_events_scalar(to, v.update, "train/grad_norm", v.grad_norm);
    if (v.samples > 0)
        ls_events_scalar(to, v.update, "train/samples_per_second", v.samples);
    if (v.tokens > 0)
        ls_events_scalar(to, v.update, "train/tokens_per_second", v.tokens);
}

/* Reports a divergence. Names the node with --check-numerics, and the data when they are not
 * finite. */
static bool diverged(const LsTrainer *t, const LsInFlight *f, double loss, LsError *e)
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
static void tell_of_none(LsTrainer *t, int64_t update)
{
    if (t->under_way.mean.weight != 0 || t->p->target.sums || t->told.no_label)
        return;
    t->told.no_label = true;
    ls_progress_clear(&t->reports.progress);
    ls_note(t->told.notes,
            "note: step %" PRId64 ": no label counts, all are ignored or of weight 0; its loss "
            "and its gradients are 0\n",
            update);
}

/* The end of an update, whose gradients were scaled. */
static bool end_scaled(LsTrainer *t, const LsInFlight *f, LsError *e)
{
    const LsScaleSeen was = t->told.scale;
    const LsError why =
        t->under_way.broken.code != LS_EXIT_DONE ? t->under_way.broken : t->under_way.suspect;
    t->told.scale = ls_scaling_read(&t->memory);
    const bool skipped = t->told.scale.skipped != was.skipped;
    if (t->told.scale.scale != was.scale || skipped)
        ls_log_scale(&t->reports.log, f->update, f->epoch, was.scale, t->told.scale.scale, skipped);
    if (skipped) {
        ls_progress_clear(&t->reports.progress);
        ls_scaling_tell(t->told.notes, &was, &t->told.scale, f->update,
                        t->o.check_numerics ? &why : NULL);
        return t->told.scale.row < ls_most_skipped(t->o.max_skipped)
               || ls_scaling_give_up(&t->told.scale, f->update, &why, &t->feed.pass, f->batch, e);
    }
    if (t->o.check_numerics && t->under_way.broken.code != LS_EXIT_DONE)
        *e = t->under_way.broken;
    return (isfinite(t->under_way.loss) && e->code == LS_EXIT_DONE)
           || diverged(t, f, t->under_way.loss, e);
}

/* With a loss scale, values that are not finite are no error where they come up: at the end of the
 * update, it shows whether the update was skipped. */
static bool land_scaled(LsTrainer *t, const LsInFlight *f, LsLoss one, LsError *e)
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
static bool land_private(LsTrainer *t, const LsInFlight *f, LsLoss one, LsError *e)
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
        ls_progress_clear(&t->reports.progress);
    const bool ok = ls_private_check(&t->privacy, &t->memory, f->update, t->under_way.spoilt, e);
    t->under_way.spoilt = false;
    return ok;
}

static void end_members(LsTrainer *t, int64_t update)
{
    ls_member_state_end(&t->members);
    for (int64_t k = 0; k < t->members.n; k++)
        if (!isfinite(t->members.loss[k]) && !t->members.told[k])
            ls_progress_clear(&t->reports.progress);
    ls_member_state_tell(&t->members, update, t->told.notes);
}

bool ls_part_check(LsTrainer *t, const LsInFlight *f, LsLoss one, LsError *e)
{
    const bool scaled = ls_has_scaling(t->p);
    if (scaled && ls_part_watched(t) && t->under_way.broken.code == LS_EXIT_DONE
        && ls_check_end(&t->reports.check, one.value, f->update, &t->under_way.broken)
        && t->under_way.suspect.code == LS_EXIT_DONE)
        ls_check_clean(&t->reports.check, f->update, &t->under_way.suspect);
    return scaled || !t->o.check_numerics
           || ls_check_end(&t->reports.check, one.value, f->update, e)
           || diverged(t, f, one.value, e);
}

bool ls_part_loss(LsTrainer *t, const LsInFlight *f, LsLoss one, LsError *e)
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
