/* runtime/watch/trace.c -- see trace.h. */
#include "runtime/watch/trace.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/json_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 1024 };           /* bytes formatted at a time */

bool ls_trace_open(LsTrace *x, const LsEngine *g, const LsPhaseTable *t, LsError *e)
{
    size_t n = t->nstep;
    *x = (LsTrace){.g = g, .t = t};
    x->start = calloc((2 * LS_TRACE_RUNS + 2 + LS_TRACE_SAMPLES) * n + 1, sizeof *x->start);
    if (!x->start)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --trace");
    x->took = x->start + LS_TRACE_RUNS * n;
    x->total = x->took + LS_TRACE_RUNS * n;
    x->least = x->total + n;
    x->sample = x->least + n;
    LsDevice *d = g->m->device;
    return d == NULL || d->kind->marks(d, 2 * t->nstep) || ls_device_ok(d, e);
}

void ls_trace_close(LsTrace *x)
{
    free(x->start);
    *x = (LsTrace){0};
}

static size_t place(const LsTrace *x, int64_t run, uint32_t step)
{
    return (size_t)(run % LS_TRACE_RUNS) * x->t->nstep + step;
}

static void note(LsTrace *x, uint32_t step, int64_t ns)
{
    x->took[place(x, x->runs, step)] = ns;
    x->total[step] += ns;
    x->sample[step * LS_TRACE_SAMPLES + x->runs % LS_TRACE_SAMPLES] = ns;
    if (x->runs == 0 || ns < x->least[step])
        x->least[step] = ns;
}

static void before(void *self, uint32_t step)
{
    LsTrace *x = self;
    x->start[place(x, x->runs, step)] = ls_now_ns();
}

static void after(void *self, uint32_t step)
{
    LsTrace *x = self;
    note(x, step, ls_now_ns() - x->start[place(x, x->runs, step)]);
    x->runs += step + 1 == x->t->nstep;
}

static void mark_before(void *self, uint32_t step)
{
    LsDevice *d = ((LsTrace *)self)->g->m->device;
    d->kind->mark(d, 2 * step);
}

static void mark_after(void *self, uint32_t step)
{
    LsDevice *d = ((LsTrace *)self)->g->m->device;
    d->kind->mark(d, 2 * step + 1);
}

/* Waits for the run and reads the device's time marks. */
static void read_marks(void *self)
{
    LsTrace *x = self;
    LsDevice *d = x->g->m->device;
    int64_t whole = d->kind->took(d, 0, 2 * x->t->nstep - 1), first = ls_now_ns() - whole;
    for (uint32_t k = 0; k < x->t->nstep; k++) {
        x->start[place(x, x->runs, k)] = first + d->kind->took(d, 0, 2 * k);
        note(x, k, d->kind->took(d, 2 * k, 2 * k + 1));
    }
    x->runs++;
}

LsHook ls_trace_hook(LsTrace *x)
{
    return x->g->m->device != NULL ? (LsHook){mark_before, mark_after, x, read_marks}
                                   : (LsHook){before, after, x, NULL};
}

static void to_out(void *to, const void *data, size_t n) { ls_out_write(to, data, n); }

static void put_event(LsText *t, const LsTrace *x, int64_t run, uint32_t k, int64_t origin)
{
    const LsStep *s = &x->t->step[k];
    size_t at = place(x, run, k);
    ls_text_put(t, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":");
    ls_text_string(t, s->name);
    ls_text_put(t, ",\"cat\":");
    ls_text_string(t, s->op);
    ls_text_put(
        t, ",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%u,\"run\":%" PRId64 ",\"again\":%s}}",
        (double)(x->start[at] - origin) * 1e-3, (double)x->took[at] * 1e-3, k, run,
        s->again ? "true" : "false");
}

