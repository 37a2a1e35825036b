/* runtime/trainer/pipelined_update.c -- the updates of a program for a pipeline: see
 * pipelined_update.h. */
#include "runtime/pipeline/stage_ranks.h"
#include "runtime/trainer/pipelined_update.h"
#include "runtime/update/micro_batch.h"
#include "runtime/trainer/run_place.h"
#include "runtime/update/update_loss.h"

#include <stdlib.h>

/* What looks at the steps of one stage. */
typedef struct LsStageWatch {
    LsHook hook[3 * LS_STAGE_PLANS];
    LsDump dump;                /* --dump, of the last micro-batch */
    LsTrace trace[LS_STAGE_PLANS];      /* --trace, --profile, of the micro-batches with that
                                         * plan */
    LsCheck check[LS_STAGE_PLANS];      /* --check-numerics, likewise */
} LsStageWatch;

/* The stage of this process with that number; NULL: another rank has it. */
static LsStageRun *stage_here(const LsTrainer *t, uint32_t number)
{
    for (uint32_t k = 0; k < t->pipeline.n; k++)
        if (t->pipeline.stage[k].number == number)
            return &t->pipeline.stage[k];
    return NULL;
}

/* Rank 0 writes the dumps of all stages. */
static bool open_dumps(LsTrainer *t, LsError *e)
{
    for (uint32_t k = 0; k < t->p->pipeline.nstage; k++) {
        const LsStageRun *r = stage_here(t, k);
        if ((r != NULL || ls_is_first(t))
            && !ls_dump_open(&t->reports.stage[k].dump, r != NULL ? &r->engine : &t->u.engine,
                             &t->p->pipeline.stage[k].plan[0].table, e))
            return false;
    }
    return true;
}

/* Micro-batches of an update that have the plan. */
static int64_t steps_of(const LsStage *s, uint32_t plan)
{
    int64_t n = 0;
    for (uint32_t k = 0; k < s->nturn; k++)
        n += s->turn[k].phase == LS_STAGE_F && s->turn[k].plan == plan;
    return n;
}

/* Likewise rank 0 the times. The timeline has the micro-batches of whole updates. */
static bool open_traces(LsTrainer *t, LsError *e)
{
    for (uint32_t k = 0; k < t->p->pipeline.nstage; k++) {
        const LsStageRun *r = stage_here(t, k);
        const LsStage *s = &t->p->pipeline.stage[k];
        const int64_t updates = (LS_TRACE_RUNS + steps_of(s, 0) - 1) / steps_of(s, 0);
        for (uint32_t plan = 0; (r != NULL || ls_is_first(t)) && plan < s->nplan; plan++) {
            LsTrace *x = &t->reports.stage[k].trace[plan];
            if (!ls_trace_open(x, r != NULL ? &r->engine : &t->u.engine, &s->plan[plan].table,
                               updates * steps_of(s, plan), e))
                return false;
            x->lane = k;
        }
    }
    return true;
}

bool ls_pipelined_open(LsTrainer *t, LsError *e)
{
    if (!ls_pipeline_open(&t->pipeline, t->p, &t->u.memory, &t->u.feed.loader, t->group.comm,
                          t->u.threads, t->u.engine.run.pool, e))
        return false;
    t->reports.stage = calloc(t->p->pipeline.nstage, sizeof *t->reports.stage);
    if (!t->reports.stage)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    return (!t->reports.dumps || open_dumps(t, e)) && (!t->reports.traces || open_traces(t, e));
}

void ls_pipelined_close(LsTrainer *t)
{
    for (uint32_t k = 0; t->reports.stage && k < t->p->pipeline.nstage; k++) {
        ls_dump_close(&t->reports.stage[k].dump);
        for (int plan = 0; plan < LS_STAGE_PLANS; plan++)
            ls_trace_close(&t->reports.stage[k].trace[plan]);
    }
    free(t->reports.stage);
    t->reports.stage = NULL;
    ls_pipeline_close(&t->pipeline);
}

