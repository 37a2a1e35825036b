/* runtime/trainer/epoch_report.c -- what a run says of itself: progress, evaluation, the line of an
 * epoch. */
#include "runtime/trainer/epoch_report.h"
#include "runtime/trainer/run_place.h"
#include "runtime/trainer/scored_evaluation.h"
#include "runtime/trainer/update_watch.h"
#include "runtime/trainer/validation.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Inputs that the data lack. */
static void say_lacking(const LsTrainer *t)
{
    for (uint32_t k = 0; t->u.feed.train.source != NULL && k < t->p->ninput; k++) {
        const LsUsual usual = t->p->input[k].usual;
        const LsSource *s = &t->u.feed.train.source[k];
        if (usual != LS_USUAL_NONE && s->synthetic && strcmp(s->path, "synthetic") != 0)
            fprintf(stderr, "note: the data have no '%s': every sample has %s there\n",
                    t->p->input[k].t.name, usual == LS_USUAL_COUNT ? "0, 1, 2, ..." : "ones");
    }
}

/* "160 samples of train.csv to train on, 40 held out to evaluate on" */
static void say_data(const LsTrainer *t)
{
    const LsDataset *train = &t->u.feed.train, *val = &t->val;
    fprintf(stderr, "%" PRId64 " samples of %.80s to train on", train->samples, t->o.data);
    if (train->held_out.held > 0)
        fprintf(stderr, ", %" PRId64 " held out to evaluate on", val->samples);
    else if (val->p != NULL)
        fprintf(stderr, ", %" PRId64 " of %.80s to evaluate on", val->samples, t->o.val);
    if (train->held_out.gap > 0)
        fprintf(stderr, ", %" PRId64 " between them left out", train->held_out.gap);
    fprintf(stderr, "\n");
}

/* "10 updates an epoch, each of 16 samples; updates 1 to 600" */
static void say_updates(const LsTrainer *t)
{
    const int64_t group = ls_batches_per_update(t->p);
    const double each = ls_is_private(t->p)
                            ? t->p->privacy.expected
                            : (double)(ls_batch_samples(&t->p->division) * group
                                       * (t->u.feed.pass.members > 0 ? t->u.feed.pass.members : 1));
    fprintf(stderr, "%.6g updates an epoch, each of %s%.6g samples; ",
            (double)t->u.epoch.batches / (double)group, ls_is_private(t->p) ? "about " : "", each);
    if (t->u.place.update < t->u.updates)
        fprintf(stderr, "updates %" PRId64 " to %" PRId64 "\n", t->u.place.update + 1,
                t->u.updates);
    else
        fprintf(stderr, "all are done\n");
}

/* "adam, rate 0.02 (constant); 2 threads; 5.4 KiB of a budget of 8.0 KiB" */
static void say_means(const LsTrainer *t)
{
    char have[32], asked[32];
    fprintf(stderr, "%s, rate %g (%.60s); %d thread%s", t->p->about.optimizer, t->o.lr,
            t->o.schedule, t->u.threads, t->u.threads == 1 ? "" : "s");
    if (t->group.comm != NULL)
        fprintf(stderr, " in each of %d processes", t->group.comm->size);
    fprintf(stderr, "; %s", ls_progress_bytes(ls_memory_total(t->p, t->group.count), have));
    if (t->p->bytes.budget > 0)
        fprintf(stderr, " of a budget of %s", ls_progress_bytes(t->p->bytes.budget, asked));
    fprintf(stderr, "\n");
}

void ls_train_say_what(const LsTrainer *t)
{
    if (strcmp(t->o.progress, "none") != 0) {
        if (t->p->about.trains != NULL)
            fprintf(stderr, "%s\n", t->p->about.trains);
        say_data(t);
        say_updates(t);
        say_means(t);
    }
    say_lacking(t);
}

void ls_train_show_progress(LsTrainer *t)
{
    char what[96];
    int64_t group = ls_batches_per_update(t->p);
    int64_t epochs = (t->u.updates * group + t->u.epoch.batches - 1) / t->u.epoch.batches;
    int64_t in_epoch = t->u.place.cursor - t->u.place.epoch * t->u.epoch.batches;
    int n = snprintf(what, sizeof what, "epoch %" PRId64 "/%" PRId64, t->u.place.epoch + 1, epochs);
    if (ls_is_private(t->p) && ls_progress_due(&t->reports.progress))
        snprintf(what + n, sizeof what - (size_t)n, " epsilon %.4g",
                 ls_private_bound(t->p, &t->u.place).epsilon);
    const double each = (double)t->u.under_way.samples / (double)group;
    LsProgressAt at = {what,
                       in_epoch,
                       t->u.epoch.batches,
                       (t->u.updates - t->u.place.update) * group,
                       t->u.under_way.loss,
                       t->u.members.loss,
                       t->u.members.n,
                       each,
                       each * (double)t->told.tokens};
    ls_progress_show(&t->reports.progress, &at);
}

