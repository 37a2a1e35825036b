/* runtime/update/evaluate.c -- see evaluate.h. */
#include "runtime/base/tensor_copy.h"
#include "runtime/data/label_input.h"
#include "runtime/metrics/score_rows.h"
#include "runtime/update/evaluate.h"

#include <string.h>

enum { MAX_HOOKS = 8 };

typedef struct LsJudge {        /* compares the largest logit's class with the label */
    const LsEngine *g;
    const LsLoader *l;
    const LsBatch *batch;
    const LsWatch *logits;
    uint32_t label;             /* input */
    LsScore *score;
    LsMemberState *members;
} LsJudge;

/* Counts a prediction. One of an ensemble's members is counted for that member; the last one also
 * completes the prediction of all, from their mean probabilities. mean: of this position */
static void predict(LsJudge *j, const LsScoreRows *r, const char *row, int64_t label, double *mean)
{
    const int64_t n = r->classes, member = j->g->member;
    int64_t best = ls_score_largest(r, row);
    if (j->members->n > 0) {
        j->members->right[member] += best == label;
        if (member == 0)
            memset(mean, 0, (size_t)n * sizeof *mean);
        ls_score_add_softmax(r, row, mean);
        if (member < j->members->n - 1)
            return;
        best = 0;
        for (int64_t c = 1; c < n; c++)
            best = mean[c] > mean[best] ? c : best;
    }
    j->score->judged++;
    j->score->right += best == label;
}

/* The label of position i; of probabilities the class of the largest. */
static int64_t label_of(const LsJudge *j, const LsScoreRows *soft, const char *labels, int64_t i)
{
    const LsProgram *p = j->g->p;
    return p->target.soft ? ls_score_largest(soft, labels + ls_score_at(soft, i))
                          : ls_label_at(&p->input[j->label].t, labels, i);
}

static void judge(LsJudge *j)
{
    const LsProgram *p = j->g->p;
    const LsWatch target = {.t = p->input[j->label].t};
    const LsScoreRows soft = p->target.soft
                                 ? ls_score_rows(&target, p->target.class_axis, p->real_bytes)
                                 : (LsScoreRows){.classes = 0};
    const LsScoreRows r = ls_score_rows(j->logits, p->target.class_axis, p->real_bytes);
    const char *at = ls_engine_view(j->g, r.t.at, r.bytes),
               *labels = j->batch->input + j->l->offset[j->label];
    const int64_t count = r.positions * j->batch->valid / p->division.samples;
    for (int64_t i = 0; i < count; i++) {
        const int64_t label = label_of(j, &soft, labels, i);
        if (!p->target.has_ignore || label != p->target.ignore)
            predict(j, &r, at + ls_score_at(&r, i), label,
                    j->members->n > 0 ? j->members->mean + i * r.classes : NULL);
    }
}

static void judge_before(void *self, uint32_t step)
{
    LsJudge *j = self;
    if (j->logits->before && step == j->logits->step)
        judge(j);
}

static void judge_after(void *self, uint32_t step)
{
    LsJudge *j = self;
    if (!j->logits->before && step == j->logits->step)
        judge(j);
}

static int64_t copies(const LsTensor *t) { return t->members > 0 ? t->members : 1; }

/* Accuracy needs class logits and integer labels. */
static bool can_judge(const LsProgram *p, LsJudge *j)
{
    j->label = ls_label_input(p);
    j->logits = ls_scores_watched(p);
    if (p->target.classes == 0 || j->label == p->ninput || !j->logits)
        return false;
    const LsTensor *t = &j->logits->t, *label = &p->input[j->label].t;
    if (p->target.soft)
        return ls_holds_reals(t->type) && p->target.class_axis < t->rank
               && label->type == LS_DT_REAL
               && ls_tensor_count(t) / copies(t) == ls_tensor_count(label) / copies(label);
    return ls_holds_reals(t->type) && p->target.class_axis < t->rank
           && (label->type == LS_DT_I64 || label->type == LS_DT_I32)
           && ls_tensor_count(t) / copies(t)
                  == ls_tensor_count(label) / copies(label) * t->dim[p->target.class_axis];
}

void ls_score_add(LsScore *s, const char *name, double value, bool higher)
{
    if (s->nmetric < LS_METRICS)
        s->metric[s->nmetric++] = (LsMetric){name, value, higher};
}

const LsMetric *ls_score_metric(const LsScore *s, const char *name)
{
    for (int k = 0; k < s->nmetric; k++) {
        const char *has = s->metric[k].name;
        if (strcmp(has, name) == 0 || (strncmp(has, "val_", 4) == 0 && strcmp(has + 4, name) == 0))
            return &s->metric[k];
    }
    return NULL;
}

bool ls_evaluate(LsTraining *t, const LsDataset *data, const LsOnlooker *by, LsScore *score,
                 LsError *e)
{
    LsEngine *g = &t->engine;
    LsLoader *l = &t->feed.loader;
    LsMemberState *members = &t->members;
    const LsProgram *p = g->p;
    LsPass pass = {.data = data};
    LsJudge j = {.g = g, .l = l, .score = score, .members = members};
    LsHook hook[MAX_HOOKS] = {{judge_before, judge_after, &j, NULL}};
    const bool judges = can_judge(p, &j);
    int n = judges;
    LsMean mean = {0};
    for (int k = 0; k < by->nhook && n < MAX_HOOKS; k++)
        hook[n++] = by->hook[k];
    *score = (LsScore){0};
    for (int64_t k = 0; k < members->n; k++)
        members->right[k] = 0;
    pass.end = ls_batches_per_epoch(&pass);
    ls_loader_begin(l, &pass);
    int64_t k = 0;
    for (; k < pass.end && (by->stop == NULL || !*by->stop); k++) {
        const LsBatch *b = ls_loader_next(l, e);
        if (!b)
            return false;
        j.batch = b;
        LsLoss loss;
        if (!ls_engine_evaluate(g, l, b, hook, n, &loss, e))
            return false;
        if (members->n > 0)
            ls_member_state_add(members, g);
        ls_mean_add(&mean, loss);
        score->samples += b->valid;
        ls_loader_release(l);
        if (by->show != NULL)
            by->show(by->self, k + 1, pass.end, ls_mean(&mean));
    }
    ls_member_state_judged(members);
    score->whole = k == pass.end;
    score->loss = ls_mean(&mean);
    ls_score_add(score, "val_loss", score->loss, false);
    if (judges)                 /* of no prediction: not a number, which is never the best */
        ls_score_add(score, "val_accuracy", (double)score->right / (double)score->judged, true);
    return true;
}
