/* runtime/metrics/metrics.c -- see metrics.h. */
#include "runtime/metrics/metrics.h"

#include "runtime/base/element.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/metrics/auroc.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 5, COLUMNS = 4096 };       /* columns: of R2 */
static const int64_t ROOM = (int64_t)1 << 29;   /* most bytes of scores, and of a confusion table */

static int64_t members(const LsMetrics *m) { return m->g->p->ensemble.members; }

static int64_t one(const LsTensor *t)
{
    return ls_tensor_count(t) / (t->members > 0 ? t->members : 1);
}

/* The sizes of a batch. */
static void measure(LsMetrics *m)
{
    const LsProgram *p = m->g->p;
    const LsTensor *t = &m->watch->t;
    m->positions = one(t);
    if (m->task == LS_TASK_CLASSES) {
        m->columns = p->target.classes;
        m->positions /= m->columns;
    } else if (m->task == LS_TASK_BITS) {
        m->columns = t->rank >= 2 ? t->dim[1] : 1;
    } else {
        m->columns = m->positions / p->division.samples;
        m->columns = m->columns <= COLUMNS ? m->columns : 1;
    }
}

/* Columns of scores, each with an area of its own. */
static int64_t curves(const LsMetrics *m)
{
    return m->task == LS_TASK_CLASSES && m->columns == 2 ? 1 : m->columns;
}

static int64_t curve_rows(const LsMetrics *m, const LsDataset *data)
{
    const int64_t each = m->positions / m->g->p->division.samples
                         / (m->task == LS_TASK_BITS ? m->columns : 1);
    int64_t n;
    return data == NULL || __builtin_mul_overflow(each, data->samples, &n) ? INT64_MAX : n;
}

/* What does not fit is left out, unless it was asked for by name. */
static bool fits(LsMetrics *m, LsMetricBit bit, const char *name, int64_t bytes, LsError *e)
{
    if (!(m->chosen & bit) || bytes <= ROOM)
        return true;
    m->chosen &= ~(unsigned)bit;
    return !(m->named & bit)
           || ls_fail(e, LS_EXIT_USAGE,
                      "--metrics: %s is exact, and would keep %.3g MiB here, more than %.3g: leave "
                      "it out, or evaluate on less data",
                      name, (double)bytes * 0x1p-20, (double)ROOM * 0x1p-20);
}

static int64_t label_bytes(const LsMetrics *m)
{
    return ls_tensor_bytes(&m->g->p->input[m->label].t, m->g->p->real_bytes);
}

static bool allocate(LsMetrics *m, const LsDataset *data, LsError *e)
{
    const bool bits = m->task == LS_TASK_BITS;
    const int64_t rows = m->chosen & LS_METRIC_AUROC ? curve_rows(m, data) : 0;
    const size_t columns = (size_t)m->columns;
    if (!fits(m, LS_METRIC_AUROC, "auroc", ls_curve_bytes(curves(m), rows, bits), e)
        || !fits(m, LS_METRIC_CONFUSION, "confusion",
                 m->columns * m->columns * (int64_t)sizeof *m->confusion, e))
        return false;
    m->copy = calloc((size_t)one(&m->watch->t) + 1, sizeof(double));
    m->row = calloc(columns + 1, sizeof *m->row);
    m->labels = malloc((size_t)label_bytes(m) + 1);
    if (members(m) > 0)
        m->mean = calloc((size_t)one(&m->watch->t) + 1, sizeof *m->mean);
    if (m->task == LS_TASK_VALUES)
        m->column = calloc(columns, sizeof *m->column);
    else
        m->count = calloc(columns, sizeof *m->count);
    if (m->chosen & LS_METRIC_CONFUSION)
        m->confusion = calloc(columns * columns, sizeof *m->confusion);
    if (m->chosen & LS_METRIC_AUROC)
        m->curve = ls_curve_new(curves(m), rows, bits);
    if (!m->copy || !m->row || !m->labels || (members(m) > 0 && !m->mean)
        || !(m->column || m->count)
        || ((m->chosen & LS_METRIC_CONFUSION) && !m->confusion)
        || ((m->chosen & LS_METRIC_AUROC) && !m->curve))
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --metrics");
    return true;
}

bool ls_metrics_open(LsMetrics *m, const LsEngine *g, const char *list, bool confusion, bool whole,
                     const LsDataset *data, LsError *e)
{
    *m = (LsMetrics){.g = g};
    if (!ls_metrics_choose(m, g->p, list, confusion, whole, e))
        return false;
    if (data != NULL)
        m->classes = data->classes;
    if (m->watch == NULL || m->chosen == 0)
        return true;
    measure(m);
    return allocate(m, data, e);
}

void ls_metrics_close(LsMetrics *m)
{
    free(m->count);
    free(m->confusion);
    free(m->column);
    free(m->copy);
    free(m->row);
    free(m->labels);
    free(m->mean);
    ls_curve_free(m->curve);
    *m = (LsMetrics){0};
}

