/* scheduler/report/plan_page.c -- the page of a plan. */
#include "scheduler/report/plan_page.h"

#include <inttypes.h>
#include <math.h>

#include "scheduler/report/recompute_table.h"
#include "scheduler/report/html.h"
#include "scheduler/report/memory_chart.h"
#include "scheduler/report/memory_series.h"
#include "scheduler/report/page_texts.h"

enum { OWNERS_SHOWN = 12 };

typedef struct Page {
    LsArena *arena;
    FILE *to;
    const LsDag *dag;
    const LsPlan *plan;
    const LsPlanReport *report;
    const LsPageFacts *facts;
    const LsSeries *s;
} Page;

static void put_tile(const Page *p, const char *figure, const char *what)
{
    fprintf(p->to, "<div class=\"tile\"><b>%s</b><span>%s</span></div>\n", figure, what);
}

static const char *percent(const Page *p, double x)
{
    return ls_arena_printf(p->arena, "%.2f %%", 100 * x);
}

static void put_summary(const Page *p)
{
    const LsPlanReport *r = p->report;
    char text[24], more[24];
    uint32_t again = 0;
    for (uint32_t k = 0; k < p->s->nrun; k++)
        again += p->s->run[k].again;
    fprintf(p->to, "<h1>");
    ls_page_text(p->to, p->facts->title);
    fprintf(p->to, "</h1>\n<p class=\"soft\">plan %s, strategy %s: %" PRIu32 " runs of %" PRIu32
            " nodes, %" PRIu32 " of them recomputations</p>\n<div class=\"tiles\">\n",
            r->hash, p->plan->strategy, p->s->nrun, p->dag->nnode, again);
    put_tile(p, ls_page_bytes(text, p->plan->arena),
             ls_arena_printf(p->arena, "arena; %s without recomputation",
                             ls_page_bytes(more, r->none_arena)));
    if (r->budget > 0)
        put_tile(p, ls_page_bytes(text, r->budget), "budget of the arena");
    put_tile(p, ls_page_bytes(text, p->plan->live_peak), "live peak");
    put_tile(p, percent(p, ls_plan_overhead(p->plan)), ls_plan_overhead(p->plan) < 0
             ? "overhead, of a step: below 0, as kernels that replace others cost less"
             : "recomputation, of a step");
    if (r->base_cost > 0) {
        put_tile(p, percent(p, r->bound / r->base_cost - 1),
                 "lower bound: no plan within the budget recomputes less");
        double gap = ls_plan_gap(p->plan, r);
        put_tile(p, percent(p, gap > 0 ? gap : 0), "gap: at most this far from the best plan");
    }
    int64_t fixed = p->facts->state_bytes + p->facts->input_bytes;
    put_tile(p, ls_page_bytes(text, p->plan->arena + fixed),
             ls_arena_printf(p->arena, "in all, with %s beside the arena",
                             ls_page_bytes(more, fixed)));
    fprintf(p->to, "</div>\n");
}

static void put_memory(const Page *p)
{
    LsMemoryLimits limits = {p->report->budget, p->plan->arena, p->report->least_bound};
    fprintf(p->to, "<h2>Memory over one training step</h2>\n<p>");
    for (int k = 0; k < LS_NOWNERS; k++)
        fprintf(p->to, "<span class=\"key\" style=\"background:var(--%s)\"></span>%s",
                ls_owner_colour[k], ls_owner_name[k]);
    fprintf(p->to, "</p>\n");
    ls_memory_chart(p->to, p->s, &limits);
    fprintf(p->to, "<div id=\"now\"></div>\n<p class=\"soft\">Point at a step; the arrow keys move "
                   "to the next. %s</p>\n", p->s->nrun > 800 ? "Each column is the largest of the "
                   "steps in it." : "");
}

static void put_owner(const Page *p, const LsSeriesLive *o)
{
    const char *colour = ls_owner_colour[o->owner];
    char text[24];
    int64_t most = p->s->live[0].bytes > 0 ? p->s->live[0].bytes : 1;
    fprintf(p->to, "<tr><td class=\"l name\">");
    ls_page_text(p->to, ls_dag_label(p->dag, o->tensor));
    if (ls_dag_type(p->dag, o->tensor) != NULL) {
        fputs(" (", p->to);
        ls_page_text(p->to, ls_dag_type(p->dag, o->tensor));
        fputs(")", p->to);
    }
    fprintf(p->to, "</td><td class=\"l\">%s</td><td>%s</td><td class=\"l\"><div class=\"bar\" "
            "style=\"width:%.0fpx;background:var(--%s)\"></div></td></tr>\n",
            ls_owner_short[o->owner], ls_page_bytes(text, o->bytes),
            220.0 * (double)o->bytes / (double)most, colour);
}

