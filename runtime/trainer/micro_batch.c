/* runtime/trainer/micro_batch.c -- see micro_batch.h. */
#include "runtime/trainer/micro_batch.h"

#include "runtime/base/fnv64.h"

#include <string.h>

enum { PARTS = 20 };            /* bits of LsRun.step that count the micro-batches of a private
                                 * update */

/* The samples of the updates to come. */
static LsDrawn drawn(const LsTrainer *t)
{
    return (LsDrawn){t->privacy.rate, t->privacy.draw, t->place.update + 1, t->updates};
}

void ls_part_run(LsTrainer *t, const LsBatch *b, int64_t k, int64_t part)
{
    LsRun *run = &t->engine.run;
    const bool own = ls_is_private(t->p);
    const int64_t parts = ls_micro_batches(&t->p->division);
    run->step = own ? (t->place.update << PARTS) + k
                    : t->place.update * ls_batches_per_update(t) + k / parts;
    run->slice = k % parts;
    run->part = part;
    run->first = part == 0;
    run->apply = own ? b->last : part == t->under_way.micro_batches - 1;
    run->alone = run->first && run->apply && !t->reports.dumps && t->group.comm == NULL
                 && t->group.exchange.r == NULL;
    run->share =
        own ? 1
            : (double)(b->valid * ls_batches_per_update(t) * parts) / (double)t->under_way.samples;
}

void ls_train_begin_pass(LsTrainer *t)
{
    const int64_t steps = ls_micro_batches_per_update(t);
    t->feed.pass.first = t->place.cursor * ls_micro_batches(&t->p->division);
    t->feed.pass.end = t->feed.pass.first + (t->updates - t->place.update) * steps;
    t->feed.pass.drawn = drawn(t);
    if (t->group.exchange.r != NULL) {
        t->feed.pass.share =
            (LsShare){t->group.exchange.block, t->group.exchange.rank, steps, t->feed.pass.first};
        t->feed.pass.first = 0;
        t->feed.pass.end = (t->updates - t->place.update) * t->group.exchange.block;
    }
    ls_loader_begin(&t->feed.loader, &t->feed.pass);
}

uint64_t ls_rank_place(const LsTrainer *t)
{
    const int64_t of[] = {t->place.update, t->place.cursor, (int64_t)t->place.seed,
                          t->feed.train.samples, t->updates};
    const uint64_t sum = ls_fnv64(LS_FNV64, of, sizeof of);
    return ls_fnv64(sum, t->p->about.plan_hash, strlen(t->p->about.plan_hash));
}
