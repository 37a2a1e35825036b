/* runtime/trainer/training_loop.c -- see training_loop.h.
 *
 * An update takes `accumulate` batches, each of them in LsDivision.micro_batches.
 * Batches are numbered through all epochs, so an update may take the last batches of one epoch and
 * the first of the next. Its loss combines everything that counts in its batches (mean.h), and so
 * do its gradients. Checkpoints, evaluation and the end of the run come between updates. */
#include "runtime/trainer/training_loop.h"
#include "runtime/base/clock.h"
#include "runtime/base/interrupt.h"
#include "runtime/trainer/clip_check.h"
#include "runtime/trainer/epoch_report.h"
#include "runtime/trainer/micro_batch.h"
#include "runtime/trainer/pipelined_update.h"
#include "runtime/trainer/rank_update.h"
#include "runtime/trainer/rescue.h"
#include "runtime/trainer/update_loss.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool ls_train_plan(LsTrainer *t, bool resumed, LsError *e)
{
    int64_t group = ls_batches_per_update(t);
    t->feed.pass = (LsPass){.data = &t->feed.train,
                            .parts = t->p->division.micro_batches,
                            .seed = t->place.seed,
                            .shuffle = t->o.shuffle,
                            .drop_last = t->o.drop_last,
                            .members = t->p->ensemble.own_batches ? t->p->ensemble.members : 0,
                            .readers = (int)t->pipeline.readers};
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

/* Reads the loss of the oldest batch in flight. */
static bool take_loss(LsTrainer *t, LsError *e)
{
    LsInFlight f = t->flight[0];
    LsLoss one;
    t->nflight--;
    memmove(t->flight, t->flight + 1, (size_t)t->nflight * sizeof f);
    if (!ls_engine_loss(&t->engine, f.table, f.slot, f.valid, &one, e))
        return false;
    if (t->members.n > 0)
        ls_member_state_add(&t->members, &t->engine);
    return ls_part_check(t, &f, one, e) && ls_part_loss(t, &f, one, e);
}

static bool land_all(LsTrainer *t, LsError *e)
{
    while (t->nflight > 0)
        if (!take_loss(t, e))
            return false;
    return true;
}

/* Starts micro-batch k of an update, of as many as its batches or its drawn samples fill. On a
 * device the one before may still be in flight; its loss is read then. A part without samples is
 * left out. */
static bool run_part(LsTrainer *t, int64_t k, int64_t *part, LsError *e)
{
    LsRun *run = &t->engine.run;
    LsHook hook[LS_PART_HOOKS];
    const LsBatch *b = ls_loader_next(&t->feed.loader, e);
    if (!b)
        return false;
    const bool own = ls_is_private(t->p), empty = !own && b->valid == 0;
    const int64_t number = b->number;
    /* its batch */
    const bool ends = own ? b->last : (k + 1) % ls_micro_batches(&t->p->division) == 0;
    if (!empty) {
        ls_engine_feed(&t->engine, &t->feed.loader, b);
        if (own && k == 0 && !ls_clip_check(t, b, e))
            return false;
        ls_part_run(t, b, k, own ? k : (*part)++);
        const LsPhaseTable *table = ls_part_table(t, run->apply);
        if (!ls_engine_run(&t->engine, table, hook, ls_part_hooks(t, table, run->apply, hook), e)
            || !ls_engine_fed(&t->engine, e))
            return false;
        t->flight[t->nflight++] =
            (LsInFlight){t->place.update + 1, t->place.epoch + 1, number, table, b->valid, run->lr,
                         t->engine.slot,      run->apply};
    }
    ls_loader_release(&t->feed.loader);
    t->place.cursor += ends;
    if (empty)
        return true;
    int ahead = t->o.check_numerics || ls_has_scaling(t->p) ? 0 : ls_engine_ahead(&t->engine);
    return t->nflight <= ahead || take_loss(t, e);
}

/* Counts the samples of an update that draws none, and its micro-batches that have some. */
static void count_samples(LsTrainer *t, int64_t steps)
{
    t->under_way.samples = t->under_way.micro_batches = 0;
    for (int64_t k = 0; k < steps; k++) {
        const int64_t valid =
            ls_batch_valid(&t->feed.pass, t->place.cursor * ls_micro_batches(&t->p->division) + k);
        t->under_way.samples += valid;
        t->under_way.micro_batches += valid > 0;
    }
}

static bool run_pipeline(LsTrainer *t, LsError *e)
{
    const LsPipeline *l = &t->pipeline;
    if (!ls_pipelined_update(t, ls_part_watched(t), t->reports.dumps && ls_is_last_update(t), e))
        return false;
    t->place.cursor++;
    for (int64_t k = 0; k < l->nparts; k++) {
        const LsInFlight f = {.update = t->place.update + 1,
                              .epoch = t->place.epoch + 1,
                              .batch = l->part[k].batch,
                              .valid = l->part[k].run.valid,
                              .lr = t->engine.run.lr,
                              .apply = l->part[k].run.apply};
        if (!ls_part_check(t, &f, l->loss[k], e) || !ls_part_loss(t, &f, l->loss[k], e))
            return false;
    }
    return true;
}

static bool run_parts(LsTrainer *t, LsError *e)
{
    const bool own = ls_is_private(t->p);
    int64_t part = 0;
    t->engine.run.apply = false;
    for (int64_t k = 0; own ? !t->engine.run.apply
                            : k < ls_batches_per_update(t) * ls_micro_batches(&t->p->division);
         k++)
        if (!run_part(t, k, &part, e))
            return false;
    return true;
}

static bool run_update(LsTrainer *t, LsError *e)
{
    const bool own = ls_is_private(t->p);
    const int64_t start = ls_now_ns();
    ls_interrupt_allow(t->place.update > t->saves.last, t->told.longest_ns);
    t->engine.run.update = t->place.update - t->told.scale.skipped + 1;
    t->engine.run.lr = ls_rate_at(&t->rate, t->engine.run.update);
    for (int64_t k = 0; k < t->members.n; k++) {
        LsRate of = t->rate;
        of.lr = t->members.base[k];
        t->members.rates[k] = ls_rate_at(&of, t->engine.run.update);
    }
    if (!own)
        count_samples(t, ls_batches_per_update(t) * ls_micro_batches(&t->p->division));
    if (!(t->p->pipeline.nstage > 0     ? run_pipeline(t, e)
          : t->group.exchange.r != NULL ? ls_rank_block(t, e)
                                        : run_parts(t, e)))
        return false;
    t->place.update++;
    if (t->group.comm == NULL)
        t->ending.agreed = (int)*t->ending.signal;
    if (own && !ls_private_spend(&t->privacy, t->p, &t->place, e))
        return false;
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
        if ((ended || last || save_due(t, ended)) && !land_all(t, e))
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
    return land_all(t, e);
}
