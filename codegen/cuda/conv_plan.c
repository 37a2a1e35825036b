/* codegen/cuda/conv_plan.c */
#include "codegen/cuda/conv_plan.h"

#include "base/arena.h"
#include "base/fnv.h"
#include "base/read_file.h"
#include "codegen/cuda/conv_device.h"
#include "codegen/emit/target.h"
#include "runtime/cuda/cudnn_graph.h"
#include "runtime/cuda/plan_cache.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    CANDIDATES = 24, MOST_JSON = 1 << 16,
    PARTIAL = 256 << 10,        /* bytes of partial sums per multiprocessor */
    SHARE = 8,                  /* partial sums are at most 1 / SHARE of the tensors' bytes */
};

typedef struct Known { const char *key; const LsConvChoice *choice; } Known;

struct LsConvPlanner {
    LsArena *a;
    LsConvWishes wishes;
    const char *json;           /* of the device */
    LsDnn lib;
    LsDnnDesc device;           /* made when the first plan is not in the cache */
    const char *estimates;      /* the reason for estimates; NULL: exact */
    LsPlanCache *cache;
    Known *known; uint32_t nknown, cap;
};

/* ---- from nodes ---- */
/* Sets the padding at the end of x along axis k so that there are as many windows as elements of y:
 * the windows may not cover the x of a transposed convolution to its end. False: no padding does
 * it. */
static bool fit_window(LsDnnConv *c, int k)
{
    int64_t x = c->x[2 + k], y = c->y[2 + k], span = (c->w[2 + k] - 1) * c->dilation[k] + 1;
    int64_t room = x + c->pad_lo[k] + c->pad_hi[k] - span;
    if (room < 0 || room / c->stride[k] + 1 != y) {
        int64_t pad = (y - 1) * c->stride[k] + span - c->pad_lo[k] - x;
        c->pad_hi[k] = pad > 0 ? pad : 0;
        room = x + c->pad_lo[k] + c->pad_hi[k] - span;
    }
    return room >= 0 && room / c->stride[k] + 1 == y && c->pad_lo[k] >= 0 && c->pad_hi[k] >= 0;
}

bool ls_conv_of_node(const LsGraph *g, LsNodeId n, int real_bytes, LsDnnConv *c, const char **why)
{
    const LsNode *node = &g->node[n.i];
    const LsWindowAttr *at = &node->attr.window;
    bool data = node->op == LS_OP_CONV_DX, weights = node->op == LS_OP_CONV_DW, fits = true;
    const LsShape *in = ls_in_shape(g, n, 0), *in1 = ls_in_shape(g, n, 1);
    const LsShape *out = ls_shape(g, ls_out(g, n, 0));
    const LsShape *x = data ? out : weights ? in1 : in, *w = weights ? out : in1;
    const LsShape *y = data || weights ? in : out;
    int more = at->n == 1;              /* add a leading axis of length 1 */
    const LsType type = ls_type(g, ls_in(g, n, 0));
    *c = (LsDnnConv){.kind = data      ? LS_DNN_CONV_DATA
                             : weights ? LS_DNN_CONV_WEIGHTS
                                       : LS_DNN_CONV_FORWARD,
                     .axes = at->n + more,
                     .real_bytes = ls_type_bytes(type, real_bytes),
                     .brain = type == LS_BF16,
                     .bias = !weights && ls_is(ls_in(g, n, 2)),
                     .relu = at->relu,
                     .mask = data && ls_is(ls_in(g, n, LS_CONV_MASK)),
                     .x = {x->dim[0], x->dim[1], 1},
                     .w = {w->dim[0], w->dim[1], 1},
                     .y = {y->dim[0], y->dim[1], 1},
                     .stride = {1},
                     .dilation = {1}};
    for (int k = 0; k < at->n; k++) {
        int to = k + more;
        c->x[2 + to] = x->dim[2 + k];
        c->w[2 + to] = w->dim[2 + k];
        c->y[2 + to] = y->dim[2 + k];
        c->stride[to] = at->stride[k];
        c->dilation[to] = at->dilation[k];
        c->pad_lo[to] = at->pad_lo[k];
        c->pad_hi[to] = at->pad_hi[k];
        fits &= fit_window(c, to);
    }
    if (!fits)
        *why = "cuDNN has no convolution whose window stops short of the result";
    return fits;
}