void ls_metrics_begin(LsMetrics *m)
{
    const size_t n = (size_t)m->columns;
    m->counted = m->top5 = 0;
    m->loss = m->absolute = m->squares = 0;
    if (m->count != NULL)
        memset(m->count, 0, n * sizeof *m->count);
    if (m->confusion != NULL)
        memset(m->confusion, 0, n * n * sizeof *m->confusion);
    if (m->column != NULL)
        memset(m->column, 0, n * sizeof *m->column);
    if (m->curve != NULL)
        m->curve->n = 0;
}

/* ---- classes ---- */

static void keep_score(LsMetrics *m, const double *v, bool probabilities, int64_t label)
{
    LsCurve *c = m->curve;
    double most = -INFINITY, sum = 0;
    if (c->n == c->most)
        return;
    c->truth[c->n] = (int32_t)label;
    if (c->columns == 1) {      /* in the order of the probability of class 1 */
        c->score[c->n++] = v[1] - v[0];
        return;
    }
    for (int64_t k = 0; k < m->columns; k++)
        most = fmax(most, v[k]);
    for (int64_t k = 0; k < m->columns; k++)
        sum += exp(v[k] - most);
    for (int64_t k = 0; k < m->columns; k++)
        c->score[k * c->most + c->n] = probabilities ? v[k] : exp(v[k] - most) / sum;
    c->n++;
}

/* -log of the label's probability. */
static double surprise(const double *v, int64_t n, bool probabilities, int64_t label)
{
    double most = -INFINITY, sum = 0;
    if (probabilities)
        return -log(v[label]);
    for (int64_t k = 0; k < n; k++)
        most = fmax(most, v[k]);
    for (int64_t k = 0; k < n; k++)
        sum += exp(v[k] - most);
    return log(sum) + most - v[label];
}

/* Takes the scores or probabilities of a position. */
static void take_class(LsMetrics *m, const double *v, bool probabilities, int64_t label)
{
    int64_t best = 0, above = 0;
    for (int64_t c = 1; c < m->columns; c++)
        best = v[c] > v[best] ? c : best;
    for (int64_t c = 0; c < m->columns; c++)
        above += v[c] > v[label] || (v[c] == v[label] && c < label);
    m->counted++;
    m->top5 += above < TOP;
    m->count[best].said++;
    m->count[label].labels++;
    m->count[label].right += best == label;
    if (m->confusion != NULL)
        m->confusion[label * m->columns + best]++;
    if ((m->chosen & LS_METRIC_PERPLEXITY) && !m->g->p->target.plain)
        m->loss += surprise(v, m->columns, probabilities, label);
    if (m->curve != NULL)
        keep_score(m, v, probabilities, label);
}

static void look_at_classes(LsMetrics *m, const char *label)
{
    const LsProgram *p = m->g->p;
    const LsScoreRows r = ls_score_rows(m->watch, p->target.class_axis, p->real_bytes);
    const char *at = ls_engine_view(m->g, r.t.at, r.bytes);
    const int64_t n = r.positions / p->division.samples * m->g->run.valid, k = m->g->member;
    for (int64_t i = 0; at != NULL && i < n; i++) {
        const int64_t is = ls_label_at(&p->input[m->label].t, label, i);
        const char *row = at + ls_score_at(&r, i);
        double *v = members(m) > 0 ? m->mean + i * r.classes : m->row;
        if (p->target.has_ignore && is == p->target.ignore)
            continue;
        if (members(m) == 0) {
            for (int64_t c = 0; c < r.classes; c++)
                v[c] = ls_score(&r, row, c);
            take_class(m, v, false, is);
            continue;
        }
        if (k == 0)
            memset(v, 0, (size_t)r.classes * sizeof *v);
        ls_score_add_softmax(&r, row, v);
        for (int64_t c = 0; k == members(m) - 1 && c < r.classes; c++)
            v[c] /= (double)members(m);
        if (k == members(m) - 1)
            take_class(m, v, true, is);
    }
}

/* ---- bits and values ---- */

/* v: a score, or of an ensemble the logit of the mean probability. */
static void take_bit(LsMetrics *m, int64_t column, int64_t row, double v, bool is)
{
    LsCurve *c = m->curve;
    const bool said = v > 0;
    m->counted++;
    m->count[column].said += said;
    m->count[column].labels += is;
    m->count[column].right += said && is;
    if (c != NULL && row < c->most) {
        c->score[column * c->most + row] = v;
        c->truth[column * c->most + row] = is;
        c->n = row + 1 > c->n ? row + 1 : c->n;
    }
}

/* Means and deviations move by each label (Welford). */
static void take_value(LsMetrics *m, int64_t column, double v, double is)
{
    LsColumnSum *s = &m->column[column];
    const double from = is - s->mean;
    m->counted++;
    m->absolute += fabs(v - is);
    m->squares += (v - is) * (v - is);
    s->n++;
    s->mean += from / (double)s->n;
    s->squares += from * (is - s->mean);
    s->errors += (v - is) * (v - is);
}

