/* codegen/program/rank_tables.c -- see rank_tables.h. */
#include "codegen/program/rank_tables.h"

#include "compiler/ir/optimizer.h"

#include <inttypes.h>
#include <string.h>

typedef struct Sum {
    LsValueId v, tree;          /* of the training graph; tree: its partial sums, or none */
    LsValueId own;              /* of the graph of updates */
    LsRankSum row;
    const char *param;          /* its name; NULL: none */
} Sum;

struct LsRankTable {
    const LsGraph *train, *updates;
    Sum *sum; uint32_t nsum;
    int64_t sums;               /* offset in the state */
    int64_t sum_bytes, slice_bytes;
    int kinds;
};

/* The sums in the order of the plan's steps. */
static void find_sums(LsCtx *cx, LsRankTable *t, const LsCodePhase *last)
{
    uint32_t step = 0;
    const LsGraph *g = t->train;
    t->sum = ls_arena_alloc(cx->arena, g->nvalue, sizeof *t->sum);
    for (uint32_t s = 0; s < last->plan->nstep; s++) {
        const LsPlanStep *st = &last->plan->step[s];
        if (st->free)
            continue;
        const LsNodeId n = last->problem->node_of[st->id];
        const LsNode *node = &g->node[n.i];
        for (int k = 0; node->op == LS_OP_LOCAL_SUM && k < node->nin;
             k += ls_update_operands(node)) {
            const LsValueId v = ls_in(g, n, k);
            t->sum[t->nsum++] =
                (Sum){.v = v,
                      .tree = ls_update_operands(node) > 2 ? ls_in(g, n, k + 2) : (LsValueId){0},
                      .own = ls_source_named(t->updates, g->value[v.i].name),
                      .row = {.count = ls_count(ls_shape(g, v)), .after = step}};
        }
        step++;
    }
}

static void line_up_sums(LsRankTable *t, const LsAddresses *a)
{
    for (uint32_t k = 0; k < t->nsum; k++) {
        t->sum[k].row.at = t->sum_bytes;
        t->sum[k].row.bytes = ls_stored_bytes(t->train, t->sum[k].v, a->real_bytes);
        t->sum_bytes += t->sum[k].row.bytes;
    }
}

static Sum *find_sum(const LsRankTable *t, LsValueId own)
{
    for (uint32_t k = 0; k < t->nsum; k++)
        if (t->sum[k].own.i == own.i)
            return &t->sum[k];
    return NULL;
}

static bool is_slice_step(const LsGraph *g, LsNodeId n)
{
    return ls_rule_of((LsOpCode)g->node[n.i].op) != NULL && g->node[n.i].attr.update.sliced;
}

/* Notes the step that updates the slices, and gives its state addresses. */
static void lay_slices(LsRankTable *t, LsAddresses *a, LsNodeId n, uint32_t step)
{
    const LsGraph *g = t->updates;
    Sum *sum = find_sum(t, ls_in(g, n, 1));
    int kind = 0;
    sum->row.step = step;
    sum->param = g->value[ls_in(g, n, 0).i].name;
    t->slice_bytes += sum->row.bytes;
    for (int k = 2; k < g->node[n.i].nin; k++)
        if (g->value[ls_in(g, n, k).i].sliced)
            ls_address_state_at(a, g, ls_in(g, n, k),
                                (LsAddress){LS_AT_SLICE, kind++ * t->sum_bytes + sum->row.at});
    t->kinds = kind > t->kinds ? kind : t->kinds;
}

static bool defect(LsCtx *cx, const char *what)
{
    return ls_error(cx, LS_NOWHERE, LS_E_VERIFY, "this is a defect of lowerset, not of the model",
                    "%s", what);
}

/* Steps of slices run as their sums arrive, after all others: these may not need the arena
 * later. */
static bool lay_updates(LsCtx *cx, LsRankTable *t, const LsCode *c)
{
    uint32_t step = 0;
    bool slices = false;
    for (uint32_t s = 0; s < c->update.plan->nstep; s++) {
        const LsPlanStep *st = &c->update.plan->step[s];
        if (st->free)
            continue;
        const LsNodeId n = c->update.problem->node_of[st->id];
        if (is_slice_step(t->updates, n)) {
            slices = true;
            lay_slices(t, c->addresses, n, step);
        } else if (slices && (t->updates->node[n.i].nout > 0 || st->workspace_offset >= 0)) {
            return defect(cx, "an update follows those of slices");
        }
        step++;
    }
    return true;
}

/* The sources of both graphs lie in memory alike. */
static bool agrees(LsCtx *cx, const LsRankTable *t)
{
    for (uint32_t i = 1; i < t->updates->nvalue; i++) {
        const LsValue *x = &t->updates->value[i];
        const LsValueId twin = ls_is_state(t->updates, (LsValueId){i})
                                   ? ls_source_named(t->train, x->name)
                                   : (LsValueId){0};
        if (ls_is(twin) && !ls_layout_free(&x->shape)
            && t->train->value[twin.i].layout != x->layout)
            return defect(cx, "a value has two layouts");
    }
    return true;
}

