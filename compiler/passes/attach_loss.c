/* compiler/passes/attach_loss.c -- attaches the loss to model outputs.
 *
 * requires the forward part; adds the targets as the last inputs and the nodes of each term
 * (loss_term.c); keeps everything else. The loss is the sum of its terms, each times its weight.
 * With LS_LOSS_GRAPH the model has its own loss, an output of one element. */
#include "compiler/fold/append.h"
#include "compiler/passes/loss_term.h"
#include "compiler/passes/passes.h"
#include "compiler/per_sample/sample_axis.h"

#include <inttypes.h>

#include <string.h>

/* The only output that can be the loss; none after a diagnostic. */
static LsValueId find_loss(LsCtx *cx, const LsGraph *g)
{
    enum { SOME = 20 };
    const char *names = "";
    LsValueId loss = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->noutput; i++) {
        const LsValue *v = &g->value[g->output[i].i];
        if (ls_count(&v->shape) != 1 || v->type != LS_REAL)
            continue;
        loss = g->output[i];
        if (n++ < SOME)
            names = ls_arena_printf(cx->arena, "%s%s'%s'", names, n > 1 ? ", " : "", v->name);
    }
    if (n == 1)
        return loss;
    if (n == 0)
        ls_error(cx, LS_NOWHERE, LS_E_LOSS,
                 "--loss=ce, mse or another kind adds a loss to an output",
                 "none of the %u model outputs is a scalar loss", g->noutput);
    else
        ls_error(cx, LS_NOWHERE, LS_E_LOSS, "--loss-input NAME selects the loss",
                 "%u model outputs have one element: %s%s", n, names, n > SOME ? ", ..." : "");
    return (LsValueId){0};
}

/* The output of that name, or the first one (for LS_LOSS_GRAPH: the only one of one element). */
static LsValueId find_output(LsCtx *cx, const LsGraph *g, LsLossKind kind, const char *name)
{
    if (kind == LS_LOSS_GRAPH && name == NULL)
        return find_loss(cx, g);
    for (uint32_t i = 0; i < g->noutput; i++)
        if (name == NULL || strcmp(g->value[g->output[i].i].name, name) == 0)
            return g->output[i];
    if (name != NULL)
        ls_error(cx, LS_NOWHERE, LS_E_LOSS,
                 "--loss-input and --loss=KIND:OUTPUT take the name of a model output",
                 "the model has no output '%s'", name);
    else
        ls_error(cx, LS_NOWHERE, LS_E_LOSS, NULL, "the model has no output");
    return (LsValueId){0};
}

/* Warns of a second softmax or sigmoid: a cross-entropy takes scores and contains the softmax, as
 * bce contains the sigmoid. Warns also of probabilities where a loss takes their logarithms. */
static void warn_of_second(LsCtx *cx, const LsGraph *g, LsValueId y, LsLossKind kind)
{
    LsNodeId n = g->value[y.i].def;
    const bool log = kind == LS_LOSS_NLL || kind == LS_LOSS_KL;
    const bool ce = kind == LS_LOSS_CE || kind == LS_LOSS_SOFT_CE;
    LsOpCode inside = ce || log ? LS_OP_SOFTMAX : LS_OP_SIGMOID;
    if (n.i == 0 || g->node[n.i].op != inside
        || !(ce || kind == LS_LOSS_BCE || log))
        return;
    if (log)
        ls_warn(cx, ls_where(g, n), "export the model with a log-softmax",
                "output '%s' is a softmax, and the loss takes "
                "logarithms of probabilities",
                g->value[y.i].name);
    else
        ls_warn(cx, ls_where(g, n), "export the model without it, or name an output before it with "
                "--loss-input", "output '%s' is a %s, and the loss applies one more",
                g->value[y.i].name, kind == LS_LOSS_BCE ? "sigmoid" : "softmax");
}

static bool find_outputs(LsCtx *cx, const LsGraph *g, LsLossTerm *t)
{
    for (int k = 0; k < ls_loss_reads(t->part.kind); k++) {
        t->y[k] = find_output(cx, g, t->part.kind, t->part.output[k]);
        if (!ls_is(t->y[k]))
            return false;
        if (ls_type(g, t->y[k]) != LS_REAL)
            return ls_error(cx, LS_NOWHERE, LS_E_LOSS, "--loss-input selects another output",
                            "output '%s' is not float", g->value[t->y[k].i].name);
        warn_of_second(cx, g, t->y[k], t->part.kind);
    }
    return true;
}