/* The dumps of all stages, one behind the other. */
static LsDump *all_dumps(const LsTrainer *t, LsError *e)
{
    LsDump *all = calloc(t->p->pipeline.nstage, sizeof *all);
    if (!all)
        ls_fail(e, LS_EXIT_FAIL, "no memory for --dump");
    for (uint32_t k = 0; all && k < t->p->pipeline.nstage; k++)
        all[k] = t->reports.stage[k].dump;
    return all;
}

bool ls_pipelined_dump_fits(const LsTrainer *t, LsError *e)
{
    LsDump *all = all_dumps(t, e);
    const bool ok = all && ls_dump_fits(all, t->p->pipeline.nstage, t->o.dump, e);
    free(all);
    return ok;
}

bool ls_pipelined_dump_write(const LsTrainer *t, LsError *e)
{
    LsDump *all = all_dumps(t, e);
    const bool ok =
        all && ls_dump_write(all, t->p->pipeline.nstage, t->o.dump, &t->u.under_way.loss, 1, e);
    free(all);
    return ok;
}

bool ls_pipelined_trace_write(const LsTrainer *t, LsError *e)
{
    LsTrace *all = calloc((size_t)t->p->pipeline.nstage * LS_STAGE_PLANS, sizeof *all);
    uint32_t n = 0;
    if (!all)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --trace");
    for (uint32_t k = 0; k < t->p->pipeline.nstage; k++)
        for (uint32_t plan = 0; plan < t->p->pipeline.stage[k].nplan; plan++)
            all[n++] = t->reports.stage[k].trace[plan];
    const bool ok = (!t->o.trace || ls_trace_write(all, n, t->o.trace, e))
                    && (!t->o.profile || ls_profile_write(all, n, t->o.profile, t->u.threads, e));
    free(all);
    return ok;
}

bool ls_pipelined_gather_watched(LsTrainer *t, LsError *e)
{
    bool ok = true;
    for (int k = 1; ok && k < (int)t->p->pipeline.nstage; k++) {
        const LsStageWatch *w = &t->reports.stage[k];
        if (t->group.comm->rank != 0 && t->group.comm->rank != k)
            continue;
        ok =
            !t->reports.dumps
            || ls_ranks_hand_over(t->group.comm, k, LS_TAG_WATCHED, w->dump.copy, w->dump.bytes, e);
        for (uint32_t plan = 0; ok && t->reports.traces && plan < t->p->pipeline.stage[k].nplan;
             plan++)
            ok = ls_ranks_hand_over(t->group.comm, k, LS_TAG_WATCHED, w->trace[plan].run,
                                    ls_trace_bytes(&w->trace[plan]), e);
    }
    return ok;
}

/* The parts of the update with samples, as kernels see them. */
static void set_parts(LsTrainer *t, int64_t first)
{
    LsPipeline *l = &t->pipeline;
    for (l->nparts = 0; l->nparts < t->u.under_way.micro_batches; l->nparts++) {
        LsPartRun *part = &l->part[l->nparts];
        part->batch = first + l->nparts;
        const LsBatch b = {.number = part->batch,
                           .valid = ls_batch_valid(&t->u.feed.pass, part->batch)};
        ls_part_run(&t->u, &b, l->nparts, l->nparts);
        part->run = t->u.engine.run;
        part->run.valid = b.valid;
    }
}

static void set_hooks(LsTrainer *t, bool check, bool dump)
{
    for (uint32_t k = 0; k < t->pipeline.n; k++) {
        LsStageRun *r = &t->pipeline.stage[k];
        LsStageWatch *w = &t->reports.stage[r->number];
        r->hook = w->hook;
        r->always = check || t->reports.traces;
        r->nhook = check + t->reports.traces + dump;
        w->dump.t = &r->s->plan[ls_stage_last_turn(r->s, t->pipeline.nparts - 1)->plan].table;
        for (uint32_t plan = 0; plan < r->s->nplan; plan++) {
            LsHook *hook = w->hook + plan * (uint32_t)r->nhook;
            ls_check_start(&w->check[plan], &r->engine, &r->s->plan[plan].table);
            if (check)
                *hook++ = ls_check_hook(&w->check[plan]);
            if (t->reports.traces)
                *hook++ = ls_trace_hook(&w->trace[plan]);
            if (dump)
                *hook++ = ls_dump_hook(&w->dump);
        }
    }
}