const LsRankTable *ls_rank_layout(LsCtx *cx, const LsCode *c)
{
    LsRankTable *t = ls_arena_alloc(cx->arena, 1, sizeof *t);
    t->train = c->train.problem->g;
    t->updates = c->update.problem->g;
    find_sums(cx, t, c->last.problem != NULL ? &c->last : &c->train);
    for (uint32_t i = 1; i < t->updates->nvalue; i++) {
        const LsValue *x = &t->updates->value[i];
        if (x->kind == LS_V_STATE && !x->rank_sum && !x->sliced)
            ls_address_state(c->addresses, t->updates, (LsValueId){i});
    }
    line_up_sums(t, c->addresses);
    if (!agrees(cx, t) || !lay_updates(cx, t, c))
        return NULL;
    t->sums = c->addresses->state_bytes;
    for (uint32_t k = 0; k < t->nsum; k++) {
        const Sum *s = &t->sum[k];
        ls_address_state(c->addresses, t->train, s->v);
        if (ls_is(s->tree))
            ls_address_state_at(c->addresses, t->train, s->tree,
                                (LsAddress){LS_AT_LEVEL, s->row.at});
    }
    return t;
}

static void print_rows(const LsRankTable *t, const LsAddresses *a, LsEmit *e)
{
    const LsGraph *g = t->train;
    uint32_t n = 0;
    ls_emit_line(e, "static const LsRankRows rank_rows[] = {");
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *node = &g->node[i];
        for (int k = 0; node->op == LS_OP_PART_STAT && k < node->nin;
             k += ls_update_operands(node), n++) {
            const LsAddress at =
                ls_address_source((LsAddresses *)a, g, ls_in(g, (LsNodeId){i}, k + 2));
            ls_emit_line(e, "{S(%" PRId64 "), %" PRId64 "},", at.offset,
                         ls_value_bytes(g, ls_in(g, (LsNodeId){i}, k), a->real_bytes));
        }
    }
    ls_emit_line(e, "{.bytes = 0}");
    ls_emit_line(e, "};");
    ls_emit_line(e, "enum { NRANK_ROWS = %u };", n);
}

static void print_choice(const LsGraph *g, LsEmit *e)
{
    const char *all = "";
    for (int k = 0; k < g->rank.nchoice; k++)
        all = ls_arena_printf(g->arena, "%s%s{%d, %d}", all, k > 0 ? ", " : "", g->rank.choice[k],
                              ls_tree_levels(g->rank.micro_batches / g->rank.choice[k]));
    ls_emit_line(e, "static const LsRankChoice rank_choice[] = {%s};", all);
}

void ls_rank_table_print(const LsRankTable *t, const LsAddresses *a, LsEmit *e)
{
    const LsGraph *g = t->train;
    ls_emit_line(e, "\n/* Sums that ranks add up: place, bytes, elements, parameter, the step that "
                    "completes it, its update. */");
    ls_emit_line(e, "static const LsRankSum rank_sum[] = {");
    for (uint32_t k = 0; k < t->nsum; k++) {
        const LsRankSum *r = &t->sum[k].row;
        const LsAddress p =
            t->sum[k].param != NULL
                ? ls_address_source((LsAddresses *)a, g, ls_source_named(g, t->sum[k].param))
                : (LsAddress){LS_AT_NONE, 0};
        ls_emit_line(e, "{%" PRId64 ", %" PRId64 ", %" PRId64 ", %s(%" PRId64 "), %u, %u},", r->at,
                     r->bytes, r->count, p.space == LS_AT_NONE ? "Z" : "S", p.offset, r->after,
                     r->step);
    }
    ls_emit_line(e, "};");
    print_rows(t, a, e);
    print_choice(g, e);
    ls_emit_line(e, "static const LsRanks ranks = {");
    ls_emit_line(
        e, ".choice = rank_choice, .nchoice = %d, .parts = %" PRId64 ", .sums = S(%" PRId64 "),",
        g->rank.nchoice, g->rank.micro_batches, t->sums);
    ls_emit_line(e,
                 ".sum_bytes = %" PRId64 ", .slice_bytes = %" PRId64 ", .kinds = %d, .sliced = %s,",
                 t->sum_bytes, t->slice_bytes, t->kinds, g->rank.sliced ? "true" : "false");
    ls_emit_line(e, ".sum = rank_sum, .nsum = %u, .rows = rank_rows, .nrows = NRANK_ROWS,",
                 t->nsum);
    ls_emit_line(e, "};");
}
