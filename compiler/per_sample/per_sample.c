/* compiler/per_sample/per_sample.c -- see the header.
 *
 * requires gradients of a sum over samples (ls_autodiff); appends nodes of phase LS_BACKWARD; keeps
 * all others; the gradients of the parameters become means again. */
#include "compiler/per_sample/per_sample.h"

#include "base/arena.h"
#include "compiler/fold/append.h"
#include "compiler/ops/random.h"

#include <string.h>

/* ---- what mixes samples ---- */

static bool is_batch_norm(const LsPerSample *p, LsNodeId n)
{
    const LsGraph *g = p->g;
    if (g->batch == 1)              /* of a variance: the mean has one, too */
        return g->node[n.i].op == LS_OP_RUNNING_STAT
               && g->node[g->value[ls_viewed(g, ls_in(g, n, 1)).i].def.i].op == LS_OP_NORM_VAR;
    return g->node[n.i].phase == LS_FORWARD && g->node[n.i].op == LS_OP_NORM_VAR
        && ls_sample_role(p, ls_out(g, n, 0)) == LS_SUMMED;
}

/* Names of all batch norms that take statistics of the batch; NULL: none. */
static const char *batch_norms(const LsPerSample *p, LsNodeId *first)
{
    const LsGraph *g = p->g;
    const char *names = NULL;
    for (uint32_t i = 1; i < g->nnode; i++) {
        if (!is_batch_norm(p, (LsNodeId){i}))
            continue;
        if (names == NULL)
            *first = (LsNodeId){i};
        const char *name = g->node[i].name != NULL ? g->node[i].name : "(no name)";
        names = names == NULL ? name : ls_arena_printf(p->cx->arena, "%s, %s", names, name);
    }
    return names;
}

static bool refuse(const LsPerSample *p, LsNodeId n, const char *what)
{
    return ls_error(p->cx, ls_where(p->g, n), LS_E_UNSUPPORTED,
                    "freeze the parameters before it (--freeze), or replace it",
                    "%s %s: a sample has no gradient of its own", ls_op[p->g->node[n.i].op]->name,
                    what);
}

static bool is_separable(const LsPerSample *p, const LsValueId *gradient_of)
{
    const LsGraph *g = p->g;
    LsNodeId norm = {0};
    const char *norms = batch_norms(p, &norm);
    if (norms != NULL)
        return ls_error(p->cx, ls_where(g, norm), LS_E_UNSUPPORTED,
                        "take running statistics (--bn=frozen), or group norms in "
                        "the model",
                        "batch norms take statistics of all samples, so a sample has no gradient "
                        "of its own: %s",
                        norms);
    if (g->batch == 1)
        return true;
    if (p->samples.mixed.i != 0)
        return refuse(p, p->samples.mixed, "combines different samples");
    for (uint32_t i = 1; i < g->nnode; i++)
        if (ls_reads_statistic(&p->samples, (LsNodeId){i}))
            return refuse(p, (LsNodeId){i}, "reads a statistic of all samples");
    for (uint32_t v = 1; v < p->nvalue; v++)
        if (ls_is(gradient_of[v]) && ls_sample_role(p, gradient_of[v]) == LS_NOT_FOLLOWED)
            return refuse(p, g->value[gradient_of[v].i].def,
                          "does not show where its result has the samples");
    return true;
}

static bool fits(const LsPerSample *p)
{
    const LsGraph *g = p->g;
    const LsNodeId loss = g->value[ls_viewed(g, g->objective.loss).i].def;
    const LsOpCode op = (LsOpCode)g->node[loss.i].op;
    if (g->objective.over == LS_OVER_LABELS || g->objective.over == LS_OVER_MIXED)
        return ls_error(p->cx, ls_where(g, loss), LS_E_LOSS,
                        "leave out --ignore-index and --class-weights",
                        "the loss is a mean over the labels that count, not over samples: a sample "
                        "has no loss of its own");
    if (g->objective.of_file && op != LS_OP_REDUCE_MEAN && op != LS_OP_XENT && op != LS_OP_NLL
        && op != LS_OP_REGRESSION_LOSS)
        return ls_error(
            p->cx, ls_where(g, loss), LS_E_LOSS, "take one of the losses of --loss",
            "the file's loss is not a plain mean, so the losses of samples are not known");
    return true;
}

