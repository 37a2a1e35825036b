/* runtime/trainer/trainer_open.c -- see trainer_open.h. */
#include "runtime/trainer/trainer_open.h"
#include "runtime/data/data_facts.h"
#include "runtime/data/token_inputs.h"
#include "runtime/engine/thread_pool.h"
#include "runtime/trainer/export_scaling.h"
#include "runtime/trainer/init_from.h"
#include "runtime/trainer/member_settings.h"
#include "runtime/trainer/rank_devices.h"
#include "runtime/trainer/scored_evaluation.h"
#include "runtime/update/short_batch.h"
#include "runtime/trainer/run_place.h"
#include "runtime/trainer/pipelined_update.h"
#include "runtime/trainer/training_loop.h"
#include "runtime/trainer/update_watch.h"
#include "runtime/trainer/validation.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int all_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Cores for the kernels of one rank of this machine, or of one stage. */
static int cores_of_rank(const LsTrainer *t)
{
    const int n = all_cores()
                  / (t->group.comm != NULL       ? t->group.comm->local
                     : t->p->pipeline.nstage > 1 ? (int)t->p->pipeline.nstage
                                                 : 1);
    return n > 0 ? n : 1;
}

static LsDataOptions data_options(const LsTrainer *t, const char *spec)
{
    const LsTrainerOptions *o = &t->o;
    return (LsDataOptions){.data = spec,
                           .label_from = o->label_from,
                           .scale = o->scale,
                           .mean = o->mean,
                           .std = o->std,
                           .raw = o->raw,
                           .stride = o->stride,
                           .pack = o->pack,
                           .random_windows = o->random_windows && spec == o->data,
                           .unlabelled = o->infers != NULL,
                           .seed = (uint64_t)o->seed};
}

static bool open_data(LsTrainer *t, LsError *e)
{
    LsDataOptions d = data_options(t, t->o.data);
    const int64_t limit = ls_validation_limit(t);
    if (t->o.data && !ls_dataset_open(&t->u.feed.train, t->p, &d, e))
        return false;
    t->u.feed.train.limit = t->o.eval ? limit : t->o.limit_batches;
    if (t->o.eval && !t->o.val && !t->o.val_split)
        return ls_short_batch_evaluates(t->p, &t->u.feed.train, e);
    if (!t->o.val)
        return true;
    d = data_options(t, t->o.val);
    if (!ls_dataset_open(&t->val, t->p, &d, e))
        return false;
    t->val.limit = limit;
    return ls_short_batch_evaluates(t->p, &t->val, e);
}

static bool has_stream(const LsDataset *d)
{
    for (uint32_t k = 0; d->source && k < d->p->ninput; k++)
        if (d->source[k].stream)
            return true;
    return false;
}

/* Refuses options that would have no effect. */
static bool takes_options(const LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    if (o->stride > 0 && !has_stream(&t->u.feed.train) && !has_stream(&t->val))
        return ls_fail(e, LS_EXIT_USAGE, "--stride: the data are no stream of tokens");
    if (o->pack && t->u.feed.train.rows.rows == 0 && t->val.rows.rows == 0)
        return ls_fail(e, LS_EXIT_USAGE, "--pack: the data are no JSON lines of tokens");
    if (o->random_windows && t->u.feed.train.moves == 0)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--random-windows: the data are no stream of tokens, or its windows cannot "
                       "be moved");
    if (o->export_scaling
        && !ls_front_check(t->u.feed.train.p != NULL ? &t->u.feed.train : &t->val, e))
        return false;
    const char *name = o->scale ? "scale" : o->mean ? "mean" : o->std ? "std" : NULL;
    return !name || o->serve_stdin || t->u.feed.train.scaled || t->val.scaled
           || ls_fail(e, LS_EXIT_USAGE, "--%s: no input is read as reals from a file", name);
}

/* Parameters are reals in any case, so that a run may go on in another type: with other bits. */
static void compare_precision(const LsTrainer *t, const char *from)
{
    const char *own = ls_checkpoint_precision(t->p), *was = t->u.place.precision;
    if (was[0] != '\0' && strcmp(was, own) != 0)
        fprintf(stderr,
                "note: %s was written by a program that computes in %s; this one computes in %s\n",
                from, was, own);
}