/* All that a choice depends on, except cuDNN and the device. */
static const char *key_of(const LsConvPlanner *p, const LsDnnConv *c)
{
    char text[LS_DNN_TEXT];
    ls_dnn_conv_text(c, &p->wishes.rules, text);
    return ls_arena_printf(p->a, "%s within %" PRId64, text, p->wishes.workspace);
}

/* ---- choices as text: "WORKSPACE ENGINE PLACE TENSOR_CORE JSON" ---- */
static const char *print_choice(LsArena *a, const LsConvChoice *c)
{
    return ls_arena_printf(a, "%" PRId64 " %d %d %d %s", c->workspace, c->engine, c->place,
                           c->tensor_core, c->json);
}

static const char none_word[] = "none";         /* in the cache: no engine serves the mask */

static bool read_choice(const char *text, LsConvChoice *c)
{
    int tensor_core, at = 0;
    if (sscanf(text, "%" SCNd64 " %d %d %d %n", &c->workspace, &c->engine, &c->place, &tensor_core,
               &at) != 4 || at == 0)
        return false;
    c->tensor_core = tensor_core != 0;
    c->json = text + at;
    size_t n = strlen(c->json);
    return c->workspace >= 0 && c->workspace < INT64_C(1) << 48 && n >= 2 && n < MOST_JSON
        && c->json[0] == '{' && c->json[n - 1] == '}';
}

/* ---- planning ---- */
/* Raises the workspace of a weight gradient. Its sums are long and few, and engines split them
 * among the free multiprocessors, which they take to be few without a device. A plan that needs no
 * workspace by its description needs 2 to 17 MB on an H200, and is 2 to 7 times slower without. */
static void leave_room(const LsConvWishes *w, LsConvChoice *to)
{
    int64_t partial = ls_dnn_conv_bytes(&to->conv) / SHARE;
    if (to->own || to->conv.kind != LS_DNN_CONV_WEIGHTS)
        return;
    if (partial > (int64_t)LS_GPU_PROCESSORS * PARTIAL)
        partial = (int64_t)LS_GPU_PROCESSORS * PARTIAL;
    if (w->workspace > 0 && partial > w->workspace)
        partial = w->workspace;
    if (partial > to->workspace)
        to->workspace = partial / LS_CONV_ALIGNMENT * LS_CONV_ALIGNMENT;
}

/* The choice without cuDNN: the workspace of its engines for channels-last floats on most
 * shapes. */
static void estimate(const LsDnnConv *c, const LsConvWishes *w, LsConvChoice *to)
{
    bool thin = c->x[1] % 4 != 0 || c->y[1] % 4 != 0 || c->x[1] != c->w[1];
    bool copies = thin || (!w->rules.tf32 && c->real_bytes != 2 && c->kind == LS_DNN_CONV_DATA);
    *to = (LsConvChoice){.conv = *c, .engine = -1};
    to->conv.bias = c->bias && c->kind == LS_DNN_CONV_FORWARD;
    to->bias_apart = c->bias && !to->conv.bias;
    to->workspace = copies ? ls_dnn_conv_bytes(c) : INT64_C(1) << 20;
    if (w->workspace > 0 && to->workspace > w->workspace)
        to->workspace = w->workspace;
}

static void own(const LsDnnConv *c, const char *why, LsConvChoice *to)
{
    *to = (LsConvChoice){.conv = *c, .own = true, .why = why, .engine = -1};
}

void ls_conv_estimate(const LsGraph *g, LsNodeId n, int real_bytes, const LsConvWishes *w,
                      LsConvChoice *to)
{
    LsDnnConv c;
    const char *why;
    if (ls_conv_of_node(g, n, real_bytes, &c, &why))
        estimate(&c, w, to);
    else
        own(&c, why, to);
    leave_room(w, to);
}

