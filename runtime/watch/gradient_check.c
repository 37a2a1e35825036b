/* runtime/watch/gradient_check.c -- see gradient_check.h. */
#include "runtime/watch/gradient_check.h"
#include "runtime/base/clock.h"
#include "runtime/base/seed_mix.h"
#include "runtime/base/tensor_copy.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements when no number is given: of each parameter; at most; at least, whatever the time;
 * printed. */
enum { EACH = 2, MOST = 200, LEAST = 8, SHOWN = 10 };
static const int64_t LONG_NS = 20000000000;     /* time limit without a number of elements */

/* Relative to max(1, |w|). A difference may cross the kink of a ReLU or a max pool, or be lost in
 * rounding: then another h is tried, and the best one counts. */
static const double step_of[2][6] = {{1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5},
                                     {1e-6, 1e-5, 1e-7, 1e-4, 1e-8, 1e-9}};
enum { STEPS = sizeof step_of[0] / sizeof step_of[0][0] };

static bool wide(const LsGradCheck *c) { return c->g->p->real_bytes == 8; }

static LsAddress state(void) { return (LsAddress){LS_AT_STATE, 0}; }

static void restore(const LsGradCheck *c)
{
    ls_memory_write(c->g->m, state(), c->saved, c->g->p->bytes.state);
}

/* Adds the gradients of the dump, times `weight`. */
static void add_gradients(LsGradCheck *c, double weight)
{
    for (int64_t k = 0; k < c->nparam; k++)
        ls_dump_add(&c->dump, c->watch[k], weight, c->whole + c->at[c->watch[k]]);
}

static void divide_gradients(LsGradCheck *c, double by)
{
    for (int64_t i = 0; by != 0 && i < c->at[c->dump.t->nwatch]; i++)
        c->whole[i] /= by;
}

/* One part of a batch, from the current state: of update 1, with this batch only. */
static bool run_part(LsGradCheck *c, int64_t k, const LsHook *hook, LsLoss *loss, LsError *e)
{
    LsEngine *g = c->g;
    g->run.step = 0;
    g->run.update = 1;
    g->run.lr = 0;
    g->run.first = g->run.apply = true;
    g->run.share = 1;
    if (c->parts.n > 1 && !c->parts.feed(c->parts.of, k, e))
        return false;
    return ls_engine_run(g, &g->p->phase.train, hook, hook != NULL, e)
           && ls_engine_loss(g, &g->p->phase.train, g->slot, g->run.valid, loss, e);
}

/* One run of the training phase over the batch. hook: that of the dump, whose gradients are
 * combined; or NULL. */
static bool run(LsGradCheck *c, const LsHook *hook, double *loss, LsError *e)
{
    LsMean mean = {0};
    LsLoss l = {0};
    for (int64_t k = 0; k < c->parts.n; k++) {
        if (!run_part(c, k, hook, &l, e))
            return false;
        ls_mean_add(&mean, l);
        if (hook != NULL)
            add_gradients(c, c->parts.n > 1 && l.weight != 0 ? l.weight : 1);
    }
    *loss = c->parts.n > 1 ? ls_mean(&mean) : l.value;
    if (hook != NULL && c->parts.n > 1)
        divide_gradients(c, mean.weight);
    return true;
}

/* ---- choice of elements ---- */

static const LsStateTensor *parameter(const LsProgram *p, const LsWatch *w)
{
    if (strncmp(w->key, "grad/", 5) != 0 || w->t.type != LS_DT_REAL)
        return NULL;
    for (uint32_t k = 0; k < p->nstate; k++)
        if (p->state[k].kind == LS_STATE_PARAM && strcmp(p->state[k].t.name, w->t.name) == 0
            && ls_tensor_count(&p->state[k].t) == ls_tensor_count(&w->t))
            return &p->state[k];
    return NULL;
}

static double gradient(const LsGradCheck *c, uint32_t watch, int64_t element)
{
    const LsWalk w = ls_walk_start(&c->dump.t->watch[watch].t);
    return c->whole[c->at[watch] + ls_walk_at(&w, element)];
}

/* The element with the largest gradient, or the first that is not finite. */
static int64_t largest(LsGradCheck *c, uint32_t watch)
{
    int64_t n = ls_tensor_count(&c->dump.t->watch[watch].t), at = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = fabs(gradient(c, watch, i));
        if (!(v <= c->most[watch]))
            c->most[watch] = v, at = i;
        if (!isfinite(v))
            break;
    }
    return at;
}

/* Distributes the elements over all parameters: of each the largest gradient first, then
 * pseudo-random ones, the same for the same seed. */
