/* runtime/trainer/rank_update.c -- the part of an update that one of several ranks runs: see
 * rank_update.h. */
#include "runtime/trainer/rank_update.h"
#include "runtime/update/micro_batch.h"
#include "runtime/trainer/pipelined_update.h"
#include "runtime/trainer/run_place.h"
#include "runtime/update/update_loss.h"

#include <string.h>

/* A part that was started, and whose loss is not known yet. */
typedef struct PartInFlight { LsInFlight flight; int64_t j; } PartInFlight;

/* Waits for the loss of a part. */
static bool take_loss(LsTrainer *t, const PartInFlight *s, LsError *e)
{
    LsLoss one;
    if (!ls_engine_loss(&t->u.engine, s->flight.table, s->flight.slot, s->flight.valid, &one, e)
        || !ls_part_check(&t->u, &s->flight, one, e))
        return false;
    ls_exchange_note(&t->group.exchange, s->j, one);
    return true;
}

/* Runs part j of this rank's block, number k of the update; on a device it may go on afterwards.
 * With the last one the exchange begins. */
static bool run_own_part(LsTrainer *t, const LsBatch *b, int64_t k, int64_t j, PartInFlight *s,
                         LsError *e)
{
    LsHook hook[LS_PART_HOOKS];
    LsRun *run = &t->u.engine.run;
    const int64_t block = t->group.exchange.block, first = t->group.exchange.rank * block,
                  left = t->u.under_way.micro_batches - first;
    ls_engine_feed(&t->u.engine, &t->u.feed.loader, b);
    ls_part_run(&t->u, b, k, first + j);
    run->block = first;
    run->apart = t->group.exchange.r->sum_bytes / t->p->real_bytes;
    run->part = j;
    run->first = j == 0;
    run->apply = j + 1 == (left < block ? left : block);
    const LsPhaseTable *table = ls_part_table(&t->u, run->apply);
    int n = ls_part_hooks(&t->u, table, run->apply, hook);
    if (run->apply && t->u.memory.device == NULL)
        hook[n++] = ls_exchange_hook(&t->group.exchange);
    *s = (PartInFlight){{t->u.place.update + 1, t->u.place.epoch + 1, b->number, table, b->valid,
                         run->lr, t->u.engine.slot, run->apply, -1},
                        j};
    return ls_engine_run(&t->u.engine, table, hook, n, e)
           && ls_exchange_begin(&t->group.exchange, e) && ls_engine_fed(&t->u.engine, e);
}

/* Runs this rank's parts of an update, of whose batches `first` is the first part. */
static bool run_own_parts(LsTrainer *t, int64_t first, LsError *e)
{
    PartInFlight started[LS_DEVICE_SLOTS];
    const int ahead =
        t->o.check_numerics || ls_has_scaling(t->p) ? 0 : ls_engine_ahead(&t->u.engine);
    int n = 0;
    for (int64_t j = 0; j < t->group.exchange.block; j++) {
        const LsBatch *b = ls_loader_next(&t->u.feed.loader, e);
        if (!b || (b->number >= 0 && !run_own_part(t, b, b->number - first, j, &started[n], e)))
            return false;
        n += b->number >= 0;
        ls_loader_release(&t->u.feed.loader);
        if (n > ahead) {
            if (!take_loss(t, &started[0], e))
                return false;
            memmove(started, started + 1, (size_t)--n * sizeof *started);
        }
    }
    for (int k = 0; k < n; k++)
        if (!take_loss(t, &started[k], e))
            return false;
    return true;
}

/* Adds the losses of all ranks' parts, the first of which has that number. */
static bool add_losses(LsTrainer *t, int64_t first, LsError *e)
{
    const LsRun *run = &t->u.engine.run;
    int64_t number = first;
    for (int64_t k = 0; k < t->u.under_way.micro_batches; k++, number++) {
        while (ls_batch_valid(&t->u.feed.pass, number) == 0)
            number++;
        const LsInFlight f = {t->u.place.update + 1,
                              t->u.place.epoch + 1,
                              number,
                              &t->p->phase.train,
                              ls_batch_valid(&t->u.feed.pass, number),
                              run->lr,
                              t->u.engine.slot,
                              k + 1 == t->u.under_way.micro_batches,
                              -1};
        if (!ls_part_loss(&t->u, &f, ls_exchange_loss(&t->group.exchange, k), e))
            return false;
    }
    return true;
}

bool ls_rank_block(void *trainer, LsError *e)
{
    LsTrainer *t = trainer;
    const int64_t first = t->u.place.cursor * ls_micro_batches(&t->p->division);
    ls_exchange_start(&t->group.exchange, t->u.under_way.micro_batches);
    if (!run_own_parts(t, first, e)
        || !ls_exchange_finish(&t->group.exchange, ls_rank_place(t), (int)*t->ending.signal, e))
        return false;
    t->ending.agreed = ls_exchange_stop(&t->group.exchange);
    t->u.place.cursor += ls_batches_per_update(t->p);
    return add_losses(t, first, e);
}

bool ls_rank_compare(LsTrainer *t, bool start, LsError *e)
{
    const int64_t every = t->o.compare_replicas;
    if (t->group.exchange.r == NULL || t->group.comm == NULL || every == 0)
        return true;
    const bool due = start || t->u.place.update % every == 0 || t->u.place.update == t->u.updates
                     || t->ending.early;
    return !due || ls_exchange_compare(&t->group.exchange, t->u.place.update, start, e);
}

bool ls_train_by_first(LsTrainer *t, bool (*save)(LsTrainer *, LsError *), LsError *e)
{
    if (ls_has_stage_ranks(t))
        return ls_pipelined_gather(t, e) && (!ls_is_first(t) || save(t, e));
    if (t->group.exchange.r == NULL)
        return save(t, e);
    if (!ls_is_first(t))
        return ls_exchange_serve(&t->group.exchange, e);
    ls_exchange_collect(&t->group.exchange);
    return save(t, e) && ls_exchange_release(&t->group.exchange, e);
}
