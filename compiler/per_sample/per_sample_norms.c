/* compiler/per_sample/per_sample_norms.c -- norms of the terms of a sum over samples, without the
 * terms where that is cheaper.
 *
 * The gradient of a weight in a product is, for a sample with t rows x and g, the sum of the t
 * outer products of their rows. With t = 1 its norm is the product of the rows' norms; else pairs
 * of rows give it (row_pairs.h). A kernel may also make it tile by tile, add up the squares, and
 * throw each tile away. The cost of all nodes decides. */
#include "compiler/fold/append.h"
#include "compiler/per_sample/per_sample.h"
#include "compiler/per_sample/row_pairs.h"

#include <math.h>

/* Sums of squares of v [batch, ...] over all axes but the first: [batch]. */
static LsValueId squares(const LsPerSample *p, LsValueId v)
{
    const LsShape s = *ls_shape(p->g, v);
    const LsShape flat = {2, {p->g->batch, ls_count(&s) / p->g->batch}}, to = {1, {p->g->batch}};
    v = ls_reshape(p->cx, p->g, v, &flat);
    v = ls_append1(p->cx, p->g, LS_OP_REDUCE_SUM_SQUARE, v,
                   &(LsAttr){.reduce = {.axes = 2, .keep = true}});
    return ls_reshape(p->cx, p->g, v, &to);
}

/* The same for the terms of a weight gradient, [batch * filters, channels, ..], before they are
 * reshaped: in the layout in which their kernel makes them. None: v is something else. */
static LsValueId squares_of_weights(const LsPerSample *p, LsValueId v)
{
    LsGraph *g = p->g;
    LsNodeId n = g->value[v.i].def;
    if (g->node[n.i].op == LS_OP_RESHAPE)
        n = g->value[ls_in(g, n, 0).i].def;
    if (g->node[n.i].op != LS_OP_CONV_DW)
        return (LsValueId){0};
    v = ls_out(g, n, 0);
    const LsShape s = *ls_shape(g, v);
    v = ls_append1(p->cx, g, LS_OP_REDUCE_SUM_SQUARE, v,
                   &(LsAttr){.reduce = {.axes = (1u << s.rank) - 2, .keep = true}});
    const LsShape filters = {2, {g->batch, s.dim[0] / g->batch}}, to = {1, {g->batch}};
    v = ls_reshape(p->cx, g, v, &filters);
    v = ls_append1(p->cx, g, LS_OP_REDUCE_SUM, v, &(LsAttr){.reduce = {.axes = 2, .keep = true}});
    return ls_reshape(p->cx, g, v, &to);
}

/* ---- ways ---- */

/* none: the way does not exist, or its node was refused. ns: predicted. */
typedef struct Way { LsValueId norm; double ns; } Way;

double ls_price(const LsPerSample *p, LsNodeId n)
{
    return p->o->price.ns(p->o->price.machine, p->g, n);
}

double ls_price_since(const LsPerSample *p, uint32_t first)
{
    double ns = 0;
    for (uint32_t i = first; i < p->g->nnode; i++)
        ns += ls_op[p->g->node[i].op]->kernel == LS_K_MAP ? 0 : ls_price(p, (LsNodeId){i});
    return ns;
}

/* Whether node n is a product over the rows of samples: its operands with the samples in front are
 * a and b. */
static bool is_row_sum(LsPerSample *p, LsNodeId n, LsRowSum *of, LsValueId *a, LsValueId *b)
{
    const LsSampleRole role[2] = {ls_sample_role(p, ls_in(p->g, n, 0)),
                                  ls_sample_role(p, ls_in(p->g, n, 1))};
    if (!ls_row_sum_of(p->g, n, of) || !ls_adds_linearly(p, n) || role[0] == LS_SUMMED
        || role[1] == LS_SUMMED)
        return false;
    *a = ls_each_operand(p, n, 0);
    *b = ls_each_operand(p, n, 1);
    return ls_is(*a) && ls_is(*b);
}

/* v times a number, in more digits than a constant of the graph has, which is a float: norms in f64
 * are as exact as terms. */
static LsValueId times(const LsPerSample *p, LsValueId v, double by)
{
    const double rest = by - (double)(float)by;
    const LsValueId y = ls_scale(p->cx, p->g, v, by);
    return rest == 0 || p->g->value[y.i].def.i == 0
                   || p->g->node[p->g->value[y.i].def.i].op == LS_OP_DIV
               ? y
               : ls_append2(p->cx, p->g, LS_OP_ADD, y, ls_scale(p->cx, p->g, v, rest), NULL);
}