static void put_peak(const Page *p)
{
    const LsSeries *s = p->s;
    char text[24];
    if (s->nrun == 0)
        return;
    const LsDagNode *n = &p->dag->node[s->run[s->peak].node];
    fprintf(p->to, "<h2>At the peak</h2>\n<p>Run %" PRIu32 ", node <b>", s->peak + 1);
    ls_page_text(p->to, n->name);
    fprintf(p->to, "</b> (");
    ls_page_text(p->to, n->op);
    fprintf(p->to, "): %" PRIu32 " tensors, %s of workspace.</p>\n<div class=\"scroll\"><table>"
            "<tr><th class=\"l\">tensor</th><th class=\"l\">owner</th><th>size</th>"
            "<th class=\"l\"></th></tr>\n", s->nlive, ls_page_bytes(text, n->workspace));
    int64_t rest = 0;
    for (uint32_t k = 0; k < s->nlive; k++)
        if (k < OWNERS_SHOWN)
            put_owner(p, &s->live[k]);
        else
            rest += s->live[k].bytes;
    if (s->nlive > OWNERS_SHOWN)
        fprintf(p->to, "<tr><td class=\"l soft\">%" PRIu32 " more</td><td></td><td>%s</td><td>"
                "</td></tr>\n", s->nlive - OWNERS_SHOWN, ls_page_bytes(text, rest));
    fprintf(p->to, "</table></div>\n");
}

static void put_strategies(const Page *p)
{
    char live[24], arena[24], least[24];
    if (p->report->nrow < 2)
        return;
    fprintf(p->to, "<h2>The strategies at this budget</h2>\n<div class=\"scroll\"><table><tr>"
            "<th class=\"l\">strategy</th><th>live peak</th><th>arena</th><th>recomputation</th>"
            "<th>runs again</th><th>least arena</th><th class=\"l\"></th></tr>\n");
    for (uint32_t k = 0; k < p->report->nrow; k++) {
        const LsPlanRow *row = &p->report->row[k];
        fprintf(p->to, "<tr><td class=\"l\">%s</td>", row->name);
        if (row->feasible)
            fprintf(p->to, "<td>%s</td><td>%s</td><td>%.2f %%</td><td>%" PRIu32 "</td>",
                    ls_page_bytes(live, row->live_peak), ls_page_bytes(arena, row->arena),
                    100 * row->overhead, row->again);
        else
            fprintf(p->to, "<td colspan=\"4\" class=\"soft\">does not fit the budget</td>");
        fprintf(p->to, "<td>%s</td><td class=\"l soft\">", ls_page_bytes(least, row->least));
        ls_page_text(p->to, row->note);
        fprintf(p->to, "</td></tr>\n");
    }
    fprintf(p->to, "</table></div>\n");
}

static void put_op_row(const Page *p, const LsAgainRow *r)
{
    char kept[24], again[24];
    fprintf(p->to, "<tr%s><td class=\"l\">",
            r->first == LS_ALL_NODES ? " style=\"font-weight:600\"" : "");
    ls_page_text(p->to, r->op);
    fprintf(p->to, " %s", r->first == LS_ALL_NODES ? ls_part_name[r->kind] : "");
    fprintf(p->to,
            "</td><td class=\"l\">%s</td><td>%" PRIu32 "</td><td>%" PRIu32
            "</td><td>%s</td><td>%" PRIu32 "</td><td>%s</td><td>%" PRIu32
            "</td><td>%.3f %%</td></tr>\n",
            ls_part_name[r->kind], r->nodes, r->kept, ls_page_bytes(kept, r->kept_bytes), r->again,
            ls_page_bytes(again, r->again_bytes), r->runs,
            p->plan->base_cost > 0 ? 100 * r->cost / p->plan->base_cost : 0);
}

static void put_sum(const Page *p, const char *what, double part)
{
    fprintf(p->to, "<tr><td class=\"l\" colspan=\"8\">%s</td><td>%.3f %%</td></tr>\n", what,
            100 * part);
}

/* Prints the parts that lead from the cost of further runs to the overhead of the plan. */
static void put_overhead(const Page *p, double runs)
{
    const double base = p->plan->base_cost, little = 5e-6;
    if (base <= 0)
        return;
    const double kernels = ls_plan_overhead(p->plan) - runs / base;
    if (fabs(kernels) > little)
        put_sum(p, "kernels that replace others: added cost, below 0 saved", kernels);
    put_sum(p, "overhead of the plan", ls_plan_overhead(p->plan));
}

