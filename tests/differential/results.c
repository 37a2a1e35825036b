/* tests/differential/results.c -- see the header. */
#include "tests/differential/results.h"

#include "runtime/engine/thread_pool.h"
#include "tests/differential/interpreter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a format with so many bits of exponent. */
static double number_of_16(uint16_t bits, int exponent)
{
    const int mantissa = 15 - exponent, bias = (1 << (exponent - 1)) - 1;
    const int e = bits >> mantissa & ((1 << exponent) - 1), m = bits & ((1 << mantissa) - 1);
    const double v = e == 2 * bias + 1 ? (m != 0 ? NAN : INFINITY)
                     : e == 0          ? ldexp(m, 1 - bias - mantissa)
                                       : ldexp(m + (1 << mantissa), e - bias - mantissa);
    return bits >> 15 ? -v : v;
}

static double number_at(const char *p, LsDataType type, int real_bytes)
{
    switch (type) {
    case LS_DT_REAL:
        return real_bytes == 4 ? (double)*(const float *)p : *(const double *)p;
    case LS_DT_I64:
        return (double)*(const int64_t *)p;
    case LS_DT_I32:
        return *(const int32_t *)p;
    case LS_DT_BF16:
    case LS_DT_F16:
        return number_of_16(*(const uint16_t *)p, type == LS_DT_BF16 ? 8 : 5);
    default:
        return *(const uint8_t *)p;
    }
}

static double *numbers_of(LsArena *a, const LsTensor *t, const char *bytes, int real_bytes)
{
    LsShape s = {.rank = t->rank};
    memcpy(s.dim, t->dim, sizeof s.dim);
    const int64_t n = ls_count(&s);
    const int width = t->type == LS_DT_REAL  ? real_bytes
                      : t->type == LS_DT_I64 ? 8
                      : t->type == LS_DT_I32 ? 4
                      : t->type == LS_DT_BF16 || t->type == LS_DT_F16 ? 2
                                                                      : 1;
    int64_t stride[LS_MAX_RANK];
    double *to = ls_arena_alloc(a, (size_t)n + 1, sizeof *to);
    ls_strides(&s, t->channels_last ? LS_LAST : LS_ROW, stride);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, rest = i;
        for (int k = s.rank - 1; k >= 0; rest /= s.dim[k--])
            at += rest % s.dim[k] * stride[k];
        to[i] = number_at(bytes + at * width, t->type, real_bytes);
    }
    return to;
}

typedef struct Seen {
    LsRunGraph *r;
    Results *to;
} Seen;

static void keep(Results *to, LsArena *a, const char *name, const LsTensor *t, double *value)
{
    if (to->n == to->cap) {
        to->cap = 2 * to->cap + 16;
        to->name = realloc(to->name, to->cap * sizeof *to->name);
        to->value = realloc(to->value, to->cap * sizeof *to->value);
        to->shape = realloc(to->shape, to->cap * sizeof *to->shape);
    }
    to->name[to->n] = ls_arena_strdup(a, name);
    to->shape[to->n] = (LsShape){.rank = t->rank};
    memcpy(to->shape[to->n].dim, t->dim, sizeof t->dim);
    to->value[to->n++] = value;
}

static void see(void *at, uint32_t k, const char *bytes)
{
    const Seen *s = at;
    const LsWatch *w = &s->r->program->phase.train.watch[k];
    const bool output = k < s->r->g->noutput;
    keep(s->to, s->r->cx->arena, output ? ls_arena_printf(s->r->cx->arena, "out/%u", k) : w->key,
         &w->t, numbers_of(s->r->cx->arena, &w->t, bytes, s->r->problem->target.real_bytes));
}

static void keep_state(LsRunGraph *r, Results *to)
{
    for (uint32_t k = 0; k < r->addresses->nstate; k++) {
        const LsStateSlot *s = &r->addresses->state[k];
        if (s->g->value[s->v.i].once_written)
            keep(to, r->cx->arena, ls_arena_printf(r->cx->arena, "state/%s", s->row.t.name),
                 &s->row.t,
                 numbers_of(r->cx->arena, &s->row.t, r->state + s->row.t.at.offset,
                            r->problem->target.real_bytes));
    }
}

static void set_inputs(LsRunGraph *r, const Net *net)
{
    for (uint32_t k = 0; k < r->g->ninput; k++) {
        LsValue as = r->g->value[r->g->input[k].i];
        as.data = net->input[k];
        const LsGraph one = {.value = &as};
        for (int64_t i = 0; i < ls_count(&as.shape); i++)
            ls_run_graph_set(r, r->g->input[k], i, ls_const_at(&one, (LsValueId){0}, i));
    }
}

void results_run(LsRunGraph *r, const Net *net, int threads, int steps, Results to[])
{
    set_inputs(r, net);
    ls_pool_destroy(r->run.pool);
    r->run.pool = ls_pool_create(threads);
    r->run.seed = INTERPRETER_SEED;
    r->run.lr = INTERPRETER_LR;
    for (int s = 0; s < steps; s++) {
        r->run.step = s;
        r->run.update = s + 1;
        ls_run_graph_step_seen(r, see, &(Seen){r, &to[s]});
        const LsTensor loss = {.type = LS_DT_REAL};
        keep(&to[s], r->cx->arena, "loss", &loss,
             numbers_of(r->cx->arena, &loss, r->arena + r->program->phase.train.loss.offset,
                        r->problem->target.real_bytes));
        keep_state(r, &to[s]);
    }
}

int results_find(const Results *in, const char *name)
{
    for (uint32_t k = 0; k < in->n; k++)
        if (strcmp(in->name[k], name) == 0)
            return (int)k;
    return -1;
}

void results_free(Results *r)
{
    free(r->name);
    free(r->value);
    free(r->shape);
}
