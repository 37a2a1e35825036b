/* compiler/updates/loss_scale.c -- the loss scale's state, its unscaled gradients and its machine.
 *
 * The loss is differentiated times the scale, so that gradients of 16 bits do not vanish. A step is
 * bad if some gradient of a parameter is not finite: then nothing changes but the scale. */
#include "compiler/updates/loss_scale.h"

#include "compiler/fold/append.h"

static LsValueId state(LsCtx *cx, LsGraph *g, const char *name, LsShape s, const float *start)
{
    return ls_value_add(cx, g, LS_V_STATE, name, LS_REAL, &s, start);
}

void ls_loss_scale(LsCtx *cx, LsGraph *g, const LsLossScale *o)
{
    if (!o->on)
        return;
    float *start = ls_arena_alloc(cx->arena, 1, sizeof *start);
    *start = (float)o->start;
    g->scaling.scale = state(cx, g, "loss_scale", (LsShape){0}, start);
    g->scaling.counter = state(cx, g, "loss_scale.counter", (LsShape){0}, NULL);
    g->scaling.skips = state(cx, g, "loss_scale.skips", (LsShape){1, {2}}, NULL);
}

LsValueId ls_all_axes(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId v)
{
    const LsAttr all = {.reduce = {.axes = (1u << ls_shape(g, v)->rank) - 1, .keep = true}};
    if (all.reduce.axes == 0)
        v = ls_append2(cx, g, op == LS_OP_REDUCE_FINITE ? LS_OP_SUB : LS_OP_MUL, v, v, NULL);
    else
        v = ls_append1(cx, g, op, v, &all);
    return ls_reshape(cx, g, v, &(LsShape){0});
}

LsValueId ls_scaling_inverse(LsCtx *cx, LsGraph *g)
{
    LsNodeId loss = g->value[ls_viewed(g, g->objective.loss).i].def;
    ls_graph_origin(g, (LsOrigin){LS_UPDATE, loss, g->node[loss.i].onnx, "loss scale"});
    return ls_append1(cx, g, LS_OP_RECIPROCAL, g->scaling.scale, NULL);
}

/* Moves the running statistics behind `factor`, so that those of a bad step are discarded. With
 * several micro-batches the statistics of an update under way are state of their own. */
static void guard_statistics(LsCtx *cx, LsGraph *g, LsValueId factor, bool sums)
{
    const uint32_t n = g->nnode;
    for (uint32_t i = 1; i < n; i++) {
        const LsNode old = g->node[i];
        if (old.op != LS_OP_RUNNING_STAT)
            continue;
        LsValueId run = g->operand[old.in], batch = g->operand[old.in + 1], next = {0};
        if (sums)
            next = state(cx, g, ls_arena_printf(cx->arena, "%s.next", g->value[run.i].name),
                         *ls_shape(g, run), NULL);
        if (sums)
            g->value[next.i].of_update = true;
        ls_graph_origin(g, (LsOrigin){old.phase, old.fwd, old.onnx, old.name});
        ls_append(cx, g, LS_OP_RUNNING_STAT, 4, (LsValueId[]){run, batch, next, factor}, &old.attr);
        g->node[i] = (LsNode){.op = LS_OP_NOP, .onnx = old.onnx, .name = old.name};
    }
}

void ls_scaling_move(LsCtx *cx, LsGraph *g, const LsLossScale *o, LsValueId factor, bool sums)
{
    guard_statistics(cx, g, factor, sums);
    LsNodeId loss = g->value[ls_viewed(g, g->objective.loss).i].def;
    ls_graph_origin(g, (LsOrigin){LS_UPDATE, loss, g->node[loss.i].onnx, "loss scale"});
    ls_append(cx, g, LS_OP_LOSS_SCALE, 4,
              (LsValueId[]){factor, g->scaling.scale, g->scaling.counter, g->scaling.skips},
              &(LsAttr){.update = {.rule = o->rule}});
}
