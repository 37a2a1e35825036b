/* compiler/passes/split_stores.c -- FUSED nodes store the slices of their results themselves.
 *
 * requires FUSED nodes; keeps all other results and all names.
 *
 * A result that is read only by slices along one axis is not needed as a whole: the loop that
 * computes it stores each slice in its own tensor. Gradients of concatenations are such results. */
#include "compiler/ir/rewrite.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/passes.h"

enum { MAX_OUT = 32 };              /* most results of a node, parts included */
enum { UNREAD = -2, WHOLE = -1 };   /* else an axis */

typedef struct Split {
    const LsGraph *g;
    int *axis;                  /* by value: axis along which all its readers slice it; UNREAD;
                                 * WHOLE */
    uint32_t *first, *next;     /* by value, by slice: the slices of a value, 0: no more */
    int *parts;                 /* by value: number of parts */
    bool *splits;               /* by FUSED node: stores slices */
    LsNodeId *image;            /* by FUSED node that stores slices: its replacement */
    uint32_t n;
} Split;

/* The axis along which node i takes a part, in order, of a FUSED node's result; WHOLE: another kind
 * of reader. */
static int axis_of(const LsGraph *g, uint32_t i)
{
    const LsNode *n = &g->node[i];
    if (n->op != LS_OP_SLICE)
        return WHOLE;
    LsValueId x = g->operand[n->in];
    const LsNode *made = &g->node[g->value[x.i].def.i];
    int axis = WHOLE;
    for (int k = 0; k < ls_shape(g, x)->rank; k++) {
        bool all = n->attr.slice.start[k] == 0
            && n->attr.slice.stop[k] == ls_shape(g, x)->dim[k];
        if (n->attr.slice.step[k] != 1 || (!all && axis != WHOLE))
            return WHOLE;
        axis = all ? axis : k;
    }
    bool beside = made->op == LS_OP_FUSED && made->phase == n->phase
        && (g->value[n->out].layout == g->value[x.i].layout || ls_layout_free(ls_shape(g, x)));
    return beside ? axis : WHOLE;
}

static void read_by(Split *s, LsValueId v, int axis, uint32_t i)
{
    s->axis[v.i] = s->axis[v.i] == UNREAD || s->axis[v.i] == axis ? axis : WHOLE;
    s->next[i] = s->first[v.i];
    s->first[v.i] = i;
    s->parts[v.i]++;
}

static void find_slices(Split *s)
{
    const LsGraph *g = s->g;
    for (uint32_t i = 0; i < g->nvalue; i++)
        s->axis[i] = UNREAD;
    for (uint32_t i = g->nnode - 1; i > 0; i--) {   /* backwards, so that lists are in run order */
        int axis = axis_of(g, i);
        if (axis >= 0)
            read_by(s, ls_in(g, (LsNodeId){i}, 0), axis, i);
        for (int k = 0; k < g->node[i].nin && axis < 0; k++)
            s->axis[ls_in(g, (LsNodeId){i}, k).i] = WHOLE;
    }
    for (uint32_t i = 0; i < g->noutput; i++)
        s->axis[g->output[i].i] = WHOLE;
    for (uint32_t i = 0; i < g->ngrad; i++)
        s->axis[g->grad[i].grad.i] = WHOLE;
    s->axis[g->objective.loss.i] = WHOLE;
}

/* Chooses the results of node n to store in parts: those that keep their axis; they share one
 * axis. */
static void choose(Split *s, LsNodeId n)
{
    const LsGraph *g = s->g;
    const LsFused *f = g->node[n.i].attr.fused.body;
    int axis = WHOLE, nout = g->node[n.i].nout;
    for (int k = 0; k < g->node[n.i].nout; k++) {
        LsValueId v = ls_out(g, n, k);
        bool fits = s->axis[v.i] >= 0 && (axis == WHOLE || s->axis[v.i] == axis)
            && !f->out[k].reduce && nout + s->parts[v.i] <= MAX_OUT;
        if (!fits) {
            s->axis[v.i] = WHOLE;
            continue;
        }
        axis = s->axis[v.i];
        nout += s->parts[v.i] - 1;
        s->splits[n.i] = true;
        s->n++;
    }
}

static void append_split(LsRewrite *r, const Split *s, LsNodeId n)
{
    const LsGraph *g = s->g;
    const LsNode *node = &g->node[n.i];
    LsFused *f = ls_arena_alloc(r->cx->arena, 1, sizeof *f);
    LsValueId old[MAX_OUT];
    int nout = 0;
    *f = *node->attr.fused.body;
    f->out = ls_arena_alloc(r->cx->arena, MAX_OUT, sizeof *f->out);
    for (int k = 0; k < node->nout; k++) {
        LsValueId v = ls_out(g, n, k);
        if (s->axis[v.i] < 0) {
            f->out[nout] = node->attr.fused.body->out[k];
            old[nout++] = v;
            continue;
        }
        f->split = s->axis[v.i];
        for (uint32_t i = s->first[v.i]; i != 0; i = s->next[i]) {
            const LsSliceAttr *at = &g->node[i].attr.slice;
            f->out[nout] = node->attr.fused.body->out[k];
            f->out[nout].from = at->start[f->split];
            f->out[nout].length = at->stop[f->split] - at->start[f->split];
            old[nout++] = ls_out(g, (LsNodeId){i}, 0);
        }
    }
    s->image[n.i] = ls_rewrite_append(r, LS_OP_FUSED, node->nin, g->operand + node->in, nout, old,
                                      &(LsAttr){.fused = {.body = f}});
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    const Split *s = r->user;
    if (s->splits[n.i]) {
        append_split(r, s, n);
        return true;
    }
    if (s->g->node[n.i].op != LS_OP_SLICE || s->axis[ls_in(s->g, n, 0).i] < 0)
        return false;
    r->image = s->image[s->g->value[ls_in(s->g, n, 0).i].def.i];
    return true;
}

bool ls_split(LsCtx *cx, LsGraph *g)
{
    LsArena *a = cx->arena;
    Split s = {.g = g};
    s.axis = ls_arena_alloc(a, g->nvalue, sizeof *s.axis);
    s.first = ls_arena_alloc(a, g->nvalue, sizeof *s.first);
    s.parts = ls_arena_alloc(a, g->nvalue, sizeof *s.parts);
    s.next = ls_arena_alloc(a, g->nnode, sizeof *s.next);
    s.splits = ls_arena_alloc(a, g->nnode, sizeof *s.splits);
    s.image = ls_arena_alloc(a, g->nnode, sizeof *s.image);
    find_slices(&s);
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[i].op == LS_OP_FUSED)
            choose(&s, (LsNodeId){i});
    if (s.n > 0)
        ls_rewrite(cx, g, visit, &s);
    return true;
}
