/* scheduler/report/plan_view.c -- tables, pictures and JSON of a plan. */
#include "scheduler/report/plan_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/json_print.h"
#include "base/json_text.h"
#include "scheduler/report/recompute_table.h"
#include "scheduler/report/html.h"

void ls_view_table(FILE *to, const LsPlanReport *r)
{
    char live[24], arena[24], least[24];
    fprintf(to, "%-10s %12s %12s %10s %8s %14s\n", "strategy", "live peak", "arena", "overhead",
            "reruns", "least arena");
    for (uint32_t k = 0; k < r->nrow; k++) {
        const LsPlanRow *row = &r->row[k];
        ls_page_bytes(least, row->least);
        if (row->feasible) {
            ls_page_bytes(live, row->live_peak);
            ls_page_bytes(arena, row->arena);
            fprintf(to, "%-10s %12s %12s %8.2f %% %8" PRIu32 " %14s", row->name, live, arena,
                    100 * row->overhead, row->again, least);
        } else {
            fprintf(to, "%-10s %46s %14s", row->name, "does not fit the budget", least);
        }
        fprintf(to, "%s%s\n", row->note ? "  " : "", row->note ? row->note : "");
    }
}

static double of_step(const LsPlan *plan, double cost)
{
    return plan->base_cost > 0 ? 100 * cost / plan->base_cost : 0;
}

void ls_view_turn(FILE *to, const LsDag *g, const LsPlan *plan)
{
    char kept[24], again[24];
    LsPlanTurn turn = ls_plan_turn(g, plan);
    ls_page_bytes(kept, turn.kept_bytes);
    ls_page_bytes(again, turn.all.bytes);
    fprintf(to, "%s in %" PRIu32 " tensors kept for the backward part, %s made again in %" PRIu32
            " runs\n", kept, turn.nkept, again, turn.all.runs);
    for (int k = 0; k <= LS_DAG_OPTIMIZER; k++)
        if (turn.again[k].runs > 0)
            fprintf(to, "    %s nodes: %s in %" PRIu32 " runs, %.2f %% of a step\n",
                    ls_part_name[k], ls_page_bytes(again, turn.again[k].bytes), turn.again[k].runs,
                    of_step(plan, turn.again[k].cost));
}

void ls_view_again(FILE *to, const LsDag *g, const LsPlan *plan)
{
    char saved[24];
    LsArena *arena = ls_arena_new();
    LsAgainRow *row;
    const uint32_t n = ls_again_rows(arena, g, ls_series_new(arena, g, plan), &row);
    bool none = true;
    for (uint32_t k = 0; k < n; k++) {
        if (row[k].again == 0)
            continue;
        if (none)
            fprintf(to, "%-24s %-9s %8s %14s %8s %10s\n", "run again", "part", "nodes", "not kept",
                    "reruns", "of a step");
        none = false;
        fprintf(to, "%-24s %-9s %8" PRIu32 " %14s %8" PRIu32 " %8.2f %%\n", row[k].op,
                ls_part_name[row[k].kind], row[k].again, ls_page_bytes(saved, row[k].again_bytes),
                row[k].runs, of_step(plan, row[k].cost));
    }
    if (none)
        fprintf(to, "nothing runs again\n");
    ls_arena_free(arena);
}

void ls_view_bound(FILE *to, const LsDag *g, const LsPlan *plan, const LsPlanReport *r)
{
    char least[24];
    double over = r->base_cost > 0 ? 100 * (r->bound / r->base_cost - 1) : 0;
    ls_page_bytes(least, r->least_bound);
    if (plan == NULL && r->impossible)
        fprintf(to, "proven: no plan fits the budget\n");
    else if (plan != NULL && ls_plan_gap(plan, r) == 0)
        fprintf(to, "proven: the plan is optimal, no plan within the budget costs less\n");
    else if (plan != NULL)
        fprintf(to, "proven: no plan within the budget has an overhead below %.2f %%; gap %.2f %% "
                "of a step\n", over, 100 * ls_plan_gap(plan, r));
    if (plan != NULL && r->separator < g->nnode)
        fprintf(to, "  by what must be live when '%s' first runs\n", g->node[r->separator].name);
    fprintf(to, "proven: no plan has a live peak below %s\n", least);
}

static void put_owner(FILE *to, const char *bytes, const LsDag *g, uint32_t tensor)
{
    const char *type = ls_dag_type(g, tensor);
    fprintf(to, "  %12s  %s", bytes, ls_dag_label(g, tensor));
    if (type != NULL)
        fprintf(to, " (%s)", type);
    fputs("\n", to);
}

