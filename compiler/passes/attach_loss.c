/* compiler/passes/attach_loss.c -- attaches the loss to a model output.
 *
 * requires the forward part; adds the target as the last input and one loss node; keeps
 * everything else. With LS_LOSS_GRAPH the model has its own loss, an output of one element. */
#include "compiler/fold/append.h"
#include "compiler/passes/passes.h"

#include <inttypes.h>
#include <string.h>

/* The only output that can be the loss; none after a diagnostic. */
static LsValueId find_loss(LsCtx *cx, const LsGraph *g)
{
    const char *names = "";
    LsValueId loss = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->noutput; i++) {
        const LsValue *v = &g->value[g->output[i].i];
        if (ls_count(&v->shape) != 1 || v->type != LS_REAL)
            continue;
        loss = g->output[i];
        names = ls_arena_printf(cx->arena, "%s%s'%s'", names, n++ > 0 ? ", " : "", v->name);
    }
    if (n == 1)
        return loss;
    if (n == 0)
        ls_error(cx, LS_NOWHERE, LS_E_LOSS, "--loss=ce, mse, l1 or bce adds a loss to an output",
                 "none of the %u model outputs is a scalar loss", g->noutput);
    else
        ls_error(cx, LS_NOWHERE, LS_E_LOSS, "--loss-input NAME selects the loss",
                 "%u model outputs have one element: %s", n, names);
    return (LsValueId){0};
}

/* The output of that name, or the first one (for LS_LOSS_GRAPH: the only one of one element). */
static LsValueId find_output(LsCtx *cx, const LsGraph *g, const LsLossOptions *o)
{
    if (o->kind == LS_LOSS_GRAPH && o->output == NULL)
        return find_loss(cx, g);
    for (uint32_t i = 0; i < g->noutput; i++)
        if (o->output == NULL || strcmp(g->value[g->output[i].i].name, o->output) == 0)
            return g->output[i];
    if (o->output != NULL)
        ls_error(cx, LS_NOWHERE, LS_E_LOSS, "--loss-input takes the name of a model output",
                 "the model has no output '%s'", o->output);
    else
        ls_error(cx, LS_NOWHERE, LS_E_LOSS, NULL, "the model has no output");
    return (LsValueId){0};
}

static void add_input(LsGraph *g, LsValueId v)
{
    LsValueId *input = ls_arena_alloc(g->arena, g->ninput + 1, sizeof *input);
    if (g->ninput > 0)
        memcpy(input, g->input, g->ninput * sizeof *input);
    input[g->ninput] = v;
    g->input = input;
    g->ninput++;
}

/* Where inputs and target have no common axis of samples, they are one sample together: data cannot be shuffled or
 * cut along the first axis. */
static void find_samples(LsCtx *cx, LsGraph *g, const LsShape *target)
{
    if (target->rank == 0 || target->dim[0] % g->batch == 0)
        return;
    const char *what = g->ninput > 0 ? ls_arena_printf(cx->arena, "input '%s' is %s", g->value[g->input[0].i].name,
                                                       ls_dims(g, g->input[0])) : "there is no input";
    ls_warn(cx, LS_NOWHERE, "export the model with samples along the first axis of every input and output",
            "%s, but the target of the loss is %s: data files must hold whole blocks of both, and a batch is one "
            "block", what, ls_shape_text(cx->arena, target));
    g->batch = 1;
}

static void add_label(LsCtx *cx, LsGraph *g, const LsLossOptions *o, LsType type,
                      const LsShape *shape)
{
    const char *name = o->label != NULL ? o->label : "label";
    find_samples(cx, g, shape);
    g->label = ls_value_add(cx, g, LS_V_INPUT, name, type, shape, NULL);
    add_input(g, g->label);
}

/* Sets how the losses of several batches are combined, from the node that computes the loss. */
static void say_over(LsGraph *g)
{
    const LsNodeId n = g->value[ls_viewed(g, g->loss).i].def;
    const LsNode *node = &g->node[n.i];
    bool classes = n.i != 0 && (node->op == LS_OP_XENT || node->op == LS_OP_NLL);
    const LsShape *labels = classes ? ls_in_shape(g, n, 1) : ls_in_shape(g, n, 0);
    bool masks = classes || (n.i != 0 && node->op == LS_OP_REGRESSION_LOSS);
    g->loss_of_file = !masks || labels->rank == 0 || labels->dim[0] % g->batch != 0;
    if (classes && node->attr.loss.reduction == LS_LOSS_SUM)
        g->loss_over = LS_OVER_SUM;
    else if (classes && node->attr.loss.reduction == LS_LOSS_MEAN
             && (node->attr.loss.has_ignore || ls_is(ls_in(g, n, 2)))) {
        g->loss_over = LS_OVER_LABELS;
        g->loss_weight = ls_out(g, n, node->nout - 1);
    }
}

