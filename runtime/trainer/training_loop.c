/* runtime/trainer/training_loop.c -- see training_loop.h.
 *
 * Batches are numbered through all epochs, so an update may take the last batches of one epoch and
 * the first of the next. Checkpoints, evaluation and the end of the run come between updates. */
#include "runtime/trainer/training_loop.h"
#include "runtime/base/clock.h"
#include "runtime/base/interrupt.h"
#include "runtime/trainer/epoch_report.h"
#include "runtime/trainer/find_rate.h"
#include "runtime/trainer/run_place.h"
#include "runtime/trainer/pipelined_update.h"
#include "runtime/trainer/rank_update.h"
#include "runtime/trainer/rescue.h"
#include "runtime/update/update_run.h"
#include "runtime/trainer/validation.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The batches of the checkpoint's epochs were others. */
static bool has_other_order(const LsTrainer *t)
{
    return t->u.place.samples != t->u.feed.train.samples || t->u.place.drop_last != t->o.drop_last
           || t->u.place.habits.limit != t->o.limit_batches;
}

/* As checkpoints have it. */
static int64_t order_of(const LsTrainer *t)
{
    return !t->o.shuffle ? 0 : t->o.shuffle_seed < 0 ? 1 : LS_SHUFFLED_BY + t->o.shuffle_seed;
}

/* The order of the checkpoint's run is another one. */
static void tell_of_order(const LsTrainer *t)
{
    char was[64];
    snprintf(was, sizeof was, "%s", t->u.place.shuffle == 0 ? "in file order"
                                    : t->o.shuffle        ? "shuffled by --seed"
                                                          : "shuffled");
    if (t->u.place.shuffle >= LS_SHUFFLED_BY)
        snprintf(was, sizeof was, "shuffled by --shuffle-seed=%" PRId64,
                 t->u.place.shuffle - LS_SHUFFLED_BY);
    fprintf(stderr, "note: the checkpoint's run had its data %s; this run has not\n", was);
}

/* Batches of the whole run; of a part of an epoch the nearest number, at least one. */
static bool count_batches(const LsTrainer *t, int64_t *batches, LsError *e)
{
    const double epochs = t->o.epochs > 0 ? t->o.epochs : 1;
    *batches = 0;
    const int64_t whole = epochs < 0x1p62 ? (int64_t)epochs : INT64_MAX;
    const double rest = floor((epochs - (double)whole) * (double)t->u.epoch.batches + 0.5);
    if (epochs >= 0x1p62 || __builtin_mul_overflow(whole, t->u.epoch.batches, batches)
        || __builtin_add_overflow(*batches, (int64_t)rest, batches))
        return ls_fail(e, LS_EXIT_USAGE, "--epochs=%.17g: more batches than can be counted",
                       epochs);
    *batches = *batches > 0 ? *batches : 1;
    return true;
}

bool ls_train_plan(LsTrainer *t, bool resumed, LsError *e)
{
    int64_t group = ls_batches_per_update(t->p);
    t->u.feed.pass = (LsPass){.data = &t->u.feed.train,
                            .augment = t->augmenter.kind != NULL ? &t->augmenter : NULL,
                            .parts = t->p->division.micro_batches,
                            .seed = t->o.shuffle_seed < 0 ? t->u.place.seed
                                                          : (uint64_t)t->o.shuffle_seed,
                            .shuffle = t->o.shuffle,
                            .drop_last = t->o.drop_last,
                            .members = t->p->ensemble.own_batches ? t->p->ensemble.members : 0,
                            .readers = (int)t->pipeline.readers};
    t->u.privacy.notes = t->u.notes;
    if (ls_is_private(t->p)
        && !ls_private_begin(&t->u.privacy, t->p, t->o.noise_seed, &t->u.place,
                             t->u.feed.train.samples, e))
        return false;
    t->u.epoch.batches = ls_is_private(t->p) ? ls_private_epoch(t->p, t->u.feed.train.samples)
                                           : ls_batches_per_epoch(&t->u.feed.pass);
    if (ls_is_private(t->p) && t->o.limit_batches > 0 && t->o.limit_batches < t->u.epoch.batches)
        t->u.epoch.batches = t->o.limit_batches;
    if (t->u.epoch.batches == 0)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: %" PRId64 " samples do not fill a batch of %" PRId64 "%s", t->o.data,
                       t->u.feed.train.samples,
                       ls_batch_samples(&t->p->division)
                           * (t->u.feed.pass.members > 0 ? t->u.feed.pass.members : 1),
                       t->u.feed.pass.members > 0 ? ", one for all members" : " (--drop-last)");
    if (resumed && t->u.place.shuffle != order_of(t))
        tell_of_order(t);
    if (resumed && !ls_is_private(t->p) && has_other_order(t)) {
        fprintf(stderr,
                "note: the data%s are not those of the checkpoint; continuing with epoch %" PRId64
                "\n",
                t->u.place.habits.limit != t->o.limit_batches ? ", or --limit-batches," : "",
                t->u.place.epoch + 1);
        t->u.place.cursor = t->u.place.epoch * t->u.epoch.batches;
    }
    t->u.place.samples = t->u.feed.train.samples;
    t->u.place.drop_last = t->o.drop_last;
    t->u.place.shuffle = order_of(t);
    t->u.place.habits.limit = t->o.limit_batches;
    if (t->o.find_rate)
        return ls_find_rate_plan(t, e);
    int64_t batches;
    if (!count_batches(t, &batches, e))
        return false;
    int64_t left = (batches - t->u.place.cursor) / group;
    t->u.updates = t->u.place.update + (left > 0 ? left : 0);
    if (t->o.steps > 0 && (t->o.epochs < 0 || t->o.steps < t->u.updates))
        t->u.updates = t->o.steps;
    else if (left > 0 && (batches - t->u.place.cursor) % group != 0)
        fprintf(stderr,
                "note: the last %" PRId64 " of %" PRId64
                " batches make no update: an update takes %" PRId64 " batches (--accumulate)\n",
                (batches - t->u.place.cursor) % group, batches, group);
    if (resumed && t->u.updates <= t->u.place.update)
        fprintf(stderr, "note: the checkpoint has all the steps asked for; nothing to train\n");
    if (t->u.updates == 0)
        return ls_fail(e, LS_EXIT_USAGE, "the data make %" PRId64 " batches, but one update takes %"
                       PRId64 " (--accumulate): give more --epochs", batches, group);
    return ls_rate_parse(&t->u.rate, t->o.schedule, t->o.lr, t->u.updates, e);
}

