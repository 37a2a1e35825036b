/* runtime/trainer/validation.c -- see validation.h. */
#include "runtime/trainer/validation.h"

#include "runtime/pipeline/stage_ranks.h"
#include "runtime/trainer/scored_evaluation.h"
#include "runtime/update/short_batch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- samples ---- */

/* A resumed run holds out the samples that it has never seen: no others, and no fewer. */
static bool continues_split(const LsTrainer *t, LsError *e)
{
    const LsHabits *was = &t->u.place.habits;
    const LsHoldOut *is = &t->u.feed.train.held_out;
    if (was->held == is->held && (is->held == 0 || was->held_of == is->all))
        return true;
    if (was->held == 0)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--val-split=%s: the checkpoint's run held no samples out, so it may have "
                       "trained on those; leave --val-split out, or begin a new run",
                       t->o.val_split);
    if (is->held == 0 && !t->o.eval)
        return ls_fail(e, LS_EXIT_USAGE,
                       "the checkpoint's run held %" PRId64 " of %" PRId64
                       " samples out of training: give --val-split=%" PRId64
                       " again, or these would be trained on",
                       was->held, was->held_of, was->held);
    return is->held == 0
           || ls_fail(e, LS_EXIT_USAGE,
                      "--val-split=%s holds out %" PRId64 " of %" PRId64
                      " samples, and the checkpoint's run %" PRId64 " of %" PRId64
                      ": others, of which it has trained on some",
                      t->o.val_split, is->held, is->all, was->held, was->held_of);
}

/* Evaluation runs a micro-batch at a time. */
int64_t ls_validation_limit(const LsTrainer *t)
{
    int64_t n;
    return __builtin_mul_overflow(t->o.limit_val_batches, ls_micro_batches(&t->p->division), &n)
               ? 0 : n;
}

bool ls_validation_open(LsTrainer *t, bool resumed, LsError *e)
{
    LsTrainerOptions *o = &t->o;
    LsHabits *h = &t->u.place.habits;
    LsDataset *train = &t->u.feed.train;
    if (o->val_split) {
        if (!ls_dataset_hold_out(train, &t->val, o->val_split, t->u.place.seed, e))
            return false;
        t->val.limit = ls_validation_limit(t);
        if (!ls_short_batch_evaluates(t->p, &t->val, e))
            return false;
    }
    if (resumed && !continues_split(t, e))
        return false;
    h->held = train->held_out.held;
    h->held_of = h->held > 0 ? train->held_out.all : 0;
    return true;
}

/* ---- the best evaluation ---- */

static const char *metric_of(const LsTrainer *t)
{
    return t->o.keep_best != NULL ? t->o.keep_best : "val_loss";
}

static bool watches(const LsTrainer *t) { return t->o.keep_best != NULL || t->o.patience > 0; }

static bool unknown(const LsTrainer *t, const LsScore *s, LsError *e)
{
    char names[400] = "";
    size_t n = 0;
    for (int k = 0; k < s->nmetric && n < sizeof names; k++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", k > 0 ? ", " : "",
                              s->metric[k].name);
    return ls_fail(e, LS_EXIT_USAGE, "--keep-best=%s: evaluations of this program give %s",
                   t->o.keep_best, names);
}

/* The name as one word, as checkpoints have it. */
static const char *word_of(const LsMetric *m, char word[LS_METRIC_NAME])
{
    snprintf(word, LS_METRIC_NAME, "%s", m->name);
    for (char *p = word; *p != '\0'; p++)
        *p = (unsigned char)*p > ' ' ? *p : '_';
    return word;
}

/* Where evaluations begin: any is better than this. */
static void start(LsBest *b, const LsMetric *m)
{
    const double worst = m->higher ? -INFINITY : INFINITY;
    *b = (LsBest){.value = worst, .mark = worst};
    word_of(m, b->metric);
}

static bool has_best_file(const LsTrainer *t)
{
    char path[LS_PATH];
    return access(ls_saver_best(&t->saves.saver, path), R_OK) == 0;
}

