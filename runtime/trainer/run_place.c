/* runtime/trainer/run_place.c -- see run_place.h. */
#include "runtime/trainer/run_place.h"

#include "runtime/base/fnv64.h"

#include <string.h>

/* The samples of the updates to come. */
static LsDrawn drawn(const LsTrainer *t)
{
    return (LsDrawn){t->u.privacy.rate, t->u.privacy.draw, t->u.place.update + 1, t->u.updates};
}

void ls_train_begin_pass(LsTrainer *t)
{
    const int64_t steps = ls_micro_batches_per_update(t->p);
    t->u.feed.pass.first = t->u.place.cursor * ls_micro_batches(&t->p->division);
    t->u.feed.pass.end = t->u.feed.pass.first + (t->u.updates - t->u.place.update) * steps;
    t->u.feed.pass.drawn = drawn(t);
    if (t->group.exchange.r != NULL) {
        t->u.feed.pass.share =
            (LsShare){t->group.exchange.block, t->group.exchange.rank, steps, t->u.feed.pass.first};
        t->u.feed.pass.first = 0;
        t->u.feed.pass.end = (t->u.updates - t->u.place.update) * t->group.exchange.block;
    }
    ls_loader_begin(&t->u.feed.loader, &t->u.feed.pass);
}

uint64_t ls_rank_place(const LsTrainer *t)
{
    const int64_t of[] = {t->u.place.update, t->u.place.cursor, (int64_t)t->u.place.seed,
                          t->u.feed.train.samples, t->u.updates};
    const uint64_t sum = ls_fnv64(LS_FNV64, of, sizeof of);
    return ls_fnv64(sum, t->p->about.plan_hash, strlen(t->p->about.plan_hash));
}