/* The samples that fill up a private batch must not count. */
static bool pads(const LsPerSample *p, const LsPrivacy *o)
{
    const LsGraph *g = p->g;
    return !o->on || !g->objective.of_file
           || ls_error(p->cx, ls_where(g, g->value[ls_viewed(g, g->objective.loss).i].def),
                       LS_E_LOSS, "take one of the losses of --loss",
                       "--dp: the file's loss counts all samples of a batch, but private batches "
                       "are of any size, so some "
                       "samples only fill them up");
}

/* ---- results ---- */

static void begin(const LsPerSample *p, LsValueId grad)
{
    const LsNode *made = &p->g->node[p->g->value[grad.i].def.i];
    ls_graph_origin(p->g, (LsOrigin){LS_BACKWARD, made->fwd, made->onnx, made->name});
}

static LsValueId root(const LsPerSample *p, LsValueId v)
{
    return ls_append1(p->cx, p->g, LS_OP_SQRT, v, NULL);
}

/* Squared norms of the gradients of all parameters, by parameter and together: [batch]. False after
 * an error. */
static bool square_norms(LsPerSample *p, LsValueId *norm, LsValueId *all)
{
    const uint32_t n = ls_gradients(p->g);
    *all = (LsValueId){0};
    for (uint32_t i = 0; i < n; i++) {
        const LsValueId grad = p->g->grad[i].grad;
        begin(p, grad);
        norm[i] = ls_each_norm(p, grad);
        if (!ls_is(norm[i]))
            return false;
        *all = ls_is(*all) ? ls_append2(p->cx, p->g, LS_OP_ADD, *all, norm[i], NULL) : norm[i];
    }
    return true;
}

/* The terms of all gradients, which the norms are then taken of. */
static bool make_terms(LsPerSample *p, LsValueId *each)
{
    for (uint32_t i = 0; i < ls_gradients(p->g); i++) {
        begin(p, p->g->grad[i].grad);
        const LsValueId grad = p->g->grad[i].grad;
        each[i] = ls_is_of_samples(p, grad) ? ls_each_of_own(p, grad) : ls_each(p, grad);
        if (!ls_is(each[i]))
            return false;
    }
    return true;
}

/* each: none without --grads=per-sample. */
static void add_results(LsPerSample *p, const LsValueId *each, const LsValueId *norm, LsValueId all)
{
    LsGraph *g = p->g;
    const uint32_t n = ls_gradients(g);
    LsGrad *list = ls_arena_alloc(p->cx->arena, 3 * (size_t)n + 1, sizeof *list);
    for (uint32_t i = 0; i < n; i++)
        list[i] = g->grad[i];
    g->grad = list;
    for (uint32_t i = 0; i < n; i++) {
        begin(p, list[i].grad);
        if (ls_is(each[i]))
            list[g->ngrad++] = (LsGrad){list[i].param, each[i], LS_SAMPLE_GRAD};
        list[g->ngrad++] = (LsGrad){list[i].param, root(p, norm[i]), LS_SAMPLE_NORM};
    }
    list[g->ngrad++] = (LsGrad){{0}, root(p, all), LS_SAMPLE_NORM};
}

/* ---- gradients of the parameters ---- */

/* The gradient of private training. stream: of the noise of the first parameter, the others'
 * follow. */
static bool make_private(LsPerSample *p, const LsPrivacy *o, LsValueId all, double stream)
{
    LsGraph *g = p->g;
    p->factor = ls_append1(p->cx, g, LS_OP_SAMPLE_FACTOR, all,
                           &(LsAttr){.scalar = {.a = o->clip, .b = 1 / o->expected}});
    for (uint32_t i = 0; i < ls_gradients(g); i++) {
        LsValueId *grad = &g->grad[i].grad;
        begin(p, *grad);
        *grad = ls_gradient_from_terms(p, *grad, o->sums);
        if (!ls_is(*grad))
            return false;
        const LsAttr at = {.scalar = {.a = o->noise * o->clip / o->expected, .b = stream + i}};
        if (o->noise > 0)
            *grad = ls_append1(p->cx, g, LS_OP_ADD_NOISE, *grad, &at);
    }
    g->privacy = *o;
    return true;
}