void ls_view_peak(FILE *to, const LsDag *g, const LsPlanReport *r, uint32_t most)
{
    char bytes[24];
    if (r->peak_node >= g->nnode)
        return;
    fprintf(to, "peak at run %" PRIu32 ", node '%s' (%s)\n", r->peak_step + 1,
            g->node[r->peak_node].name, g->node[r->peak_node].op);
    if (r->peak_workspace > 0) {
        ls_page_bytes(bytes, r->peak_workspace);
        fprintf(to, "  %12s  its workspace\n", bytes);
    }
    int64_t rest = 0;
    for (uint32_t k = 0; k < r->nowner; k++) {
        rest += k < most ? 0 : r->owner[k].bytes;
        ls_page_bytes(bytes, r->owner[k].bytes);
        if (k < most)
            put_owner(to, bytes, g, r->owner[k].tensor);
    }
    ls_page_bytes(bytes, rest);
    if (r->nowner > most)
        fprintf(to, "  %12s  in %" PRIu32 " more\n", bytes, r->nowner - most);
}

void ls_view_dot(FILE *to, const LsDag *g, const LsPlan *plan)
{
    uint32_t *runs = ls_heap_alloc(g->nnode + 1u, sizeof *runs);
    uint32_t *maker = ls_heap_alloc(g->ntensor + 1u, sizeof *maker);   /* node + 1 */
    for (uint32_t s = 0; s < plan->nstep; s++)
        if (!plan->step[s].free)                    /* in a free step the id is a tensor's */
            runs[plan->step[s].id]++;
    fprintf(to, "digraph ");
    ls_json_text(to, g->name);
    fprintf(to, " {\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n");
    for (uint32_t v = 0; v < g->nnode; v++) {
        const LsDagNode *n = &g->node[v];
        if (runs[v] == 0)
            continue;
        const char *colour = runs[v] > 1 ? "#f4b183" : n->kind == LS_DAG_FORWARD ? "#c5e0b4"
                             : n->kind == LS_DAG_BACKWARD ? "#bdd7ee" : "#d9d9d9";
        fprintf(to, "  n%" PRIu32 " [fillcolor=\"%s\", label=", v, colour);
        ls_json_text(to, n->name);
        fprintf(to, ", tooltip=\"%" PRIu32 " runs\"];\n", runs[v]);
        for (uint32_t k = 0; k < n->nin; k++)
            if (maker[n->in[k]])
                fprintf(to, "  n%" PRIu32 " -> n%" PRIu32 ";\n", maker[n->in[k]] - 1, v);
        for (uint32_t k = 0; k < n->nout; k++)
            maker[n->out[k]] = v + 1;
    }
    fprintf(to, "}\n");
    free(runs);
    free(maker);
}

static cJSON *json_rows(const LsPlanReport *r)
{
    cJSON *rows = cJSON_CreateArray();
    for (uint32_t k = 0; k < r->nrow; k++) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "strategy", r->row[k].name);
        cJSON_AddBoolToObject(o, "feasible", r->row[k].feasible);
        cJSON_AddNumberToObject(o, "least_arena_bytes", (double)r->row[k].least);
        if (r->row[k].feasible) {
            cJSON_AddNumberToObject(o, "live_peak_bytes", (double)r->row[k].live_peak);
            cJSON_AddNumberToObject(o, "arena_bytes", (double)r->row[k].arena);
            cJSON_AddNumberToObject(o, "overhead", r->row[k].overhead);
            cJSON_AddNumberToObject(o, "recomputations", r->row[k].again);
        }
        if (r->row[k].note != NULL)
            cJSON_AddStringToObject(o, "note", r->row[k].note);
        cJSON_AddItemToArray(rows, o);
    }
    return rows;
}

static cJSON *json_peak(const LsDag *g, const LsPlanReport *r)
{
    cJSON *peak = cJSON_CreateObject(), *owners = cJSON_AddArrayToObject(peak, "live");
    cJSON_AddNumberToObject(peak, "run", r->peak_step);
    cJSON_AddStringToObject(peak, "node",
                            r->peak_node < g->nnode ? g->node[r->peak_node].name : "");
    cJSON_AddNumberToObject(peak, "workspace_bytes", (double)r->peak_workspace);
    for (uint32_t k = 0; k < r->nowner; k++) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "tensor", g->tensor[r->owner[k].tensor].name);
        cJSON_AddStringToObject(o, "label", ls_dag_label(g, r->owner[k].tensor));
        if (ls_dag_type(g, r->owner[k].tensor) != NULL)
            cJSON_AddStringToObject(o, "type", ls_dag_type(g, r->owner[k].tensor));
        cJSON_AddNumberToObject(o, "bytes", (double)r->owner[k].bytes);
        cJSON_AddItemToArray(owners, o);
    }
    return peak;
}