static LsValueId by_pairs(LsPerSample *p, LsNodeId n)
{
    LsGraph *g = p->g;
    LsRowSum of;
    LsValueId a, b;
    if (g->node[n.i].op == LS_OP_CONV_DW && ls_adds_linearly(p, n))
        return ls_conv_norm_by_pairs(p, n);
    if (!is_row_sum(p, n, &of, &a, &b))
        return (LsValueId){0};
    if (of.rows == g->batch) {
        LsValueId both = ls_append2(p->cx, g, LS_OP_MUL, squares(p, a), squares(p, b), NULL);
        return times(p, both, of.alpha * of.alpha);
    }
    LsValueId sum = ls_row_pairs(p->cx, g, &of, a, b);
    sum = ls_append1(p->cx, g, LS_OP_REDUCE_SUM, sum,
                     &(LsAttr){.reduce = {.axes = 2 | 4, .keep = true}});
    return ls_reshape(p->cx, g, sum, &(LsShape){1, {g->batch}});
}

static LsValueId by_tiles(LsPerSample *p, LsNodeId n)
{
    const LsAttr at = p->g->node[n.i].attr;
    LsRowSum of;
    LsValueId a, b;
    if (p->g->node[n.i].op == LS_OP_CONV_DW && ls_adds_linearly(p, n))
        return ls_conv_norm_by_tiles(p, n);
    return is_row_sum(p, n, &of, &a, &b) ? ls_append2(p->cx, p->g, LS_OP_MATMUL_SQUARES, a, b, &at)
                                         : (LsValueId){0};
}

static LsValueId by_terms(LsPerSample *p, LsValueId of)
{
    of = ls_each(p, of);
    if (!ls_is(of))
        return of;
    const LsValueId sum = squares_of_weights(p, of);
    return ls_is(sum) ? sum : squares(p, of);
}

static Way priced(const LsPerSample *p, LsValueId norm, uint32_t first)
{
    return (Way){norm, ls_is(norm) ? ls_price_since(p, first) : INFINITY};
}

/* ---- the choice ---- */

static LsValueId either(const LsPerSample *p, LsValueId a, LsValueId b)
{
    return ls_append2(p->cx, p->g, LS_OP_EITHER, a, b, NULL);
}

/* The way without terms: the faster one, or the one that is asked for. Where the planner chooses
 * and pairs of several rows are faster, tiles, which take fewer bytes, are their alternative. */
static Way cheapest_norm(LsPerSample *p, LsNodeId n, bool offers)
{
    LsRowSum of;
    const uint32_t first = p->g->nnode;
    const bool single = ls_row_sum_of(p->g, n, &of) && of.rows == p->g->batch;
    Way pairs = {.ns = INFINITY}, tiles = pairs;
    if (p->o->norms != LS_NORMS_TILES)
        pairs = priced(p, by_pairs(p, n), first);
    const uint32_t second = p->g->nnode;
    if (p->o->norms != LS_NORMS_PAIRS && !(single && ls_is(pairs.norm)))
        tiles = priced(p, by_tiles(p, n), second);
    if (tiles.ns <= pairs.ns)
        return tiles;
    if (offers && ls_is(tiles.norm))
        pairs.norm = either(p, pairs.norm, tiles.norm);
    return pairs;
}

/* The sum over samples comes from the terms, too, if these are made: that takes about the time of
 * their squares. Without them its node runs. Terms that are there in any case cost nothing. */
static bool pays_to_store(const LsPerSample *p, LsNodeId n, Way terms, double squares_ns, Way light,
                          bool there)
{
    const double again = ls_price(p, n),
                 sum = p->o->privacy.sums == LS_SUMS_AGAIN ? again : squares_ns;
    if (p->o->norms != LS_NORMS_CHEAPEST || !ls_is(light.norm))
        return !ls_is(light.norm);
    return there ? squares_ns < light.ns : terms.ns + sum < light.ns + again;
}

LsValueId ls_each_norm(LsPerSample *p, LsValueId v)
{
    LsGraph *g = p->g;
    LsValueId of = v;               /* the same elements in another order */
    for (LsNodeId n = g->value[of.i].def;
         g->node[n.i].op == LS_OP_RESHAPE || g->node[n.i].op == LS_OP_TRANSPOSE;
         n = g->value[of.i].def)
        of = ls_in(g, n, 0);
    const LsNodeId n = g->value[of.i].def;
    if (g->batch == 1 || p->o->norms == LS_NORMS_TERMS || ls_is_of_samples(p, v))
        return by_terms(p, ls_is_of_samples(p, v) ? v : of);
    const bool there = ls_is(p->each[of.i]);
    const bool offers =
        p->o->privacy.on && p->o->privacy.sums == LS_SUMS_AUTO && p->o->norms == LS_NORMS_CHEAPEST;
    const Way light = cheapest_norm(p, n, offers && !there);
    if (ls_is(light.norm) && p->o->norms != LS_NORMS_CHEAPEST)
        return light.norm;
    const uint32_t first = g->nnode;
    if (!ls_is(ls_each(p, of)))
        return p->each[of.i];
    const uint32_t second = g->nnode;
    const Way terms = priced(p, by_terms(p, of), first);
    if (pays_to_store(p, n, terms, ls_price_since(p, second), light, there))
        return offers && !there && ls_is(light.norm) ? either(p, terms.norm, light.norm)
                                                     : terms.norm;
    if (!there)
        p->each[of.i] = (LsValueId){0};
    return light.norm;
}
