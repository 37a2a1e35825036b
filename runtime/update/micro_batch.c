/* runtime/update/micro_batch.c -- see micro_batch.h. */
#include "runtime/update/micro_batch.h"

enum { PARTS = 20 };            /* bits of LsRun.step that count the micro-batches of a private
                                 * update */

void ls_part_run(LsTraining *t, const LsBatch *b, int64_t k, int64_t part)
{
    LsRun *run = &t->engine.run;
    const bool own = ls_is_private(t->p);
    const int64_t parts = ls_micro_batches(&t->p->division);
    run->step = own ? (t->place.update << PARTS) + k
                    : t->place.update * ls_batches_per_update(t->p) + k / parts;
    run->slice = k % parts;
    run->part = part;
    run->first = part == 0;
    run->apply = own ? b->last : part == t->under_way.micro_batches - 1;
    run->alone = run->first && run->apply && !t->rules.keeps_sums;
    run->share = own ? 1
                     : (double)(b->valid * ls_batches_per_update(t->p) * parts)
                           / (double)t->under_way.samples;
}
