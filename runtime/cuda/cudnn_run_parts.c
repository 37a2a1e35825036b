/* runtime/cuda/cudnn_run_parts.c -- see cudnn_run_parts.h. */
#include "runtime/cuda/cudnn_run_parts.h"

#include "runtime/cuda/cudnn_graph.h"

#include <inttypes.h>

enum {
    CANDIDATES = 10,            /* most plans that are timed */
    COMPILED = 3,               /* most timed plans of engines that compile for seconds */
};

int64_t ls_dnn_room_of(const LsCudaConv *c)
{
    int64_t room = c->arg_workspace >= 0 ? c->workspace - (LS_CONV_ALIGNMENT - 1) : 0;
    return room > 0 ? room : 0;
}

bool ls_dnn_take(LsDnnRuns *r, LsDnnReady *q, const char *json, bool alone, LsError *why)
{
    char err[500];
    LsDnnPlan p;
    if (!ls_dnn_plan_load(&r->lib, r->device, json, &p, err, sizeof err))
        return ls_fail(why, LS_EXIT_DEVICE, "%s", err);
    if (p.workspace > ls_dnn_room_of(q->c)) {
        ls_dnn_drop(&r->lib, p.plan);
        return ls_fail(why, LS_EXIT_DEVICE, "it takes %" PRId64 " bytes of %" PRId64, p.workspace,
                       ls_dnn_room_of(q->c));
    }
    ls_dnn_drop(&r->lib, q->plan.plan);
    q->plan = p;
    q->alone = alone;
    return true;
}

LsDnnSearch *ls_dnn_search_for(LsDnnRuns *r, const LsDnnReady *q, bool alone, LsError *e)
{
    char why[500], text[LS_DNN_TEXT];
    const LsCudaConv *c = q->c;
    const LsDnnConv conv = alone ? ls_dnn_alone(&c->conv) : c->conv;
    LsDnnRules rules = c->rules;
    bool compiled = c->alone && !alone;
    rules.first = compiled;
    rules.compiled &= compiled;
    int most = !compiled ? CANDIDATES : r->tune != NULL ? COMPILED : 1;
    LsDnnSearch *s = ls_dnn_search(&r->lib, r->device, &conv, &rules, ls_dnn_room_of(c), most, why,
                                   sizeof why);
    ls_dnn_conv_text(&conv, &rules, text);
    if (s == NULL)
        ls_fail(e, LS_EXIT_DEVICE, "%s%scuDNN %" PRId64 ".%" PRId64 " has no plan for a "
                "convolution (%s) within its %" PRId64 " bytes of workspace: %s",
                q->node != NULL ? q->node : "", q->node != NULL ? ": " : "", r->lib.version / 10000,
                r->lib.version / 100 % 100, text, ls_dnn_room_of(c), why);
    return s;
}

bool ls_dnn_execute(void *job)
{
    LsDnnJob *j = job;
    j->status = j->r->lib.api.BackendExecute(j->r->handle, j->plan, j->pack);
    if (j->status == LS_DNN_OK && j->behind != NULL)
        j->behind(j->run, j->arg);
    return j->status == LS_DNN_OK;
}

bool ls_dnn_set_job(LsDnnJob *j, LsDnnReady *q, LsDnnDesc plan, bool alone, LsError *e)
{
    j->plan = plan;
    j->pack = ls_dnn_pack(&q->packs, &j->r->lib, q->c, alone, j->arg, e);
    j->behind = alone ? q->c->behind : NULL;
    return j->pack != NULL;
}