static bool graph_loss(LsCtx *cx, LsGraph *g, LsValueId y)
{
    if (ls_count(ls_shape(g, y)) != 1)
        return ls_error(cx, LS_NOWHERE, LS_E_LOSS, NULL,
                        "output '%s' is %s: a loss has one element", g->value[y.i].name,
                        ls_shape_text(cx->arena, ls_shape(g, y)));
    g->loss = ls_reshape(cx, g, y, &(LsShape){0});
    return true;
}

static bool cross_entropy(LsCtx *cx, LsGraph *g, LsValueId y, const LsLossOptions *o)
{
    const LsShape s = *ls_shape(g, y);
    int axis = o->axis != 0 ? o->axis : ls_class_axis(cx, g, y);
    axis = axis < 0 ? axis + s.rank : axis;
    if (s.rank < 2 || axis < 1 || axis >= s.rank)
        return ls_error(cx, LS_NOWHERE, LS_E_LOSS, "--loss-input selects another output, --class-axis "
                        "another axis", "output '%s' is %s: no axis %d of classes for a cross-entropy",
                        g->value[y.i].name, ls_shape_text(cx->arena, &s), axis);
    if (o->class_weight != NULL && o->nclass != s.dim[axis])
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, NULL, "%" PRId64 " class weights for %" PRId64
                        " classes", o->nclass, s.dim[axis]);
    LsShape positions = {.rank = s.rank - 1};
    for (int k = 0; k < positions.rank; k++)
        positions.dim[k] = s.dim[k < axis ? k : k + 1];
    add_label(cx, g, o, LS_I64, &positions);
    LsAttr at = {.loss = {.axis = axis, .ignore = o->ignore, .has_ignore = o->has_ignore,
                          .smoothing = o->smoothing, .reduction = LS_LOSS_MEAN}};
    LsValueId in[3] = {y, g->label};
    if (o->class_weight != NULL)
        in[2] = ls_const_add(cx, g, LS_REAL, &(LsShape){1, {o->nclass}}, o->class_weight);
    g->loss = ls_append(cx, g, LS_OP_XENT, ls_is(in[2]) ? 3 : 2, in, &at);
    return ls_is(g->loss);
}

static bool regression(LsCtx *cx, LsGraph *g, LsValueId y, const LsLossOptions *o)
{
    const LsShape s = *ls_shape(g, y);
    LsAttr at = {.loss = {.regression = o->kind == LS_LOSS_MSE ? LS_REG_SQUARE
                                      : o->kind == LS_LOSS_L1 ? LS_REG_ABS : LS_REG_LOGIT}};
    add_label(cx, g, o, LS_REAL, &s);
    g->loss = ls_append2(cx, g, LS_OP_REGRESSION_LOSS, y, g->label, &at);
    return ls_is(g->loss);
}

/* Warns of a second softmax or sigmoid: a cross-entropy takes scores and contains the softmax, as
 * bce contains the sigmoid. */
static void warn_of_second(LsCtx *cx, const LsGraph *g, LsValueId y, LsLossKind kind)
{
    LsNodeId n = g->value[y.i].def;
    LsOpCode inside = kind == LS_LOSS_CE ? LS_OP_SOFTMAX : LS_OP_SIGMOID;
    if ((kind == LS_LOSS_CE || kind == LS_LOSS_BCE) && n.i != 0 && g->node[n.i].op == inside)
        ls_warn(cx, ls_where(g, n), "export the model without it, or name an output before it with "
                "--loss-input", "output '%s' is a %s, and the loss applies one more",
                g->value[y.i].name, kind == LS_LOSS_CE ? "softmax" : "sigmoid");
}

bool ls_loss(LsCtx *cx, LsGraph *g, const LsLossOptions *o)
{
    LsValueId y = find_output(cx, g, o);
    if (!ls_is(y))
        return false;
    if (ls_type(g, y) != LS_REAL)
        return ls_error(cx, LS_NOWHERE, LS_E_LOSS, "--loss-input selects another output",
                        "output '%s' is not float", g->value[y.i].name);
    warn_of_second(cx, g, y, o->kind);
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, 0, "loss"});
    bool ok = o->kind == LS_LOSS_GRAPH ? graph_loss(cx, g, y)
            : o->kind == LS_LOSS_CE ? cross_entropy(cx, g, y, o) : regression(cx, g, y, o);
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, 0, NULL});
    if (ok)
        say_over(g);
    return ok;
}
