/* runtime/trainer/trainer_main.c -- ls_trainer_main: sets up a run, trains or evaluates, and writes the results. */
#include "runtime/base/fnv64.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/comm/comm_open.h"
#include "runtime/engine/thread_pool.h"
#include "runtime/trainer/export_trained.h"
#include "runtime/trainer/training_loop.h"
#include "runtime/watch/gradient_check.h"
#include "runtime/watch/image_grid.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int all_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Its steps are those of a pipeline; evaluation runs on one thread. */
static bool is_pipelined(const LsTrainer *t) { return t->p->nstage > 0 && !t->o.eval; }

/* Cores for the kernels of one rank of this machine, or of one stage. */
static int cores_of_rank(const LsTrainer *t)
{
    const int n = all_cores() / (t->comm != NULL ? t->comm->local : t->p->nstage > 1 ? (int)t->p->nstage : 1);
    return n > 0 ? n : 1;
}

static void print_steps(const LsProgram *p, const LsPhaseTable *t)
{
    for (uint32_t k = 0; k < t->nstep; k++) {
        const LsStep *s = &t->step[k];
        int64_t bytes = 0;
        for (uint32_t r = 0; r < s->nout; r++)
            bytes += p->element_count[s->count + r]
                     * ls_data_bytes((LsDataType)p->element_type[s->count + r], p->real_bytes);
        printf("%4u  %4u  %-5s  %-20s %13" PRId64 " %7" PRId64 "  %s\n", k, s->node,
               s->again ? "yes" : "", s->op, bytes,
               s->nout ? p->address[s->arg + s->nin].offset : 0, s->name);
    }
}

static void print_stage(const LsProgram *p, uint32_t number)
{
    const LsStage *s = &p->stage[number];
    printf("stage %u: arena %" PRId64 " bytes, %" PRId64 " and %u slots of %" PRId64 "; phases from steps", number + 1,
           s->transient + s->slots * s->slot_bytes, s->transient, s->slots, s->slot_bytes);
    for (int k = 0; k < LS_STAGE_NPHASES; k++)
        printf(" %u", s->first[k]);
    printf("; sends %u, receives %u\n", s->nsend, s->nreceive);
    print_steps(p, &s->table);
}

static void print_plan(const LsProgram *p)
{
    printf("%s  plan %s  strategy %s  batch %" PRId64 "\n"
           "state %" PRId64 "  arena %" PRId64 "  constants %" PRId64 "  input ring %" PRId64
           "  total %" PRId64 "  budget %" PRId64 " bytes, overhead %.1f %%\n"
           "step  node  again  op                    result bytes      at  name\n",
           p->model, p->plan_hash, p->strategy, ls_whole_batch(p), p->state_bytes, p->arena_bytes,
           p->const_bytes, ls_memory_input(p), ls_memory_total(p), p->budget, 100 * p->overhead);
    print_steps(p, &p->train);
    for (uint32_t k = 0; k < p->nstage; k++)
        print_stage(p, k);
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
                           .seed = (uint64_t)o->seed};
}

/* Prints a note on data whose last batch is not full, where the loss also counts its padding
 * samples. */
static void note_of_rest(const LsTrainer *t, const LsDataset *d)
{
    int64_t rest = d->samples % t->p->batch;
    if (t->p->loss_of_file && rest != 0 && !(d == &t->data && t->o.drop_last && !t->o.eval))
        fprintf(stderr, "note: %s: the last batch has %" PRId64 " samples of %" PRId64 "; the model "
                "computes its own loss, so the samples repeated to fill it count twice%s\n",
                d->opt.data, rest, t->p->batch,
                d == &t->data && !t->o.eval ? " (--drop-last leaves that batch out)" : "");
}