/* Searches the choice for exactly this graph; false with a sentence in err. */
static bool search(LsConvPlanner *p, const LsDnnConv *c, LsConvChoice *to, char *err, size_t size)
{
    int64_t most = p->wishes.workspace > 0 ? p->wishes.workspace : INT64_MAX;
    LsDnnRules rules = p->wishes.rules;
    rules.first = ls_dnn_has_epilogue(c);
    LsDnnSearch *s = ls_dnn_search(&p->lib, p->device, c, &rules, most, CANDIDATES, err, size);
    if (s == NULL)
        return false;
    const LsDnnPlan *best = ls_dnn_search_best(s);
    char *json = ls_dnn_plan_json(&p->lib, best);
    if (json == NULL) {
        snprintf(err, size, "cuDNN does not print the plan");
    } else {
        to->workspace = best->workspace;
        to->engine = best->engine;
        to->place = best->place;
        to->tensor_core = best->tensor_core;
        to->json = ls_arena_strdup(p->a, json);
    }
    free(json);
    ls_dnn_search_free(s);
    return to->json != NULL;
}

/* Makes the device on the first call; false: estimates. */
static bool have_device(LsConvPlanner *p)
{
    char err[1200];
    if (p->device == NULL && p->estimates == NULL) {
        p->device = ls_dnn_device_of_json(&p->lib, p->json, err, sizeof err);
        if (p->device == NULL)
            p->estimates = ls_arena_strdup(p->a, err);
    }
    return p->device != NULL;
}

/* The choice for exactly this graph, from the cache or searched; own if no engine serves. */
static void plan_graph(LsConvPlanner *p, const LsDnnConv *c, LsConvChoice *to)
{
    char err[500];
    *to = (LsConvChoice){.conv = *c, .engine = -1};
    const char *key = key_of(p, c), *text = ls_plan_cache_find(p->cache, key);
    if (text != NULL && read_choice(ls_arena_strdup(p->a, text), to))
        return;
    if (text != NULL && c->mask && strcmp(text, none_word) == 0) {
        own(c, "no engine of cuDNN serves the mask", to);
        return;
    }
    *to = (LsConvChoice){.conv = *c, .engine = -1};
    if (!have_device(p)) {
        estimate(c, &p->wishes, to);
        return;
    }
    /* The cache keeps no failures, as the reason may be gone next time, except for masks: with a
     * mask failure is the rule, and a search loads the heuristics. */
    if (search(p, c, to, err, sizeof err))
        ls_plan_cache_put(p->cache, key, print_choice(p->a, to));
    else
        own(c, ls_arena_strdup(p->a, err), to);
    if (to->own && c->mask)
        ls_plan_cache_put(p->cache, key, none_word);
}

static void plan(LsConvPlanner *p, const LsDnnConv *c, LsConvChoice *to)
{
    LsDnnConv bare = *c;
    bare.bias = false;
    if (p->estimates != NULL) {
        estimate(c, &p->wishes, to);
        return;
    }
    /* Only compiled engines add a bias to a data gradient. */
    if (c->bias && c->kind == LS_DNN_CONV_FORWARD) {
        plan_graph(p, c, to);
        if (!to->own)
            return;
    }
    bare.relu = false;
    plan_graph(p, &bare, to);
    to->bias_apart = c->bias && !to->own;
}

/* Plans a data gradient with a mask: as a whole, or alone with a kernel after it. */
static void plan_masked(LsConvPlanner *p, const LsDnnConv *c, LsConvChoice *to)
{
    const LsDnnConv alone = ls_dnn_alone(c);
    if (p->estimates == NULL) {
        plan_graph(p, c, to);
        if (!to->own)
            return;
    }
    LsDnnRules rules = p->wishes.rules;
    rules.compiled = rules.first = true;
    plan(p, &alone, to);
    to->conv.mask = to->alone = true;
    to->compiled = p->wishes.compiled && !to->own && have_device(p)
        && ls_dnn_supports(&p->lib, p->device, c, &rules);
}

