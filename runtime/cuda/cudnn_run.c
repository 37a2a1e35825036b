/* runtime/cuda/cudnn_run.c -- see cudnn_run.h. */
#include "runtime/cuda/cudnn_run.h"

#include "runtime/cuda/cudnn_graph.h"
#include "runtime/cuda/cudnn_match.h"
#include "runtime/cuda/cudnn_tune.h"

#include <inttypes.h>
#include <stdlib.h>

enum { NOTES = 8 };             /* most convolutions named in notes */

/* ---- notes ---- */
/* why: the reason if the plan fits but cannot be used; NULL: it does not fit. */
static void say_again(LsDnnRuns *r, const char *plan, const char *why)
{
    if (!r->noted && r->notes != NULL)
        ls_dnn_note_again(r->notes, plan, r->json, r->lib.version, why);
    r->noted = true;
}

/* why: the reason that no single kernel computes the whole step. */
static void say_apart(LsDnnRuns *r, const LsError *why)
{
    if (r->notes != NULL && r->apart < NOTES)
        fprintf(r->notes, "note: %s; a kernel of the program does its epilogue\n", why->text);
    if (r->notes != NULL && r->apart == NOTES)
        fprintf(r->notes, "note: likewise of further convolutions\n");
    r->apart++;
}

/* ---- plans ---- */
/* Makes a plan on this device. The plan is reloaded from its text, so that it needs no other
 * descriptor. key: key in the cache, or NULL for none. */
static bool make_plan(LsDnnRuns *r, LsDnnReady *q, bool alone, const char *key, LsError *e)
{
    LsDnnSearch *s = ls_dnn_search_for(r, q, alone, e);
    if (s == NULL)
        return false;
    char *json = ls_dnn_plan_json(&r->lib, ls_dnn_search_best(s));
    LsError why = {0};
    bool ok = json != NULL && ls_dnn_take(r, q, json, alone, &why);
    if (ok && key != NULL)
        ls_plan_cache_put(r->cache, key, json);
    free(json);
    ls_dnn_search_free(s);
    return ok || ls_fail(e, LS_EXIT_DEVICE, "%s%scuDNN rejects its own plan",
                         q->node != NULL ? q->node : "", q->node != NULL ? ": " : "");
}

/* A plan for the whole step; else, if a kernel can do the rest, a plan for the convolution
 * alone. */
static bool make_again(LsDnnRuns *r, LsDnnReady *q, LsError *e)
{
    LsError why = {0};
    if (q->c->behind == NULL)
        return make_plan(r, q, false, NULL, e);
    if (make_plan(r, q, false, NULL, &why))
        return true;
    say_apart(r, &why);
    return make_plan(r, q, true, NULL, e);
}

/* A plan of a compiling engine: cached, as compiling takes seconds. */
static bool take_compiled(LsDnnRuns *r, LsDnnReady *q, LsError *why)
{
    char key[LS_DNN_KEY];
    ls_dnn_key(q->c, "once ", key);
    const char *known = ls_plan_cache_find(r->cache, key);
    return (known != NULL && ls_dnn_take(r, q, known, false, why))
        || make_plan(r, q, false, key, why);
}

static bool make_ready(LsDnnRuns *r, LsDnnReady *q, LsError *e)
{
    const char *plan = q->c->plan;
    LsError why = {0};
    if (ls_dnn_take_timed(r, q)) {
        r->tally.timed++;
        q->timed = true;
        return true;
    }
    if (plan != NULL && ls_dnn_plan_fits(plan, r->json, r->lib.version)) {
        if (q->c->alone && take_compiled(r, q, &why)) {
            r->tally.compiled++;
            return true;
        }
        if (q->c->alone)
            say_apart(r, &why);
        char *here = ls_dnn_plan_here(plan, r->json);
        bool ok = ls_dnn_take(r, q, here != NULL ? here : plan, q->c->alone, &why);
        free(here);
        if (ok) {
            r->tally.kept++;
            q->kept = true;
            return true;
        }
    }
    if (why.text[0] == '\0')             /* it was made for another device or another cuDNN */
        say_again(r, plan, NULL);
    r->tally.again++;
    return make_again(r, q, e);
}

/* The entry of a convolution; NULL: out of memory. */
static LsDnnReady *entry(LsDnnRuns *r, const LsCudaConv *c, LsError *e)
{
    for (int k = 0; k < r->nready; k++)
        if (r->ready[k].c == c)
            return &r->ready[k];
    if (r->nready == r->cap) {
        int cap = r->cap > 0 ? 2 * r->cap : 64;
        LsDnnReady *more = realloc(r->ready, (size_t)cap * sizeof *more);
        if (more == NULL) {
            ls_fail(e, LS_EXIT_FAIL, "out of memory");
            return NULL;
        }
        r->ready = more;
        r->cap = cap;
    }
    r->ready[r->nready] = (LsDnnReady){.c = c};
    return &r->ready[r->nready++];
}

bool ls_dnn_ready(LsDnnRuns *r, const LsCudaConv *c, const char *node, LsError *e)
{
    LsDnnReady *q = entry(r, c, e);
    if (q != NULL && q->node == NULL)
        q->node = node;
    return q != NULL && (q->plan.plan != NULL || q->own || make_ready(r, q, e));
}

