/* compiler/per_sample/batch_mixing.c -- see the header.
 *
 * A model mixes samples where
 *   - a node combines them along their axis (LsSamples.mixed), or reads a statistic of all samples
 * for each of them;
 *   - a value has elements for pairs of samples, as scores between all of them;
 *   - a node moves samples, so that their place is lost: a batch in reverse order, sorted, sliced,
 * gathered. Batch norms are known by their NORM_VAR. The samples that count are the first ones of a
 * batch. So statistics of these are sums that end early, and gradients of the others are 0: the
 * loss gives them none, and NORM_DX gives them none either. */
#include "compiler/per_sample/batch_mixing.h"

#include "base/arena.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/op.h"
#include "compiler/ir/shape.h"

#include <inttypes.h>

typedef struct Search {
    LsCtx *cx;
    LsGraph *g;
    LsSamples f;
    bool *need;                 /* by node: the loss is computed by it */
} Search;

LsSampleRole ls_role_of(const LsSamples *f, LsValueId v)
{
    const LsPlaces *t = &f->of[v.i];
    return !ls_is(v) || (!t->sampled && !t->lost) ? LS_FREE_OF_SAMPLES
        : t->lost || t->n > 1 ? LS_NOT_FOLLOWED : t->n == 1 ? LS_PLACED : LS_SUMMED;
}

bool ls_reads_statistic(const LsSamples *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    const LsNode *node = &g->node[n.i];
    bool sum = false;
    if (node->nout == 0 || ls_op[node->op]->kernel == LS_K_LOSS
        || ls_role_of(f, ls_out(g, n, 0)) != LS_PLACED)
        return false;
    for (int k = 0; k < node->nin; k++)
        sum |= ls_role_of(f, ls_in(g, n, k)) == LS_SUMMED;
    return sum;
}

static LsNodeId made_by(const LsGraph *g, LsValueId v) { return g->value[ls_viewed(g, v).i].def; }

bool *ls_nodes_of_loss(LsCtx *cx, const LsGraph *g)
{
    bool *need = ls_arena_alloc(cx->arena, g->nnode + 1u, sizeof *need);
    need[g->value[g->objective.loss.i].def.i] = true;
    for (uint32_t i = 1; i < g->nnode; i++)
        need[i] |= g->node[i].op == LS_OP_RUNNING_STAT;
    for (uint32_t i = g->nnode; i-- > 1;)
        for (int k = 0; need[i] && k < g->node[i].nin; k++)
            need[g->value[ls_in(g, (LsNodeId){i}, k).i].def.i] = true;
    return need;
}

/* ---- statistics of the samples that count ---- */

/* The samples lie along the outermost axis of x, which the node reduces. */
static bool is_outermost(const Search *s, LsNodeId n)
{
    const LsGraph *g = s->g;
    const LsValueId x = ls_in(g, n, 0);
    const LsPlaces *t = &s->f.of[x.i];
    const LsShape *shape = ls_shape(g, x);
    return ls_role_of(&s->f, x) == LS_PLACED && t->inner[0] * g->batch == ls_count(shape)
           && ls_sample_axis(shape, t->inner[0], g->batch) == 0
           && (g->node[n.i].attr.reduce.axes & 1) != 0;
}

static LsCounted counted_of(const LsGraph *g, LsNodeId n)
{
    const LsShape *x = ls_in_shape(g, n, 0);
    return (LsCounted){ls_count(x) / ls_count(ls_shape(g, ls_out(g, n, 0))) / g->batch, x->rank};
}

/* A variance is that of a batch norm: nothing else makes this node. So its mean is one, too, if it
 * is made by a node. */
static bool count_norm(Search *s, LsNodeId var)
{
    LsGraph *g = s->g;
    const LsNodeId mean = g->value[ls_in(g, var, 1).i].def;
    if (!is_outermost(s, var) || g->node[mean.i].op != LS_OP_REDUCE_MEAN || !is_outermost(s, mean))
        return false;
    g->node[mean.i].attr.reduce.counted = g->node[var.i].attr.reduce.counted = counted_of(g, var);
    return true;
}

