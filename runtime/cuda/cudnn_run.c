/* runtime/cuda/cudnn_run.c -- see cudnn_run.h. */
#include "runtime/cuda/cudnn_run.h"

#include "runtime/cuda/cudnn_graph.h"
#include "runtime/cuda/plan_cache.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 10, TENSORS = 4 };      /* plans that are timed; x, w, y, bias */

typedef struct Pack {           /* the tensors' addresses of one step, and cuDNN's form of them */
    void *at[TENSORS + 1];      /* the workspace last */
    LsDnnDesc desc;
} Pack;

typedef struct Ready {          /* a convolution made ready */
    const LsCudaConv *c;
    LsDnnPlan plan;             /* .plan NULL: not yet */
    bool kept;                  /* as the compiler made it */
    bool timed;                 /* no clock is needed any more */
    bool ran;
    Pack *pack; int npack, cap;
} Ready;

struct LsDnnRuns {
    LsDnn lib;
    LsDnnDesc device;
    void *handle, *stream;      /* handle: made when a convolution first runs */
    char *json;                 /* of the device */
    LsPlanCache *cache;         /* of choices by the clock */
    const LsStopwatch *tune;
    FILE *notes;
    bool noted;
    Ready *ready; int nready, cap;
    LsDnnTally tally;
};

/* ---- what plans are for ---- */
/* The number behind "name": in cuDNN's JSON; -1: not there. */
static int64_t number_of(const char *json, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(json, key);
    return at != NULL ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/* The text behind "name":, without its quotes. */
static void word_of(const char *json, const char *name, char *word, size_t size)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(json, key);
    at = at != NULL ? strchr(at + strlen(key), '"') : NULL;
    const char *end = at != NULL ? strchr(at + 1, '"') : NULL;
    snprintf(word, size, "%.*s", end != NULL ? (int)(end - at - 1) : 1, end != NULL ? at + 1 : "?");
}

static bool same_number(const char *a, const char *b, const char *name)
{
    int64_t v = number_of(a, name);
    return v >= 0 && v == number_of(b, name);
}

/* Whether the compiler planned for this version and such a device. */
static bool fits(const LsDnnRuns *r, const char *plan)
{
    return number_of(plan, "cudnnVersion") == r->lib.version
        && same_number(plan, r->json, "deviceVer")
        && same_number(plan, r->json, "multiProcessorCount");
}

static void say_again(LsDnnRuns *r, const char *plan)
{
    char was[80] = "an unknown device", is[80];
    int64_t then = plan != NULL ? number_of(plan, "cudnnVersion") : 0, now = r->lib.version;
    if (r->noted || r->notes == NULL)
        return;
    r->noted = true;
    word_of(r->json, "deviceName", is, sizeof is);
    if (plan == NULL) {
        fprintf(r->notes, "note: convolutions were compiled without cuDNN; planned now, for %s\n",
                is);
        return;
    }
    word_of(plan, "deviceName", was, sizeof was);
    fprintf(r->notes, "note: convolutions were planned for %s and cuDNN %" PRId64 ".%" PRId64 ".%"
            PRId64 "; here are %s and %" PRId64 ".%" PRId64 ".%" PRId64 ": planned again, within "
            "the same workspace\n", was, then / 10000, then / 100 % 100, then % 100, is,
            now / 10000, now / 100 % 100, now % 100);
}

/* ---- plans ---- */
/* Bytes that a plan may take of the room at arg_workspace, wherever that begins. */
static int64_t room_of(const LsCudaConv *c)
{
    int64_t room = c->arg_workspace >= 0 ? c->workspace - (LS_CONV_ALIGNMENT - 1) : 0;
    return room > 0 ? room : 0;
}

/* Takes a plan from text if it reads and fits the room. */
static bool take(LsDnnRuns *r, Ready *q, const char *json)
{
    char err[500];
    LsDnnPlan p;
    if (!ls_dnn_plan_load(&r->lib, r->device, json, &p, err, sizeof err))
        return false;
    if (p.workspace > room_of(q->c)) {
        ls_dnn_drop(&r->lib, p.plan);
        return false;
    }
    ls_dnn_drop(&r->lib, q->plan.plan);
    q->plan = p;
    return true;
}

