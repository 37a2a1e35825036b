/* compiler/onnx/onnx_order.c -- finds the definition of each name and a run order of the nodes.
 *
 * ONNX requires that every name is defined once (SSA) and that nodes follow the nodes that they
 * read. Files that only break the second rule are sorted. */
#include "compiler/onnx/onnx_order.h"

#include <string.h>

static const char *maker_text(LsCtx *cx, const LsOnnxModel *m, int64_t maker)
{
    if (maker == LS_MADE_INPUT)
        return "a graph input";
    if (maker == LS_MADE_INITIALIZER)
        return "an initializer";
    const LsOnnxFlat *f = &m->node[maker];
    return ls_arena_printf(cx->arena, "node %u '%s'", f->index, f->name);
}

static int64_t *maker_of(LsOnnxModel *m, const char *name)
{
    return &m->maker[ls_names_find(&m->names, name)];
}

static void collect_names(LsCtx *cx, LsOnnxModel *m)
{
    const Onnx__GraphProto *g = m->graph;
    for (size_t i = 0; i < g->n_initializer; i++)
        ls_names_add(&m->names, ls_text(g->initializer[i]->name));
    for (size_t i = 0; i < g->n_sparse_initializer; i++)
        if (g->sparse_initializer[i]->values != NULL)
            ls_names_add(&m->names, ls_text(g->sparse_initializer[i]->values->name));
    for (size_t i = 0; i < g->n_input; i++)
        ls_names_add(&m->names, ls_text(g->input[i]->name));
    for (size_t i = 0; i < g->n_output; i++)
        ls_names_add(&m->names, ls_text(g->output[i]->name));
    for (uint32_t i = 0; i < m->nnode; i++) {
        const Onnx__NodeProto *p = m->node[i].proto;
        for (size_t k = 0; k < p->n_input; k++)
            ls_names_add(&m->names, ls_text(p->input[k]));
        for (size_t k = 0; k < p->n_output; k++)
            ls_names_add(&m->names, ls_text(p->output[k]));
    }
    m->maker = ls_arena_alloc(cx->arena, m->names.n + 1, sizeof *m->maker);
    for (uint32_t i = 0; i <= m->names.n; i++)
        m->maker[i] = LS_MADE_NOT;
}

static bool define(LsCtx *cx, LsOnnxModel *m, LsWhere at, const char *name, int64_t maker)
{
    int64_t *old = maker_of(m, name);
    if (name[0] == '\0')
        return ls_error(cx, at, LS_E_NAME, NULL, "%s has no name",
                        maker == LS_MADE_INPUT ? "a graph input" : "an initializer");
    /* Before IR version 4 every initializer is listed as an input too. */
    if (*old == LS_MADE_INITIALIZER && maker == LS_MADE_INPUT)
        return true;
    if (*old != LS_MADE_NOT)
        return ls_error(cx, at, LS_E_NAME, "every value of an ONNX graph has a name of its own",
                        "'%s' is made twice; it is also %s%s", name,
                        *old >= 0 ? "a result of " : "", maker_text(cx, m, *old));
    *old = maker;
    return true;
}

/* An input listed twice is a duplicate even when an initializer has the same name. */
static bool define_inputs(LsCtx *cx, LsOnnxModel *m)
{
    bool good = true, *seen = ls_arena_alloc(cx->arena, m->names.n + 1, sizeof *seen);
    for (size_t i = 0; i < m->graph->n_input; i++) {
        const char *name = ls_text(m->graph->input[i]->name);
        uint32_t id = ls_names_find(&m->names, name);
        if (seen[id])
            good =
                ls_error(cx, LS_NOWHERE, LS_E_NAME, NULL, "two graph inputs are called '%s'", name);
        else
            good &= define(cx, m, LS_NOWHERE, name, LS_MADE_INPUT);
        seen[id] = true;
    }
    return good;
}

static bool define_all(LsCtx *cx, LsOnnxModel *m)
{
    bool good = true;
    const Onnx__GraphProto *g = m->graph;
    ls_report_cut(m->report, LS_REPORT_FIRST);
    for (size_t i = 0; i < g->n_initializer; i++)
        good &= define(cx, m, LS_NOWHERE, ls_text(g->initializer[i]->name), LS_MADE_INITIALIZER);
    good &= define_inputs(cx, m);
    ls_report_cut(m->report, LS_REPORT_FIRST);
    for (uint32_t i = 0; i < m->nnode; i++) {
        const Onnx__NodeProto *p = m->node[i].proto;
        for (size_t k = 0; k < p->n_output; k++)
            if (ls_text(p->output[k])[0] != '\0')
                good &= define(cx, m, ls_flat_where(&m->node[i]), p->output[k], i);
        ls_report_cut(m->report, m->node[i].index);
    }
    return good;
}