bool ls_trace_write(const LsTrace *x, const char *path, LsError *e)
{
    LsOut o;
    char part[PART];
    LsText t = {part, 0, sizeof part, to_out, &o};
    int64_t first = x->runs > LS_TRACE_RUNS ? x->runs - LS_TRACE_RUNS : 0;
    int64_t origin = x->start[place(x, first, 0)];
    if (!ls_out_open(&o, path, e))
        return false;
    ls_text_put(&t, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,"
                    "\"name\":\"process_name\",\"args\":{\"name\":");
    ls_text_string(&t, x->g->p->model);
    ls_text_put(&t, "}}");
    for (int64_t run = first; run < x->runs; run++)
        for (uint32_t k = 0; k < x->t->nstep; k++)
            put_event(&t, x, run, k, origin);
    ls_text_put(&t, "\n]}\n");
    ls_text_flush(&t);
    return ls_out_commit(&o, e);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Number of runs with times. */
static size_t samples(const LsTrace *x)
{
    return (size_t)(x->runs < LS_TRACE_SAMPLES ? x->runs : LS_TRACE_SAMPLES);
}

static int64_t median(int64_t *v, size_t n)
{
    qsort(v, n, sizeof *v, by_size);
    return n > 0 ? v[n / 2] : 0;
}

/* Median of the last runs of a step; 0 before the first. */
static int64_t usual(const LsTrace *x, uint32_t step)
{
    int64_t v[LS_TRACE_SAMPLES];
    memcpy(v, x->sample + (size_t)step * LS_TRACE_SAMPLES, samples(x) * sizeof *v);
    return median(v, samples(x));
}

/* A disturbance of a run affects few of its steps, and other steps each time, so the median times
 * sum to less than the median run. This is the ratio. */
static double disturbed(const LsTrace *x)
{
    int64_t run[LS_TRACE_SAMPLES] = {0}, sum = 0;
    for (uint32_t k = 0; k < x->t->nstep; k++) {
        for (size_t r = 0; r < samples(x); r++)
            run[r] += x->sample[(size_t)k * LS_TRACE_SAMPLES + r];
        sum += usual(x, k);
    }
    return sum > 0 ? (double)median(run, samples(x)) / (double)sum : 1;
}

static const char *type_name(const LsProgram *p, LsDataType type)
{
    static const char *const name[] = {[LS_DT_REAL] = "f32", [LS_DT_I64] = "i64", [LS_DT_I32] = "i32",
                                       [LS_DT_BOOL] = "bool", [LS_DT_BF16] = "bf16", [LS_DT_F16] = "f16"};
    return type == LS_DT_REAL && p->real_bytes == 8 ? "f64" : name[type];
}

static void put_profile_step(LsText *t, const LsTrace *x, uint32_t k, int64_t runs, double times)
{
    const LsStep *s = &x->t->step[k];
    int64_t ns = (int64_t)(times * (double)usual(x, k));
    ls_text_put(t, "%s\n{\"node\":%u,\"name\":", k ? "," : "", s->node);
    ls_text_string(t, s->name);
    ls_text_put(t, ",\"op\":");
    ls_text_string(t, s->op);
    ls_text_put(t, ",\"elements\":[");
    for (uint32_t r = 0; r < s->nout; r++)
        ls_text_put(t, "%s%" PRId64, r ? "," : "", x->g->p->element_count[s->count + r]);
    ls_text_put(t, "],\"types\":[");
    for (uint32_t r = 0; r < s->nout; r++)
        ls_text_put(t, "%s\"%s\"", r ? "," : "", type_name(x->g->p, (LsDataType)x->g->p->element_type[s->count + r]));
    ls_text_put(t, "],\"again\":%s,\"ns\":%" PRId64 ",\"mean_ns\":%" PRId64 ",\"least_ns\":%" PRId64
                "}", s->again ? "true" : "false", ns, x->total[k] / runs, x->least[k]);
}

bool ls_profile_write(const LsTrace *x, const char *path, int threads, LsError *e)
{
    LsOut o;
    char part[PART];
    LsText t = {part, 0, sizeof part, to_out, &o};
    int64_t runs = x->runs > 0 ? x->runs : 1, sum = 0;
    double times = disturbed(x);
    if (!ls_out_open(&o, path, e))
        return false;
    for (uint32_t k = 0; k < x->t->nstep; k++)
        sum += x->total[k];
    ls_text_put(&t, "{\"schema\":1,\"model\":");
    ls_text_string(&t, x->g->p->model);
    ls_text_put(&t, ",\"plan\":");
    ls_text_string(&t, x->g->p->plan_hash);
    ls_text_put(&t, ",\"threads\":%d,\"real_bytes\":%d,\"batch\":%" PRId64 ",\"runs\":%" PRId64
                ",\"step_ns\":%" PRId64 ",\"steps\":[",
                threads, x->g->p->real_bytes, x->g->p->batch, x->runs, sum / runs);
    for (uint32_t k = 0; k < x->t->nstep; k++)
        put_profile_step(&t, x, k, runs, times);
    ls_text_put(&t, "\n]}\n");
    ls_text_flush(&t);
    return ls_out_commit(&o, e);
}
