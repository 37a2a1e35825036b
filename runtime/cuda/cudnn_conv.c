/* runtime/cuda/cudnn_conv.c -- see cudnn_conv.h. */
#include "runtime/cuda/cudnn_conv.h"

#include "runtime/cuda/cudnn_graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROPOSALS = 128,            /* most engine configurations examined per mode */
    FAILURES = 3,               /* failed builds of compiling plans, seconds each, before giving
                                 * up */
};

struct LsDnnSearch {
    LsDnnScope scope;
    LsDnnPlan *plan; int nplan;
    int64_t bytes;              /* of the graph's tensors */
};

/* A text attribute. */
static char *text_of(const LsDnn *lib, LsDnnDesc d, int name)
{
    int64_t n = 0;
    if (lib->api.BackendGetAttribute(d, name, LS_DNN_T_CHAR, 0, &n, NULL) != LS_DNN_OK || n <= 0)
        return NULL;
    char *text = calloc((size_t)n + 1, 1);
    if (text != NULL
        && lib->api.BackendGetAttribute(d, name, LS_DNN_T_CHAR, n, &n, text) != LS_DNN_OK) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- devices ---- */
static LsDnnDesc device(const LsDnn *lib, int name, int type, int64_t n, const void *value,
                        char *err, size_t size)
{
    LsDnnScope s = {.lib = lib};
    LsDnnDesc d = ls_dnn_make(&s, LS_DNN_DEVICE);
    ls_dnn_set(&s, d, name, type, n, value);
    ls_dnn_finalize(&s, d, "device");
    if (s.failed) {
        int v = (int)lib->version;
        snprintf(err, size, "cuDNN %d.%d.%d (%s) takes no description of a device: %s", v / 10000,
                 v / 100 % 100, v % 100, lib->file, s.err);
        ls_dnn_scope_drop(&s);
        return NULL;
    }
    s.ndesc = 0;                /* now owned by the caller */
    ls_dnn_scope_drop(&s);
    return d;
}

LsDnnDesc ls_dnn_device_of_json(const LsDnn *lib, const char *json, char *err, size_t size)
{
    return device(lib, LS_DNN_DEVICE_JSON, LS_DNN_T_CHAR, (int64_t)strlen(json), json, err, size);
}

LsDnnDesc ls_dnn_device_of_id(const LsDnn *lib, int32_t id, char *err, size_t size)
{
    return device(lib, LS_DNN_DEVICE_ID, LS_DNN_T_INT32, 1, &id, err, size);
}

char *ls_dnn_device_json(const LsDnn *lib, LsDnnDesc device)
{
    return text_of(lib, device, LS_DNN_DEVICE_JSON);
}

/* ---- searching ---- */
static void print_list(char *text, const char *name, const int64_t *v, int n)
{
    size_t at = strlen(text);
    for (int k = 0; k < n && at < LS_DNN_TEXT; k++)
        at += (size_t)snprintf(text + at, LS_DNN_TEXT - at, "%s%s%" PRId64, k > 0 ? "," : name,
                               k == 0 ? " " : "", v[k]);
}

void ls_dnn_conv_text(const LsDnnConv *c, const LsDnnRules *r, char *text)
{
    static const char *const kind[] = {"forward", "data", "weights"};
    snprintf(text, LS_DNN_TEXT, "%s%s%s%s%s %sf%d%s%s%s", kind[c->kind], c->bias ? "+bias" : "",
             c->relu ? "+relu" : "", c->mask ? "+mask" : "", c->statistics ? "+statistics" : "",
             c->brain ? "b" : "", 8 * c->real_bytes, r->tf32 ? " tf32" : "",
             r->nondeterministic ? " nondeterministic" : "", r->compiled ? " compiled" : "");
    print_list(text, " x", c->x, 2 + c->axes);
    print_list(text, " w", c->w, 2 + c->axes);
    print_list(text, " y", c->y, 2 + c->axes);
    print_list(text, " stride", c->stride, c->axes);
    print_list(text, " dilation", c->dilation, c->axes);
    print_list(text, " pad", c->pad_lo, c->axes);
    print_list(text, "", c->pad_hi, c->axes);
}

int64_t ls_dnn_conv_bytes(const LsDnnConv *c)
{
    int64_t x = 1, w = 1, y = 1;
    for (int k = 0; k < 2 + c->axes; k++) {
        x *= c->x[k];
        w *= c->w[k];
        y *= c->y[k];
    }
    return (x * (c->mask ? 2 : 1) + w + y) * c->real_bytes;
}

/* The notes of an engine as bits. */
static uint32_t notes(const LsDnn *lib, LsDnnDesc engine, int name, int type)
{
    int32_t note[LS_DNN_NUMERICS];
    int64_t n = 0;
    uint32_t bits = 0;
    if (lib->api.BackendGetAttribute(engine, name, type, LS_DNN_NUMERICS, &n, note) != LS_DNN_OK)
        return 0;
    for (int64_t k = 0; k < n && k < LS_DNN_NUMERICS; k++)
        if (note[k] >= 0 && note[k] < 32)
            bits |= UINT32_C(1) << note[k];
    return bits;
}

static bool has(uint32_t bits, int note)
{
    return bits >> note & 1;
}

/* Whether the rules allow the engine of this configuration; its number and notes in p. */
static bool allowed(LsDnnScope *s, const LsDnnConv *c, const LsDnnRules *rules, LsDnnDesc config,
                    LsDnnPlan *p)
{
    const LsDnn *lib = s->lib;
    LsDnnDesc engine = ls_dnn_make(s, LS_DNN_ENGINE);
    int64_t n = 0, index = -1;
    if (engine == NULL
        || lib->api.BackendGetAttribute(config, LS_DNN_CONFIG_ENGINE, LS_DNN_T_DESC, 1, &n, &engine)
            != LS_DNN_OK)
        return false;
    lib->api.BackendGetAttribute(engine, LS_DNN_ENGINE_INDEX, LS_DNN_T_INT64, 1, &n, &index);
    uint32_t num = notes(lib, engine, LS_DNN_ENGINE_NUMERICS, LS_DNN_T_NUMERICS);
    uint32_t how = notes(lib, engine, LS_DNN_ENGINE_BEHAVIOR, LS_DNN_T_BEHAVIOR);
    p->engine = (int)index;
    p->tensor_core = has(num, LS_DNN_TENSOR_CORE);
    p->compiled = has(how, LS_DNN_RUNTIME_COMPILATION);
    /* Tensor cores compute floats in TF32. Sums in half precision are not allowed. */
    bool single = c->real_bytes == 4;
    bool coarse =
        c->real_bytes != 8 && (has(num, LS_DNN_DOWN_CONVERT) || has(num, LS_DNN_REDUCED_SUMS));
    return !coarse && (rules->tf32 || !single || !p->tensor_core)
        && (rules->nondeterministic || !has(num, LS_DNN_NONDETERMINISTIC))
        && (rules->compiled || !p->compiled);
}

/* Builds the plan of a configuration; false: unsuitable for this device or workspace. */
static bool make_plan(LsDnnScope *s, LsDnnDesc device, LsDnnDesc config, int64_t workspace,
                      LsDnnPlan *p)
{
    const LsDnn *lib = s->lib;
    int64_t n = 0;
    p->plan = ls_dnn_make(s, LS_DNN_PLAN);
    ls_dnn_set_desc(s, p->plan, LS_DNN_PLAN_CONFIG, config);
    ls_dnn_set_desc(s, p->plan, LS_DNN_PLAN_DEVICE, device);
    if (s->failed || lib->api.BackendFinalize(p->plan) != LS_DNN_OK)
        return false;
    p->workspace = -1;
    lib->api.BackendGetAttribute(p->plan, LS_DNN_PLAN_WORKSPACE, LS_DNN_T_INT64, 1, &n,
                                 &p->workspace);
    return p->workspace >= 0 && p->workspace <= workspace;
}

/* Number of configurations that one mode proposes. */
static int propose(LsDnnScope *s, LsDnnDesc graph, LsDnnDesc device, int mode,
                   LsDnnDesc config[PROPOSALS])
{
    const LsDnn *lib = s->lib;
    int64_t n = 0;
    LsDnnDesc h = ls_dnn_make(s, LS_DNN_HEURISTICS);
    ls_dnn_set_desc(s, h, LS_DNN_HEURISTICS_GRAPH, graph);
    ls_dnn_set(s, h, LS_DNN_HEURISTICS_MODE, LS_DNN_T_HEURISTICS_MODE, 1, &mode);
    ls_dnn_set_desc(s, h, LS_DNN_HEURISTICS_DEVICE, device);
    if (s->failed || lib->api.BackendFinalize(h) != LS_DNN_OK
        || lib->api.BackendGetAttribute(h, LS_DNN_HEURISTICS_RESULTS, LS_DNN_T_DESC, 0, &n, NULL)
            != LS_DNN_OK)
        return 0;
    n = n < PROPOSALS ? n : PROPOSALS;
    for (int64_t k = 0; k < n; k++)
        config[k] = ls_dnn_make(s, LS_DNN_ENGINE_CONFIG);
    if (s->failed
        || lib->api.BackendGetAttribute(h, LS_DNN_HEURISTICS_RESULTS, LS_DNN_T_DESC, n, &n, config)
            != LS_DNN_OK)
        return 0;
    return (int)n;
}

static void search_mode(LsDnnSearch *f, LsDnnDesc graph, LsDnnDesc device, int mode,
                        const LsDnnConv *c, const LsDnnRules *rules, int64_t workspace, int room)
{
    LsDnnDesc config[PROPOSALS];
    int n = propose(&f->scope, graph, device, mode, config), failures = 0;
    for (int k = 0; k < n && f->nplan < room && !f->scope.failed; k++) {
        LsDnnPlan p = {.plan = NULL};
        if (!allowed(&f->scope, c, rules, config[k], &p) || (p.compiled && failures == FAILURES))
            continue;
        if (!make_plan(&f->scope, device, config[k], workspace, &p)) {
            failures += p.compiled;
            continue;
        }
        p.place = f->nplan;
        f->plan[f->nplan++] = p;
    }
}

/* Heuristic modes, in the order of use. */
static const int modes[] = {LS_DNN_MODE_A, LS_DNN_MODE_B, LS_DNN_MODE_FALLBACK};

static int modes_of(const LsDnnRules *rules)
{
    return rules->first ? 1 : (int)(sizeof modes / sizeof *modes);
}

LsDnnSearch *ls_dnn_search(const LsDnn *lib, LsDnnDesc device, const LsDnnConv *c,
                           const LsDnnRules *rules, int64_t workspace, int room, char *err,
                           size_t size)
{
    LsDnnSearch *f = calloc(1, sizeof *f);
    if (f == NULL || (f->plan = calloc((size_t)room, sizeof *f->plan)) == NULL) {
        snprintf(err, size, "out of memory");
        free(f);
        return NULL;
    }
    f->scope.lib = lib;
    f->bytes = ls_dnn_conv_bytes(c);
    LsDnnDesc graph = ls_dnn_conv_graph(&f->scope, c);
    for (int k = 0; k < modes_of(rules) && f->nplan == 0 && !f->scope.failed; k++)
        search_mode(f, graph, device, modes[k], c, rules, workspace, room);
    if (f->nplan > 0)
        return f;
    snprintf(err, size, "%s", f->scope.failed ? f->scope.err
                                              : "no engine of cuDNN serves this convolution");
    ls_dnn_search_free(f);
    return NULL;
}

bool ls_dnn_supports(const LsDnn *lib, LsDnnDesc device, const LsDnnConv *c,
                     const LsDnnRules *rules)
{
    LsDnnScope s = {.lib = lib};
    LsDnnDesc graph = ls_dnn_conv_graph(&s, c), config[PROPOSALS];
    bool found = false;
    for (int m = 0; m < modes_of(rules) && !found && !s.failed; m++) {
        int n = propose(&s, graph, device, modes[m], config);
        for (int k = 0; k < n && !found; k++)
            found = allowed(&s, c, rules, config[k], &(LsDnnPlan){.plan = NULL});
    }
    ls_dnn_scope_drop(&s);
    return found;
}

int ls_dnn_search_count(const LsDnnSearch *f) { return f->nplan; }
const LsDnnPlan *ls_dnn_search_plan(const LsDnnSearch *f, int k) { return &f->plan[k]; }

const LsDnnPlan *ls_dnn_search_best(const LsDnnSearch *f)
{
    const LsDnnPlan *best = &f->plan[0];
    double least = 0;
    for (int k = 0; k < f->nplan; k++) {
        const LsDnnPlan *p = &f->plan[k];
        double loss = 0.15 * p->place + 0.25 * (double)p->workspace / (double)f->bytes;
        if (k == 0 || (loss < least && (p->tensor_core || !f->plan[0].tensor_core))) {
            best = p;
            least = loss;
        }
    }
    return best;
}

void ls_dnn_search_free(LsDnnSearch *f)
{
    if (f == NULL)
        return;
    ls_dnn_scope_drop(&f->scope);
    free(f->plan);
    free(f);
}

/* ---- plans as text ---- */
char *ls_dnn_plan_json(const LsDnn *lib, const LsDnnPlan *p)
{
    return text_of(lib, p->plan, LS_DNN_PLAN_JSON);
}

bool ls_dnn_plan_load(const LsDnn *lib, LsDnnDesc device, const char *json, LsDnnPlan *p, char *err,
                      size_t size)
{
    LsDnnScope s = {.lib = lib};
    int64_t n = 0;
    *p = (LsDnnPlan){.workspace = -1, .engine = -1};
    LsDnnDesc plan = ls_dnn_make(&s, LS_DNN_PLAN);
    ls_dnn_set(&s, plan, LS_DNN_PLAN_JSON, LS_DNN_T_CHAR, (int64_t)strlen(json), json);
    ls_dnn_set_desc(&s, plan, LS_DNN_PLAN_DEVICE, device);
    ls_dnn_finalize(&s, plan, "stored plan");
    if (!s.failed)
        lib->api.BackendGetAttribute(plan, LS_DNN_PLAN_WORKSPACE, LS_DNN_T_INT64, 1, &n,
                                     &p->workspace);
    if (!s.failed && p->workspace < 0) {
        s.failed = true;
        snprintf(s.err, sizeof s.err, "stored plan: no workspace size");
    }
    if (s.failed)
        snprintf(err, size, "%s", s.err);
    else
        s.ndesc = 0;            /* now owned by the caller */
    p->plan = s.failed ? NULL : plan;
    ls_dnn_scope_drop(&s);
    return p->plan != NULL;
}