static bool check_reads(LsCtx *cx, LsOnnxModel *m)
{
    bool good = true;
    for (uint32_t i = 0; i < m->nnode; i++) {
        const Onnx__NodeProto *p = m->node[i].proto;
        for (size_t k = 0; k < p->n_input; k++) {
            const char *name = ls_text(p->input[k]);
            if (name[0] != '\0' && *maker_of(m, name) == LS_MADE_NOT)
                good = ls_error(cx, ls_flat_where(&m->node[i]), LS_E_NAME,
                                "a part of the file is missing; a graph that was cut out of "
                                "another has such values as "
                                "inputs (onnx.utils.extract_model)",
                                "operand %zu reads '%s', which no node, input or initializer makes",
                                k, name);
        }
        ls_report_cut(m->report, m->node[i].index);
    }
    for (size_t i = 0; i < m->graph->n_output; i++) {
        const char *name = ls_text(m->graph->output[i]->name);
        if (*maker_of(m, name) == LS_MADE_NOT)
            good = ls_error(cx, LS_NOWHERE, LS_E_NAME,
                            "a part of the file is missing; onnx.utils.extract_model cuts out the "
                            "part up to other results",
                            "graph output '%s' is not made by any node", name);
    }
    return good;
}

enum { WHITE, GREY, BLACK, STUCK };     /* STUCK: on a cycle or behind one */

typedef struct Walk {           /* depth-first, with an explicit stack */
    uint8_t *colour;
    uint32_t *stack, *next;     /* node, next operand to visit */
    uint32_t depth;
} Walk;

/* Names at most a dozen nodes of the cycle that the top of the stack closes at `back`. */
static bool report_cycle(LsCtx *cx, const LsOnnxModel *m, const Walk *w, uint32_t back)
{
    uint32_t from = w->depth;
    while (w->stack[--from] != back)
        ;
    const char *text = "";
    uint32_t n = w->depth - from;
    for (uint32_t i = 0; i < n && i < 12; i++) {
        const LsOnnxFlat *f = &m->node[w->stack[w->depth - 1 - i]];
        text = ls_arena_printf(cx->arena, "%s%s'%s' (%s)", text, i > 0 ? " -> " : "",
                               f->name[0] != '\0' ? f->name : ls_text(f->proto->output[0]),
                               ls_text(f->proto->op_type));
    }
    return ls_error(
        cx, ls_flat_where(&m->node[back]), LS_E_CYCLE,
        "no order of the nodes can compute that: the file is damaged, or was edited by hand",
        "a cycle of %u node%s: %s%s", n, n > 1 ? "s" : "", text,
        n > 12 ? " -> ..." : " -> back to the first");
}

/* Visits node `root` and all nodes that it depends on. */
static bool visit(LsCtx *cx, LsOnnxModel *m, Walk *w, uint32_t root)
{
    bool good = true;
    w->stack[w->depth] = root;
    w->next[w->depth++] = 0;
    w->colour[root] = GREY;
    while (w->depth > 0) {
        uint32_t i = w->stack[w->depth - 1];
        const Onnx__NodeProto *p = m->node[i].proto;
        if (w->next[w->depth - 1] == p->n_input) {
            w->depth--;
            if (w->colour[i] == GREY) {
                w->colour[i] = BLACK;
                m->order[m->norder++] = i;
            }
            continue;
        }
        const char *name = ls_text(p->input[w->next[w->depth - 1]++]);
        int64_t maker = name[0] != '\0' ? *maker_of(m, name) : LS_MADE_NOT;
        if (maker < 0 || w->colour[maker] == BLACK)
            continue;
        if (w->colour[maker] == WHITE) {
            w->colour[maker] = GREY;
            w->stack[w->depth] = (uint32_t)maker;
            w->next[w->depth++] = 0;
            continue;
        }
        if (w->colour[maker] == GREY)
            good = report_cycle(cx, m, w, (uint32_t)maker);
        /* The whole stack depends on the cycle; below a stuck node all nodes are already stuck. */
        for (uint32_t d = w->depth; d-- > 0 && w->colour[w->stack[d]] != STUCK;)
            w->colour[w->stack[d]] = STUCK;
    }
    return good;
}

static bool sort(LsCtx *cx, LsOnnxModel *m)
{
    Walk w = {ls_arena_alloc(cx->arena, m->nnode + 1, 1),
              ls_arena_alloc(cx->arena, m->nnode + 1, sizeof *w.stack),
              ls_arena_alloc(cx->arena, m->nnode + 1, sizeof *w.next), 0};
    bool good = true, moved = false;
    m->norder = 0;
    m->order = ls_arena_alloc(cx->arena, m->nnode + 1, sizeof *m->order);
    for (uint32_t i = 0; i < m->nnode; i++)
        if (w.colour[i] == WHITE)
            good &= visit(cx, m, &w, i);
    ls_report_cut(m->report, LS_REPORT_FIRST);
    for (uint32_t i = 1; i < m->norder; i++)
        moved |= m->order[i] < m->order[i - 1];
    m->moved = moved;
    return good;
}

bool ls_onnx_resolve(LsCtx *cx, LsOnnxModel *m)
{
    collect_names(cx, m);
    bool good = define_all(cx, m);
    good &= check_reads(cx, m);
    return sort(cx, m) && good;
}
