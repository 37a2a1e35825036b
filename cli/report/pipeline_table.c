/* cli/report/pipeline_table.c -- see the header. */
#include "cli/report/pipeline_table.h"

#include "base/json_print.h"
#include "compiler/updates/trained_share.h"

#include <inttypes.h>
#include <stdlib.h>

const char *ls_pipeline_mode(const LsPipelines *p, const LsPipelinePlan *of)
{
    return ls_recompute_policy[ls_pipeline_policy(&p->want, of->keep)].name;
}

static const double MS = 1e-6;

static const LsPipelinePlan *chosen(const LsPipelines *p) { return &p->plan[p->chosen]; }

static void print_plan(const LsPipelines *p, uint32_t k)
{
    const LsPipelinePlan *of = &p->plan[k];
    if (p->reason[k].why != NULL) {
        printf("  %-6s %-12s cannot run: %s\n", ls_order_name[of->order], ls_pipeline_mode(p, of),
               p->reason[k].why);
        return;
    }
    printf("  %-6s %-12s %10.4g ms %7.2f %% %16s %10.4g ms", ls_order_name[of->order],
           ls_pipeline_mode(p, of), of->times.step * MS, 100 * of->times.bubble,
           ls_bytes_text(p->job->cx.arena, of->peak), of->bottleneck * MS);
    if (!of->fits)
        printf(" %22s", "exceeds the budget");
    else if (!ls_pipeline_is_proven(of))
        printf(" %22s", "no proof");
    else
        printf(" %10.4g ms %6.2f %%", of->bound * MS, 100 * ls_pipeline_gap(of));
    printf("%s\n", k == p->chosen ? "  chosen" : "");
}

static void print_plans(const LsPipelines *p)
{
    printf("  %-6s %-12s %13s %9s %16s %13s %13s %8s\n", "order", "recompute", "a step", "bubble",
           "largest rank", "slowest stage", "proven bound", "gap");
    for (uint32_t k = 0; k < p->n; k++)
        print_plan(p, k);
}

/* Bytes that a stage receives and sends, of a micro-batch. */
static void traffic(const LsPipeCut *c, uint32_t stage, int64_t *in, int64_t *out)
{
    *in = *out = 0;
    for (uint32_t k = 0; k < c->nmove; k++) {
        const LsPipeMove *m = &c->move[k];
        *in += m->to == stage && m->read != LS_PHASE_LATE ? m->bytes : 0;
        *out += m->from == stage && m->read != LS_PHASE_LATE ? m->bytes : 0;
    }
}

/* The first and the last forward node of a stage, and the number of its nodes of all phases. */
typedef struct Extent { uint32_t first, last, n; } Extent;

static Extent extent(const LsPipelines *p, const LsPipeCut *c, uint32_t stage)
{
    Extent e = {LS_NO_ID, LS_NO_ID, 0};
    for (uint32_t i = 0; i < p->prob->n; i++) {
        if (c->stage[i] != stage || !p->prob->needed[i])
            continue;
        e.n++;
        if (p->prob->forward[i]) {
            e.first = e.first == LS_NO_ID ? i : e.first;
            e.last = i;
        }
    }
    return e;
}

/* "89.25 MiB + 4 x 60.77 MiB" */
static const char *regions(LsArena *a, const LsPipeLayout *l)
{
    const char *text = "";
    for (uint32_t k = 0; k < l->nregion; k++)
        if (l->region[k].bytes > 0)
            text = ls_arena_printf(a, "%s%s%s%s", text, *text != '\0' ? " + " : "",
                                   l->region[k].copies > 1
                                       ? ls_arena_printf(a, "%" PRIu32 " x ", l->region[k].copies)
                                       : "",
                                   ls_bytes_text(a, l->region[k].bytes));
    return *text != '\0' ? text : "none";
}

