/* runtime/trainer/training_loop.c -- see training_loop.h.
 *
 * Batches are numbered through all epochs, so an update may take the last batches of one epoch and
 * the first of the next. Checkpoints, evaluation and the end of the run come between updates. */
#include "runtime/trainer/training_loop.h"
#include "runtime/base/clock.h"
#include "runtime/base/interrupt.h"
#include "runtime/trainer/epoch_report.h"
#include "runtime/trainer/micro_batch.h"
#include "runtime/trainer/pipelined_update.h"
#include "runtime/trainer/rank_update.h"
#include "runtime/trainer/rescue.h"
#include "runtime/trainer/update_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool ls_train_plan(LsTrainer *t, bool resumed, LsError *e)
{
    int64_t group = ls_batches_per_update(t);
    t->feed.pass = (LsPass){.data = &t->feed.train,
                            .augment = t->feed.augmenter.kind != NULL ? &t->feed.augmenter : NULL,
                            .parts = t->p->division.micro_batches,
                            .seed = t->place.seed,
                            .shuffle = t->o.shuffle,
                            .drop_last = t->o.drop_last,
                            .members = t->p->ensemble.own_batches ? t->p->ensemble.members : 0,
                            .readers = (int)t->pipeline.readers};
    t->privacy.notes = t->told.notes;
    if (ls_is_private(t->p)
        && !ls_private_begin(&t->privacy, t->p, &t->o, &t->place, t->feed.train.samples, e))
        return false;
    t->epoch.batches = ls_is_private(t->p) ? ls_private_epoch(t->p, t->feed.train.samples)
                                           : ls_batches_per_epoch(&t->feed.pass);
    if (t->epoch.batches == 0)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: %" PRId64 " samples do not fill a batch of %" PRId64 "%s", t->o.data,
                       t->feed.train.samples,
                       ls_batch_samples(&t->p->division)
                           * (t->feed.pass.members > 0 ? t->feed.pass.members : 1),
                       t->feed.pass.members > 0 ? ", one for all members" : " (--drop-last)");
    if (resumed && t->place.shuffle != t->o.shuffle)
        fprintf(stderr, "note: the checkpoint's run had its data %s; this run has not\n",
                t->place.shuffle ? "shuffled" : "in file order");
    if (resumed && !ls_is_private(t->p)
        && (t->place.samples != t->feed.train.samples || t->place.drop_last != t->o.drop_last)) {
        fprintf(stderr,
                "note: the data are not those of the checkpoint; continuing with epoch %" PRId64
                "\n",
                t->place.epoch + 1);
        t->place.cursor = t->place.epoch * t->epoch.batches;
    }
    t->place.samples = t->feed.train.samples;
    t->place.drop_last = t->o.drop_last;
    t->place.shuffle = t->o.shuffle;
    int64_t epochs = t->o.epochs > 0 ? t->o.epochs : 1;
    int64_t batches;
    if (__builtin_mul_overflow(epochs, t->epoch.batches, &batches))
        return ls_fail(e, LS_EXIT_USAGE, "--epochs=%" PRId64 ": more batches than can be counted",
                       epochs);
    int64_t left = (batches - t->place.cursor) / group;
    t->updates = t->place.update + (left > 0 ? left : 0);
    if (t->o.steps > 0 && (t->o.epochs == 0 || t->o.steps < t->updates))
        t->updates = t->o.steps;
    else if (left > 0 && (epochs * t->epoch.batches - t->place.cursor) % group != 0)
        fprintf(stderr,
                "note: the last %" PRId64 " of %" PRId64
                " batches make no update: an update takes %" PRId64 " batches (--accumulate)\n",
                (epochs * t->epoch.batches - t->place.cursor) % group, epochs * t->epoch.batches,
                group);
    if (resumed && t->updates <= t->place.update)
        fprintf(stderr, "note: the checkpoint has all the steps asked for; nothing to train\n");
    if (t->updates == 0)
        return ls_fail(e, LS_EXIT_USAGE, "the data make %" PRId64 " batches, but one update takes %"
                       PRId64 " (--accumulate): give more --epochs", batches, group);
    return ls_rate_parse(&t->rate, t->o.schedule, t->o.lr, t->updates, e);
}

static bool run_update(LsTrainer *t, LsError *e)
{
    const int64_t start = ls_now_ns();
    ls_interrupt_allow(t->place.update > t->saves.last, t->told.longest_ns);
    if (!ls_update_run(t, e))
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
    return t->place.update == t->updates || t->ending.agreed
           || (t->o.save_every ? t->place.update % t->o.save_every == 0 : epoch_ended);
}

static bool save(LsTrainer *t, LsError *e)
{
    if (ls_saver_save(&t->saves.saver, &t->memory, &t->place, e))
        return true;
    ls_rescue_unwritten(t);
    return false;
}

bool ls_train(LsTrainer *t, LsError *e)
{
    ls_train_begin_pass(t);
    t->place.epoch = t->place.cursor / t->epoch.batches;
    t->saves.last = t->place.update;
    t->told.scale = ls_scaling_read(&t->memory);
    t->ending.agreed = t->group.comm == NULL ? (int)*t->ending.signal : 0;
    if (!ls_rank_compare(t, true, e))
        return false;
    while (t->place.update < t->updates && !t->ending.agreed) {
        int64_t epoch = t->place.epoch;
        if (!run_update(t, e) || !ls_rank_compare(t, false, e))
            return false;
        ls_interrupt_allow(true, t->told.longest_ns);
        t->place.epoch = t->place.cursor / t->epoch.batches;
        bool ended = t->place.epoch > epoch, last = t->place.update == t->updates;
        if ((ended || last || save_due(t, ended)) && !ls_update_land(t, e))
            return false;
        if ((ended || last) && t->reports.evaluates && ls_has_stage_ranks(t)
            && !ls_pipelined_gather(t, e))
            return false;
        if ((ended || last) && ls_is_first(t)) {
            if (!ls_train_end_epoch(t, ended, e))
                return false;
        } else if (ls_is_first(t)) {
            ls_train_show_progress(t);
        }
        ls_interrupt_forbid();
        if (save_due(t, ended)) {
            if (!ls_train_by_first(t, save, e))
                return false;
            t->saves.last = t->place.update;
        }
    }
    ls_progress_clear(&t->reports.progress);
    return ls_update_land(t, e);
}
