/* scheduler/report/recompute_table.c -- sums of kept results and of further runs over the nodes of
 * an operator. */
#include "scheduler/report/recompute_table.h"

#include <stdlib.h>
#include <string.h>

const char *const ls_part_name[] = {"forward", "backward", "optimizer"};

static int by_op(const void *x, const void *y)
{
    const LsAgainRow *a = x, *b = y;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    const int c = strcmp(a->op, b->op);
    return c != 0 ? c : a->first < b->first ? -1 : a->first > b->first;
}

static int by_bytes(const void *x, const void *y)
{
    const LsAgainRow *a = x, *b = y;
    const int64_t m = a->kept_bytes + a->again_bytes, n = b->kept_bytes + b->again_bytes;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return m != n ? (m > n ? -1 : 1) : by_op(x, y);
}

static LsAgainRow row_of(const LsDag *g, const LsSeries *s, uint32_t v)
{
    const LsDagNode *n = &g->node[v];
    LsAgainRow row = {.op = n->op != NULL ? n->op : "", .kind = n->kind, .first = v, .nodes = 1};
    int64_t bytes = 0;
    for (uint32_t j = 0; j < n->nout; j++) {
        bytes += g->tensor[n->out[j]].bytes;
        if (s->owner[n->out[j]] == LS_OWNER_KEPT)
            row.kept_bytes += g->tensor[n->out[j]].bytes;
    }
    row.kept = row.kept_bytes > 0;
    if (s->runs[v] > 1) {
        row.again = 1;
        row.runs = s->runs[v] - 1;
        row.again_bytes = bytes;
        row.cost = row.runs * n->cost;
    }
    return row;
}

static void add(LsAgainRow *sum, const LsAgainRow *row)
{
    sum->nodes += row->nodes;
    sum->kept += row->kept;
    sum->again += row->again;
    sum->runs += row->runs;
    sum->kept_bytes += row->kept_bytes;
    sum->again_bytes += row->again_bytes;
    sum->cost += row->cost;
}

/* Joins neighbours of one operator and part; returns how many rows stay. */
static uint32_t join(LsAgainRow *row, uint32_t n)
{
    uint32_t to = 0;
    for (uint32_t k = 0; k < n; k++)
        if (to > 0 && row[to - 1].kind == row[k].kind && strcmp(row[to - 1].op, row[k].op) == 0)
            add(&row[to - 1], &row[k]);
        else
            row[to++] = row[k];
    return to;
}

uint32_t ls_again_rows(LsArena *arena, const LsDag *dag, const LsSeries *series, LsAgainRow **to)
{
    LsAgainRow *one = ls_arena_alloc(arena, dag->nnode + 1u, sizeof *one);
    LsAgainRow *row = ls_arena_alloc(arena, dag->nnode + LS_DAG_OPTIMIZER + 1u, sizeof *row);
    uint32_t n = 0, nrow = 0;
    for (uint32_t v = 0; v < dag->nnode; v++)
        if (series->runs[v] > (dag->node[v].kind != LS_DAG_FORWARD))
            one[n++] = row_of(dag, series, v);
    qsort(one, n, sizeof *one, by_op);
    n = join(one, n);
    qsort(one, n, sizeof *one, by_bytes);
    for (uint32_t k = 0; k < n;) {
        LsAgainRow all = {.op = "all", .kind = one[k].kind, .first = LS_ALL_NODES};
        for (; k < n && one[k].kind == all.kind; k++) {
            row[nrow++] = one[k];
            add(&all, &one[k]);
        }
        row[nrow++] = all;
    }
    *to = row;
    return nrow;
}
