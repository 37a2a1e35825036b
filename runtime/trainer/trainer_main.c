/* runtime/trainer/trainer_main.c -- ls_trainer_main: joins the other ranks, trains or evaluates,
 * and ends. */
#include "runtime/base/attached_file.h"
#include "runtime/base/interrupt.h"
#include "runtime/comm/comm_open.h"
#include "runtime/trainer/print_plan.h"
#include "runtime/trainer/trainer_open.h"
#include "runtime/trainer/run_results.h"
#include "runtime/watch/gradient_check.h"
#include "runtime/trainer/epoch_report.h"
#include "runtime/trainer/find_rate.h"
#include "runtime/trainer/inference.h"
#include "runtime/trainer/pipelined_update.h"
#include "runtime/trainer/rank_update.h"
#include "runtime/trainer/rescue.h"
#include "runtime/trainer/training_loop.h"
#include "runtime/trainer/validation.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* All ranks but the first are silent, and write no results. */
static void be_silent(LsTrainer *t)
{
    LsTrainerOptions *o = &t->o;
    o->tensorboard = o->save_weights = o->rate_table = o->confusion = NULL;
    o->log_grad_norm = false;
    o->log = o->trace = o->profile = o->dump = o->image_grid = o->export_to = o->val = NULL;
    o->progress = "none";
    if (freopen("/dev/null", "w", stdout) == NULL
        || (t->group.errors = fdopen(dup(STDERR_FILENO), "w")) == NULL
        || freopen("/dev/null", "w", stderr) == NULL)
        t->group.errors = stderr;
}

/* Feeds part k of the pass's batch. Parts without samples are behind all others. */
static bool feed_part(void *trainer, int64_t k, LsError *e)
{
    LsTrainer *t = trainer;
    LsRun *run = &t->u.engine.run;
    if (k == 0)
        ls_loader_begin(&t->u.feed.loader, &t->u.feed.pass);
    else
        ls_loader_release(&t->u.feed.loader);
    const LsBatch *b = ls_loader_next(&t->u.feed.loader, e);
    if (!b)
        return false;
    ls_engine_feed(&t->u.engine, &t->u.feed.loader, b);
    run->slice = run->part = k;
    run->first = k == 0;
    run->apply = k == t->u.feed.pass.end - t->u.feed.pass.first - 1;
    return ls_engine_fed(&t->u.engine, e);
}

/* Checks the gradients of the first batch. */
static bool check_gradients(LsTrainer *t, LsError *e)
{
    LsGradCheck c = {0};
    LsGradParts parts = {0, feed_part, t};
    t->u.feed.pass.first = t->u.place.cursor * ls_micro_batches(&t->p->division);
    while (parts.n < ls_micro_batches(&t->p->division)
           && ls_batch_valid(&t->u.feed.pass, t->u.feed.pass.first + parts.n) > 0)
        parts.n++;
    t->u.feed.pass.end = t->u.feed.pass.first + parts.n;
    bool ok = feed_part(t, 0, e)
              && ls_gradcheck_run(&c, &t->u.engine, &parts, t->o.check_gradients,
                                  &t->reports.progress, t->ending.signal, e);
    t->ending.agreed = (int)*t->ending.signal;
    t->ending.interrupted = t->ending.agreed != 0;
    if (ok && !t->ending.interrupted) {
        ls_log_gradients(&t->reports.log, c.nsample, c.nparam, c.nstopped, c.median, c.worst,
                         c.limit, c.nsample > 0 ? c.sample->of->t.name : "",
                         c.nsample > 0 ? c.sample->element : 0);
        ok = ls_gradcheck_tell(&c, stdout, e);
    }
    ls_gradcheck_close(&c);
    ls_loader_release(&t->u.feed.loader);
    return ok;
}

static void print_guarantee(const LsTrainer *t)
{
    char text[LS_PRIVACY_WHY];
    printf("%s after %" PRId64 " updates\n",
           ls_privacy_bound_text(ls_private_bound(t->p, &t->u.place), t->p->privacy.delta, text),
           t->u.place.update);
}