static void put_ops(const Page *p)
{
    LsAgainRow *row;
    const uint32_t n = ls_again_rows(p->arena, p->dag, p->s, &row);
    double runs = 0;
    fprintf(p->to,
            "<h2>Kept and recomputed values</h2>\n<div class=\"scroll\"><table><tr>"
            "<th class=\"l\">operator</th><th "
            "class=\"l\">part</th><th>nodes</th><th>kept</th><th>bytes</th>"
            "<th>recomputed</th><th>bytes</th><th>further runs</th><th>of a step</th></tr>\n");
    for (uint32_t k = 0; k < n; k++) {
        put_op_row(p, &row[k]);
        runs += row[k].first == LS_ALL_NODES ? row[k].cost : 0;
    }
    put_overhead(p, runs);
    fprintf(p->to, "</table></div>\n<h2>Nodes</h2>\n<p><input id=\"filter\" type=\"search\" "
            "placeholder=\"name, operator or state\" aria-label=\"filter the nodes\"> "
            "<span id=\"found\" class=\"soft\"></span></p>\n<div class=\"scroll\"><table><thead>"
            "<tr><th class=\"l\">node</th><th class=\"l\">operator</th><th class=\"l\">state</th>"
            "<th>makes</th><th>of a step</th><th>runs</th></tr></thead><tbody id=\"nodes\">"
            "</tbody></table></div>\n");
}

static void put_ids(FILE *to, const uint32_t *id, uint32_t n)
{
    fputc('[', to);
    for (uint32_t k = 0; k < n; k++)
        fprintf(to, k > 0 ? ",%" PRIu32 : "%" PRIu32, id[k]);
    fputc(']', to);
}

/* tensors: [name, bytes]; nodes: [name, op, kind, cost, runs, [makes], owner of the first result];
 * runs: [node, again, bytes by owner ..., [frees]]. */
static void put_data(const Page *p)
{
    FILE *to = p->to;
    const LsDag *g = p->dag;
    double base = p->plan->base_cost > 0 ? p->plan->base_cost : 1;
    fprintf(to, "<script type=\"application/json\" id=\"data\">{\"base\":%.17g,\"peak\":%" PRIu32
            ",\"width\":%d,\"left\":%d,\"right\":%d,\n\"tensors\":[", base, p->s->peak,
            LS_MEMORY_WIDTH, LS_MEMORY_LEFT, LS_MEMORY_RIGHT);
    for (uint32_t t = 0; t < g->ntensor; t++) {
        fputs(t > 0 ? ",\n[" : "[", to);
        ls_page_json(to, g->tensor[t].name);
        fprintf(to, ",%" PRId64 "]", g->tensor[t].bytes);
    }
    fputs("],\n\"nodes\":[", to);
    for (uint32_t v = 0; v < g->nnode; v++) {
        const LsDagNode *n = &g->node[v];
        fputs(v > 0 ? ",\n[" : "[", to);
        ls_page_json(to, n->name);
        fputc(',', to);
        ls_page_json(to, n->op);
        fprintf(to, ",%d,%.9g,%" PRIu32 ",", (int)n->kind, n->cost, p->s->runs[v]);
        put_ids(to, n->out, n->nout);
        fprintf(to, ",%d]", n->nout > 0 ? (int)p->s->owner[n->out[0]] : (int)LS_NOWNERS);
    }
    fputs("],\n\"runs\":[", to);
    for (uint32_t k = 0; k < p->s->nrun; k++) {
        const LsSeriesRun *r = &p->s->run[k];
        fprintf(to, "%s[%" PRIu32 ",%d", k > 0 ? ",\n" : "", r->node, r->again);
        for (int o = 0; o < LS_NOWNERS; o++)
            fprintf(to, ",%" PRId64, r->bytes[o]);
        fputc(',', to);
        put_ids(to, p->s->freed + r->freed, r->nfreed);
        fputc(']', to);
    }
    fputs("]}</script>\n", to);
}

void ls_report_plan(LsArena *arena, FILE *to, const LsDag *dag, const LsPlan *plan,
                    const LsPlanReport *report, const LsPageFacts *facts)
{
    Page p = {arena, to, dag, plan, report, facts, ls_series_new(arena, dag, plan)};
    ls_page_head(to, ls_arena_printf(arena, "%s: plan %s", facts->title, report->hash));
    put_summary(&p);
    put_memory(&p);
    put_peak(&p);
    put_strategies(&p);
    put_ops(&p);
    put_data(&p);
    fprintf(to, "<script>\n%s</script>\n</body>\n</html>\n", ls_text_plan_page_js);
}
