/* runtime/trainer/pipelined_update.c -- see pipelined_update.h. */
#include "runtime/trainer/pipelined_update.h"

#include <stdlib.h>

bool ls_pipelined_open(LsTrainer *t, LsError *e)
{
    if (!ls_pipeline_open(&t->pipeline, t->p, &t->memory, &t->loader, t->threads, t->engine.run.pool, e))
        return false;
    t->watch = calloc(t->p->nstage, sizeof *t->watch);
    if (!t->watch)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (uint32_t k = 0; t->o.dump && k < t->p->nstage; k++)
        if (!ls_dump_open(&t->watch[k].dump, &t->pipeline.stage[k].engine, &t->p->stage[k].table, e))
            return false;
    return true;
}

void ls_pipelined_close(LsTrainer *t)
{
    for (uint32_t k = 0; t->watch && k < t->p->nstage; k++)
        ls_dump_close(&t->watch[k].dump);
    free(t->watch);
    t->watch = NULL;
    ls_pipeline_close(&t->pipeline);
}

/* The dumps of all stages, one behind the other. */
static LsDump *all_dumps(const LsTrainer *t, LsError *e)
{
    LsDump *all = calloc(t->p->nstage, sizeof *all);
    if (!all)
        ls_fail(e, LS_EXIT_FAIL, "no memory for --dump");
    for (uint32_t k = 0; all && k < t->p->nstage; k++)
        all[k] = t->watch[k].dump;
    return all;
}

bool ls_pipelined_dump_fits(const LsTrainer *t, LsError *e)
{
    LsDump *all = all_dumps(t, e);
    const bool ok = all && ls_dump_fits(all, t->p->nstage, t->o.dump, e);
    free(all);
    return ok;
}

bool ls_pipelined_dump_write(const LsTrainer *t, LsError *e)
{
    LsDump *all = all_dumps(t, e);
    const bool ok = all && ls_dump_write(all, t->p->nstage, t->o.dump, &t->loss, 1, e);
    free(all);
    return ok;
}

/* The parts of the update with samples, as kernels see them. */
static void set_parts(LsTrainer *t, int64_t first)
{
    LsPipeline *l = &t->pipeline;
    for (l->nparts = 0; l->nparts < t->update_parts; l->nparts++) {
        LsPartRun *part = &l->part[l->nparts];
        part->batch = first + l->nparts;
        const LsBatch b = {.number = part->batch, .valid = ls_batch_valid(&t->pass, part->batch)};
        ls_part_run(t, &b, l->nparts, l->nparts);
        part->run = t->engine.run;
        part->run.valid = b.valid;
    }
}

static void set_hooks(LsTrainer *t, bool check, bool dump)
{
    for (uint32_t k = 0; k < t->p->nstage; k++) {
        LsStageWatch *w = &t->watch[k];
        LsStageRun *r = &t->pipeline.stage[k];
        r->hook = w->hook;
        r->nhook = 0;
        r->always = check;
        if (check) {
            ls_check_start(&w->check, &r->engine, &t->p->stage[k].table);
            w->hook[r->nhook++] = ls_check_hook(&w->check);
        }
        if (dump)
            w->hook[r->nhook++] = ls_dump_hook(&w->dump);
    }
}

/* When a step runs, compared to those of other stages: phase F goes up, the others go down. */
static int64_t time_of(const LsProgram *p, uint32_t stage, uint32_t step)
{
    int phase = LS_STAGE_LATE;
    while (phase > 0 && step < p->stage[stage].first[phase])
        phase--;
    return phase * (int64_t)p->nstage + (phase == LS_STAGE_F ? stage : p->nstage - 1 - stage);
}

/* Takes the check of the stage that has seen the first value that is not finite, as that of the whole update. */
static void take_check(LsTrainer *t)
{
    int64_t earliest = INT64_MAX;
    t->check = t->watch[0].check;
    for (uint32_t k = 0; k < t->p->nstage; k++) {
        const LsCheck *c = &t->watch[k].check;
        for (int inf = 0; inf < 2; inf++) {
            const LsFound *f = inf ? &c->inf : &c->nan;
            if (f->there && time_of(t->p, k, f->step) < earliest) {
                earliest = time_of(t->p, k, f->step);
                t->check = *c;
            }
        }
    }
}

/* Parts without samples come last; no stage asks for them. */
static bool skip_parts(LsTrainer *t, int64_t first, int64_t end, LsError *e)
{
    for (int64_t k = first; k < end; k++) {
        if (ls_loader_at(&t->loader, k, e) == NULL)
            return false;
        for (int64_t reader = 0; reader < t->pipeline.readers; reader++)
            ls_loader_done(&t->loader, k);
    }
    return true;
}

bool ls_pipelined_update(LsTrainer *t, bool check, bool dump, LsError *e)
{
    const int64_t parts = ls_parts(t->p), first = t->at.cursor * parts;
    set_parts(t, first);
    set_hooks(t, check, dump);
    if (!ls_pipeline_update(&t->pipeline, e) || !skip_parts(t, first + t->update_parts, first + parts, e))
        return false;
    if (check)
        take_check(t);
    return true;
}