static LsDnnSearch *search(LsDnnRuns *r, const Ready *q, const char *node, LsError *e)
{
    char why[500], text[LS_DNN_TEXT];
    const LsCudaConv *c = q->c;
    LsDnnSearch *s = ls_dnn_search(&r->lib, r->device, &c->conv, &c->rules, room_of(c),
                                   CANDIDATES, why, sizeof why);
    ls_dnn_conv_text(&c->conv, &c->rules, text);
    if (s == NULL)
        ls_fail(e, LS_EXIT_DEVICE, "%s%scuDNN %" PRId64 ".%" PRId64 " has no plan for a "
                "convolution (%s) within its %" PRId64 " bytes of workspace: %s",
                node != NULL ? node : "", node != NULL ? ": " : "", r->lib.version / 10000,
                r->lib.version / 100 % 100, text, room_of(c), why);
    return s;
}

/* Makes the plan again. It goes through its text, after which it needs no other descriptor. */
static bool make_again(LsDnnRuns *r, Ready *q, const char *node, LsError *e)
{
    LsDnnSearch *s = search(r, q, node, e);
    if (s == NULL)
        return false;
    char *json = ls_dnn_plan_json(&r->lib, ls_dnn_search_best(s));
    bool ok = json != NULL && take(r, q, json);
    free(json);
    ls_dnn_search_free(s);
    return ok || ls_fail(e, LS_EXIT_DEVICE, "%s%scuDNN does not take its own plan back",
                         node != NULL ? node : "", node != NULL ? ": " : "");
}

/* What the clock chose is kept by what it was chosen for, room included. */
static void tuned_key(const LsCudaConv *c, char *key, size_t size)
{
    char text[LS_DNN_TEXT];
    ls_dnn_conv_text(&c->conv, &c->rules, text);
    snprintf(key, size, "%s within %" PRId64, text, room_of(c));
}

static bool make_ready(LsDnnRuns *r, Ready *q, const char *node, LsError *e)
{
    char key[LS_DNN_TEXT + 40];
    const char *plan = q->c->plan;
    tuned_key(q->c, key, sizeof key);
    const char *timed = ls_plan_cache_find(r->cache, key);
    if (timed != NULL && take(r, q, timed)) {
        r->tally.timed++;
        q->timed = true;
        return true;
    }
    if (plan != NULL && fits(r, plan) && take(r, q, plan)) {
        r->tally.kept++;
        q->kept = true;
        return true;
    }
    say_again(r, plan);
    r->tally.again++;
    return make_again(r, q, node, e);
}

/* The entry of a convolution; NULL: out of memory. */
static Ready *entry(LsDnnRuns *r, const LsCudaConv *c, LsError *e)
{
    for (int k = 0; k < r->nready; k++)
        if (r->ready[k].c == c)
            return &r->ready[k];
    if (r->nready == r->cap) {
        int cap = r->cap > 0 ? 2 * r->cap : 64;
        Ready *more = realloc(r->ready, (size_t)cap * sizeof *more);
        if (more == NULL) {
            ls_fail(e, LS_EXIT_FAIL, "out of memory");
            return NULL;
        }
        r->ready = more;
        r->cap = cap;
    }
    r->ready[r->nready] = (Ready){.c = c};
    return &r->ready[r->nready++];
}

bool ls_dnn_ready(LsDnnRuns *r, const LsCudaConv *c, const char *node, LsError *e)
{
    Ready *q = entry(r, c, e);
    return q != NULL && (q->plan.plan != NULL || make_ready(r, q, node, e));
}

/* ---- running ---- */
static void addresses(const LsCudaConv *c, void *const arg[], void *at[TENSORS + 1])
{
    const int place[TENSORS] = {c->arg_x, c->arg_w, c->arg_y, c->arg_bias};
    for (int k = 0; k < TENSORS; k++)
        at[k] = place[k] >= 0 ? arg[place[k]] : NULL;
    uintptr_t room = c->arg_workspace >= 0 ? (uintptr_t)arg[c->arg_workspace] : 0;
    at[TENSORS] = (void *)((room + LS_CONV_ALIGNMENT - 1) / LS_CONV_ALIGNMENT * LS_CONV_ALIGNMENT);
}

static LsDnnDesc make_pack(const LsDnnRuns *r, void *const at[TENSORS + 1], LsError *e)
{
    static const int64_t uid[TENSORS] = {LS_DNN_X, LS_DNN_W, LS_DNN_Y, LS_DNN_B};
    LsDnnScope s = {.lib = &r->lib};
    int64_t name[TENSORS];
    void *place[TENSORS];
    int n = 0;
    for (int k = 0; k < TENSORS; k++)
        if (at[k] != NULL) {
            name[n] = uid[k];
            place[n++] = at[k];
        }
    LsDnnDesc d = ls_dnn_make(&s, LS_DNN_VARIANT_PACK);
    ls_dnn_set(&s, d, LS_DNN_PACK_UIDS, LS_DNN_T_INT64, n, name);
    ls_dnn_set(&s, d, LS_DNN_PACK_POINTERS, LS_DNN_T_POINTER, n, place);
    ls_dnn_set(&s, d, LS_DNN_PACK_WORKSPACE, LS_DNN_T_POINTER, 1, &at[TENSORS]);
    ls_dnn_finalize(&s, d, "addresses");
    if (s.failed) {
        ls_fail(e, LS_EXIT_DEVICE, "cuDNN: %s", s.err);
        d = NULL;
    } else {
        s.ndesc = 0;            /* the caller's now */
    }
    ls_dnn_scope_drop(&s);
    return d;
}

