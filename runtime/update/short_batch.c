/* runtime/update/short_batch.c -- see the header.
 *
 * The last batch of an epoch may be short. Copies of its samples fill up the last part that has
 * samples, and count nowhere: not in losses, in gradients and in statistics of batch norms. Other
 * nodes that combine samples would count them. */
#include "runtime/update/short_batch.h"

#include <inttypes.h>

/* Samples of the last part with samples of a short batch that the run comes to; 0: all its parts
 * are full or empty. */
static int64_t short_part(const LsTraining *t)
{
    const int64_t whole = ls_batch_samples(&t->p->division),
                  batches = (t->updates - t->place.update) * ls_batches_per_update(t->p);
    const bool comes = t->place.cursor % t->epoch.batches + batches >= t->epoch.batches;
    if (t->epoch.batches <= t->feed.train.samples / whole)      /* --limit-batches: never */
        return 0;
    if (ls_is_private(t->p) || t->feed.pass.members > 0 || t->feed.pass.drop_last || batches <= 0
        || !comes)
        return 0;
    return t->feed.train.samples % whole % t->p->division.samples;
}

/* The last batch cannot be filled up. */
static bool cannot_fill(const LsProgram *p, const char *data, int64_t samples, LsError *e)
{
    return ls_fail(e, LS_EXIT_DATA,
                   "%s: %" PRId64 " samples fill no whole number of batches of %" PRId64
                   ", and the last one cannot be filled up with samples that do not count: %s. "
                   "Leave it out (--drop-last), or compile with a --batch that divides the samples",
                   data, samples, ls_batch_samples(&p->division), p->mixing.train);
}

static bool one_value(const LsProgram *p, const char *data, bool last, LsError *e)
{
    return ls_fail(e, LS_EXIT_DATA,
                   "%s: expected more than 1 value per channel when training: batch norm '%s' "
                   "would take its statistics of one value, in %s. %s",
                   data, p->mixing.norm,
                   last ? "a last batch, or a last part of it, of one sample"
                        : "batches, or parts of them, of one sample",
                   last ? "Leave that batch out (--drop-last), or compile with another --batch"
                        : "Compile with a larger --batch or fewer parts, or with --bn=frozen");
}

bool ls_short_part_trains(const LsProgram *p, const char *data, int64_t samples, int64_t some,
                          LsError *e)
{
    const int64_t least = some > 0 ? some : p->division.samples;
    if (some > 0 && p->mixing.train != NULL)
        return cannot_fill(p, data, samples, e);
    return ls_is_private(p) || p->mixing.norm == NULL || p->mixing.each > 1 || least > 1
           || one_value(p, data, some > 0, e);
}

bool ls_short_batch_trains(const LsTraining *t, LsError *e)
{
    return t->updates <= t->place.update
           || ls_short_part_trains(t->p, t->feed.train.opt.data, t->feed.train.samples,
                                   short_part(t), e);
}

bool ls_short_batch_evaluates(const LsProgram *p, const LsDataset *data, LsError *e)
{
    const bool comes = data->limit == 0 || data->limit > data->samples / p->division.samples;
    if (p->mixing.eval == NULL || data->samples % p->division.samples == 0 || !comes)
        return true;
    return ls_fail(e, LS_EXIT_DATA,
                   "%s: evaluation runs batches of %" PRId64 ", which do not divide %" PRId64
                   " samples, and the "
                   "last one cannot be filled up with samples that do not count: %s. Give data of "
                   "another size, or compile with "
                   "a --batch that divides it",
                   data->opt.data, p->division.samples, data->samples, p->mixing.eval);
}
