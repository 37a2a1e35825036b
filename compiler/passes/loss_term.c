/* compiler/passes/loss_term.c -- see loss_term.h. Each loss is a mean over valid samples: it ends
 * in one of the nodes that mask samples (compiler/ir/loss.def). */
#include "compiler/passes/loss_term.h"

#include "compiler/fold/append.h"

#include <inttypes.h>

int ls_loss_reads(LsLossKind k) { return k == LS_LOSS_TRIPLET ? 3 : 1; }

bool ls_loss_has_target(LsLossKind k) { return k != LS_LOSS_GRAPH && k != LS_LOSS_TRIPLET; }

bool ls_loss_has_classes(LsLossKind k)
{
    return k == LS_LOSS_CE || k == LS_LOSS_NLL || k == LS_LOSS_SOFT_CE;
}

/* ---- what a term reads ---- */

/* --class-axis and --label-shape may both be given. */
static bool label_fits(LsCtx *cx, const LsGraph *g, const LsLossTerm *t, const LsLossOptions *o)
{
    const LsShape is = ls_shape_without(ls_shape(g, t->y[0]), t->axis);
    if (o->label_shape.rank == 0 || ls_shape_same(&is, &o->label_shape))
        return true;
    return ls_error(cx, LS_NOWHERE, LS_E_OPTION, NULL,
                    "with the classes of output '%s' on axis %d the labels are %s, and "
                    "--label-shape says %s",
                    g->value[t->y[0].i].name, t->axis, ls_shape_text(cx->arena, &is),
                    ls_shape_text(cx->arena, &o->label_shape));
}

static bool find_axis(LsCtx *cx, LsGraph *g, LsLossTerm *t, const LsLossOptions *o)
{
    const LsShape s = *ls_shape(g, t->y[0]);
    int axis = o->axis != 0              ? o->axis
               : o->label_shape.rank > 0 ? ls_class_axis_of_label(cx, g, t->y[0], &o->label_shape)
                                         : ls_class_axis(cx, g, t->y[0]);
    if (axis == 0)
        return false;
    t->axis = axis < 0 ? axis + s.rank : axis;
    if (s.rank < 2 || t->axis < 1 || t->axis >= s.rank)
        return ls_error(cx, LS_NOWHERE, LS_E_LOSS,
                        "--loss-input selects another output, --class-axis "
                        "another axis",
                        "output '%s' is %s: no axis %d of classes for a cross-entropy",
                        g->value[t->y[0].i].name, ls_shape_text(cx->arena, &s), t->axis);
    if (!label_fits(cx, g, t, o))
        return false;
    if (o->class_weight != NULL && o->nclass != s.dim[t->axis])
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, NULL,
                        "%" PRId64 " class weights for %" PRId64 " classes of output '%s'",
                        o->nclass, s.dim[t->axis], g->value[t->y[0].i].name);
    return true;
}

/* Triplets and cosines compare vectors on the last axis. */
static bool vectors_fit(LsCtx *cx, const LsGraph *g, const LsLossTerm *t)
{
    const LsShape *s = ls_shape(g, t->y[0]);
    const bool cosine = t->part.kind == LS_LOSS_COSINE;
    if (s->rank < 2 || (cosine && s->rank != 2))
        return ls_error(cx, LS_NOWHERE, LS_E_LOSS, "reshape the output in the model",
                        "output '%s' is %s: the %s loss takes "
                        "a vector per sample%s",
                        g->value[t->y[0].i].name, ls_shape_text(cx->arena, s),
                        cosine ? "cosine" : "triplet", cosine ? ", NxD" : ", on the last axis");
    for (int k = 1; k < ls_loss_reads(t->part.kind); k++)
        if (!ls_shape_same(s, ls_shape(g, t->y[k])))
            return ls_error(cx, LS_NOWHERE, LS_E_LOSS, NULL,
                            "a triplet loss compares outputs of one shape: '%s' is %s, "
                            "'%s' is %s",
                            g->value[t->y[0].i].name, ls_shape_text(cx->arena, s),
                            g->value[t->y[k].i].name,
                            ls_shape_text(cx->arena, ls_shape(g, t->y[k])));
    return true;
}