/* This process writes checkpoints. */
static bool saves(const LsTrainer *t)
{
    return t->o.save && !t->o.eval && !t->o.check_gradients && !t->o.find_rate
           && ls_is_first(t);
}

/* When nothing else can go wrong: checkpoints of another run in the folder are refused or
 * removed. */
static bool clear_folder(LsTrainer *t, LsError *e)
{
    LsSaver *s = &t->saves.saver;
    const char *from = t->o.resume;
    const int count = s->count;
    bool ok = true;
    s->count = t->saves.listed;
    if (saves(t) && (from == NULL || strcmp(from, "auto") != 0))
        ok = ls_saver_is_free(s, from, t->u.place.update, t->o.overwrite, e);
    s->count = count;
    return ok;
}

static bool resume(LsTrainer *t, bool *resumed, LsError *e)
{
    const char *from = t->o.resume;
    LsSaver *s = &t->saves.saver;
    *resumed = false;
    if (!from) {
        if (s->count && !saves(t))
            fprintf(stderr, "note: %s holds %d checkpoints; --resume=auto would take the newest\n",
                    s->folder, s->count);
        t->saves.listed = s->count;
        s->count = 0;
        return true;
    }
    if (strcmp(from, "auto") == 0) {
        if (!ls_saver_load(s, &t->u.memory, &t->u.place, resumed, e))
            return false;
        from = s->path;
    } else {
        *resumed = ls_checkpoint_load(&t->u.memory, &t->u.place, from, e);
        if (!*resumed)
            return false;
    }
    if (*resumed && t->o.infers == NULL && t->o.seed_given
        && t->u.place.seed != (uint64_t)t->o.seed)
        return ls_fail(e, LS_EXIT_USAGE, "--seed=%" PRId64 ", but %s was made with seed %" PRIu64,
                       t->o.seed, from, t->u.place.seed);
    if (*resumed && !t->o.eval && !ls_private_continues(t->p, &t->u.place, from, e))
        return false;
    t->saves.listed = s->count;
    while (s->count > 0 && s->update[s->count - 1] > t->u.place.update)
        s->count--;             /* later checkpoints are overwritten in time, but not deleted as
                                 * old */
    if (*resumed) {
        fprintf(stderr, "continuing from %s: step %" PRId64 ", epoch %" PRId64 "\n", from,
                t->u.place.update, t->u.place.epoch + 1);
        compare_precision(t, from);
    } else {
        fprintf(stderr, "note: no checkpoint in %s; starting anew\n", s->folder);
    }
    return true;
}

/* Numbers the characters as the weights were trained: from the checkpoint or the model, else from
 * the training text, else from the text to evaluate on. */
static bool number_texts(LsTrainer *t, LsError *e)
{
    LsAlphabet *of = &t->u.place.alphabet, model;
    ls_alphabet_of_onnx(&model, t->p->file.onnx, t->p->file.bytes);
    if (ls_alphabet_count(of) > 0 && ls_alphabet_count(&model) > 0 && !ls_alphabet_same(of, &model))
        return ls_fail(e, LS_EXIT_DATA, "the checkpoint has %d characters, and the model was "
                       "trained on %d others", ls_alphabet_count(of), ls_alphabet_count(&model));
    if (ls_alphabet_count(of) == 0)
        *of = model;
    LsDataset *const text[] = {&t->u.feed.train, &t->val};
    for (int k = 0; k < 2; k++) {
        if (!text[k]->p || ls_alphabet_count(&text[k]->characters) == 0)
            continue;
        if (!ls_dataset_number(text[k], of, e))
            return false;
        *of = text[k]->alphabet;
    }
    return true;
}

/* What the data say of themselves: from the checkpoint, else from the training data, else from
 * those to evaluate on. */
static bool settle_facts(LsTrainer *t, LsError *e)
{
    LsDataset *const data[] = {&t->u.feed.train, &t->val};
    for (int k = 0; k < 2; k++)
        if (data[k]->p && t->u.place.facts == NULL && !ls_facts_of(data[k], &t->u.place.facts, e))
            return false;
    for (int k = 0; k < 2; k++)
        if (data[k]->p && !ls_facts_apply(data[k], t->u.place.facts, e))
            return false;
    return true;
}

