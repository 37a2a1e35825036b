/* runtime/predict/output_rows.c -- see output_rows.h. */
#include "runtime/predict/output_rows.h"

#include "runtime/base/element.h"
#include "runtime/base/tensor_copy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char OUT[] = "out/";

/* The step that a value is read before. */
static uint32_t moment(const LsWatch *w) { return w->step + !w->before; }

/* The value whose loss is taken over classes. */
static bool has_scores(const LsProgram *p, const LsWatch *w)
{
    const LsPhaseTable *t = &p->phase.eval;
    for (uint32_t k = 0; p->target.classes > 0 && k < t->nwatch; k++) {
        const LsWatch *s = &t->watch[k];
        if (strcmp(s->key, "logits") == 0 && s->t.at.space == w->t.at.space
            && s->t.at.offset == w->t.at.offset && moment(s) == moment(w)
            && s->t.rank == w->t.rank && p->target.class_axis < w->t.rank
            && memcmp(s->t.dim, w->t.dim, (size_t)w->t.rank * sizeof *w->t.dim) == 0)
            return true;
    }
    return false;
}

static void describe(LsOutput *o, const LsProgram *p, uint32_t k)
{
    const LsWatch *w = &p->phase.eval.watch[k];
    *o = (LsOutput){.watch = k, .name = w->key + strlen(OUT), .t = w->t};
    o->t.type = ls_holds_reals(w->t.type) ? LS_DT_REAL : w->t.type;
    o->t.members = 0;
    o->type = ls_element_of(o->t.type, p->real_bytes);
    o->rows = o->t.rank > 0 ? o->t.dim[0] / p->division.samples : 0;
    o->count = ls_tensor_count(&o->t) / p->division.samples;
    o->bytes = o->count * ls_element_bytes(o->type);
    o->scores = has_scores(p, w) && p->target.class_axis > 0;
}

/* Whether its first axis has the samples. */
static bool has_samples(const LsProgram *p, const LsTensor *t)
{
    return t->rank > 0 && t->dim[0] % p->division.samples == 0;
}

static bool add(LsOutputs *o, const LsProgram *p, uint32_t k, bool asked, LsError *e)
{
    const LsWatch *w = &p->phase.eval.watch[k];
    if (!has_samples(p, &w->t))
        return !asked
               || ls_fail(e, LS_EXIT_USAGE,
                          "output '%s' has no axis of samples, so its value is that of a batch; "
                          "--predict-outputs names others",
                          w->key + strlen(OUT));
    for (int i = 0; i < o->n; i++)
        if (o->output[i].watch == k)
            return true;
    describe(&o->output[o->n], p, k);
    o->bytes = o->output[o->n].bytes > o->bytes ? o->output[o->n].bytes : o->bytes;
    o->n++;
    return true;
}

static bool is_output(const LsWatch *w) { return strncmp(w->key, OUT, strlen(OUT)) == 0; }

static bool add_named(LsOutputs *o, const LsProgram *p, const char *name, size_t n, LsError *e)
{
    const LsPhaseTable *t = &p->phase.eval;
    char names[300] = "";
    for (uint32_t k = 0; k < t->nwatch; k++) {
        const char *own = t->watch[k].key + strlen(OUT);
        if (!is_output(&t->watch[k]))
            continue;
        if (strlen(own) == n && memcmp(own, name, n) == 0)
            return add(o, p, k, true, e);
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%.80s", at > 0 ? ", " : "", own);
    }
    return ls_fail(e, LS_EXIT_USAGE, "--predict-outputs: the model has no output '%.*s'; it has %s",
                   (int)(n < 100 ? n : 100), name, names);
}

bool ls_outputs_open(LsOutputs *o, const LsEngine *g, const char *names, LsError *e)
{
    const LsProgram *p = g->p;
    *o = (LsOutputs){0};
    if (!ls_dump_open(&o->seen, g, &p->phase.eval, e))
        return false;
    o->output = calloc(p->phase.eval.nwatch + 1, sizeof *o->output);
    if (!o->output)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (const char *at = names; at != NULL && *at != '\0';) {
        const size_t n = strcspn(at, ",");
        if (!add_named(o, p, at, n, e))
            return false;
        at += n + (at[n] == ',');
    }
    for (uint32_t k = 0; names == NULL && k < p->phase.eval.nwatch; k++)
        if (is_output(&p->phase.eval.watch[k]) && !add(o, p, k, false, e))
            return false;
    return o->n > 0 || ls_fail(e, LS_EXIT_USAGE, "no output of the model has an axis of samples, "
                               "so there is nothing to predict");
}

