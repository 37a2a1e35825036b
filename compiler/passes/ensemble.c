/* compiler/passes/ensemble.c -- see ensemble.h.
 *
 * requires a whole graph: in training with its updates. Keeps everything; sets LsGraph.members and
 * LsValue.stacked. */
#include "compiler/passes/ensemble.h"

#include "compiler/passes/fuse.h"

#include <string.h>

/* An operator whose result depends on the run's seed. */
static bool op_draws(uint16_t op)
{
    return op == LS_OP_DROPOUT || op == LS_OP_UNIFORM || op == LS_OP_NORMAL;
}

static const LsStmt *drawing(const LsFused *f)
{
    for (int s = 0; f != NULL && s < f->nstmt; s++)
        if (op_draws(f->stmt[s].op))
            return &f->stmt[s];
    return NULL;
}

/* The statement of a node's loop that draws random numbers; NULL: none. */
static const LsStmt *drawing_of(const LsNode *n)
{
    if (n->op == LS_OP_FUSED)
        return drawing(n->attr.fused.body);
    return n->computed != NULL && n->computed->body != NULL ? drawing(n->computed->body) : NULL;
}

bool ls_node_draws(const LsNode *n) { return op_draws(n->op) || drawing_of(n) != NULL; }

static bool is_stacked_in(const LsGraph *g, const char *name)
{
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (ls_is_state(g, (LsValueId){i}) && strcmp(g->value[i].name, name) == 0)
            return g->value[i].stacked;
    return false;
}

/* Parameters, and all state that some node updates. Frozen weights are shared. */
static void mark_state(LsGraph *g, const LsGraph *like)
{
    for (uint32_t i = 1; i < g->nvalue; i++) {
        LsValue *v = &g->value[i];
        if (ls_is_state(g, (LsValueId){i}))
            v->stacked = like != NULL ? is_stacked_in(like, v->name)
                                      : v->kind == LS_V_PARAM || v->once_written;
    }
}

/* Inputs with samples; others, such as the edges of a graph, are no batch. */
static void mark_inputs(LsGraph *g)
{
    for (uint32_t i = 0; g->ensemble.own_batches && i < g->ninput; i++) {
        LsValue *v = &g->value[g->input[i].i];
        v->stacked = v->shape.rank > 0 && v->shape.dim[0] % g->batch == 0;
    }
}

static bool takes_draws(LsCtx *cx, const LsGraph *g, LsRandomness how)
{
    for (uint32_t i = 1; i < g->nnode && how == LS_RANDOM_ERROR; i++) {
        const LsStmt *in = drawing_of(&g->node[i]);
        const char *op = ls_op[in != NULL ? in->op : g->node[i].op]->name;
        if (ls_node_draws(&g->node[i]))
            return ls_error(cx,
                            (LsWhere){g->node[i].onnx, in != NULL ? in->name : g->node[i].name, op},
                            LS_E_UNSUPPORTED,
                            "--randomness=different draws for every member, by its seed; "
                            "--randomness=same draws the same "
                            "numbers for all; --dropout=off leaves dropouts out",
                            "%s draws random numbers, and an ensemble has several members", op);
    }
    return true;
}

bool ls_ensemble(LsCtx *cx, LsGraph *g, const LsEnsemble *o, const LsGraph *like)
{
    if (o->members == 0)
        return true;
    if (!takes_draws(cx, g, o->randomness))
        return false;
    g->ensemble.members = o->members;
    g->ensemble.lanes = o->lanes;
    g->ensemble.own_batches = o->own_batches && g->training;
    g->ensemble.same_draws = o->randomness == LS_RANDOM_SAME;
    mark_state(g, like);
    mark_inputs(g);
    return true;
}