static bool open_reports(LsTrainer *t, bool resumed, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    const LsPhaseTable *phase = o->eval ? &t->p->phase.eval : &t->p->phase.train;
    const LsPhaseTable *dumped = !o->eval && t->p->phase.last.nstep > 0 ? &t->p->phase.last : phase;
    if (o->log && !ls_log_open(&t->reports.log, o->log, resumed, t->p, e))
        return false;
    if (o->tensorboard
        && !ls_events_open(&t->reports.events, o->tensorboard, t->u.place.update + !o->eval, e))
        return false;
    if ((o->trace || o->profile) && !ls_is_pipelined(t)
        && !ls_trace_open(&t->reports.trace, &t->u.engine, phase, LS_TRACE_RUNS, e))
        return false;
    if (o->dump && ls_is_pipelined(t) && !ls_pipelined_dump_fits(t, e))
        return false;
    if (o->dump && !ls_is_pipelined(t)
        && (!ls_dump_open(&t->reports.dump, &t->u.engine, dumped, e)
            || !ls_dump_fits(&t->reports.dump, 1, o->dump, e)))
        return false;
    if (o->dump && !o->eval && t->p->napplied > 0)
        fprintf(stderr, "note: %s will lack %u gradients, which are applied as they are computed; "
                "compile with --store-gradients to have them\n", o->dump, t->p->napplied);
    if (o->dump && !o->eval && ls_is_private(t->p))
        fprintf(stderr, "note: no guarantee covers the values of single samples in %s\n", o->dump);
    if (o->measure)
        ls_measure_start(&t->reports.measure, &t->u.engine, phase);
    ls_progress_open(&t->reports.progress, o->progress, ls_memory_total(t->p, t->group.count),
                     t->p->bytes.budget);
    return true;
}

/* Pictures that are larger or smaller than the program's need a rule to train on. */
static bool sizes_fit(const LsTrainer *t, LsError *e)
{
    const LsDataset *d = &t->u.feed.train;
    for (uint32_t k = 0; k < t->p->ninput && !t->o.augment; k++) {
        const LsSource *s = &d->source[k];
        const LsTensor *in = &t->p->input[k].t;
        if (s->high > 0)
            return ls_fail(e, LS_EXIT_USAGE,
                           "%s: '%s' is %" PRId64 "x%" PRId64 " in the data, and the program takes "
                           "%" PRId64 "x%" PRId64 "; --augment resized-crop or crop takes a part "
                           "of each",
                           s->path, in->name, s->high, s->wide, in->dim[in->rank - 2],
                           in->dim[in->rank - 1]);
    }
    return true;
}

/* Of the samples of training. */
static bool open_augmenter(LsTrainer *t, int workers, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    LsAugmenter *a = &t->augmenter;
    if (o->eval)
        return true;
    if (!sizes_fit(t, e))
        return false;
    if (o->augment == NULL && !o->random_windows)
        return true;
    if (!ls_augmenter_open(a, o->augment ? &o->augments : NULL, &t->u.feed.train, t->u.place.seed,
                           workers > 0 ? workers : ls_ring_slots(t->p), e))
        return false;
    const char *stays = ls_augmenter_leaves(a);
    if (stays != NULL)
        fprintf(stderr,
                "note: --augment moves pictures; the target '%s' stays as it is, as if it said "
                "nothing of places\n",
                stays);
    return true;
}

/* With a device, the host's cores are free for loading batches. */
static int default_workers(const LsTrainer *t)
{
    int most = t->p->accelerator.kind != NULL ? LS_RING : 2;
    return t->u.threads <= 2 ? 1 : t->u.threads < most ? t->u.threads : most;
}

static bool open_pool(LsTrainer *t, LsError *e)
{
    /* With a device, threads are for the sums over ranks that the host adds up. */
    const bool idle = t->u.memory.device != NULL && (t->group.comm == NULL || t->group.direct);
    t->u.engine.run.pool = ls_pool_create(idle ? 1 : t->u.threads);
    return t->u.engine.run.pool ? true
                              : ls_fail(e, LS_EXIT_FAIL, "cannot start %d threads", t->u.threads);
}

static char *sums_in_window(const LsTrainer *t)
{
    return t->group.window != NULL && t->p->accelerator.kind == NULL
               ? t->group.window + t->group.comm->rank * t->p->ranks->sum_bytes
               : NULL;
}