/* When a step of a plan runs, compared to those of other stages: phase F goes up, the others go
 * down. */
static int64_t time_of(const LsProgram *p, uint32_t stage, uint32_t plan, uint32_t step)
{
    int phase = LS_STAGE_LATE;
    while (phase > 0 && step < p->pipeline.stage[stage].plan[plan].first[phase])
        phase--;
    return phase * (int64_t)p->pipeline.nstage
           + (phase == LS_STAGE_F ? stage : p->pipeline.nstage - 1 - stage);
}

/* Takes the check of the stage and plan that have seen the first value that is not finite, as that
 * of the whole update. The second plan is that of the first micro-batch, so its check is looked at
 * before. */
static void take_check(LsTrainer *t)
{
    int64_t earliest = INT64_MAX;
    t->u.check = t->reports.stage[t->pipeline.stage[0].number].check[0];
    for (uint32_t k = 0; k < t->pipeline.n * LS_STAGE_PLANS; k++) {
        const uint32_t number = t->pipeline.stage[k / LS_STAGE_PLANS].number,
                       plan = LS_STAGE_PLANS - 1 - k % LS_STAGE_PLANS;
        const LsCheck *c = &t->reports.stage[number].check[plan];
        for (int inf = 0; inf < 2; inf++) {
            const LsFound *f = inf ? &c->inf : &c->nan;
            if (f->there && time_of(t->p, number, plan, f->step) < earliest) {
                earliest = time_of(t->p, number, plan, f->step);
                t->u.check = *c;
            }
        }
    }
}

/* Parts without samples come last; no stage asks for them. */
static bool skip_parts(LsTrainer *t, int64_t first, int64_t end, LsError *e)
{
    for (int64_t k = first; k < end && t->pipeline.readers > 0; k++) {
        if (ls_loader_at(&t->u.feed.loader, k, e) == NULL)
            return false;
        for (int64_t reader = 0; reader < t->pipeline.readers; reader++)
            ls_loader_done(&t->u.feed.loader, k);
    }
    return true;
}

/* The losses and the wish to stop of all ranks. */
static bool hear_ranks(LsTrainer *t, LsError *e)
{
    LsPipeline *l = &t->pipeline;
    if (!ls_ranks_tell(&l->news, &t->u.memory, ls_rank_place(t), (int)*t->ending.signal, l->loss,
                       l->nparts, e))
        return false;
    t->ending.agreed = ls_packets_stop(&l->news);
    return true;
}

bool ls_pipelined_gather(LsTrainer *t, LsError *e)
{
    return ls_ranks_gather(t->group.comm, t->p, &t->u.memory, e);
}

static bool run_update(LsTrainer *t, bool check, bool dump, LsError *e)
{
    const int64_t parts = ls_micro_batches(&t->p->division), first = t->u.place.cursor * parts;
    set_parts(t, first);
    set_hooks(t, check, dump);
    if (!ls_pipeline_update(&t->pipeline, e)
        || !skip_parts(t, first + t->u.under_way.micro_batches, first + parts, e))
        return false;
    if (check)
        take_check(t);
    return t->group.comm == NULL || hear_ranks(t, e);
}

bool ls_pipelined_update(void *trainer, LsError *e)
{
    LsTrainer *t = trainer;
    const LsPipeline *l = &t->pipeline;
    if (!run_update(t, ls_part_watched(&t->u), t->reports.dumps && ls_is_last_update(t), e))
        return false;
    t->u.place.cursor++;
    for (int64_t k = 0; k < l->nparts; k++) {
        const LsInFlight f = {.update = t->u.place.update + 1,
                              .epoch = t->u.place.epoch + 1,
                              .batch = l->part[k].batch,
                              .valid = l->part[k].run.valid,
                              .lr = t->u.engine.run.lr,
                              .apply = l->part[k].run.apply,
                              .grad_norm = -1};
        if (!ls_part_check(&t->u, &f, l->loss[k], e) || !ls_part_loss(&t->u, &f, l->loss[k], e))
            return false;
    }
    return true;
}