bool ls_loss_target(LsCtx *cx, LsGraph *g, LsLossTerm *t, const LsLossOptions *o, LsType *type,
                    LsShape *shape)
{
    *type = LS_REAL;
    *shape = *ls_shape(g, t->y[0]);
    switch (t->part.kind) {
    case LS_LOSS_COSINE: case LS_LOSS_TRIPLET:
        return vectors_fit(cx, g, t);
    case LS_LOSS_SOFT_CE:
        return find_axis(cx, g, t, o);
    case LS_LOSS_CE: case LS_LOSS_NLL:
        if (!find_axis(cx, g, t, o))
            return false;
        *type = LS_I64;
        *shape = ls_shape_without(ls_shape(g, t->y[0]), t->axis);
        return true;
    default:
        return true;
    }
}

/* ---- nodes ---- */

static LsValueId of_classes(LsCtx *cx, LsGraph *g, const LsLossTerm *t, const LsLossOptions *o)
{
    const bool ce = t->part.kind == LS_LOSS_CE;
    const LsAttr at = {.loss = {.axis = t->axis, .ignore = o->ignore, .has_ignore = o->has_ignore,
                                .smoothing = ce ? o->smoothing : 0, .reduction = LS_LOSS_MEAN}};
    LsValueId in[3] = {t->y[0], t->target};
    if (o->class_weight != NULL)
        in[2] = ls_const_add(cx, g, LS_REAL, &(LsShape){1, {o->nclass}}, o->class_weight);
    return ls_append(cx, g, ce ? LS_OP_XENT : LS_OP_NLL, ls_is(in[2]) ? 3 : 2, in, &at);
}

static LsValueId regression(LsCtx *cx, LsGraph *g, LsValueId y, LsValueId target, LsRegression kind,
                            double edge)
{
    return ls_append2(cx, g, LS_OP_REGRESSION_LOSS, y, target,
                      &(LsAttr){.loss = {.regression = kind, .edge = edge}});
}

static LsValueId over_last(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId v)
{
    return ls_append1(cx, g, op, v,
                      &(LsAttr){.reduce = {.axes = 1u << (ls_shape(g, v)->rank - 1)}});
}

static LsValueId binary(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, LsValueId b)
{
    return ls_append2(cx, g, op, a, b, NULL);
}

static LsValueId plus(LsCtx *cx, LsGraph *g, LsValueId v, double by)
{
    return binary(cx, g, LS_OP_ADD, v, ls_const_real(cx, g, by));
}

/* The mean of v over valid samples, minus `offset`. */
static LsValueId mean(LsCtx *cx, LsGraph *g, LsValueId v, double offset)
{
    const LsShape s = *ls_shape(g, v);
    return regression(cx, g, v, ls_expand(cx, g, ls_const_real(cx, g, offset), s), LS_REG_LINEAR,
                      0);
}

/* 1 - y t / sqrt((y y + 1e-12) (t t + 1e-12)), as torch.nn.CosineEmbeddingLoss has for pairs that
 * belong together. */
static LsValueId cosine(LsCtx *cx, LsGraph *g, LsValueId y, LsValueId t)
{
    LsValueId a = plus(cx, g, over_last(cx, g, LS_OP_REDUCE_SUM_SQUARE, y), 1e-12);
    LsValueId b = plus(cx, g, over_last(cx, g, LS_OP_REDUCE_SUM_SQUARE, t), 1e-12);
    LsValueId dot = over_last(cx, g, LS_OP_REDUCE_SUM, binary(cx, g, LS_OP_MUL, y, t));
    LsValueId size = ls_append1(cx, g, LS_OP_SQRT, binary(cx, g, LS_OP_MUL, a, b), NULL);
    LsValueId cos = binary(cx, g, LS_OP_DIV, dot, size);
    return mean(cx, g, ls_append1(cx, g, LS_OP_NEG, cos, NULL), -1);
}

/* The sum over classes c of -w (t (1 - smoothing) + smoothing / C) log p, as torch's
 * CrossEntropyLoss has with targets that are probabilities; its mean is over positions, whatever
 * their weights. nclass tells it from other losses (soft_scores.h). */