/* ---- targets ---- */

static LsValueId add_input(LsCtx *cx, LsGraph *g, const char *name, LsType type,
                           const LsShape *shape)
{
    LsValueId *input = ls_arena_alloc(g->arena, g->ninput + 1, sizeof *input);
    if (g->ninput > 0)
        memcpy(input, g->input, g->ninput * sizeof *input);
    g->input = input;
    input[g->ninput] = ls_value_add(cx, g, LS_V_INPUT, name, type, shape, NULL);
    return input[g->ninput++];
}

/* The first term that has a target for the output of term k: k itself, or one before it. */
static uint32_t first_with(const LsLossTerm *term, uint32_t k)
{
    for (uint32_t j = 0; j < k; j++)
        if (ls_loss_has_target(term[j].part.kind) && term[j].y[0].i == term[k].y[0].i)
            return j;
    return k;
}

/* "label", or "label.OUTPUT" when there are targets of several outputs. */
static const char *target_name(LsCtx *cx, const LsGraph *g, const LsLossTerm *term, uint32_t n,
                               uint32_t k, const LsLossOptions *o)
{
    const char *name = o->label != NULL ? o->label : "label";
    uint32_t several = 0;
    for (uint32_t j = 0; j < n; j++)
        several += ls_loss_has_target(term[j].part.kind) && first_with(term, j) == j;
    return several == 1 ? name
                        : ls_arena_printf(cx->arena, "%s.%s", name, g->value[term[k].y[0].i].name);
}

/* Where the first axis of the inputs holds no samples (the steps of a sequence, the nodes of a
 * graph), all inputs together are one sample: data cannot be shuffled or cut along that axis. */
static void check_samples(LsCtx *cx, LsGraph *g, const LsLossTerm *term, uint32_t n)
{
    enum { EACH = sizeof term->y / sizeof *term->y };
    LsValueId *y = ls_arena_alloc(cx->arena, n, EACH * sizeof *y);
    uint32_t ny = 0;
    for (uint32_t k = 0; k < n; k++)
        for (int j = 0; j < ls_loss_reads(term[k].part.kind); j++)
            y[ny++] = term[k].y[j];
    if (g->batch < 2)
        return;
    const LsNoSamples found = ls_find_no_samples(cx, g, y, ny);
    if (found.at.i == 0)
        return;
    ls_warn(cx, ls_where(g, found.at),
            "export the model with samples along the first axis of every input and output "
            "(PyTorch: batch_first=True)",
            "%s the first axis of input '%s', whose %" PRId64
            " elements are therefore no samples: data files must hold whole "
            "blocks of %s, and a batch is one block",
            found.mixed ? "this mixes the elements along" : "the results from here on do not have",
            g->value[g->input[0].i].name, g->batch, ls_dims(g, g->input[0]));
    g->batch = 1;
}

/* Likewise where inputs and target have no common axis of samples. */
static void find_samples(LsCtx *cx, LsGraph *g, const LsShape *target)
{
    if (target->rank == 0 || target->dim[0] % g->batch == 0)
        return;
    const char *what = g->ninput > 0
                           ? ls_arena_printf(cx->arena, "input '%s' is %s",
                                             g->value[g->input[0].i].name, ls_dims(g, g->input[0]))
                           : "there is no input";
    ls_warn(cx, LS_NOWHERE,
            "export the model with samples along the first axis of every input and output",
            "%s, but the target of the loss is %s: data files must hold whole blocks of both, and "
            "a batch is one "
            "block",
            what, ls_shape_text(cx->arena, target));
    g->batch = 1;
}