static void print_stages(const LsPipelines *p)
{
    const LsPipelinePlan *of = chosen(p);
    LsArena *a = p->job->cx.arena;
    printf("\nthe stages of %s, %s\n", ls_order_name[of->order], ls_pipeline_mode(p, of));
    printf("  %5s %7s %9s %9s %9s %12s %12s %12s %12s %12s  %-44s  %s\n", "stage", "kernels",
           "F, ms", "B, ms", "W, ms", "state", "arena", "in all", "receives", "sends",
           "regions of the arena", "from .. to");
    for (uint32_t k = 0; k < of->cut.k; k++) {
        const double *ns = of->of[k][LS_PIPE_USUAL].ns;
        const LsPipeLayout *l = &of->plan[k].layout;
        const Extent e = extent(p, &of->cut, k);
        int64_t in, out;
        traffic(&of->cut, k, &in, &out);
        printf("  %5" PRIu32 " %7" PRIu32
               " %9.4g %9.4g %9.4g %12s %12s %12s %12s %12s  %-44s  %s .. %s\n",
               k, e.n, ns[LS_PHASE_F] * MS, ns[LS_PHASE_B] * MS, ns[LS_PHASE_W] * MS,
               ls_bytes_text(a, ls_process_fixed(&of->rank[k])), ls_bytes_text(a, l->arena),
               ls_bytes_text(a, ls_pipeline_rank_bytes(of, k)), ls_bytes_text(a, in),
               ls_bytes_text(a, out), regions(a, l), p->job->dag->node[e.first].name,
               p->job->dag->node[e.last].name);
    }
}

/* The times of the micro-batch that keeps all. */
static void print_kept(const LsPipelines *p)
{
    const LsPipelinePlan *of = chosen(p);
    if (of->plan[0].layout.nplan == 1)
        return;
    printf("the first micro-batch, which runs nothing again\n");
    for (uint32_t k = 0; k < of->cut.k; k++) {
        const double *ns = of->of[k][LS_PIPE_KEPT].ns;
        printf("  %5" PRIu32 " %7s %9.4g %9.4g %9.4g\n", k, "", ns[LS_PHASE_F] * MS,
               ns[LS_PHASE_B] * MS, ns[LS_PHASE_W] * MS);
    }
}

static void print_copies(const LsPipelines *p)
{
    const LsPipeCut *c = &chosen(p)->cut;
    for (uint32_t k = 0; k < c->ncopy; k++)
        printf("  stage %" PRIu32 " reads '%s' of stage %" PRIu32
               ", and gets a copy of %s once per step\n",
               c->copy[k].to, p->job->dag->tensor[c->copy[k].tensor].name, c->copy[k].from,
               ls_bytes_text(p->job->cx.arena, c->copy[k].bytes));
}

void ls_pipelines_print(const LsPipelines *p)
{
    const LsPipelinePlan *of = chosen(p);
    const LsLinkSpeed *link = &p->want.link;
    printf("%s: %" PRIu32 " stages, %" PRIu32 " micro-batch%s of %" PRId64 " sample%s\n",
           p->job->options->model, p->want.stages, p->want.micros, p->want.micros == 1 ? "" : "es",
           p->job->train->batch, p->job->train->batch == 1 ? "" : "s");
    printf("  costs of %s; ", p->job->costs);
    if (link->bytes_per_ns > 0)
        printf("links of %.4g GB/s and %.4g us\n", link->bytes_per_ns, link->latency * 1e-3);
    else
        printf("messages take no time\n");
    printf("  %s\n", ls_trained_share_text(p->job->train));
    if (p->want.budget.bytes > 0)
        printf("  budget of a rank: %s\n", ls_bytes_text(p->job->cx.arena, p->want.budget.bytes));
    printf("\n");
    print_plans(p);
    print_stages(p);
    print_kept(p);
    print_copies(p);
    if (of->stages.note != NULL)
        printf("  %s\n", of->stages.note);
    printf("  no deadlock: every rank comes to the end of its order\n");
    printf("  without budget and recomputation the slowest stage takes %.4g ms; cut in list order "
           "into equal times, %.4g ms\n",
           p->best.bottleneck * MS, p->in_list_order.bottleneck * MS);
}

static const char phase_letter[LS_STAGE_PHASES + 1] = "FBWL";      /* L: the late one */

/* The phases that the rank of a stage runs, one after the other: "F0 F1 B0", phase and
 * micro-batch. */