static LsValueId soft(LsCtx *cx, LsGraph *g, const LsLossTerm *t, const LsLossOptions *o)
{
    const LsShape s = *ls_shape(g, t->y[0]);
    LsShape by_class = {s.rank, {0}};
    for (int k = 0; k < s.rank; k++)
        by_class.dim[k] = k == t->axis ? s.dim[k] : 1;
    LsValueId target = t->target;
    if (o->smoothing != 0)
        target = plus(cx, g, ls_scale(cx, g, target, 1 - o->smoothing),
                      o->smoothing / (double)s.dim[t->axis]);
    LsValueId v = ls_append1(cx, g, LS_OP_LOG_SOFTMAX, t->y[0], &(LsAttr){.axis = {t->axis}});
    v = binary(cx, g, LS_OP_MUL, v, target);
    if (o->class_weight != NULL)
        v = binary(cx, g, LS_OP_MUL, v,
                   ls_expand(cx, g, ls_const_add(cx, g, LS_REAL, &by_class, o->class_weight), s));
    v = ls_append1(cx, g, LS_OP_REDUCE_SUM, v, &(LsAttr){.reduce = {.axes = 1u << t->axis}});
    v = ls_append1(cx, g, LS_OP_NEG, v, NULL);
    const LsShape each = *ls_shape(g, v);
    return ls_append2(cx, g, LS_OP_REGRESSION_LOSS, v,
                      ls_expand(cx, g, ls_const_real(cx, g, 0), each),
                      &(LsAttr){.loss = {.regression = LS_REG_LINEAR,
                                         .axis = t->axis,
                                         .nclass = s.dim[t->axis]}});
}

/* |a - b + 1e-6|, torch.nn.functional.pairwise_distance. */
static LsValueId distance(LsCtx *cx, LsGraph *g, LsValueId a, LsValueId b)
{
    LsValueId d = plus(cx, g, binary(cx, g, LS_OP_SUB, a, b), 1e-6);
    return ls_append1(cx, g, LS_OP_SQRT, over_last(cx, g, LS_OP_REDUCE_SUM_SQUARE, d), NULL);
}

/* max(|a - p| - |a - n| + margin, 0), torch.nn.TripletMarginLoss. The slope at the edge is 0. */
static LsValueId triplet(LsCtx *cx, LsGraph *g, const LsValueId y[3], double margin)
{
    LsValueId d =
        binary(cx, g, LS_OP_SUB, distance(cx, g, y[0], y[1]), distance(cx, g, y[0], y[2]));
    return mean(cx, g, ls_append1(cx, g, LS_OP_RELU, plus(cx, g, d, margin), NULL), 0);
}

/* A loss of the model's own. */
static LsValueId own(LsCtx *cx, LsGraph *g, LsValueId y)
{
    if (ls_count(ls_shape(g, y)) == 1)
        return ls_reshape(cx, g, y, &(LsShape){0});
    ls_error(cx, LS_NOWHERE, LS_E_LOSS, NULL, "output '%s' is %s: a loss has one element",
             g->value[y.i].name, ls_shape_text(cx->arena, ls_shape(g, y)));
    return (LsValueId){0};
}

LsValueId ls_loss_append(LsCtx *cx, LsGraph *g, const LsLossTerm *t, const LsLossOptions *o)
{
    static const LsRegression kind[LS_NLOSSES] = {
        [LS_LOSS_MSE] = LS_REG_SQUARE,       [LS_LOSS_L1] = LS_REG_ABS,
        [LS_LOSS_BCE] = LS_REG_LOGIT,        [LS_LOSS_KL] = LS_REG_KL,
        [LS_LOSS_SMOOTH_L1] = LS_REG_SMOOTH, [LS_LOSS_HUBER] = LS_REG_HUBER};
    const LsLossPart *p = &t->part;
    switch (p->kind) {
    case LS_LOSS_GRAPH:                 return own(cx, g, t->y[0]);
    case LS_LOSS_CE: case LS_LOSS_NLL:  return of_classes(cx, g, t, o);
    case LS_LOSS_SOFT_CE:               return soft(cx, g, t, o);
    case LS_LOSS_COSINE:                return cosine(cx, g, t->y[0], t->target);
    case LS_LOSS_TRIPLET:               return triplet(cx, g, t->y, p->setting);
    default:
        if (p->kind == LS_LOSS_SMOOTH_L1 && p->setting == 0) /* as torch.nn.SmoothL1Loss(beta=0) */
            return regression(cx, g, t->y[0], t->target, LS_REG_ABS, 0);
        return regression(cx, g, t->y[0], t->target, kind[p->kind], p->setting);
    }
}
