/* runtime/trainer/update_watch.c -- see update_watch.h. */
#include "runtime/trainer/update_watch.h"

#include "runtime/base/clock.h"
#include "runtime/trainer/pipelined_update.h"
#include "runtime/trainer/rank_update.h"

#include <math.h>

/* Reports are of the table that they were opened for. */
static int hooks(void *trainer, const LsPhaseTable *table, bool last, LsHook *hook)
{
    LsTrainer *t = trainer;
    int n = 0;
    if ((t->o.trace || t->o.profile) && t->reports.trace.t == table)
        hook[n++] = ls_trace_hook(&t->reports.trace);
    if (t->o.dump && (t->o.eval || (last && ls_is_last_update(t))))
        hook[n++] = ls_dump_hook(&t->reports.dump);
    if (t->o.measure && t->reports.measure.t == table)
        hook[n++] = ls_measure_hook(&t->reports.measure);
    if (t->o.log_grad_norm && !t->o.eval && last)
        hook[n++] = ls_grad_norm_hook(&t->reports.norm, &t->u.engine, table);
    return n;
}

int ls_evaluation_hooks(LsTrainer *t, LsHook hook[LS_PART_HOOKS])
{
    const LsPhaseTable *table = &t->p->phase.eval;
    int n = 0;
    if (t->o.check_numerics) {
        ls_check_start(&t->u.check, &t->u.engine, table);
        hook[n++] = ls_check_hook(&t->u.check);
    }
    return n + hooks(t, table, true, hook + n);
}

/* Of the gradients of the last run, which are those of the loss times its scale. */
static double norm(void *trainer)
{
    const LsTrainer *t = trainer;
    return ls_grad_norm(&t->reports.norm) / (ls_has_scaling(t->p) ? t->u.scale.scale : 1);
}

/* Reports an update. Its time goes from its start, or from the report before, if that is later. */
static void landed(void *trainer, const LsInFlight *f, double loss)
{
    LsTrainer *t = trainer;
    const int64_t now = ls_now_ns(), reported = t->told.reported_ns,
                  since = t->u.began_ns > reported ? t->u.began_ns : reported;
    const double seconds = (double)(now - since) * 1e-9;
    LsStepValues v = {f->update, f->epoch, loss, f->lr, f->grad_norm, 0, 0};
    t->told.reported_ns = now;
    if (!ls_is_private(t->p) && seconds > 0) {
        v.samples = (double)t->u.under_way.samples
                    * (t->u.feed.pass.members > 0 ? (double)t->u.feed.pass.members : 1) / seconds;
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

static void scaled(void *trainer, const LsInFlight *f, double was, double is, bool skipped)
{
    LsTrainer *t = trainer;
    ls_log_scale(&t->reports.log, f->update, f->epoch, was, is, skipped);
}

static void before_note(void *trainer)
{
    LsTrainer *t = trainer;
    ls_progress_clear(&t->reports.progress);
}

void ls_update_watch(LsTrainer *t)
{
    const bool ranks = t->group.exchange.r != NULL;
    t->u.rules = (LsUpdateRules){.most_skipped = t->o.max_skipped,
                                 .check_clip = t->o.check_clip,
                                 .check_values = t->o.check_numerics,
                                 .blind = ls_has_stage_ranks(t),
                                 .keeps_sums =
                                     t->reports.dumps || t->group.comm != NULL || ranks};
    t->u.watch = (LsUpdateWatch){.self = t,
                                 .hooks = hooks,
                                 .norm = t->o.log_grad_norm ? norm : NULL,
                                 .landed = landed,
                                 .scaled = scaled,
                                 .before_note = before_note};
    t->u.parts_by = (LsPartsBy){t->p->pipeline.nstage > 0 ? ls_pipelined_update
                                : ranks                   ? ls_rank_block
                                                          : NULL,
                                t};
}