/* What is kept and what runs again, part by part. */
static void json_turn(cJSON *root, const LsDag *g, const LsPlan *plan)
{
    const LsPlanTurn turn = ls_plan_turn(g, plan);
    cJSON_AddNumberToObject(root, "kept_bytes", (double)turn.kept_bytes);
    cJSON_AddNumberToObject(root, "recomputed_bytes", (double)turn.all.bytes);
    cJSON_AddNumberToObject(root, "recomputed_runs", turn.all.runs);
    cJSON *parts = cJSON_AddArrayToObject(root, "recomputed");
    for (int k = 0; k <= LS_DAG_OPTIMIZER; k++) {
        if (turn.again[k].runs == 0)
            continue;
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "part", ls_part_name[k]);
        cJSON_AddNumberToObject(o, "runs", turn.again[k].runs);
        cJSON_AddNumberToObject(o, "bytes", (double)turn.again[k].bytes);
        cJSON_AddNumberToObject(o, "cost", turn.again[k].cost);
        cJSON_AddItemToArray(parts, o);
    }
}

void ls_view_json(FILE *to, const LsDag *g, const LsPlan *plan, const LsPlanReport *r)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "graph", g->name);
    cJSON_AddBoolToObject(root, "feasible", r->feasible);
    cJSON_AddNumberToObject(root, "state_bytes", (double)r->state_bytes);
    cJSON_AddNumberToObject(root, "persistent_bytes", (double)ls_dag_persistent_bytes(g));
    cJSON_AddNumberToObject(root, "store_all_peak_bytes", (double)r->store_all);
    cJSON_AddNumberToObject(root, "no_recompute_peak_bytes", (double)r->none_peak);
    cJSON_AddNumberToObject(root, "no_recompute_arena_bytes", (double)r->none_arena);
    cJSON_AddNumberToObject(root, "least_arena_bytes", (double)r->least);
    if (r->budget > 0)
        cJSON_AddNumberToObject(root, "arena_budget_bytes", (double)r->budget);
    if (plan != NULL) {
        cJSON_AddStringToObject(root, "plan", r->hash);
        cJSON_AddStringToObject(root, "strategy", plan->strategy);
        cJSON_AddNumberToObject(root, "live_peak_bytes", (double)plan->live_peak);
        cJSON_AddNumberToObject(root, "arena_bytes", (double)plan->arena);
        cJSON_AddNumberToObject(root, "cost", plan->cost);
        cJSON_AddNumberToObject(root, "overhead", ls_plan_overhead(plan));
        cJSON_AddNumberToObject(root, "gap", ls_plan_gap(plan, r));
        cJSON_AddBoolToObject(root, "optimal", ls_plan_gap(plan, r) == 0);
        json_turn(root, g, plan);
    }
    cJSON_AddNumberToObject(root, "base_cost", r->base_cost);
    cJSON_AddNumberToObject(root, "cost_lower_bound", r->bound);
    if (r->separator < g->nnode)
        cJSON_AddStringToObject(root, "separator", g->node[r->separator].name);
    cJSON_AddBoolToObject(root, "proven_infeasible", r->impossible);
    cJSON_AddNumberToObject(root, "least_peak_lower_bound_bytes", (double)r->least_bound);
    cJSON_AddBoolToObject(root, "search_cut", r->cut);
    if (r->costs != NULL) {
        cJSON_AddStringToObject(root, "costs", r->costs);
        cJSON_AddNumberToObject(root, "step_ns", r->step_ns);
    }
    if (r->of.machine != NULL)
        cJSON_AddStringToObject(root, "machine", r->of.machine);
    if (r->of.threads > 0)
        cJSON_AddNumberToObject(root, "threads", r->of.threads);
    if (r->of.precision != NULL)
        cJSON_AddStringToObject(root, "precision", r->of.precision);
    if (r->ranks != NULL)
        cJSON_AddRawToObject(root, "ranks", r->ranks);
    if (r->tiles != NULL)
        cJSON_AddRawToObject(root, "tiles", r->tiles);
    if (r->shared != NULL)
        cJSON_AddRawToObject(root, "shared", r->shared);
    if (r->adapters != NULL)
        cJSON_AddRawToObject(root, "adapters", r->adapters);
    if (r->microbatches != NULL)
        cJSON_AddRawToObject(root, "microbatches", r->microbatches);
    if (r->precisions != NULL)
        cJSON_AddRawToObject(root, "precisions", r->precisions);
    if (r->against != NULL)
        cJSON_AddRawToObject(root, "against", r->against);
    if (r->error != NULL)
        cJSON_AddStringToObject(root, "error", r->error);
    cJSON_AddItemToObject(root, "peak", json_peak(g, r));
    cJSON_AddItemToObject(root, "strategies", json_rows(r));
    ls_json_print(to, root);
}