static double of_members(const LsMetrics *m, double *sum, double v)
{
    const int64_t n = members(m);
    const bool bits = m->task == LS_TASK_BITS;
    if (n == 0)
        return v;
    *sum = (m->g->member == 0 ? 0 : *sum) + (bits ? 1 / (1 + exp(-v)) : v) / (double)n;
    return bits ? log(*sum) - log1p(-*sum) : *sum;
}

static void look_at_elements(LsMetrics *m, const char *label)
{
    const LsProgram *p = m->g->p;
    const LsTensor *l = &p->input[m->label].t;
    LsWatch w = *m->watch;
    w.t.members = 0;
    const char *at = ls_engine_view(m->g, w.t.at, ls_watch_bytes(&w, p->real_bytes));
    const int64_t each = m->positions / p->division.samples, n = each * m->g->run.valid;
    const int64_t per = w.t.rank >= 2 && m->task == LS_TASK_BITS
                            ? m->positions / w.t.dim[0] / m->columns
                            : 1;                /* elements of a column, of a row of axis 0 */
    const int64_t size = ls_data_bytes(w.t.type, p->real_bytes),
                  wide = ls_data_bytes(l->type, p->real_bytes);
    const int64_t before = m->counted / m->columns;     /* rows of each column so far */
    const LsWalk from = ls_walk_start(&w.t), to = ls_walk_start(l);
    if (at == NULL)
        return;
    ls_watch_copy(&w, m->copy, at, p->real_bytes);
    for (int64_t i = 0; i < n; i++) {
        const double value = ls_element_at(w.t.type, m->copy + ls_walk_at(&from, i) * size,
                                           p->real_bytes),
                     is = ls_element_at(l->type, label + ls_walk_at(&to, i) * wide, p->real_bytes);
        const double v = of_members(m, m->mean != NULL ? &m->mean[i] : NULL, value);
        if (members(m) > 0 && m->g->member < members(m) - 1)
            continue;
        if (m->task == LS_TASK_BITS)
            take_bit(m, i / per % m->columns, before + i / per / m->columns * per + i % per, v,
                     is > 0.5);
        else
            take_value(m, m->columns > 1 ? i % each : 0, v, is);
    }
}

/* ---- the hook ---- */

static void look(LsMetrics *m)
{
    const LsTensor *t = &m->g->p->input[m->label].t;
    const char *label = ls_engine_view(m->g, t->at, label_bytes(m));
    if (label == NULL)
        return;
    label = memcpy(m->labels, label, (size_t)label_bytes(m));
    if (m->task == LS_TASK_CLASSES)
        look_at_classes(m, label);
    else
        look_at_elements(m, label);
}

static void before_step(void *self, uint32_t step)
{
    LsMetrics *m = self;
    if (m->watch->before && step == m->watch->step)
        look(m);
}

static void after_step(void *self, uint32_t step)
{
    LsMetrics *m = self;
    if (!m->watch->before && step == m->watch->step)
        look(m);
}

bool ls_metrics_look(const LsMetrics *m)
{
    const unsigned by_loss =
        m->g != NULL && m->g->p->target.plain ? (unsigned)LS_METRIC_PERPLEXITY : 0;
    return m->watch != NULL && (m->chosen & ~by_loss) != 0;
}

LsHook ls_metrics_hook(LsMetrics *m) { return (LsHook){before_step, after_step, m, NULL}; }

/* ---- results ---- */

static double r2(const LsMetrics *m)
{
    double sum = 0;
    for (int64_t k = 0; k < m->columns; k++) {
        const LsColumnSum *s = &m->column[k];
        sum += s->squares > 0 ? 1 - s->errors / s->squares : s->errors > 0 ? 0 : 1;
    }
    return sum / (double)m->columns;
}

/* The mean area over the columns that have one. */
static double areas(const LsMetrics *m)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t k = 0; k < m->curve->columns; k++) {
        const double area = ls_curve_area(m->curve, k);
        sum += isnan(area) ? 0 : area;
        n += !isnan(area);
    }
    return n > 0 ? sum / (double)n : NAN;
}

void ls_metrics_each(LsMetrics *m, double loss, void *to,
                     void (*add)(void *, const char *, double, bool))
{
    const double n = (double)m->counted;
    if ((m->chosen & LS_METRIC_PERPLEXITY) && (m->g->p->target.plain || m->counted > 0))
        add(to, "val_perplexity", exp(m->g->p->target.plain ? loss : m->loss / n), false);
    if (m->counted == 0)
        return;
    if (m->chosen & LS_METRIC_TOP5)
        add(to, "val_top5", (double)m->top5 / n, true);
    if (m->count != NULL)
        ls_class_metrics_each(m, to, add);
    if (m->curve != NULL)
        add(to, "val_auroc", areas(m), true);
    if (m->chosen & LS_METRIC_MAE)
        add(to, "val_mae", m->absolute / n, false);
    if (m->chosen & LS_METRIC_MSE)
        add(to, "val_mse", m->squares / n, false);
    if (m->chosen & LS_METRIC_R2)
        add(to, "val_r2", r2(m), true);
}