static bool run(LsTrainer *t, LsError *e)
{
    if (t->o.check_gradients) {
        ls_interrupt_allow(false, 0);
        return check_gradients(t, e);
    }
    if (t->o.infers)
        return ls_infer(t, e);
    if (t->o.eval) {
        printf("epoch %" PRId64 "  step %" PRId64, t->u.place.epoch, t->u.place.update);
        ls_interrupt_allow(false, 0);
        bool ok = ls_train_evaluate(t, e);
        ls_interrupt_forbid();
        printf("\n");
        if (ok && *t->ending.signal == 0)
            ls_metrics_print(&t->reports.metrics, stdout);
        t->ending.agreed = (int)*t->ending.signal;
        t->ending.interrupted = t->ending.agreed != 0;
        return ok && !t->ending.interrupted ? ls_write_results(t, e) : ok;
    }
    ls_train_say_what(t);
    if (t->o.find_rate) {
        ls_interrupt_allow(false, 0);
        return ls_find_rate(t, e);
    }
    if (!ls_train(t, e))
        return false;
    if (ls_is_private(t->p))
        print_guarantee(t);
    if (t->ending.early && ls_is_first(t))
        ls_validation_tell(t);
    t->ending.interrupted = t->u.place.update < t->u.updates && !t->ending.early;
    if (t->ending.interrupted && !ls_end_interrupted(t, e))
        return false;
    return (!ls_has_stage_ranks(t) || ls_pipelined_gather_watched(t, e))
           && ls_train_by_first(t, ls_write_results, e);
}

static void run_one(LsTrainer *t, LsError *e)
{
    if (ls_trainer_open(t, e)) {
        ls_interrupt_catch();       /* before this, a signal ended the process without loss */
        run(t, e);
    }
    ls_trainer_close(t, e);
}

/* Of a pipeline: each stage is to be a process, not a thread. */
static bool wants_processes(const LsTrainer *t)
{
    const LsTrainerOptions *o = &t->o;
    return t->p->pipeline.nstage > 0 && !o->eval
           && (o->comm != NULL || o->peers != NULL || o->ranks > 1 || t->p->comm != NULL);
}

/* Memory that processes share which this one starts later: room for the sums of all ranks. NULL:
 * there is none. */
