/* runtime/metrics/score_rows.c -- see score_rows.h. */
#include "runtime/metrics/score_rows.h"

#include "runtime/base/element.h"
#include "runtime/base/tensor_copy.h"

#include <math.h>
#include <string.h>

const LsWatch *ls_scores_watched(const LsProgram *p)
{
    for (uint32_t k = 0; k < p->phase.eval.nwatch; k++)
        if (strcmp(p->phase.eval.watch[k].key, "logits") == 0)
            return &p->phase.eval.watch[k];
    return NULL;
}

LsScoreRows ls_score_rows(const LsWatch *w, int axis, int real_bytes)
{
    LsScoreRows r = {.t = w->t, .axis = axis,
                     .real_bytes = real_bytes};
    const LsTensor *t = &r.t;
    r.t.members = 0;            /* watched values are of one at a time */
    const bool last = t->channels_last && t->rank >= 3;
    int64_t n = last ? t->dim[1] : 1;
    for (int d = t->rank; d-- > 0;) {
        const bool channel = last && d == 1;
        r.stride[d] = channel ? 1 : n;
        n *= channel ? 1 : t->dim[d];
        if (d == t->rank - 1 && w->row > 0 && !last)
            n = w->row;         /* there is a gap between rows */
    }
    const LsWatch one = {.t = *t, .row = w->row};
    r.bytes = ls_watch_bytes(&one, real_bytes);
    r.classes = t->dim[axis];
    r.positions = ls_tensor_count(t) / r.classes;
    r.step = r.stride[axis] * ls_data_bytes(t->type, real_bytes);
    return r;
}

int64_t ls_score_at(const LsScoreRows *r, int64_t i)
{
    int64_t at = 0;
    for (int d = r->t.rank; d-- > 0;)
        if (d != r->axis) {
            at += i % r->t.dim[d] * r->stride[d];
            i /= r->t.dim[d];
        }
    return at * ls_data_bytes(r->t.type, r->real_bytes);
}

double ls_score(const LsScoreRows *r, const char *row, int64_t c)
{
    return ls_element_at(r->t.type, row + c * r->step, r->real_bytes);
}

int64_t ls_score_largest(const LsScoreRows *r, const char *row)
{
    int64_t best = 0;
    double most = ls_score(r, row, 0);
    for (int64_t c = 1; c < r->classes; c++) {
        const double v = ls_score(r, row, c);
        if (v > most) {
            most = v;
            best = c;
        }
    }
    return best;
}

void ls_score_add_softmax(const LsScoreRows *r, const char *row, double *to)
{
    const double most = ls_score(r, row, ls_score_largest(r, row));
    double sum = 0;
    for (int64_t c = 0; c < r->classes; c++)
        sum += exp(ls_score(r, row, c) - most);
    for (int64_t c = 0; c < r->classes; c++)
        to[c] += exp(ls_score(r, row, c) - most) / sum;
}

int64_t ls_label_at(const LsTensor *label, const char *at, int64_t i)
{
    int64_t wide;
    int32_t narrow;
    if (label->type == LS_DT_I64)
        return memcpy(&wide, at + 8 * i, 8), wide;
    return memcpy(&narrow, at + 4 * i, 4), narrow;
}