static const char *turns_text(LsArena *a, const LsPipeFlow *f)
{
    enum { MOST = 24 };         /* bytes of a turn */
    char *text = ls_arena_alloc(a, (size_t)f->nturn * MOST + 1, 1), *at = text;
    for (uint32_t k = 0; k < f->nturn; k++)
        at += snprintf(at, MOST, "%s%c%" PRIu32, k > 0 ? " " : "", phase_letter[f->turn[k].phase],
                       f->turn[k].micro);
    return text;
}

static cJSON *json_message(const LsPipelines *p, const LsPipeMove *m)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "id", m->tensor);
    cJSON_AddStringToObject(o, "name", p->job->dag->tensor[m->tensor].name);
    cJSON_AddNumberToObject(o, "from", m->from);
    cJSON_AddNumberToObject(o, "to", m->to);
    cJSON_AddStringToObject(o, "made", (const char[]){phase_letter[m->made], '\0'});
    cJSON_AddStringToObject(o, "read", (const char[]){phase_letter[m->read], '\0'});
    cJSON_AddNumberToObject(o, "bytes", (double)m->bytes);
    if (m->lag != LS_TO_THE_END) {      /* the sender waits before this phase of the micro-batch so
                                         * much later */
        cJSON_AddStringToObject(o, "until", (const char[]){phase_letter[m->until], '\0'});
        cJSON_AddNumberToObject(o, "lag", m->lag);
    }
    return o;
}

static cJSON *json_stage(const LsPipelines *p, const LsPipelinePlan *of, uint32_t k)
{
    cJSON *o = cJSON_CreateObject();
    const LsStageTimes *f = &of->of[k][LS_PIPE_USUAL], *kept = &of->of[k][LS_PIPE_KEPT];
    const LsPipeLayout *l = &of->plan[k].layout;
    const Extent e = extent(p, &of->cut, k);
    int64_t in, out;
    traffic(&of->cut, k, &in, &out);
    cJSON_AddStringToObject(o, "first", p->job->dag->node[e.first].name);
    cJSON_AddStringToObject(o, "last", p->job->dag->node[e.last].name);
    cJSON_AddNumberToObject(o, "kernels", e.n);
    cJSON_AddNumberToObject(o, "forward_ns", f->ns[LS_PHASE_F]);
    cJSON_AddNumberToObject(o, "backward_ns", f->ns[LS_PHASE_B]);
    cJSON_AddNumberToObject(o, "weights_ns", f->ns[LS_PHASE_W]);
    cJSON_AddNumberToObject(o, "late_ns", f->ns[LS_PHASE_LATE]);
    cJSON_AddNumberToObject(o, "again_ns", f->again);
    if (l->nplan > 1) {
        cJSON_AddNumberToObject(o, "kept_forward_ns", kept->ns[LS_PHASE_F]);
        cJSON_AddNumberToObject(o, "kept_backward_ns", kept->ns[LS_PHASE_B]);
        cJSON_AddNumberToObject(o, "kept_weights_ns", kept->ns[LS_PHASE_W]);
    }
    cJSON_AddNumberToObject(o, "state_bytes", (double)ls_process_fixed(&of->rank[k]));
    cJSON *rows = cJSON_AddArrayToObject(o, "regions");
    for (uint32_t r = 0; r < l->nregion; r++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "region_copies", l->region[r].copies);
        cJSON_AddNumberToObject(row, "region_bytes", (double)l->region[r].bytes);
        cJSON_AddItemToArray(rows, row);
    }
    cJSON_AddNumberToObject(o, "arena_bytes", (double)l->arena);
    cJSON_AddNumberToObject(o, "rank_bytes", (double)ls_pipeline_rank_bytes(of, k));
    cJSON_AddNumberToObject(o, "received_bytes", (double)in);
    cJSON_AddNumberToObject(o, "sent_bytes", (double)out);
    cJSON *at = cJSON_AddArrayToObject(o, "phase_at");
    for (int phase = 0; phase <= LS_STAGE_PHASES; phase++)
        cJSON_AddItemToArray(at, cJSON_CreateNumber(l->of[LS_PIPE_USUAL].phase_at[phase]));
    cJSON_AddStringToObject(o, "turns", turns_text(p->job->cx.arena, &of->flow[k]));
    return o;
}