/* The pack of these addresses: few, as equal steps share a convolution. */
static LsDnnDesc pack_of(LsDnnRuns *r, Ready *q, void *const arg[], LsError *e)
{
    void *at[TENSORS + 1];
    addresses(q->c, arg, at);
    for (int k = 0; k < q->npack; k++)
        if (memcmp(q->pack[k].at, at, sizeof at) == 0)
            return q->pack[k].desc;
    if (q->npack == q->cap) {
        int cap = q->cap > 0 ? 2 * q->cap : 4;
        Pack *more = realloc(q->pack, (size_t)cap * sizeof *more);
        if (more == NULL) {
            ls_fail(e, LS_EXIT_FAIL, "out of memory");
            return NULL;
        }
        q->pack = more;
        q->cap = cap;
    }
    Pack *p = &q->pack[q->npack];
    memcpy(p->at, at, sizeof at);
    p->desc = make_pack(r, at, e);
    q->npack += p->desc != NULL;
    return p->desc;
}

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

typedef struct Job { LsDnnRuns *r; LsDnnDesc plan, pack; int status; } Job;

static bool execute(void *job)
{
    Job *j = job;
    j->status = j->r->lib.api.BackendExecute(j->r->handle, j->plan, j->pack);
    return j->status == LS_DNN_OK;
}

/* Times what may serve and keeps the fastest; the plan stays where none can be timed. */
static void tune(LsDnnRuns *r, Ready *q, LsDnnDesc pack)
{
    LsError ignored = {0};
    LsDnnSearch *s = search(r, q, NULL, &ignored);
    char key[LS_DNN_TEXT + 40], *best = NULL;
    double least = 0;
    q->timed = true;
    for (int k = 0; s != NULL && k < ls_dnn_search_count(s); k++) {
        const LsDnnPlan *p = ls_dnn_search_plan(s, k);
        Job j = {.r = r, .plan = p->plan, .pack = pack};
        double ns = r->tune->time(r->tune->self, execute, &j);
        if (ns < 0 || (best != NULL && ns >= least))
            continue;
        char *json = ls_dnn_plan_json(&r->lib, p);
        if (json != NULL) {
            free(best);
            best = json;
            least = ns;
        }
    }
    ls_dnn_search_free(s);
    if (best != NULL && take(r, q, best)) {
        q->kept = false;
        r->tally.timed++;
        tuned_key(q->c, key, sizeof key);
        ls_plan_cache_put(r->cache, key, best);
    }
    free(best);
}

bool ls_dnn_run(LsDnnRuns *r, const LsCudaConv *c, void *const arg[], void *stream, LsError *e)
{
    char why[400];
    if (!ls_dnn_ready(r, c, NULL, e) || !start(r, stream, e))
        return false;
    Ready *q = entry(r, c, e);
    LsDnnDesc pack = pack_of(r, q, arg, e);
    if (pack == NULL)
        return false;
    if (r->tune != NULL && !q->timed)
        tune(r, q, pack);
    Job j = {.r = r, .plan = q->plan.plan, .pack = pack};
    bool ok = execute(&j);
    /* A plan made from a description may yet be refused by the device. */
    if (!ok && !q->ran && q->kept) {
        say_again(r, c->plan);
        q->kept = false;
        r->tally.kept--;
        r->tally.again++;
        if (!make_again(r, q, NULL, e))
            return false;
        j.plan = q->plan.plan;
        ok = execute(&j);
    }
    q->ran |= ok;
    if (ok)
        return true;
    ls_dnn_describe(&r->lib, "cuDNN does not run the convolution", j.status, why, sizeof why);
    return ls_fail(e, LS_EXIT_DEVICE, "%s", why);
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
    word_of(r->json, "deviceName", word, sizeof word);
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
        Ready *q = &r->ready[k];
        while (q->npack > 0)
            ls_dnn_drop(&r->lib, q->pack[--q->npack].desc);
        free(q->pack);
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