static bool open_ranks(LsTrainer *t, LsError *e)
{
    const LsBucketing how = {t->o.bucket, t->o.late_exchange};
    return t->group.count == 0
           || (ls_ranks_join_devices(t, e)
               && ls_exchange_open(&t->group.exchange, &t->u.engine, &t->u.memory, t->group.base,
                                   t->group.direct ? t->group.comm : NULL,
                                   t->group.direct ? NULL : t->group.window, how, e));
}

bool ls_trainer_open(LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    bool resumed;
    t->u.notes = stderr;
    t->u.p = t->p;
    t->told.tokens = ls_tokens_of_sample(t->p);
    t->u.place.keeps_frozen = o->save_frozen;
    t->u.threads = o->threads ? (int)o->threads : cores_of_rank(t);
    int workers = o->workers >= 0 ? (int)o->workers : default_workers(t);
    t->u.place.seed = (uint64_t)o->seed;
    if (!ls_trainer_outputs_check(o, t->p, e) || !open_data(t, e) || !takes_options(t, e)
        || !ls_ranks_choose_devices(t, e)
        || !ls_memory_open_with(&t->u.memory, t->p, t->group.count, sums_in_window(t),
                                ls_has_stage_ranks(t) ? t->group.comm->rank : -1, e))
        return false;
    if (t->u.memory.device != NULL)
        t->u.memory.device->tune = o->tune;
    if (!ls_engine_open(&t->u.engine, t->p, &t->u.memory, e) || !open_ranks(t, e)
        || (o->save && !ls_saver_open(&t->saves.saver, o->save, o->keep_last, saves(t), e))
        || (o->init_from && !ls_init_from(&t->u.memory, o->init_from, o->init_strict, stderr, e))
        || !resume(t, &resumed, e) || !number_texts(t, e) || !settle_facts(t, e)
        || !ls_validation_open(t, resumed, e) || !ls_scored_open(t, e)
        || !open_augmenter(t, workers, e) || !ls_training_open_loader(&t->u, workers, e)
        || !open_pool(t, e) || (ls_is_pipelined(t) && !ls_pipelined_open(t, e))
        || !open_reports(t, resumed, e)
        || (!o->eval && (!ls_train_plan(t, resumed, e) || !ls_short_batch_trains(&t->u, e)))
        || (t->group.exchange.r != NULL
            && !ls_exchange_agree(&t->group.exchange, ls_rank_place(t), e)))
        return false;
    if (!ls_member_state_open(&t->u.members, t->p, o->lr, t->u.place.seed, e)
        || !ls_member_settings(&t->u.members, o, e)
        || (!resumed && !ls_member_weights(&t->u.memory, o, e)))
        return false;
    ls_update_watch(t);
    t->u.engine.run.seed = t->u.place.seed;
    t->u.engine.seeds = t->p->ensemble.same_draws ? NULL : t->u.members.seeds;
    t->u.engine.rates = t->u.members.rates;
    t->reports.log.losses = t->u.members.loss;
    t->reports.log.nlosses = t->u.members.n;
    memcpy(t->u.engine.run.noise, t->u.privacy.noise.word, sizeof t->u.engine.run.noise);
    return clear_folder(t, e);
}

/* Waits for the others, or ends them. */
static void leave_ranks(LsTrainer *t, LsError *e)
{
    LsComm *c = t->group.comm;
    if (c == NULL)
        return;
    if (e->code == LS_EXIT_DONE)
        c->engine->barrier(c, e);
    if (e->code != LS_EXIT_DONE)
        t->group.silent = !c->engine->abandon(c, e);
    c->engine->close(c);
}

void ls_trainer_close(LsTrainer *t, LsError *e)
{
    ls_progress_clear(&t->reports.progress);
    ls_log_close(&t->reports.log, t->o.log, e);
    ls_events_close(&t->reports.events, e);
    ls_pipelined_close(t);
    ls_training_stop(&t->u, true);
    leave_ranks(t, e);
    ls_exchange_close(&t->group.exchange);
    ls_dump_close(&t->reports.dump);
    ls_metrics_close(&t->reports.metrics);
    ls_trace_close(&t->reports.trace);
    ls_augmenter_close(&t->augmenter);
    ls_training_close(&t->u);
    ls_dataset_close(&t->val);
    ls_saver_close(&t->saves.saver);
}