/* Whether the mean that a NORMALIZE reads is of the samples that count. Those of the parts of a
 * concatenation are, too. */
static LsCounted counted_mean(const LsGraph *g, LsValueId mean)
{
    const LsNodeId n = g->value[mean.i].def;
    if (g->node[n.i].op == LS_OP_REDUCE_MEAN)
        return g->node[n.i].attr.reduce.counted;
    LsCounted all = {0};
    for (int k = 0; g->node[n.i].op == LS_OP_CONCAT && k < g->node[n.i].nin; k++) {
        const LsCounted part = counted_mean(g, ls_in(g, n, k));
        if (part.each == 0)
            return (LsCounted){0};
        all = part;
    }
    return all;
}

static void say_norm(LsGraph *g, LsNodeId n, int64_t each)
{
    if (g->mixing.norm != NULL && g->mixing.each <= each)
        return;
    g->mixing.norm =
        g->node[n.i].name != NULL && g->node[n.i].name[0] != '\0' ? g->node[n.i].name : "(no name)";
    g->mixing.each = each;
}

/* Lets batch norms take statistics of the samples that count. */
static void count_norms(Search *s)
{
    LsGraph *g = s->g;
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNodeId n = {i};
        LsNode *node = &g->node[i];
        if (node->op == LS_OP_NORM_VAR && ls_role_of(&s->f, ls_out(g, n, 0)) == LS_SUMMED
            && count_norm(s, n))
            say_norm(g, n, node->attr.reduce.counted.each);
        if (node->op == LS_OP_NORMALIZE)
            node->attr.scalar.counted = counted_mean(g, ls_in(g, n, 1));
    }
}

/* In batches of one sample: variances that running ones follow. */
static void say_norms_of_one(LsGraph *g)
{
    for (uint32_t i = 1; i < g->nnode; i++) {
        if (g->node[i].op != LS_OP_RUNNING_STAT)
            continue;
        LsNodeId n = made_by(g, ls_in(g, (LsNodeId){i}, 1));
        while (g->node[n.i].op == LS_OP_CONCAT)         /* all parts have images of one size */
            n = made_by(g, ls_in(g, n, 0));
        if (g->node[n.i].op == LS_OP_NORM_VAR)
            say_norm(g, n, ls_count(ls_in_shape(g, n, 0)) / ls_count(ls_shape(g, ls_out(g, n, 0))));
    }
}

/* Running variances follow the sample variance of the samples that count. */
static void count_running(LsGraph *g)
{
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[i].op == LS_OP_RUNNING_STAT)
            g->node[i].attr.update.each =
                g->mixing.norm != NULL ? g->node[i].attr.update.each / g->batch : 0;
}

/* The file's own loss: a plain mean can be one of the samples that count. */
static void count_loss(Search *s, bool whole)
{
    LsGraph *g = s->g;
    const LsNodeId n = made_by(g, g->objective.loss);
    if (!g->objective.of_file)
        return;
    if (!whole && g->node[n.i].op == LS_OP_REDUCE_MEAN && is_outermost(s, n)
        && ls_count(ls_shape(g, ls_out(g, n, 0))) == 1)
        g->node[n.i].attr.reduce.counted = counted_of(g, n);
    else
        g->mixing.loss = true;
}

/* ---- what else mixes ---- */

static bool is_counted_norm(const LsGraph *g, LsNodeId n)
{
    return g->node[n.i].op == LS_OP_NORMALIZE && g->node[n.i].attr.scalar.counted.each > 0;
}

/* An operand has places, but the result does not show where these are, or has two. */
static const char *loses(const LsSamples *f, LsNodeId n)
{
    const LsGraph *g = f->g;
    const LsPlaces *y = &f->of[ls_out(g, n, 0).i];
    bool sampled = false;
    for (int k = 0; k < g->node[n.i].nin; k++) {
        const LsPlaces *x = &f->of[ls_in(g, n, k).i];
        if (!ls_is(ls_in(g, n, k)))
            continue;
        if (x->lost || x->n > 1)
            return NULL;        /* an earlier node did it */
        sampled |= x->sampled;
    }
    return !sampled   ? NULL
           : y->lost  ? "is not known to keep each sample in its place"
           : y->n > 1 ? "compares samples with each other"
                      : NULL;
}