void ls_outputs_close(LsOutputs *o)
{
    ls_dump_close(&o->seen);
    free(o->output);
    *o = (LsOutputs){0};
}

/* ---- values ---- */

static int64_t members(const LsOutputs *o, int k)
{
    const int64_t n = o->seen.t->watch[o->output[k].watch].t.members;
    return n > 0 ? n : 1;
}

/* The values of a member, in memory order. */
static const char *values(const LsOutputs *o, int k, int64_t member)
{
    const LsOutput *out = &o->output[k];
    const int64_t all = ls_tensor_count(&out->t) * ls_element_bytes(out->type);
    return o->seen.copy + o->seen.offset[out->watch] + member * all;
}

void ls_output_read(const LsOutputs *o, int k, int64_t sample, void *to)
{
    const LsOutput *out = &o->output[k];
    const int64_t each = ls_element_bytes(out->type), n = members(o, k);
    const LsWalk walk = ls_walk_start(&out->t);
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t at = ls_walk_at(&walk, sample * out->count + i) * each;
        double sum = 0;
        if (n == 1 || out->t.type != LS_DT_REAL) {
            memcpy((char *)to + i * each, values(o, k, 0) + at, (size_t)each);
            continue;
        }
        for (int64_t m = 0; m < n; m++)
            sum += ls_real_at(values(o, k, m) + at, (int)each);
        ls_real_put((char *)to + i * each, sum / (double)n, (int)each);
    }
}

static double number(const LsOutput *out, const char *at)
{
    const LsArray one = {(const unsigned char *)at, out->type, false, 0, {0}, 1};
    return out->t.type == LS_DT_REAL ? ls_real_at(at, (int)ls_element_bytes(out->type))
                                     : (double)ls_array_int(&one, 0);
}

void ls_output_reals(const LsOutputs *o, int k, int64_t sample, double *to)
{
    const LsOutput *out = &o->output[k];
    const int64_t each = ls_element_bytes(out->type);
    const int64_t n = out->t.type == LS_DT_REAL ? members(o, k) : 1;
    const LsWalk walk = ls_walk_start(&out->t);
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t at = ls_walk_at(&walk, sample * out->count + i) * each;
        double sum = 0;
        for (int64_t m = 0; m < n; m++)
            sum += number(out, values(o, k, m) + at);
        to[i] = sum / (double)n;
    }
}

int ls_output_dims(const LsOutput *o, int64_t dim[LS_TENSOR_RANK])
{
    int rank = 0;
    if (o->rows != 1)
        dim[rank++] = o->rows;
    for (int d = 1; d < o->t.rank; d++)
        dim[rank++] = o->t.dim[d];
    return rank;
}

LsScoreShape ls_output_scores(const LsOutputs *o, int k)
{
    const LsOutput *out = &o->output[k];
    const int axis = o->seen.g->p->target.class_axis;
    LsScoreShape s = {out->t.dim[axis], out->count / out->t.dim[axis], 1};
    for (int d = axis + 1; d < out->t.rank; d++)
        s.step *= out->t.dim[d];
    return s;
}

int64_t ls_score_place(const LsScoreShape *s, int64_t position)
{
    return position / s->step * s->step * s->classes + position % s->step;
}

void ls_output_probabilities(const LsOutputs *o, int k, int64_t sample, double *to)
{
    const LsOutput *out = &o->output[k];
    const LsScoreShape s = ls_output_scores(o, k);
    const int64_t each = ls_element_bytes(out->type), n = members(o, k);
    const LsWalk walk = ls_walk_start(&out->t);
    memset(to, 0, (size_t)out->count * sizeof *to);
    for (int64_t m = 0; m < n; m++)
        for (int64_t i = 0; i < s.positions; i++) {
            const int64_t first = sample * out->count + ls_score_place(&s, i);
            const char *from = values(o, k, m);
            double most = -INFINITY, sum = 0;
            for (int64_t c = 0; c < s.classes; c++) {
                const int64_t at = ls_walk_at(&walk, first + c * s.step);
                most = fmax(most, ls_real_at(from + at * each, (int)each));
            }
            for (int64_t c = 0; c < s.classes; c++) {
                const int64_t at = ls_walk_at(&walk, first + c * s.step);
                sum += exp(ls_real_at(from + at * each, (int)each) - most);
            }
            for (int64_t c = 0; c < s.classes; c++) {
                const int64_t at = ls_walk_at(&walk, first + c * s.step);
                to[i * s.classes + c] +=
                    exp(ls_real_at(from + at * each, (int)each) - most) / sum / (double)n;
            }
        }
}