static void choose(LsGradCheck *c)
{
    uint64_t seed = ls_mix(c->g->run.seed + 0x9e3779b97f4a7c15u);
    for (int64_t k = 0; k < c->nsample; k++) {
        int64_t of = c->nsample < c->nparam ? k * c->nparam / c->nsample : k % c->nparam;
        uint32_t watch = c->watch[of];
        const LsWatch *w = &c->dump.t->watch[watch];
        int64_t n = ls_tensor_count(&w->t);
        c->sample[k] = (LsGradSample){.watch = watch, .of = parameter(c->g->p, w)};
        int64_t top = k < c->nparam ? largest(c, watch) : c->sample[k % c->nparam].element;
        int64_t some = n > 1 ? 1 + (int64_t)(ls_mix(seed + (uint64_t)k) % (uint64_t)(n - 1)) : 0;
        c->sample[k].element = k < c->nparam ? top : (top + some) % n;
        c->sample[k].gradient = gradient(c, watch, c->sample[k].element);
        if (isfinite(c->most[watch]))
            c->all = fmax(c->all, c->most[watch]);
    }
}

/* ---- differences ---- */

/* The loss with the element set to `to`, rounded to its type: *is. */
static bool loss_at(LsGradCheck *c, const LsGradSample *s, double to, double *is, double *loss,
                    LsError *e)
{
    const LsWalk w = ls_walk_start(&s->of->t);
    int bytes = c->g->p->real_bytes;
    LsAddress a = s->of->t.at;
    char real[8];
    a.offset += ls_walk_at(&w, s->element) * bytes;
    ls_real_put(real, to, bytes);
    *is = ls_real_at(real, bytes);
    restore(c);
    ls_memory_write(c->g->m, a, real, bytes);
    return run(c, NULL, loss, e);
}

/* The error relative to the largest gradient of the parameter. Where all its gradients are zero
 * mathematically, as for a bias before a batch norm, both sides are noise: so the scale is at least
 * a fraction of the largest gradient of all, and at least the rounding error of a difference. */
static double judge(const LsGradCheck *c, const LsGradSample *s, double difference, double apart)
{
    enum { FAR = 10000 };
    double scale = fmax(fmax(c->most[s->watch], fabs(difference)), c->all / FAR);
    scale = fmax(scale, c->noise / apart / c->limit);
    double error = fabs(difference - s->gradient);
    return !isfinite(error) ? INFINITY : error > 0 ? error / scale : 0;
}

static bool difference(LsGradCheck *c, LsGradSample *s, LsError *e)
{
    const LsWalk w = ls_walk_start(&s->of->t);
    int bytes = c->g->p->real_bytes;
    double at = ls_real_at(c->saved + s->of->t.at.offset + ls_walk_at(&w, s->element) * bytes,
                           bytes);
    s->error = INFINITY;
    s->difference = NAN;
    for (int k = 0; k < STEPS && isfinite(s->gradient) && s->error > c->limit / 10; k++) {
        double h = step_of[wide(c)][k] * fmax(1, fabs(at)), low, high, below, above;
        if (k > 0 && c->noise / h > 2 * c->limit * c->most[s->watch])
            continue;           /* the rounding error is too large for so small a step */
        if (!loss_at(c, s, at - h, &low, &below, e) || !loss_at(c, s, at + h, &high, &above, e))
            return false;
        double d = (above - below) / (high - low), error = judge(c, s, d, high - low);
        if (k == 0 || error < s->error)
            s->difference = d, s->error = error;
    }
    return true;
}

/* ---- the whole ---- */

static bool open(LsGradCheck *c, LsEngine *g, const LsGradParts *parts, LsError *e)
{
    const LsPhaseTable *t = &g->p->phase.train;
    int64_t n = 0;
    *c = (LsGradCheck){.g = g, .limit = g->p->real_bytes == 8 ? LS_GRAD_LIMIT : LS_GRAD_LIMIT_F32};
    c->parts = parts != NULL ? *parts : (LsGradParts){.n = 1};
    c->saved = malloc((size_t)g->p->bytes.state + 1);
    c->watch = calloc(t->nwatch + 1, sizeof *c->watch);
    c->most = calloc(t->nwatch + 1, sizeof *c->most);
    c->at = calloc(t->nwatch + 1, sizeof *c->at);
    for (uint32_t k = 0; c->watch && c->at && k < t->nwatch; k++) {
        c->at[k] = n;
        const LsStateTensor *of = parameter(g->p, &t->watch[k]);
        const bool stopped = of != NULL && g->p->stopped != NULL && g->p->stopped[of - g->p->state];
        c->nstopped += stopped;
        if (of == NULL || stopped)
            continue;
        c->watch[c->nparam++] = k;
        n += ls_tensor_count(&t->watch[k].t);
    }
    c->whole = calloc((size_t)n + 1, sizeof *c->whole);
    if (!c->saved || !c->watch || !c->most || !c->at || !c->whole)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --check-gradients");
    c->at[t->nwatch] = n;
    if (c->nparam == 0 && c->nstopped == 0)
        return ls_fail(e, LS_EXIT_USAGE, "this program stores no gradients to check%s",
                       g->p->napplied ? ": compile it with --store-gradients" : "");
    return ls_dump_open(&c->dump, g, t, e);
}

/* Measures gradients and loss of the batch, and the difference to the loss of a second run:
 * programs may be allowed to sum in any order. */