static cJSON *json_plan(const LsPipelines *p, const LsPipelinePlan *of)
{
    cJSON *o = cJSON_CreateObject();
    char hash[17];
    ls_staged_hash(of, hash);
    cJSON_AddStringToObject(o, "hash", hash);
    cJSON_AddStringToObject(o, "order", ls_order_name[of->order]);
    cJSON_AddStringToObject(o, "recompute", ls_pipeline_mode(p, of));
    cJSON_AddBoolToObject(o, "feasible", of->fits);
    cJSON_AddNumberToObject(o, "step_ns", of->times.step);
    cJSON_AddNumberToObject(o, "bubble", of->times.bubble);
    cJSON_AddNumberToObject(o, "rank_bytes", (double)of->peak);
    cJSON_AddNumberToObject(o, "bottleneck_ns", of->bottleneck);
    if (of->fits && ls_pipeline_is_proven(of)) {
        cJSON_AddNumberToObject(o, "bottleneck_lower_bound_ns", of->bound);
        cJSON_AddNumberToObject(o, "gap", ls_pipeline_gap(of));
    }
    if (of->stages.note != NULL)
        cJSON_AddStringToObject(o, "note", of->stages.note);
    return o;
}

static cJSON *json_refused(const LsPipelines *p, uint32_t k)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "order", ls_order_name[p->plan[k].order]);
    cJSON_AddStringToObject(o, "recompute", ls_pipeline_mode(p, &p->plan[k]));
    cJSON_AddBoolToObject(o, "feasible", false);
    cJSON_AddStringToObject(o, "refused", p->reason[k].why);
    return o;
}

static cJSON *json_copy(const LsPipelines *p, const LsPipeCopy *copy)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "tensor", p->job->dag->tensor[copy->tensor].name);
    cJSON_AddNumberToObject(o, "from", copy->from);
    cJSON_AddNumberToObject(o, "to", copy->to);
    cJSON_AddNumberToObject(o, "bytes", (double)copy->bytes);
    return o;
}

void ls_pipelines_json(FILE *to, const LsPipelines *p)
{
    const LsPipeCut *c = &chosen(p)->cut;
    cJSON *root = cJSON_CreateObject(), *line = cJSON_AddObjectToObject(root, "pipeline");
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "graph", p->job->dag->name);
    cJSON_AddNumberToObject(line, "stages", p->want.stages);
    cJSON_AddNumberToObject(line, "microbatches", p->want.micros);
    cJSON_AddNumberToObject(line, "microbatch", (double)p->job->train->batch);
    cJSON_AddStringToObject(line, "costs", p->job->costs);
    if (p->want.budget.bytes > 0)
        cJSON_AddNumberToObject(line, "budget_bytes", (double)p->want.budget.bytes);
    cJSON_AddNumberToObject(line, "chosen", p->chosen);
    cJSON *plans = cJSON_AddArrayToObject(line, "plans"),
          *of = cJSON_AddArrayToObject(line, "of_stage");
    for (uint32_t k = 0; k < p->n; k++)
        cJSON_AddItemToArray(plans, p->reason[k].why != NULL ? json_refused(p, k)
                                                             : json_plan(p, &p->plan[k]));
    for (uint32_t k = 0; k < p->want.stages; k++)
        cJSON_AddItemToArray(of, json_stage(p, chosen(p), k));
    cJSON *messages = cJSON_AddArrayToObject(line, "messages");
    for (uint32_t k = 0; k < c->nmove; k++)
        cJSON_AddItemToArray(messages, json_message(p, &c->move[k]));
    cJSON *copies = cJSON_AddArrayToObject(line, "copies");
    for (uint32_t k = 0; k < c->ncopy; k++)
        cJSON_AddItemToArray(copies, json_copy(p, &c->copy[k]));
    cJSON_AddNumberToObject(line, "best_cut_ns", p->best.bottleneck);
    cJSON_AddNumberToObject(line, "list_order_ns", p->in_list_order.bottleneck);
    ls_json_print(to, root);
}