static int by_time(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* ns of a batch with that many threads, between those that were predicted; above them those of the
 * most. */
static double predicted_ns(const LsPredicted *p, int threads)
{
    int k = 0;
    while (k + 1 < p->n && 1 << (k + 1) <= threads)
        k++;
    if (k + 1 >= p->n || threads <= 1 << k)
        return p->ns[k];
    return p->ns[k] * pow(p->ns[k + 1] / p->ns[k], log2((double)threads / (1 << k)));
}

/* The median of the updates that count. Updates with their own times are those of one process:
 * private ones have any number of batches, and those of ranks wait for each other. */
void ls_train_pace(LsTrainer *t, int64_t ns)
{
    const LsPredicted *p = &t->p->about.predicted;
    const int n = t->told.pace.n++;
    if (n < LS_PACE_AFTER - LS_PACE || n >= LS_PACE_AFTER)
        return;
    t->told.pace.ns[n - (LS_PACE_AFTER - LS_PACE)] = ns;
    if (t->told.pace.n < LS_PACE_AFTER || p->n == 0 || ls_is_private(t->p) || !ls_is_first(t)
        || t->reports.progress.mode == LS_PROGRESS_NONE)
        return;
    qsort(t->told.pace.ns, LS_PACE, sizeof *t->told.pace.ns, by_time);
    ls_progress_clear(&t->reports.progress);
    fprintf(stderr, "note: a step takes %.4g ms; predicted were %.4g ms (%s",
            1e-6 * (double)t->told.pace.ns[LS_PACE / 2],
            1e-6 * (double)ls_batches_per_update(t->p) * predicted_ns(p, t->u.threads), p->machine);
    if (p->n > 1)
        fprintf(stderr, ", %d thread%s", t->u.threads, t->u.threads == 1 ? "" : "s");
    fprintf(stderr, "%s)\n", t->group.comm != NULL ? ", without the exchange of ranks" : "");
}

/* Reports, once, whether the data explain an evaluation loss that is not finite; training goes
 * on. */
static void blame_data(LsTrainer *t)
{
    LsPass pass = {.data = t->val.p ? &t->val : &t->u.feed.train};
    LsError e = {0};
    int64_t n = ls_batches_per_epoch(&pass);
    for (int64_t k = 0; k < n && ls_batch_is_finite(&pass, k, &e); k++)
        continue;
    if (e.code != LS_EXIT_DONE)
        fprintf(stderr, "note: the data to evaluate on are not finite: %s\n", e.text);
    t->told.blamed = true;
}

/* What --metrics adds to loss and accuracy. */
static bool is_further(const LsMetric *m)
{
    return strcmp(m->name, "val_loss") != 0 && strcmp(m->name, "val_accuracy") != 0;
}

static void log_score(LsTrainer *t, const LsScore *s, double accuracy)
{
    const char *name[LS_METRICS];
    double value[LS_METRICS];
    LsLogResults further = {name, value, 0};
    for (int k = 0; k < s->nmetric; k++)
        if (is_further(&s->metric[k])) {
            name[further.n] = s->metric[k].name;
            value[further.n++] = s->metric[k].value;
        }
    ls_log_eval(&t->reports.log, t->u.place.update, t->u.place.epoch, s->loss, accuracy, further);
}

bool ls_train_evaluate(LsTrainer *t, LsError *e)
{
    LsScore s;
    LsHook hook[LS_PART_HOOKS];
    LsProgress bar = t->reports.progress;       /* with a rate of its own */
    int n = 0;
    bar.rate = 0;
    bar.last_done = 0;
    if (t->o.eval)
        n = ls_evaluation_hooks(t, hook);
    const bool ok = ls_scored_evaluation(t, hook, n, &bar, &s, e);
    ls_progress_clear(&bar);
    if (!ok)
        return false;
    if (!s.whole) {
        printf("  evaluation interrupted");
        return true;
    }
    if (t->o.eval)
        t->u.under_way.loss = s.loss;
    if (!isfinite(s.loss) && !t->told.blamed)
        blame_data(t);
    if (t->o.eval && t->o.check_numerics
        && !ls_check_end(&t->u.check, s.loss, t->u.place.update, e))
        return false;
    double accuracy = s.judged ? (double)s.right / (double)s.judged : -1;
    t->reports.log.losses = t->u.members.val_loss;
    log_score(t, &s, accuracy);
    t->reports.log.losses = t->u.members.loss;
    for (int k = 0; k < s.nmetric; k++) {
        char tag[80];
        const char *name = s.metric[k].name;
        snprintf(tag, sizeof tag, "val/%s", strncmp(name, "val_", 4) == 0 ? name + 4 : name);
        ls_events_scalar(&t->reports.events, t->u.place.update, tag, s.metric[k].value);
    }
    printf("  val_loss %.*g", t->p->real_bytes == 8 ? 12 : 7, s.loss);
    if (s.judged)
        printf("  val_accuracy %.4f (%" PRId64 "/%" PRId64 ")", accuracy, s.right, s.judged);
    for (int k = 0; k < s.nmetric; k++)
        if (is_further(&s.metric[k]))
            printf("  %s %.*g", s.metric[k].name, t->p->real_bytes == 8 ? 12 : 7,
                   s.metric[k].value);
    for (int64_t k = 0; k < t->u.members.n; k++) {
        printf("%s%.*g", k == 0 ? "  members' val_losses " : " ", t->p->real_bytes == 8 ? 12 : 7,
               t->u.members.val_loss[k]);
        if (s.judged)
            printf(" (%.4f)", (double)t->u.members.right[k] / (double)s.judged);
    }
    return t->o.eval || ls_validation_take(t, &s, e);
}

static void report_epsilon(LsTrainer *t)
{
    const double epsilon = ls_private_bound(t->p, &t->u.place).epsilon;
    printf("  epsilon %.4f", ceil(epsilon * 1e4) / 1e4);
    ls_events_scalar(&t->reports.events, t->u.place.update, "privacy/epsilon", epsilon);
    ls_log_privacy(&t->reports.log, t->u.place.update, t->u.place.epoch, epsilon,
                   t->p->privacy.delta);
}

/* Says, once, that a log cannot be written any more: the run goes on, and fails at its end. */
static void tell_of_unwritten(LsTrainer *t)
{
    const LsLog *log = &t->reports.log;
    const bool no_log = log->to != NULL && ferror(log->to) != 0;
    if (t->told.unwritten || (!no_log && t->reports.events.err == 0))
        return;
    t->told.unwritten = true;
    fprintf(stderr, "note: %s: cannot write%s%s; the run goes on without it\n",
            no_log ? t->o.log : t->reports.events.path, no_log ? "" : ": ",
            no_log ? "" : strerror(t->reports.events.err));
}

/* The line of a result, with an evaluation. */
static bool report(LsTrainer *t, bool whole, LsError *e)
{
    bool ok = true;
    ls_progress_clear(&t->reports.progress);
    printf("epoch %" PRId64 "  step %" PRId64 "  loss %.*g",
           whole ? t->u.place.epoch : t->u.place.epoch + 1, t->u.place.update,
           t->p->real_bytes == 8 ? 12 : 7,
           t->u.epoch.has_loss ? ls_mean(&t->u.epoch.mean) : t->u.under_way.loss);
    for (int64_t k = 0; k < t->u.members.n; k++) {
        printf("%s%.*g", k == 0 ? "  members' losses " : " ", t->p->real_bytes == 8 ? 12 : 7,
               t->u.epoch.has_loss ? ls_mean(&t->u.members.of_epoch[k]) : t->u.members.loss[k]);
    }
    if (ls_is_private(t->p))
        report_epsilon(t);
    if (t->val.p) {
        ok = ls_train_evaluate(t, e);
        ls_train_begin_pass(t);
    }
    printf("\n");
    if (ok && t->val.p && t->o.by_class && *t->ending.signal == 0)
        ls_metrics_print(&t->reports.metrics, stdout);
    fflush(stdout);
    ls_events_flush(&t->reports.events);
    tell_of_unwritten(t);
    return ok;
}

bool ls_train_end_epoch(LsTrainer *t, bool whole, LsError *e)
{
    const bool ok = report(t, whole, e);
    for (int64_t k = 0; k < t->u.members.n; k++)
        t->u.members.of_epoch[k] = (LsMean){0};
    t->u.epoch.mean = (LsMean){0};
    t->u.epoch.has_loss = false;
    return ok;
}

bool ls_train_amid_epoch(LsTrainer *t, LsError *e) { return report(t, false, e); }