/* What node n does to the samples of a batch; NULL: it keeps them apart. */
static const char *mixes(const Search *s, LsNodeId n)
{
    if (s->f.mixed.i == n.i)
        return "combines different samples";
    if (!is_counted_norm(s->g, n) && ls_reads_statistic(&s->f, n))
        return "reads a statistic of all samples";
    return loses(&s->f, n);
}

static LsNodeId find(Search *s, const char **does)
{
    for (uint32_t i = 1; i < s->g->nnode; i++) {
        *does = s->need[i] && s->g->node[i].nout > 0 ? mixes(s, (LsNodeId){i}) : NULL;
        if (*does != NULL)
            return (LsNodeId){i};
    }
    return (LsNodeId){0};
}

/* ---- what is said of it ---- */

static const char *node_text(const LsGraph *g, LsNodeId n, const char *does)
{
    const LsNode *node = &g->node[n.i];
    const char *name = node->name != NULL && node->name[0] != '\0'
                           ? ls_arena_printf(g->arena, " '%s'", node->name)
                           : "";
    return ls_arena_printf(g->arena, "node %u%s (%s) %s", node->onnx, name, ls_op[node->op]->name,
                           does);
}

static bool judge_parts(const Search *s, LsNodeId n, const char *does, const LsMixingOptions *o)
{
    const char *op = ls_op[s->g->node[n.i].op]->name;
    if (o->parts > 1 && !o->own)
        return ls_error(s->cx, ls_where(s->g, n), LS_E_OPTION,
                        "train with whole batches; --mixed-parts=own goes on, with what "
                        "the parts have of their own",
                        "%s %s: with %" PRId64 " parts of a batch (--microbatches, --ranks, "
                        "--stages) each would see only its own samples, which is another loss",
                        op, does, o->parts);
    if (o->parts > 1)
        ls_warn(s->cx, ls_where(s->g, n), NULL,
                "%s %s: each of the %" PRId64 " parts of a batch sees only its own samples, "
                "which is another loss than that of the batch",
                op, does, o->parts);
    else if (o->accumulate > 1)
        ls_warn(s->cx, ls_where(s->g, n), NULL,
                "%s %s: each of the %" PRId64 " batches of an update sees only its own samples "
                "(--accumulate), which is another loss than that of one large batch",
                op, does, o->accumulate);
    return true;
}

/* Parts have their own statistics, as in PyTorch, where a loop over parts takes them so. */
static void warn_of_norms(LsCtx *cx, const LsGraph *g, const LsMixingOptions *o)
{
    if (g->training && o->parts > 1 && g->mixing.norm != NULL)
        ls_warn(cx, LS_NOWHERE, "--bn=frozen takes running statistics",
                "batch norms, such as '%s', take statistics of the "
                "samples of each of the %" PRId64 " parts of a batch, not of the batch",
                g->mixing.norm, o->parts);
}

bool ls_batch_mixing(LsCtx *cx, LsGraph *g, const LsMixingOptions *o)
{
    const char *does;
    g->mixing = (LsMixing){0};
    if (g->batch < 2 || !ls_is(g->objective.loss)) {
        say_norms_of_one(g);
        count_running(g);
        warn_of_norms(cx, g, o);
        return true;
    }
    Search s = {.cx = cx, .g = g, };
    s.need = ls_nodes_of_loss(cx, g);
    s.f = ls_follow_samples(cx, g, s.need, NULL);
    count_norms(&s);
    count_running(g);
    count_loss(&s, o->whole_loss);
    warn_of_norms(cx, g, o);
    const LsNodeId n = find(&s, &does);
    if (n.i == 0)
        return true;
    g->mixing.by = node_text(g, n, does);
    return !g->training || judge_parts(&s, n, does, o);
}