/* ---- running ---- */
static bool start(LsDnnRuns *r, void *stream, LsError *e)
{
    int status = LS_DNN_OK;
    char why[400];
    if (r->handle == NULL) {
        status = r->lib.api.Create(&r->handle);
        r->stream = NULL;
    }
    if (status == LS_DNN_OK && r->stream != stream) {
        status = r->lib.api.SetStream(r->handle, stream);
        r->stream = stream;
    }
    if (status == LS_DNN_OK)
        return true;
    ls_dnn_describe(&r->lib, r->lib.file, status, why, sizeof why);
    return ls_fail(e, LS_EXIT_DEVICE, "cuDNN does not start: %s", why);
}

/* Makes another plan when the device refuses one that was made from a description, or one of a
 * compiling engine. */
static bool make_other(LsDnnRuns *r, LsDnnReady *q, const LsError *why, LsError *e)
{
    if (!q->kept) {
        say_apart(r, why);
        return make_plan(r, q, true, NULL, e);
    }
    say_again(r, q->c->plan, why->text);
    q->kept = false;
    r->tally.kept--;
    r->tally.again++;
    return make_again(r, q, e);
}

static void does_not_run(const LsDnnRuns *r, const LsDnnReady *q, int status, LsError *e)
{
    char why[400];
    ls_dnn_describe(&r->lib, "cuDNN does not run the convolution", status, why, sizeof why);
    ls_fail(e, LS_EXIT_DEVICE, "%s%s%s", q->node != NULL ? q->node : "",
            q->node != NULL ? ": " : "", why);
}

bool ls_dnn_run(LsDnnRuns *r, LsRun *run, const LsCudaConv *c, void *const arg[], void *stream,
                LsError *e)
{
    LsError why = {0};
    if (!ls_dnn_ready(r, c, NULL, e) || !start(r, stream, e))
        return false;
    LsDnnReady *q = entry(r, c, e);
    LsDnnJob j = {.r = r, .run = run, .arg = arg};
    if (r->tune != NULL && !q->timed)
        ls_dnn_tune_one(&j, q);
    if (q->own) {
        c->own(run, arg);
        return true;
    }
    if (!ls_dnn_set_job(&j, q, q->plan.plan, q->alone, e))
        return false;
    bool ok = ls_dnn_execute(&j);
    if (!ok && !q->ran && (q->kept || (c->behind != NULL && !q->alone))) {
        does_not_run(r, q, j.status, &why);
        if (!make_other(r, q, &why, e) || !ls_dnn_set_job(&j, q, q->plan.plan, q->alone, e))
            return false;
        ok = ls_dnn_execute(&j);
    }
    q->ran |= ok;
    if (ok)
        return true;
    does_not_run(r, q, j.status, e);
    return false;
}

/* ---- the whole ---- */
static bool open_device(LsDnnRuns *r, const LsDnnSetup *setup, LsError *e)
{
    char why[1300], name[120], word[80];
    r->device = setup->described != NULL
        ? ls_dnn_device_of_json(&r->lib, setup->described, why, sizeof why)
        : ls_dnn_device_of_id(&r->lib, setup->device, why, sizeof why);
    if (r->device == NULL)
        return ls_fail(e, LS_EXIT_DEVICE, "%.500s", why);
    r->json = ls_dnn_device_json(&r->lib, r->device);
    if (r->json == NULL)
        return ls_fail(e, LS_EXIT_DEVICE, "cuDNN does not describe the device");
    ls_dnn_device_name(r->json, word, sizeof word);
    for (char *s = word; *s != '\0'; s++)
        *s = *s == ' ' || *s == '/' ? '-' : *s;
    snprintf(name, sizeof name, "cudnn-%" PRId64 "-%s.tuned", r->lib.version, word);
    r->cache = ls_plan_cache_open(setup->cache, name);
    return r->cache != NULL || ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

bool ls_dnn_runs_open(LsDnnRuns **to, const LsDnnSetup *setup, LsError *e)
{
    char why[1300];
    LsDnnRuns *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    r->notes = setup->notes;
    bool ok = ls_dnn_open(&r->lib, why, sizeof why);
    if (!ok)
        ls_fail(e, LS_EXIT_DEVICE, "%.500s", why);
    if (!ok || !open_device(r, setup, e)) {
        ls_dnn_runs_close(r);
        return false;
    }
    *to = r;
    return true;
}

void ls_dnn_runs_close(LsDnnRuns *r)
{
    if (r == NULL)
        return;
    ls_plan_cache_close(r->cache);
    for (int k = 0; k < r->nready; k++) {
        LsDnnReady *q = &r->ready[k];
        ls_dnn_packs_drop(&q->packs, &r->lib);
        ls_dnn_drop(&r->lib, q->plan.plan);
    }
    free(r->ready);
    ls_dnn_drop(&r->lib, r->device);
    if (r->handle != NULL)
        r->lib.api.Destroy(r->handle);
    free(r->json);
    ls_dnn_close(&r->lib);
    free(r);
}

void ls_dnn_tune(LsDnnRuns *r, const LsStopwatch *watch) { r->tune = watch; }

LsDnnTally ls_dnn_tally(const LsDnnRuns *r) { return r->tally; }