static const LsConvChoice *choose(LsConvPlanner *p, const LsDnnConv *c)
{
    const char *key = key_of(p, c);
    for (uint32_t k = 0; k < p->nknown; k++)
        if (strcmp(p->known[k].key, key) == 0)
            return p->known[k].choice;
    LsConvChoice *to = ls_arena_alloc(p->a, 1, sizeof *to);
    if (c->mask)
        plan_masked(p, c, to);
    else
        plan(p, c, to);
    leave_room(&p->wishes, to);
    p->known = ls_arena_grow(p->a, p->known, p->nknown, p->nknown + 1, sizeof *p->known, &p->cap);
    p->known[p->nknown++] = (Known){key, to};
    return to;
}

const LsConvChoice *ls_conv_choose(LsConvPlanner *p, const LsGraph *g, LsNodeId n, int real_bytes)
{
    const char *why = NULL;
    LsDnnConv c;
    if (ls_conv_of_node(g, n, real_bytes, &c, &why))
        return choose(p, &c);
    LsConvChoice *to = ls_arena_alloc(p->a, 1, sizeof *to);
    own(&c, why, to);
    return to;
}

bool ls_conv_takes_mask(LsConvPlanner *p, const LsGraph *g, LsNodeId n, int real_bytes)
{
    const char *why;
    LsDnnConv c;
    if (!ls_conv_of_node(g, n, real_bytes, &c, &why))
        return false;
    c.mask = true;
    const LsConvChoice *choice = choose(p, &c);
    return choice->json != NULL && (!choice->alone || choice->compiled);
}

/* ---- the planner ---- */
static const char *read_text(LsArena *a, const char *path)
{
    size_t n;
    const char *text = ls_read_file_into(a, path, MOST_JSON, &n);
    return text != NULL && n > 0 && strlen(text) == n ? text : NULL;
}

static const char *device_json(LsArena *a, const char *name)
{
    for (const LsConvDevice *d = ls_conv_devices; d->name != NULL; d++)
        if (strcmp(d->name, name) == 0)
            return d->json;
    return strchr(name, '/') != NULL || strstr(name, ".json") != NULL ? read_text(a, name) : NULL;
}

/* Plans hold for one version of cuDNN and one device. */
static const char *cache_name(const LsConvPlanner *p)
{
    uint64_t h = ls_fnv_text(LS_FNV_START, p->json);
    return ls_arena_printf(p->a, "cudnn-%" PRId64 "-%016" PRIx64 ".plans", p->lib.version, h);
}

LsConvPlanner *ls_conv_planner_new(LsArena *a, const LsConvWishes *w)
{
    char text[4200];
    LsConvPlanner *p = ls_arena_alloc(a, 1, sizeof *p);
    p->a = a;
    p->wishes = *w;
    p->json = device_json(a, w->device);
    if (p->json == NULL) {
        p->estimates = ls_arena_printf(a, "no description of the device '%s' for cuDNN", w->device);
        return p;
    }
    if (!ls_dnn_open(&p->lib, text, sizeof text)) {
        p->estimates = ls_arena_strdup(a, text);
        return p;
    }
    p->cache = ls_plan_cache_open(ls_plan_cache_folder(text, sizeof text), cache_name(p));
    if (p->cache == NULL) {
        ls_dnn_close(&p->lib);
        p->estimates = "out of memory";
    }
    return p;
}

void ls_conv_planner_free(LsConvPlanner *p)
{
    if (p == NULL)
        return;
    ls_plan_cache_close(p->cache);
    ls_dnn_drop(&p->lib, p->device);
    ls_dnn_close(&p->lib);
}

const char *ls_conv_planner_estimates(const LsConvPlanner *p) { return p->estimates; }
int64_t ls_conv_planner_version(const LsConvPlanner *p) { return p->lib.version; }
const LsConvWishes *ls_conv_planner_wishes(const LsConvPlanner *p) { return &p->wishes; }
