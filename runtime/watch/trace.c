/* runtime/watch/trace.c -- see trace.h. */
#include "runtime/watch/trace.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/json_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 1024 };           /* bytes formatted at a time */

int64_t ls_trace_bytes(const LsTrace *x)
{
    return (int64_t)(((2 * (size_t)x->kept + 3 + LS_TRACE_SAMPLES) * x->t->nstep + 1)
                     * sizeof *x->run);
}

bool ls_trace_open(LsTrace *x, const LsEngine *g, const LsPhaseTable *t, int64_t kept, LsError *e)
{
    const size_t n = t->nstep, runs = (size_t)kept;
    *x = (LsTrace){.g = g, .t = t, .kept = kept};
    x->run = calloc((size_t)ls_trace_bytes(x), 1);
    if (!x->run)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --trace");
    x->start = x->run + n;
    x->took = x->start + runs * n;
    x->total = x->took + runs * n;
    x->least = x->total + n;
    x->sample = x->least + n;
    LsDevice *d = g->m->device;
    return d == NULL || d->kind->marks(d, 2 * t->nstep) || ls_device_ok(d, e);
}

void ls_trace_close(LsTrace *x)
{
    free(x->run);
    *x = (LsTrace){0};
}

static size_t place(const LsTrace *x, int64_t run, uint32_t step)
{
    return (size_t)(run % x->kept) * x->t->nstep + step;
}

/* The times of the step's next run. */
static void note(LsTrace *x, uint32_t step, int64_t start, int64_t ns)
{
    const int64_t run = x->run[step]++;
    x->start[place(x, run, step)] = start;
    x->took[place(x, run, step)] = ns;
    x->total[step] += ns;
    x->sample[step * LS_TRACE_SAMPLES + run % LS_TRACE_SAMPLES] = ns;
    if (run == 0 || ns < x->least[step])
        x->least[step] = ns;
}

static void before(void *self, uint32_t step)
{
    LsTrace *x = self;
    x->start[place(x, x->run[step], step)] = ls_now_ns();
}

static void after(void *self, uint32_t step)
{
    LsTrace *x = self;
    const int64_t start = x->start[place(x, x->run[step], step)];
    note(x, step, start, ls_now_ns() - start);
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
    for (uint32_t k = 0; k < x->t->nstep; k++)
        note(x, k, first + d->kind->took(d, 0, 2 * k), d->kind->took(d, 2 * k, 2 * k + 1));
}

LsHook ls_trace_hook(LsTrace *x)
{
    return x->g->m->device != NULL ? (LsHook){mark_before, mark_after, x, read_marks}
                                   : (LsHook){before, after, x, NULL};
}

static void to_out(void *to, const void *data, size_t n) { ls_out_write(to, data, n); }