static bool open_data(LsTrainer *t, LsError *e)
{
    LsDataOptions d = data_options(t, t->o.data);
    if (t->o.data && !ls_dataset_open(&t->data, t->p, &d, e))
        return false;
    if (t->o.data)
        note_of_rest(t, &t->data);
    if (!t->o.val)
        return true;
    d = data_options(t, t->o.val);
    if (!ls_dataset_open(&t->val, t->p, &d, e))
        return false;
    note_of_rest(t, &t->val);
    return true;
}

/* Refuses options that would have no effect. */
static bool takes_scale(const LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    const char *name = o->scale ? "scale" : o->mean ? "mean" : o->std ? "std" : NULL;
    return !name || t->data.scaled || t->val.scaled
           || ls_fail(e, LS_EXIT_USAGE, "--%s: no input is read as reals from a file", name);
}

/* Parameters are reals in any case, so that a run may go on in another type: with other bits. */
static void compare_precision(const LsTrainer *t, const char *from)
{
    const char *own = ls_checkpoint_precision(t->p), *was = t->at.precision;
    if (was[0] != '\0' && strcmp(was, own) != 0)
        fprintf(stderr, "note: %s was written by a program that computes in %s; this one computes in %s\n", from, was, own);
}

static bool resume(LsTrainer *t, bool *resumed, LsError *e)
{
    const char *from = t->o.resume;
    LsSaver *s = &t->saver;
    *resumed = false;
    if (!from) {
        if (s->count)
            fprintf(stderr,
                    "note: %s holds %d checkpoints of an earlier run; --resume=auto would "
                    "continue from them\n",
                    s->folder, s->count);
        s->count = 0;
        return true;
    }
    if (strcmp(from, "auto") == 0) {
        if (!ls_saver_load(s, &t->memory, &t->at, resumed, e))
            return false;
        from = s->path;
    } else {
        *resumed = ls_checkpoint_load(&t->memory, &t->at, from, e);
        if (!*resumed)
            return false;
    }
    if (*resumed && t->o.seed_given && t->at.seed != (uint64_t)t->o.seed)
        return ls_fail(e, LS_EXIT_USAGE, "--seed=%" PRId64 ", but %s was made with seed %" PRIu64,
                       t->o.seed, from, t->at.seed);
    if (*resumed && !t->o.eval && !ls_private_continues(t->p, &t->at, from, e))
        return false;
    while (s->count > 0 && s->update[s->count - 1] > t->at.update)
        s->count--;             /* later checkpoints are overwritten in time, but not deleted as
                                 * old */
    if (*resumed) {
        fprintf(stderr, "continuing from %s: step %" PRId64 ", epoch %" PRId64 "\n", from,
                t->at.update, t->at.epoch + 1);
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
    LsAlphabet *of = &t->at.alphabet, model;
    ls_alphabet_of_onnx(&model, t->p->onnx, t->p->onnx_bytes);
    if (ls_alphabet_count(of) > 0 && ls_alphabet_count(&model) > 0 && !ls_alphabet_same(of, &model))
        return ls_fail(e, LS_EXIT_DATA, "the checkpoint has %d characters, and the model was "
                       "trained on %d others", ls_alphabet_count(of), ls_alphabet_count(&model));
    if (ls_alphabet_count(of) == 0)
        *of = model;
    LsDataset *const text[] = {&t->data, &t->val};
    for (int k = 0; k < 2; k++) {
        if (!text[k]->p || ls_alphabet_count(&text[k]->characters) == 0)
            continue;
        if (!ls_dataset_number(text[k], of, e))
            return false;
        *of = text[k]->alphabet;
    }
    return true;
}

static bool open_reports(LsTrainer *t, bool resumed, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    const LsPhaseTable *phase = o->eval ? &t->p->eval : &t->p->train;
    const LsPhaseTable *dumped = !o->eval && t->p->last.nstep > 0 ? &t->p->last : phase;
    if (o->log && !ls_log_open(&t->log, o->log, resumed, t->p, e))
        return false;
    if ((o->trace || o->profile) && !ls_trace_open(&t->trace, &t->engine, phase, e))
        return false;
    if (o->dump && is_pipelined(t) && !ls_pipelined_dump_fits(t, e))
        return false;
    if (o->dump && !is_pipelined(t)
        && (!ls_dump_open(&t->dump, &t->engine, dumped, e) || !ls_dump_fits(&t->dump, 1, o->dump, e)))
        return false;
    if (o->dump && !o->eval && t->p->napplied > 0)
        fprintf(stderr, "note: %s will lack %u gradients, which are applied as they are computed; "
                "compile with --store-gradients to have them\n", o->dump, t->p->napplied);
    if (o->dump && !o->eval && ls_is_private(t->p))
        fprintf(stderr, "note: no guarantee covers the values of single samples in %s\n", o->dump);
    if (o->measure)
        ls_measure_start(&t->measure, &t->engine, phase);
    ls_progress_open(&t->progress, o->progress, ls_memory_total(t->p), t->p->budget);
    return true;
}

/* Opens the loader; its ring is the source of copies to a device. */
static bool open_loader(LsTrainer *t, int workers, LsError *e)
{
    LsDevice *d = t->memory.device;
    if (!ls_loader_open(&t->loader, t->p, workers, e))
        return false;
    t->pinned = d != NULL;
    if (t->pinned)
        d->kind->pin(d, t->loader.memory, ls_ring_bytes(t->p));
    return true;
}

/* With a device, the host's cores are free for loading batches. */
static int default_workers(const LsTrainer *t)
{
    int most = t->p->device != NULL ? LS_RING : 2;
    return t->threads <= 2 ? 1 : t->threads < most ? t->threads : most;
}

static bool open_pool(LsTrainer *t, LsError *e)
{
    t->engine.run.pool = ls_pool_create(t->memory.device != NULL ? 1 : t->threads);
    return t->engine.run.pool ? true
                              : ls_fail(e, LS_EXIT_FAIL, "cannot start %d threads", t->threads);
}

/* All ranks but the first are silent, and write no results. */
static void be_silent(LsTrainer *t)
{
    LsTrainerOptions *o = &t->o;
    o->log = o->trace = o->profile = o->dump = o->image_grid = o->export_to = o->val = NULL;
    o->progress = "none";
    if (freopen("/dev/null", "w", stdout) == NULL || (t->errors = fdopen(dup(STDERR_FILENO), "w")) == NULL
        || freopen("/dev/null", "w", stderr) == NULL)
        t->errors = stderr;
}

/* What every rank must have alike. */
static uint64_t place_sum(const LsTrainer *t)
{
    const int64_t of[] = {t->at.update, t->at.cursor, (int64_t)t->at.seed, t->data.samples, t->updates};
    const uint64_t sum = ls_fnv64(LS_FNV64, of, sizeof of);
    return ls_fnv64(sum, t->p->plan_hash, strlen(t->p->plan_hash));
}

static char *sums_in_window(const LsTrainer *t)
{
    return t->window != NULL ? t->window + t->comm->rank * t->p->ranks->sum_bytes : NULL;
}

static bool open_ranks(LsTrainer *t, LsError *e)
{
    enum { BUCKET = 4 << 20 };
    return t->comm == NULL || t->p->ranks == NULL
           || ls_exchange_open(&t->over, &t->engine, &t->memory, t->comm, t->window, t->o.bucket ? t->o.bucket : BUCKET, e);
}

static bool open_run(LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    bool resumed;
    t->threads = o->threads ? (int)o->threads : cores_of_rank(t);
    int workers = o->workers >= 0 ? (int)o->workers : default_workers(t);
    t->at.seed = (uint64_t)o->seed;
    if (!ls_trainer_outputs_check(o, e) || !open_data(t, e) || !takes_scale(t, e)
        || !ls_memory_open_with(&t->memory, t->p, sums_in_window(t), ls_has_stage_ranks(t) ? t->comm->rank : -1, e))
        return false;
    if (t->memory.device != NULL)
        t->memory.device->tune = o->tune;
    if (!ls_engine_open(&t->engine, t->p, &t->memory, e) || !open_ranks(t, e)
        || (o->save && !ls_saver_open(&t->saver, o->save, o->keep_last, e))
        || !resume(t, &resumed, e) || !number_texts(t, e) || !open_loader(t, workers, e) || !open_pool(t, e)
        || (is_pipelined(t) && !ls_pipelined_open(t, e))
        || !open_reports(t, resumed, e) || (!o->eval && !ls_train_plan(t, resumed, e))
        || (t->over.r != NULL && !ls_exchange_agree(&t->over, "data or checkpoint", place_sum(t), e)))
        return false;
    if (!ls_member_state_open(&t->members, t->p, o, t->at.seed, e) || (!resumed && !ls_member_weights(&t->memory, o, e)))
        return false;
    t->engine.run.seed = t->at.seed;
    t->engine.seeds = t->p->same_draws ? NULL : t->members.seeds;
    t->engine.rates = t->members.rates;
    t->log.losses = t->members.loss;
    t->log.nlosses = t->members.n;
    t->engine.run.secret = t->own.noise;
    return true;
}

static void print_measure(LsTrainer *t)
{
    const LsPhaseTable *phase = t->measure.t;
    ls_measure_end(&t->measure);
    printf("{\"arena_bytes\":%" PRId64 ",\"live_peak\":%" PRId64 ",\"addressed\":%" PRId64
           ",\"touched\":%" PRId64 ",\"state_bytes\":%" PRId64 ",\"total\":%" PRId64 "}\n",
           phase->arena_bytes, phase->live_peak, t->measure.addressed, t->measure.touched,
           t->p->state_bytes, ls_memory_total(t->p));
}

static bool write_results(LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    bool whole = o->eval || t->at.update == t->updates;
    const int64_t n = t->members.n > 0 ? t->members.n : 1;
    const double *losses = t->members.n == 0 ? &t->loss : o->eval ? t->members.val_loss : t->members.loss;
    if (o->dump && !whole)
        fprintf(stderr, "note: %s is not written: the last step was not run\n", o->dump);
    if (o->measure)
        print_measure(t);
    const bool dumps = o->dump && whole;
    if (dumps && !(is_pipelined(t) ? ls_pipelined_dump_write(t, e) : ls_dump_write(&t->dump, 1, o->dump, losses, n, e)))
        return false;
    return
           (!o->trace || ls_trace_write(&t->trace, o->trace, e)) &&
           (!o->profile ||
            ls_profile_write(&t->trace, o->profile, t->memory.device ? 0 : t->threads, e)) &&
           (!o->export_to || ls_export(&t->memory, o->export_member, &t->at.alphabet, o->export_type, o->export_to, e)) &&
           (!o->image_grid ||
            ls_grid_write(&t->engine, &t->loader, t->val.p ? &t->val : &t->data, o->image_grid, e));
}

static void name_interrupted(const LsTrainer *t, char path[LS_PATH])
{
    const char *base = strrchr(t->p->model, '/');
    snprintf(path, LS_PATH, "%.200s.interrupted.safetensors", base ? base + 1 : t->p->model);
}

static bool save_interrupted(LsTrainer *t, LsError *e)
{
    char path[LS_PATH];
    name_interrupted(t, path);
    return ls_checkpoint_save(&t->memory, &t->at, path, e);
}

/* Saves an interrupted run: without --save the checkpoint goes beside the program. */
static bool end_interrupted(LsTrainer *t, LsError *e)
{
    char path[LS_PATH];
    if (!t->saver.folder && !ls_train_by_first(t, save_interrupted, e))
        return false;
    name_interrupted(t, path);
    fprintf(stderr, "interrupted after step %" PRId64 "; continue with --resume=%s\n", t->at.update,
            t->saver.folder ? t->saver.path : path);
    return true;
}

/* Checks the gradients of the first batch. */
static bool check_gradients(LsTrainer *t, LsError *e)
{
    LsGradCheck c = {0};
    t->pass.first = t->at.cursor;
    t->pass.end = t->at.cursor + 1;
    ls_loader_begin(&t->loader, &t->pass);
    const LsBatch *b = ls_loader_next(&t->loader, e);
    if (!b)
        return false;
    ls_engine_feed(&t->engine, &t->loader, b);
    bool ok = ls_engine_fed(&t->engine, e)
              && ls_gradcheck_run(&c, &t->engine, t->o.check_gradients, &t->progress, t->stop, e);
    t->stopped = (int)*t->stop;
    t->interrupted = t->stopped != 0;
    if (ok && !t->interrupted) {
        ls_log_gradients(&t->log, c.nsample, c.nparam, c.median, c.worst, c.limit,
                         c.nsample > 0 ? c.sample->of->t.name : "",
                         c.nsample > 0 ? c.sample->element : 0);
        ok = ls_gradcheck_tell(&c, stdout, e);
    }
    ls_gradcheck_close(&c);
    ls_loader_release(&t->loader);
    return ok;
}

static void print_guarantee(const LsTrainer *t)
{
    char text[LS_PRIVACY_WHY];
    printf("%s after %" PRId64 " updates\n", ls_privacy_bound_text(ls_private_bound(t->p, &t->at), t->p->privacy.delta, text),
           t->at.update);
}

static bool run(LsTrainer *t, LsError *e)
{
    if (t->o.check_gradients) {
        ls_interrupt_allow(false, 0);
        return check_gradients(t, e);
    }
    if (t->o.eval) {
        printf("epoch %" PRId64 "  step %" PRId64, t->at.epoch, t->at.update);
        ls_interrupt_allow(false, 0);
        bool ok = ls_train_evaluate(t, e);
        ls_interrupt_forbid();
        printf("\n");
        t->stopped = (int)*t->stop;
        t->interrupted = t->stopped != 0;
        return ok && !t->interrupted ? write_results(t, e) : ok;
    }
    if (!ls_train(t, e))
        return false;
    if (ls_is_private(t->p))
        print_guarantee(t);
    t->interrupted = t->at.update < t->updates;
    if (t->interrupted && !end_interrupted(t, e))
        return false;
    return (!ls_has_stage_ranks(t) || ls_pipelined_gather_dumps(t, e)) && ls_train_by_first(t, write_results, e);
}

/* Waits for the others, or ends them. */
static void leave_ranks(LsTrainer *t, LsError *e)
{
    LsComm *c = t->comm;
    if (c == NULL)
        return;
    if (e->code == LS_EXIT_DONE)
        c->engine->barrier(c, e);
    if (e->code != LS_EXIT_DONE)
        t->silent = !c->engine->abandon(c, e);
    c->engine->close(c);
}

static void close_run(LsTrainer *t, LsError *e)
{
    ls_progress_clear(&t->progress);
    ls_log_close(&t->log, t->o.log, e);
    if (t->pinned)
        t->memory.device->kind->unpin(t->memory.device, t->loader.memory);
    ls_pipelined_close(t);
    ls_loader_close(&t->loader);
    ls_member_state_close(&t->members);
    if (t->engine.run.pool)
        ls_pool_destroy(t->engine.run.pool);
    leave_ranks(t, e);
    ls_exchange_close(&t->over);
    ls_engine_close(&t->engine);
    ls_dump_close(&t->dump);
    ls_trace_close(&t->trace);
    ls_dataset_close(&t->data);
    ls_dataset_close(&t->val);
    ls_memory_close(&t->memory);
    ls_privacy_free(&t->at.ledger);
}

static void run_one(LsTrainer *t, LsError *e)
{
    if (open_run(t, e)) {
        ls_interrupt_catch();       /* before this, a signal ended the process without loss */
        run(t, e);
    }
    close_run(t, e);
}

/* Of a pipeline: each stage is to be a process, not a thread. */
static bool wants_processes(const LsTrainer *t)
{
    const LsTrainerOptions *o = &t->o;
    return t->p->nstage > 0 && !o->eval && (o->comm != NULL || o->peers != NULL || o->ranks > 1 || t->p->comm != NULL);
}

/* Memory that processes share which this one starts later: room for the sums of all ranks. NULL: there is none. */
static char *make_window(const LsRanks *r)
{
    void *at = MAP_FAILED;
    if (r != NULL)
        at = mmap(NULL, (size_t)(r->n * r->sum_bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Joins the other ranks, if there are any, and runs. The process that started them has nothing else to do. */
static void run_ranks(LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    const LsRanks *r = o->eval ? NULL : t->p->ranks;
    char same[600];
    snprintf(same, sizeof same, "plan %s, seed %" PRId64 ", lr %.9g, schedule %.200s, steps %" PRId64 ", epochs %" PRId64 ", %s%s",
             t->p->plan_hash, o->seed, o->lr, o->schedule, o->steps, o->epochs, o->shuffle ? "shuffled" : "in file order",
             o->drop_last ? ", drop last" : "");
    const LsCommWish wish = {r != NULL ? r->n : wants_processes(t) ? (int64_t)t->p->nstage : 1, o->comm, o->peers, o->rank, same, t->p->comm};
    LsCommOpened opened;
    char *window = make_window(r);
    const bool ok = ls_comm_open(&wish, &opened, e);
    t->silent = opened.silent;
    t->ended = opened.code;
    if (!ok || opened.starter)
        return;
    t->comm = opened.comm;
    t->evaluates = o->val != NULL;
    t->dumps = o->dump != NULL;
    if (t->comm != NULL && strcmp(t->comm->engine->name, "local") == 0)
        t->window = window;         /* all ranks come from this process, and have it */
    if (t->comm != NULL && t->comm->rank > 0)
        be_silent(t);
    run_one(t, e);
}

int ls_trainer_main(const LsProgram *p, int argc, char **argv)
{
    static char out[1 << 14];   /* so that stdio does not allocate one */
    const char *name = argc > 0 ? argv[0] : "trainer";
    LsError e = {0};
    LsTrainer *t = calloc(1, sizeof *t);
    if (!t) {
        fprintf(stderr, "%s: error: out of memory\n", name);
        return LS_EXIT_FAIL;
    }
    setvbuf(stdout, out, _IOLBF, sizeof out);
    t->p = p;
    t->stop = ls_interrupt_asked();
    if (ls_trainer_options_parse(&t->o, p, argc, argv, &e)) {
        if (t->o.help) {
            ls_trainer_options_help(p, name, stdout);
        } else if (t->o.version) {
            const bool sums = p->bf16_sums != NULL;
            printf("%s  plan %s  (%s, %s, batch %" PRId64 "%s%s)\n", p->model, p->plan_hash, p->loss, p->optimizer,
                   ls_whole_batch(p), sums ? ", bf16 summed in " : "", sums ? p->bf16_sums : "");
        } else if (t->o.print_plan) {
            print_plan(p);
        } else {
            run_ranks(t, &e);
        }
    }
    if ((fflush(stdout) != 0 || ferror(stdout)) && e.code == LS_EXIT_DONE)
        ls_fail(&e, LS_EXIT_FAIL, "the output could not be written: %s", strerror(errno));
    if (e.code != LS_EXIT_DONE && !t->silent)
        fprintf(t->errors != NULL ? t->errors : stderr, "%s: error: %s\n", name, e.text);
    int code = e.code != LS_EXIT_DONE ? (int)e.code : t->interrupted ? 128 + t->stopped : t->ended;
    free(t);
    return code;
}
