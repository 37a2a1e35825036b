/* runtime/cuda/cudnn_tune.c -- see cudnn_tune.h. */
#include "runtime/cuda/cudnn_tune.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Cached in place of a plan; prefix of a plan for a convolution alone. */
static const char own_word[] = "own", alone_word[] = "alone ";

void ls_dnn_key(const LsCudaConv *c, const char *before, char *key)
{
    char text[LS_DNN_TEXT];
    ls_dnn_conv_text(&c->conv, &c->rules, text);
    snprintf(key, LS_DNN_KEY, "%s%s within %" PRId64, before, text, ls_dnn_room_of(c));
}

bool ls_dnn_take_timed(LsDnnRuns *r, LsDnnReady *q)
{
    char key[LS_DNN_KEY];
    size_t skip = sizeof alone_word - 1;
    ls_dnn_key(q->c, "", key);
    const char *timed = ls_plan_cache_find(r->cache, key);
    if (timed == NULL)
        return false;
    if (strcmp(timed, own_word) == 0)
        return q->own = q->c->own != NULL;
    bool alone = strncmp(timed, alone_word, skip) == 0;
    LsError why = {0};
    return (!alone || q->c->behind != NULL)
        && ls_dnn_take(r, q, timed + (alone ? skip : 0), alone, &why);
}

typedef struct Fastest { char *json; bool own, alone; double ns; } Fastest;

static void time_plans(LsDnnJob *j, LsDnnReady *q, bool alone, Fastest *best)
{
    LsDnnRuns *r = j->r;
    LsError ignored = {0};
    LsDnnSearch *s = ls_dnn_search_for(r, q, alone, &ignored);
    for (int k = 0; s != NULL && k < ls_dnn_search_count(s); k++) {
        const LsDnnPlan *p = ls_dnn_search_plan(s, k);
        double ns = -1;
        if (ls_dnn_set_job(j, q, p->plan, alone, &ignored))
            ns = r->tune->time(r->tune->self, ls_dnn_execute, j);
        if (ns < 0 || (best->json != NULL && ns >= best->ns))
            continue;
        char *json = ls_dnn_plan_json(&r->lib, p);
        if (json != NULL) {
            free(best->json);
            *best = (Fastest){.json = json, .alone = alone, .ns = ns};
        }
    }
    ls_dnn_search_free(s);
}

typedef struct Own { const LsCudaConv *c; LsRun *run; void *const *arg; } Own;

static bool run_own(void *job)
{
    const Own *o = job;
    o->c->own(o->run, o->arg);
    return true;
}

static void time_own(const LsDnnJob *j, const LsCudaConv *c, Fastest *best)
{
    Own own = {c, j->run, j->arg};
    const LsStopwatch *watch = j->r->tune;
    double ns = watch->time(watch->self, run_own, &own);
    if (ns >= 0 && (best->json == NULL || ns < best->ns)) {
        best->own = true;
        best->ns = ns;
    }
}

/* Caches the choice for later processes. */
static void keep(LsDnnRuns *r, const LsCudaConv *c, const Fastest *best)
{
    char key[LS_DNN_KEY];
    ls_dnn_key(c, "", key);
    if (best->own) {
        ls_plan_cache_put(r->cache, key, own_word);
        return;
    }
    size_t size = strlen(best->json) + sizeof alone_word;
    char *text = malloc(size);
    if (text == NULL)
        return;
    snprintf(text, size, "%s%s", best->alone ? alone_word : "", best->json);
    ls_plan_cache_put(r->cache, key, text);
    free(text);
}

void ls_dnn_tune_one(LsDnnJob *j, LsDnnReady *q)
{
    LsDnnRuns *r = j->r;
    Fastest best = {.json = NULL};
    LsError ignored = {0};
    q->timed = true;
    if (q->c->alone)
        time_plans(j, q, false, &best);
    time_plans(j, q, q->c->alone || q->alone, &best);
    if (q->c->own != NULL)
        time_own(j, q->c, &best);
    q->own = best.own;
    if (best.own || (best.json != NULL && ls_dnn_take(r, q, best.json, best.alone, &ignored))) {
        q->kept = false;
        r->tally.timed++;
        keep(r, q->c, &best);
    }
    free(best.json);
}