/* A resumed run goes on with the best evaluation of the checkpoint. */
static void take_up(LsTrainer *t, const LsMetric *m)
{
    LsBest *b = &t->u.place.habits.best;
    char word[LS_METRIC_NAME];
    const bool other = b->metric[0] != '\0' && strcmp(b->metric, word_of(m, word)) != 0;
    if (other)
        fprintf(stderr, "note: the checkpoint's run took the best by %s; by %s the next one is\n",
                b->metric, m->name);
    if (other || b->metric[0] == '\0')
        start(b, m);
    else if (t->o.keep_best && b->update > 0 && !has_best_file(t))
        fprintf(stderr,
                "note: the best so far, %s %g of step %" PRId64
                ", is not in %s: only a better one will be\n",
                b->metric, b->value, b->update, t->saves.saver.folder);
    t->ending.early = t->o.patience > 0 && b->waited >= t->o.patience;
}

bool ls_validation_begin(LsTrainer *t, LsError *e)
{
    LsScore s;
    if (!watches(t) || !ls_is_first(t))
        return true;
    t->val.limit = 1;
    const bool ok = ls_scored_evaluation(t, NULL, 0, NULL, &s, e);
    t->val.limit = ls_validation_limit(t);
    if (!ok || !s.whole)
        return ok;
    const LsMetric *m = ls_score_metric(&s, metric_of(t));
    if (m == NULL)
        return unknown(t, &s, e);
    take_up(t, m);
    return true;
}

bool ls_validation_due(const LsTrainer *t)
{
    return t->o.val_every > 0 && t->u.place.update % t->o.val_every == 0;
}

static bool is_better(const LsMetric *m, double than, double by)
{
    return m->higher ? m->value > than + by : m->value < than - by;
}

bool ls_validation_take(LsTrainer *t, const LsScore *s, LsError *e)
{
    LsBest *b = &t->u.place.habits.best;
    if (!watches(t))
        return true;
    const LsMetric *m = ls_score_metric(s, metric_of(t));
    if (m == NULL)
        return unknown(t, s, e);
    if (b->metric[0] == '\0')
        start(b, m);
    if (is_better(m, b->value, 0)) {
        b->value = m->value;
        b->update = t->u.place.update;
        t->saves.best_due = t->o.keep_best != NULL;
        printf("  best");
    }
    if (is_better(m, b->mark, t->o.min_delta)) {
        b->mark = m->value;
        b->waited = 0;
    } else {
        b->waited++;
    }
    t->ending.early = t->o.patience > 0 && b->waited >= t->o.patience;
    return true;
}

bool ls_validation_agree(LsTrainer *t, LsError *e)
{
    int64_t word = (t->saves.best_due ? 1 : 0) + (t->ending.early ? 2 : 0);
    LsComm *c = t->group.base != NULL ? t->group.base : t->group.comm;
    if (!watches(t) || t->group.comm == NULL)
        return true;
    if (ls_is_first(t)) {
        for (int k = 1; k < c->size; k++)
            if (!ls_comm_send_now(c, k, LS_TAG_WATCHED, &word, sizeof word, e))
                return false;
    } else if (!ls_comm_receive_now(c, 0, LS_TAG_WATCHED, &word, sizeof word, e)) {
        return false;
    }
    t->saves.best_due = word & 1;
    t->ending.early = word & 2;
    return true;
}

void ls_validation_tell(const LsTrainer *t)
{
    const LsBest *b = &t->u.place.habits.best;
    char delta[40] = "";
    if (t->o.min_delta > 0)
        snprintf(delta, sizeof delta, " by more than %g", t->o.min_delta);
    printf("ended after step %" PRId64 ": %s has not improved%s in %" PRId64
           " evaluations (--patience); the best is %.*g, of step %" PRId64 "\n",
           t->u.place.update, b->metric, delta, b->waited, t->p->real_bytes == 8 ? 12 : 7, b->value,
           b->update);
}