/* Runs of the steps that run most often. */
static int64_t runs_of(const LsTrace *x)
{
    int64_t runs = 0;
    for (uint32_t k = 0; k < x->t->nstep; k++)
        runs = x->run[k] > runs ? x->run[k] : runs;
    return runs;
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* When the oldest run began of which all times are kept; before a run 0. */
static int64_t origin_of(const LsTrace *x)
{
    const int64_t runs = runs_of(x), first = runs > x->kept ? runs - x->kept : 0;
    int64_t origin = INT64_MAX;
    for (uint32_t k = 0; k < x->t->nstep; k++)
        if (x->run[k] == runs)
            origin = earlier(x->start[place(x, first, k)], origin);
    return runs > 0 ? origin : INT64_MAX;
}

static void put_event(LsText *t, const LsTrace *x, int64_t run, uint32_t k, int64_t origin)
{
    const LsStep *s = &x->t->step[k];
    size_t at = place(x, run, k);
    ls_text_put(t, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"name\":", x->lane + 1);
    ls_text_string(t, s->name);
    ls_text_put(t, ",\"cat\":");
    ls_text_string(t, s->op);
    ls_text_put(
        t, ",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%u,\"run\":%" PRId64 ",\"again\":%s}}",
        (double)(x->start[at] - origin) * 1e-3, (double)x->took[at] * 1e-3, k, run,
        s->again ? "true" : "false");
}

/* The kept runs of the steps, from `origin` on: those of the late phase go back further. */
static void put_events(LsText *t, const LsTrace *x, int64_t origin)
{
    for (int64_t back = x->kept; back > 0; back--)
        for (uint32_t k = 0; k < x->t->nstep; k++) {
            const int64_t run = x->run[k] - back;
            if (run >= 0 && x->start[place(x, run, k)] >= origin)
                put_event(t, x, run, k, origin);
        }
}

bool ls_trace_write(const LsTrace *x, uint32_t n, const char *path, LsError *e)
{
    LsOut o;
    char part[PART];
    LsText t = {part, 0, sizeof part, to_out, &o};
    int64_t origin = INT64_MAX;
    for (uint32_t k = 0; k < n; k++)
        origin = earlier(origin_of(&x[k]), origin);
    if (!ls_out_open(&o, path, e))
        return false;
    ls_text_put(&t, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,"
                    "\"name\":\"process_name\",\"args\":{\"name\":");
    ls_text_string(&t, x->g->p->about.model);
    ls_text_put(&t, "}}");
    for (uint32_t k = 0; k < n && n > 1; k++)
        if (k == 0 || x[k].lane != x[k - 1].lane)
            ls_text_put(&t,
                        ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{"
                        "\"name\":\"stage %u\"}}",
                        x[k].lane + 1, x[k].lane + 1);
    for (uint32_t k = 0; k < n; k++)
        put_events(&t, &x[k], origin);
    ls_text_put(&t, "\n]}\n");
    ls_text_flush(&t);
    return ls_out_commit(&o, e);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Number of the step's last runs with times. */
static size_t samples(const LsTrace *x, uint32_t step)
{
    return (size_t)(x->run[step] < LS_TRACE_SAMPLES ? x->run[step] : LS_TRACE_SAMPLES);
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
    const size_t n = samples(x, step);
    memcpy(v, x->sample + (size_t)step * LS_TRACE_SAMPLES, n * sizeof *v);
    return median(v, n);
}

/* A disturbance of a run affects few of its steps, and other steps each time, so the median times
 * sum to less than the median run. This is the ratio, of the steps that run most often. */
static double disturbed(const LsTrace *x)
{
    int64_t run[LS_TRACE_SAMPLES] = {0}, sum = 0;
    const int64_t runs = runs_of(x);
    size_t n = 0;
    for (uint32_t k = 0; k < x->t->nstep; k++) {
        if (x->run[k] < runs)
            continue;
        n = samples(x, k);
        for (size_t r = 0; r < n; r++)
            run[r] += x->sample[(size_t)k * LS_TRACE_SAMPLES + r];
        sum += usual(x, k);
    }
    return sum > 0 ? (double)median(run, n) / (double)sum : 1;
}

static const char *type_name(const LsProgram *p, LsDataType type)
{
    static const char *const name[] = {
        [LS_DT_REAL] = "f32",  [LS_DT_I64] = "i64",   [LS_DT_I32] = "i32",
        [LS_DT_BOOL] = "bool", [LS_DT_BF16] = "bf16", [LS_DT_F16] = "f16",
        [LS_DT_U8] = "u8"};
    return type == LS_DT_REAL && p->real_bytes == 8 ? "f64" : name[type];
}

static void put_profile_step(LsText *t, const LsTrace *x, uint32_t k, bool first, double times)
{
    const LsStep *s = &x->t->step[k];
    const int64_t ns = (int64_t)(times * (double)usual(x, k)), runs = x->run[k] > 0 ? x->run[k] : 1;
    ls_text_put(t, "%s\n{\"node\":%u,\"name\":", first ? "" : ",", s->node);
    ls_text_string(t, s->name);
    ls_text_put(t, ",\"op\":");
    ls_text_string(t, s->op);
    ls_text_put(t, ",\"elements\":[");
    for (uint32_t r = 0; r < s->nout; r++)
        ls_text_put(t, "%s%" PRId64, r ? "," : "", x->g->p->argument.count[s->count + r]);
    ls_text_put(t, "],\"types\":[");
    for (uint32_t r = 0; r < s->nout; r++)
        ls_text_put(t, "%s\"%s\"", r ? "," : "",
                    type_name(x->g->p, (LsDataType)x->g->p->argument.type[s->count + r]));
    ls_text_put(t, "],\"again\":%s,\"ns\":%" PRId64 ",\"mean_ns\":%" PRId64 ",\"least_ns\":%" PRId64
                "}", s->again ? "true" : "false", ns, x->total[k] / runs, x->least[k]);
}

/* The head of the profile; the steps follow. */
static void put_profile_head(LsText *t, const LsTrace *x, uint32_t n, int threads)
{
    int64_t runs = 0, mine = 0, sum = 0;
    for (uint32_t s = 0; s < n; s++) {
        mine = runs_of(&x[s]) + (s > 0 && x[s].lane == x[s - 1].lane ? mine : 0);
        runs = mine > runs ? mine : runs;
    }
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t k = 0; k < x[s].t->nstep; k++)
            sum += x[s].total[k];
    ls_text_put(t, "{\"schema\":1,\"model\":");
    ls_text_string(t, x->g->p->about.model);
    ls_text_put(t, ",\"plan\":");
    ls_text_string(t, x->g->p->about.plan_hash);
    ls_text_put(t,
                ",\"threads\":%d,\"real_bytes\":%d,\"batch\":%" PRId64 ",\"runs\":%" PRId64
                ",\"step_ns\":%" PRId64 ",\"steps\":[",
                threads, x->g->p->real_bytes, x->g->p->division.samples, runs,
                sum / (runs > 0 ? runs : 1));
}

bool ls_profile_write(const LsTrace *x, uint32_t n, const char *path, int threads, LsError *e)
{
    LsOut o;
    char part[PART];
    LsText t = {part, 0, sizeof part, to_out, &o};
    bool first = true;
    if (!ls_out_open(&o, path, e))
        return false;
    put_profile_head(&t, x, n, threads);
    for (uint32_t s = 0; s < n; s++) {
        const double times = disturbed(&x[s]);
        const bool ran = runs_of(&x[s]) > 0;
        for (uint32_t k = 0; k < x[s].t->nstep; k++) {
            if (ran && x[s].run[k] == 0)        /* the late phase, by a plan that is never the last
                                                 * of an update */
                continue;
            put_profile_step(&t, &x[s], k, first, times);
            first = false;
        }
    }
    ls_text_put(&t, "\n]}\n");
    ls_text_flush(&t);
    return ls_out_commit(&o, e);
}