static char *make_window(const LsRanks *r, int ranks)
{
    void *at = MAP_FAILED;
    if (ranks > 1)
        at = mmap(NULL, (size_t)(ranks * r->sum_bytes), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Sets the number of processes of the run: as given, as compiled in, or as whatever started them
 * says. */
static bool count_ranks(LsTrainer *t, LsCommWish *w, LsError *e)
{
    const LsRanks *r = t->o.eval ? NULL : t->p->ranks;
    LsCommCount n;
    char numbers[LS_RANK_NUMBERS];
    w->ranks = wants_processes(t) ? (int64_t)t->p->pipeline.nstage : 1;
    if (r == NULL)
        return true;
    w->ranks = t->o.ranks > 0 ? t->o.ranks : r->nchoice == 1 ? r->choice[0].ranks : 0;
    n = ls_comm_count(w);
    w->ranks = n.ranks;
    if (ls_rank_choice(r, n.ranks) == NULL) {
        t->group.silent = ls_comm_is_spoken_for();
        return ls_fail(e, LS_EXIT_USAGE,
                       "%s asks for %" PRId64 " ranks, but this program is for %s", n.by, n.ranks,
                       ls_rank_numbers(r, numbers));
    }
    t->group.count = (int)n.ranks;
    return true;
}

/* Joins the other ranks, if there are any, and runs. The process that started them has nothing else
 * to do. */
static void run_ranks(LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    char same[1100], habits[300], order[40];
    snprintf(order, sizeof order, "%s", o->shuffle ? "shuffled" : "in file order");
    if (o->shuffle_seed >= 0)
        snprintf(order, sizeof order, "shuffled by %" PRId64, o->shuffle_seed);
    snprintf(habits, sizeof habits,
             ", split %s, %" PRId64 " and %" PRId64 " batches, evaluated every %" PRId64
             ", best %.64s, patience %" PRId64 ", rates %" PRId64 " in %.64s",
             o->val_split ? o->val_split : o->val ? "none" : "nothing", o->limit_batches,
             o->limit_val_batches, o->val_every, o->keep_best ? o->keep_best : "none",
             o->patience, o->find_rate, o->rate_range ? o->rate_range : "the usual");
    snprintf(same, sizeof same,
             "plan %s, seed %" PRId64 ", lr %.9g, schedule %.200s, steps %" PRId64
             ", epochs %.17g, %s%s%s, augmented by %.160s, replicas "
             "compared %" PRId64 "%s",
             t->p->about.plan_hash, o->seed, o->lr, o->schedule, o->steps, o->epochs,
             order, o->drop_last ? ", drop last" : "",
             o->random_windows ? ", random windows" : "", o->augment ? o->augment : "nothing",
             o->compare_replicas,
             o->val_split || o->limit_batches || o->limit_val_batches || o->val_every
                     || o->keep_best || o->patience || o->find_rate
                 ? habits
                 : "");
    ls_make_printable(same);        /* as other ranks have it */
    const bool nccl =
        o->comm != NULL && strcmp(o->comm, "nccl") == 0; /* it stands on the engine that fits */
    LsCommWish wish = {0,    nccl ? NULL : o->comm, o->peers,      o->rank,
                       same, t->p->about.plan_hash, o->token_file, t->p->comm};
    LsCommOpened opened;
    if (!count_ranks(t, &wish, e))
        return;
    char *window = make_window(t->p->ranks, t->group.count);
    const bool ok = ls_comm_open(&wish, &opened, e);
    t->group.silent = opened.silent;
    t->group.ended = opened.code;
    if (!ok || opened.starter)
        return;
    t->group.comm = opened.comm;
    t->reports.evaluates = o->val != NULL || o->val_split != NULL;
    t->reports.dumps = o->dump != NULL;
    t->reports.traces = o->trace != NULL || o->profile != NULL;
    if (t->group.comm != NULL && strcmp(t->group.comm->engine->name, "local") == 0)
        t->group.window = window;         /* all ranks come from this process, and have it */
    if (t->group.comm != NULL && t->group.comm->rank > 0)
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
    signal(SIGXFSZ, SIG_IGN);   /* a file that grows too large is an error, not the end of the
                                 * process */
    setvbuf(stdout, out, _IOLBF, sizeof out);
    static LsProgram mine;      /* with the file that is attached to it */
    mine = *p;
    p = t->p = &mine;
    t->ending.signal = ls_interrupt_asked();
    if (mine.file.onnx == NULL && mine.file.bytes > 0
        && (mine.file.onnx = ls_attached_map(name, mine.file.bytes + mine.file.tail,
                                                mine.file.shift, mine.bytes.mapped > 0)) == NULL)
        ls_fail(&e, LS_EXIT_FAIL,
                "the initial weights, %zu bytes, are not in the program's file any more: compile "
                "it again; an "
                "object of --emit=obj keeps them whatever is done to its program",
                mine.file.bytes);
    else if (ls_trainer_options_parse(&t->o, p, argc, argv, &e)) {
        if (t->o.help) {
            ls_trainer_options_help(p, name, stdout);
        } else if (t->o.version) {
            const bool sums = p->about.bf16_sums != NULL;
            printf("%s  plan %s  (%s, %s, batch %" PRId64 "%s%s)\n", p->about.model,
                   p->about.plan_hash, p->about.loss, p->about.optimizer,
                   ls_batch_samples(&p->division), sums ? ", bf16 summed in " : "",
                   sums ? p->about.bf16_sums : "");
        } else if (t->o.print_plan) {
            const int ranks = p->ranks == NULL ? 0
                              : t->o.ranks > 0 ? (int)t->o.ranks
                                               : p->ranks->choice[0].ranks;
            ls_print_plan(p, ranks, (LsBucketing){t->o.bucket, t->o.late_exchange});
        } else {
            run_ranks(t, &e);
        }
    }
    if ((fflush(stdout) != 0 || ferror(stdout)) && e.code == LS_EXIT_DONE)
        ls_fail(&e, LS_EXIT_FAIL, "the output could not be written: %s", strerror(errno));
    if (e.code != LS_EXIT_DONE && !t->group.silent)
        fprintf(t->group.errors != NULL ? t->group.errors : stderr, "%s: error: %s\n", name,
                e.text);
    int code = e.code != LS_EXIT_DONE  ? (int)e.code
               : t->ending.interrupted ? 128 + t->ending.agreed
                                       : t->group.ended;
    free(t);
    return code;
}