/* Sums over samples become means. */
static void average(LsPerSample *p)
{
    LsGraph *g = p->g;
    for (uint32_t i = 0; i < ls_gradients(g) && g->objective.over != LS_OVER_SUM; i++) {
        LsValueId *grad = &g->grad[i].grad;
        begin(p, *grad);
        *grad = ls_gradient_from_terms(p, *grad, LS_SUMS_TERMS);
        *grad = g->objective.of_file ? ls_scale(p->cx, g, *grad, 1.0 / (double)g->batch)
                                : ls_append1(p->cx, g, LS_OP_OVER_SAMPLES, *grad, NULL);
    }
}

/* ---- order ---- */

/* By node: the last node before `first` that it waits for; no node of the backward part waits for
 * the forward part alone. */
static uint32_t *waits(const LsPerSample *p, uint32_t first)
{
    const LsGraph *g = p->g;
    uint32_t *last = ls_arena_alloc(p->cx->arena, g->nnode, sizeof *last), start = 1;
    while (start < first && g->node[start].phase == LS_FORWARD)
        start++;
    for (uint32_t i = 1; i < g->nnode; i++) {
        last[i] = i < first ? i : start;
        for (int k = 0; k < g->node[i].nin && i >= first; k++) {
            const uint32_t maker = g->value[ls_in(g, (LsNodeId){i}, k).i].def.i;
            last[i] = maker != 0 && last[maker] > last[i] ? last[maker] : last[i];
        }
    }
    return last;
}

/* Moves the nodes from `first` on to where all that they read is there: the order is the one that
 * plans begin with, and operands of a norm that wait for the end of the backward part take
 * memory. */
static void move_forward(const LsPerSample *p, uint32_t first)
{
    LsGraph *g = p->g;
    const uint32_t *last = waits(p, first);
    LsNode *node = ls_arena_alloc(p->cx->arena, g->nnode, sizeof *node);
    uint32_t *to = ls_arena_alloc(p->cx->arena, g->nnode, sizeof *to);
    uint32_t *behind = ls_arena_alloc(p->cx->arena, g->nnode + 1u, sizeof *behind);
    for (uint32_t i = 1; i < g->nnode; i++)         /* behind[k]: nodes that wait for one before
                                                     * k */
        behind[last[i] + 1]++;
    for (uint32_t k = 1; k <= g->nnode; k++)
        behind[k] += behind[k - 1];
    for (uint32_t i = 1; i < g->nnode; i++)
        to[i] = 1 + behind[last[i]]++;
    for (uint32_t i = 1; i < g->nnode; i++)
        node[to[i]] = g->node[i];
    memcpy(g->node + 1, node + 1, (g->nnode - 1) * sizeof *node);
    for (uint32_t i = 1; i < g->nnode; i++)
        g->node[i].fwd.i = to[g->node[i].fwd.i];
    for (uint32_t i = 1; i < g->nvalue; i++)
        g->value[i].def.i = to[g->value[i].def.i];
}

bool ls_per_sample(LsCtx *cx, LsGraph *g, const LsSampleGrads *o, const LsValueId *gradient_of)
{
    const uint32_t first = g->nnode;
    const double stream = ls_random_stream_of_node(g);       /* whatever ways the norms take */
    LsPerSample p = {.cx = cx,
                     .g = g,
                     .samples = ls_follow_samples(cx, g, NULL, gradient_of),
                     .nvalue = g->nvalue,
                     .o = o};
    LsValueId *each = ls_arena_alloc(cx->arena, g->ngrad, sizeof *each), all;
    LsValueId *norm = ls_arena_alloc(cx->arena, g->ngrad, sizeof *norm);
    p.each = ls_arena_alloc(cx->arena, g->nvalue, sizeof *p.each);
    p.weighed = ls_arena_alloc(cx->arena, g->nvalue, sizeof *p.weighed);
    if (!pads(&p, &o->privacy) || !is_separable(&p, gradient_of) || !fits(&p)
        || (o->mode == LS_GRADS_PER_SAMPLE && !make_terms(&p, each))
        || !square_norms(&p, norm, &all)
        || (o->privacy.on && !make_private(&p, &o->privacy, all, stream)))
        return false;
    if (!o->privacy.on)
        average(&p);
    if (o->mode != LS_GRADS_MEAN)
        add_results(&p, each, norm, all);
    move_forward(&p, first);
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, 0, NULL});
    return true;
}
