/* runtime/trainer/rank_block.c -- the part of an update that one of several ranks runs: see training_loop.h. */
#include "runtime/base/fnv64.h"
#include "runtime/trainer/training_loop.h"

#include <string.h>

uint64_t ls_rank_place(const LsTrainer *t)
{
    const int64_t of[] = {t->at.update, t->at.cursor, (int64_t)t->at.seed, t->data.samples, t->updates};
    const uint64_t sum = ls_fnv64(LS_FNV64, of, sizeof of);
    return ls_fnv64(sum, t->p->plan_hash, strlen(t->p->plan_hash));
}

/* Runs part j of this rank's block, number k of the update. With the last one the exchange begins. */
static bool run_own_part(LsTrainer *t, const LsBatch *b, int64_t k, int64_t j, LsError *e)
{
    LsHook hook[LS_PART_HOOKS];
    LsRun *run = &t->engine.run;
    LsLoss one;
    const int64_t block = t->over.block, first = t->over.rank * block, left = t->update_parts - first;
    ls_engine_feed(&t->engine, &t->loader, b);
    ls_part_run(t, b, k, first + j);
    run->block = first;
    run->apart = t->over.r->sum_bytes / t->p->real_bytes;
    run->part = j;
    run->first = j == 0;
    run->apply = j + 1 == (left < block ? left : block);
    const LsPhaseTable *table = ls_part_table(t, run->apply);
    int n = ls_part_hooks(t, table, run->apply, hook);
    if (run->apply)
        hook[n++] = ls_exchange_hook(&t->over);
    const LsFlight f = {t->at.update + 1, t->at.epoch + 1, b->number, table, b->valid, run->lr, t->engine.slot, run->apply};
    if (!ls_engine_run(&t->engine, table, hook, n, e) || !ls_engine_fed(&t->engine, e)
        || !ls_engine_loss(&t->engine, table, t->engine.slot, b->valid, &one, e) || !ls_part_check(t, &f, one, e))
        return false;
    ls_exchange_note(&t->over, j, one);
    return true;
}

/* Adds the losses of all ranks' parts, the first of which has that number. */
static bool add_losses(LsTrainer *t, int64_t first, LsError *e)
{
    const LsRun *run = &t->engine.run;
    int64_t number = first;
    for (int64_t k = 0; k < t->update_parts; k++, number++) {
        while (ls_batch_valid(&t->pass, number) == 0)
            number++;
        const LsFlight f = {t->at.update + 1, t->at.epoch + 1, number, &t->p->train, ls_batch_valid(&t->pass, number), run->lr,
                            t->engine.slot, k + 1 == t->update_parts};
        if (!ls_part_loss(t, &f, ls_exchange_loss(&t->over, k), e))
            return false;
    }
    return true;
}

bool ls_rank_block(LsTrainer *t, LsError *e)
{
    const int64_t first = t->at.cursor * ls_parts(t->p);
    ls_exchange_start(&t->over, t->update_parts);
    for (int64_t j = 0; j < t->over.block; j++) {
        const LsBatch *b = ls_loader_next(&t->loader, e);
        if (!b || (b->number >= 0 && !run_own_part(t, b, b->number - first, j, e)))
            return false;
        ls_loader_release(&t->loader);
    }
    if (!ls_exchange_finish(&t->over, ls_rank_place(t), (int)*t->stop, e))
        return false;
    t->stopped = ls_exchange_stop(&t->over);
    t->at.cursor += ls_group(t);
    return add_losses(t, first, e);
}

bool ls_train_by_first(LsTrainer *t, bool (*save)(LsTrainer *, LsError *), LsError *e)
{
    if (ls_has_stage_ranks(t))
        return ls_pipelined_gather(t, e) && (!ls_is_first(t) || save(t, e));
    if (t->over.r == NULL)
        return save(t, e);
    if (!ls_is_first(t))
        return ls_exchange_serve(&t->over, e);
    ls_exchange_collect(&t->over);
    return save(t, e) && ls_exchange_release(&t->over, e);
}