/* Gives term k its target: a new input, or that of an earlier term of the same output. */
static bool add_target(LsCtx *cx, LsGraph *g, LsLossTerm *term, uint32_t n, uint32_t k,
                       const LsLossOptions *o)
{
    LsType type;
    LsShape shape;
    if (!ls_loss_target(cx, g, &term[k], o, &type, &shape))
        return false;
    const uint32_t first = first_with(term, k);
    if (!ls_loss_has_target(term[k].part.kind))
        return true;
    if (first == k) {
        find_samples(cx, g, &shape);
        term[k].target = add_input(cx, g, target_name(cx, g, term, n, k, o), type, &shape);
        g->objective.nlabel++;
        if (!ls_is(g->objective.label)
            || (type == LS_I64 && ls_type(g, g->objective.label) != LS_I64))
            g->objective.label = term[k].target;
        return true;
    }
    term[k].target = term[first].target;
    if (ls_type(g, term[k].target) == type && ls_shape_same(ls_shape(g, term[k].target), &shape))
        return true;
    return ls_error(
        cx, LS_NOWHERE, LS_E_LOSS, "let the model give the output twice, under two names",
        "two losses of output '%s' need targets of different types", g->value[term[k].y[0].i].name);
}

/* ---- how the losses of batches are combined ---- */

typedef struct Over { LsLossOver over; LsValueId weight; bool of_file; } Over;

/* From the node that computes the loss of a term. */
static Over over_of(const LsGraph *g, LsValueId loss)
{
    const LsNodeId n = g->value[ls_viewed(g, loss).i].def;
    const LsNode *node = &g->node[n.i];
    bool classes = n.i != 0 && (node->op == LS_OP_XENT || node->op == LS_OP_NLL);
    const LsShape *labels = classes ? ls_in_shape(g, n, 1) : ls_in_shape(g, n, 0);
    bool masks = classes || (n.i != 0 && node->op == LS_OP_REGRESSION_LOSS);
    Over o = {.of_file = !masks || labels->rank == 0 || labels->dim[0] % g->batch != 0};
    if (classes && node->attr.loss.reduction == LS_LOSS_SUM)
        o.over = LS_OVER_SUM;
    else if (classes && node->attr.loss.reduction == LS_LOSS_MEAN
             && (node->attr.loss.has_ignore || ls_is(ls_in(g, n, 2)))) {
        o.over = LS_OVER_LABELS;
        o.weight = ls_out(g, n, node->nout - 1);
    }
    return o;
}

/* Adds what holds for a further term. */
static void say_over(LsGraph *g, LsValueId loss, bool first)
{
    const Over o = over_of(g, loss);
    const bool alike = first || (o.over == g->objective.over && o.over != LS_OVER_LABELS);
    g->objective.of_file |= o.of_file;
    g->objective.over = alike ? o.over : LS_OVER_MIXED;
    g->objective.weight = alike ? o.weight : (LsValueId){0};
}

static void warn_of_mixed(LsCtx *cx, const LsGraph *g)
{
    if (g->objective.over == LS_OVER_MIXED)
        ls_warn(cx, LS_NOWHERE, NULL,
                "the terms of the loss are means over different numbers of labels: the loss of an "
                "epoch weighs each batch by its samples");
}

/* ---- the pass ---- */

static bool add_terms(LsCtx *cx, LsGraph *g, LsLossTerm *term, uint32_t n, const LsLossOptions *o)
{
    LsValueId sum = {0};
    for (uint32_t k = 0; k < n; k++)
        if (!find_outputs(cx, g, &term[k]))
            return false;
    check_samples(cx, g, term, n);
    for (uint32_t k = 0; k < n; k++)            /* all, as they decide what a sample is */
        if (!add_target(cx, g, term, n, k, o))
            return false;
    for (uint32_t k = 0; k < n; k++) {
        LsValueId loss = ls_loss_append(cx, g, &term[k], o);
        if (!ls_is(loss))
            return false;
        say_over(g, loss, k == 0);
        loss = ls_scale(cx, g, loss, term[k].part.weight);
        sum = k == 0 ? loss : ls_append2(cx, g, LS_OP_ADD, sum, loss, NULL);
    }
    g->objective.loss = sum;
    warn_of_mixed(cx, g);
    return ls_is(sum);
}

bool ls_loss(LsCtx *cx, LsGraph *g, const LsLossOptions *o)
{
    const LsLossPart only = {.kind = o->kind, .output = {o->output}, .weight = 1, .setting = 1};
    const uint32_t n = o->npart > 0 ? o->npart : 1;
    LsLossTerm *term = ls_arena_alloc(cx->arena, n, sizeof *term);
    for (uint32_t k = 0; k < n; k++)
        term[k].part = o->npart > 0 ? o->part[k] : only;
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, 0, "loss"});
    bool ok = add_terms(cx, g, term, n, o);
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, 0, NULL});
    return ok;
}