static bool measure(LsGradCheck *c, int64_t *step_ns, LsError *e)
{
    enum { ROUNDINGS = 16 };
    const LsHook hook = ls_dump_hook(&c->dump);
    double again;
    const void *now = ls_memory_view(c->g->m, state(), c->g->p->bytes.state);
    if (!now || !ls_device_ok(c->g->m->device, e))
        return ls_fail(e, LS_EXIT_FAIL, "no memory for the state");
    memcpy(c->saved, now, (size_t)c->g->p->bytes.state);
    if (!run(c, &hook, &c->loss, e))
        return false;
    *step_ns = -ls_now_ns();
    restore(c);
    if (!run(c, NULL, &again, e))
        return false;
    *step_ns += ls_now_ns();
    if (!isfinite(c->loss))
        return ls_fail(e, LS_EXIT_DIVERGED, "the loss is %g: its gradients cannot be checked",
                       c->loss);
    c->noise = ROUNDINGS * (wide(c) ? 0x1p-52 : 0x1p-23) * fabs(c->loss) + fabs(again - c->loss);
    return true;
}

static int64_t count(const LsGradCheck *c, int64_t asked, int64_t step_ns)
{
    if (asked > 0)
        return asked;
    enum { SIDES = 2 };
    int64_t n = (int64_t)c->nparam * EACH, fit = LONG_NS / (SIDES * step_ns + 1);
    n = n < MOST ? n : MOST;
    fit = fit > LEAST ? fit : LEAST;
    return n < fit ? n : fit;
}

static int by_error(const void *a, const void *b)
{
    double x = ((const LsGradSample *)a)->error, y = ((const LsGradSample *)b)->error;
    return (x < y) - (x > y);
}

bool ls_gradcheck_run(LsGradCheck *c, LsEngine *g, const LsGradParts *parts, int64_t elements,
                      LsProgress *progress, volatile sig_atomic_t *stop, LsError *e)
{
    int64_t step_ns = 0, done = 0;
    if (!open(c, g, parts, e) || !measure(c, &step_ns, e))
        return false;
    c->nsample = c->nparam > 0 ? count(c, elements, step_ns) : 0;
    c->sample = calloc((size_t)c->nsample + 1, sizeof *c->sample);
    if (!c->sample)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --check-gradients");
    choose(c);
    for (; done < c->nsample && !*stop; done++) {
        const LsProgressAt at = {.what = "gradients",
                                 .done = done,
                                 .of = c->nsample,
                                 .left = c->nsample - done,
                                 .loss = c->loss};
        if (!difference(c, &c->sample[done], e))
            return false;
        ls_progress_show(progress, &at);
    }
    ls_progress_clear(progress);
    restore(c);
    c->nsample = done;
    qsort(c->sample, (size_t)done, sizeof *c->sample, by_error);
    c->worst = done > 0 ? c->sample[0].error : 0;
    c->median = done > 0 ? c->sample[done / 2].error : 0;
    return ls_device_ok(g->m->device, e);
}

void ls_gradcheck_close(LsGradCheck *c)
{
    ls_dump_close(&c->dump);
    free(c->saved);
    free(c->sample);
    free(c->watch);
    free(c->most);
    free(c->at);
    free(c->whole);
    *c = (LsGradCheck){0};
}

bool ls_gradcheck_tell(const LsGradCheck *c, FILE *to, LsError *e)
{
    const LsGradSample *worst = c->sample;
    const char *name = c->nsample > 0 ? worst->of->t.name : "none";
    int64_t element = c->nsample > 0 ? worst->element : 0;
    uint32_t left = c->g->p->napplied;
    fprintf(to, "gradients of %" PRId64 " elements of %u parameters against differences of the "
            "loss %.*g: off by %.1e (median), %.1e (worst: %s[%" PRId64 "]), limit %.0e\n",
            c->nsample, c->nparam, wide(c) ? 12 : 7, c->loss, c->median, c->worst, name, element,
            c->limit);
    if (c->nstopped > 0)
        fprintf(to,
                "%u parameters were left out: a gradient is stopped between them and the loss, so "
                "theirs is not the loss's "
                "derivative\n",
                c->nstopped);
    if (left > 0)
        fprintf(to, "%u gradients are applied as they are computed and were not seen: compile with "
                "--store-gradients\n", left);
    for (int64_t k = 0; k < c->nsample && k < SHOWN && c->sample[k].error > c->limit; k++) {
        const LsGradSample *s = &c->sample[k];
        fprintf(to, "  %s[%" PRId64 "]: gradient %.9g, difference %.9g, off by %.1e\n",
                s->of->t.name, s->element, s->gradient, s->difference, s->error);
    }
    return c->worst <= c->limit
           || ls_fail(e, LS_EXIT_CHECK, "the gradient of %s[%" PRId64 "] is off by %.1e of the "
                      "largest of its parameter, more than %.0e", name, element, c->worst,
                      c->limit);
}