static bool run_update(LsTrainer *t, LsError *e)
{
    const int64_t start = ls_now_ns();
    ls_interrupt_allow(t->u.place.update > t->saves.last, t->told.longest_ns);
    if (!ls_update_run(&t->u, e))
        return false;
    if (t->group.comm == NULL)
        t->ending.agreed = (int)*t->ending.signal;
    int64_t took = ls_now_ns() - start;
    t->told.longest_ns = took > t->told.longest_ns ? took : t->told.longest_ns;
    ls_train_pace(t, took);
    return true;
}

static bool save_due(const LsTrainer *t, bool epoch_ended)
{
    if (!t->saves.saver.folder)
        return false;
    return t->u.place.update == t->u.updates || t->ending.agreed || t->ending.early
           || (t->o.save_every ? t->u.place.update % t->o.save_every == 0 : epoch_ended);
}

static bool save(LsTrainer *t, LsError *e)
{
    if (ls_saver_save(&t->saves.saver, &t->u.memory, &t->u.place, e))
        return true;
    ls_rescue_unwritten(t);
    return false;
}

/* Saves what is the best so far, beside the last ones. */
static bool save_best(LsTrainer *t, LsError *e)
{
    char path[LS_PATH];
    if (ls_checkpoint_save(&t->u.memory, &t->u.place, ls_saver_best(&t->saves.saver, path), e))
        return true;
    ls_rescue_unwritten(t);
    return false;
}

/* Evaluates in the first rank, and reports. */
static bool report(LsTrainer *t, bool ended, bool last, LsError *e)
{
    return !ls_is_first(t)
           || (ended || last ? ls_train_end_epoch(t, ended, e) : ls_train_amid_epoch(t, e));
}

/* After an update. */
static bool end_update(LsTrainer *t, bool ended, LsError *e)
{
    const bool last = t->u.place.update == t->u.updates;
    const bool reports = ended || last || ls_validation_due(t);
    if ((reports || save_due(t, ended)) && !ls_update_land(&t->u, e))
        return false;
    if (reports && t->reports.evaluates && ls_has_stage_ranks(t) && !ls_pipelined_gather(t, e))
        return false;
    if (reports && (!report(t, ended, last, e) || !ls_validation_agree(t, e)))
        return false;
    if (!reports && ls_is_first(t))
        ls_train_show_progress(t);
    ls_interrupt_forbid();
    if (save_due(t, ended)) {
        if (!ls_train_by_first(t, save, e))
            return false;
        t->saves.last = t->u.place.update;
    }
    const bool best = t->saves.best_due;
    t->saves.best_due = false;
    return !best || ls_train_by_first(t, save_best, e);
}

bool ls_train(LsTrainer *t, LsError *e)
{
    if (!ls_validation_begin(t, e) || !ls_validation_agree(t, e))
        return false;
    ls_train_begin_pass(t);
    t->u.place.epoch = t->u.place.cursor / t->u.epoch.batches;
    t->saves.last = t->u.place.update;
    t->u.scale = ls_scaling_read(&t->u.memory);
    t->ending.agreed = t->group.comm == NULL ? (int)*t->ending.signal : 0;
    if (!ls_rank_compare(t, true, e))
        return false;
    while (t->u.place.update < t->u.updates && !t->ending.agreed && !t->ending.early) {
        int64_t epoch = t->u.place.epoch;
        if (!run_update(t, e) || !ls_rank_compare(t, false, e))
            return false;
        ls_interrupt_allow(true, t->told.longest_ns);
        t->u.place.epoch = t->u.place.cursor / t->u.epoch.batches;
        if (!end_update(t, t->u.place.epoch > epoch, e))
            return false;
    }
    ls_progress_clear(&t->reports.progress);
    return ls_update_land(&t->u, e) && (!t->ending.early || ls_rank_compare(t, false, e));
}
