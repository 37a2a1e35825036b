/* compiler/passes/segments_check.c -- see the header.
 *
 * Each token of a row stays in its place from the inputs to the loss (LsSamples of the tokens);
 * what takes a place away, moves it or combines places is refused with its node. Values that depend
 * on no input but have a row for each token are tables of positions: learned embeddings, sines,
 * rotary angles. Masks may depend on the distance of two tokens alone, as that is the same in a
 * segment. */
#include "compiler/passes/segments_check.h"

#include "base/arena.h"
#include "compiler/ir/graph.h"
#include "compiler/ops/attention_shape.h"

#include <inttypes.h>

static bool refuse(const LsTokens *t, LsNodeId n, const char *why)
{
    return ls_error(t->cx, ls_where(t->g, n), LS_E_OPTION,
                    "leave --segments out, and give each sample a row of its own",
                    "--segments: %s %s", ls_op[t->g->node[n.i].op]->name, why);
}

static LsSampleRole role(const LsTokens *t, LsValueId v)
{
    return ls_role_of(&t->by_token, v);
}

/* The axis of a value within which the tokens, or the samples, lie; -1: there is none. */
static int axis_within(const LsSamples *f, const LsGraph *g, LsValueId v)
{
    return ls_role_of(f, v) == LS_PLACED
               ? ls_sample_axis(ls_shape(g, v), f->of[v.i].inner[0], f->length)
               : -1;
}

/* The same if it has nothing else. */
static int axis_of(const LsSamples *f, const LsGraph *g, LsValueId v)
{
    const int axis = axis_within(f, g, v);
    return axis >= 0 && ls_shape(g, v)->dim[axis] == f->length ? axis : -1;
}

/* ---- values that are known beforehand ---- */

static bool *find_random(LsCtx *cx, const LsGraph *g)
{
    bool *random = ls_arena_alloc(cx->arena, g->nvalue, sizeof *random);
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *n = &g->node[i];
        bool is = n->op == LS_OP_UNIFORM || n->op == LS_OP_NORMAL;
        for (int k = 0; k < n->nin; k++)
            is |= random[ls_in(g, (LsNodeId){i}, k).i];
        for (int k = 0; k < n->nout; k++)
            random[n->out + (uint32_t)k] = is;
    }
    return random;
}

/* Values all of whose readers are masks of attention, or make such values element by element. */
static bool *find_masks(LsCtx *cx, const LsGraph *g)
{
    bool *masks = ls_arena_alloc(cx->arena, g->nvalue, sizeof *masks);
    bool *other = ls_arena_alloc(cx->arena, g->nvalue, sizeof *other);
    for (uint32_t i = 0; i < g->noutput; i++)
        other[g->output[i].i] = true;
    for (uint32_t i = g->nnode; i-- > 1;) {
        const LsNodeId n = {i};
        const LsKernelId kernel = ls_op[g->node[i].op]->kernel;
        const bool attends = kernel == LS_K_ATTENTION,
                   copies = kernel == LS_K_MAP || kernel == LS_K_VIEW || kernel == LS_K_MOVE;
        const bool makes =
            g->node[i].nout == 1 && copies && masks[g->node[i].out] && !other[g->node[i].out];
        for (int k = 0; k < g->node[i].nin; k++) {
            const LsValueId v = ls_in(g, n, k);
            const bool is = makes || (attends && k == ls_attention_mask(g, n));
            masks[v.i] |= is;
            other[v.i] |= !is;
        }
    }
    for (uint32_t i = 0; i < g->nvalue; i++)
        masks[i] &= !other[i];
    return masks;
}

/* Elements of the last two axes, which broadcast to those of queries and keys, depend on their
 * distance alone. */
static bool is_of_distance(const LsTokens *t, LsValueId v)
{
    const LsValue *x = &t->g->value[v.i];
    const LsShape *s = &x->shape;
    const int64_t cols = s->rank > 0 ? s->dim[s->rank - 1] : 1,
                  rows = s->rank > 1 ? s->dim[s->rank - 2] : 1, all = ls_count(s);
    if (rows == 1 && cols == 1)
        return true;
    if (x->data == NULL || x->kind == LS_V_PARAM || x->once_written)
        return false;
    /* the next one along the diagonal; with one row or column, the next one */
    const int64_t step = (rows > 1 ? cols : 0) + (cols > 1 ? 1 : 0);
    for (int64_t i = 0; i < all; i++) {
        const int64_t r = i / cols % rows, c = i % cols;
        const bool last = (rows > 1 && r == rows - 1) || (cols > 1 && c == cols - 1);
        if (!last && ls_const_at(t->g, v, i) != ls_const_at(t->g, v, i + step))
            return false;
    }
    return true;
}

/* ---- tables ---- */

/* Operand k, aligned with the result: the length of its axis that lies at the result's `axis`. */
static int64_t length_at(const LsGraph *g, LsNodeId n, int k, int axis)
{
    const LsShape *x = ls_in_shape(g, n, k), *y = ls_shape(g, ls_out(g, n, 0));
    const int at = axis - (y->rank - x->rank);
    return at >= 0 ? x->dim[at] : 1;
}

/* Rows of one and the same index along this axis, as of a token type that all tokens have. */
static bool is_even(const LsGraph *g, LsValueId v, int axis)
{
    const LsNodeId n = g->value[v.i].def;
    if (g->node[n.i].op != LS_OP_GATHER)
        return false;
    const LsValueId index = ls_in(g, n, 1);
    const int first = g->node[n.i].attr.gather.axis;
    bool even = ls_is_const(g, index) && g->value[index.i].data != NULL && axis >= first
        && axis < first + ls_shape(g, index)->rank;
    for (int64_t i = 1; even && i < ls_count(ls_shape(g, index)); i++)
        even = ls_const_int_at(g, index, i) == ls_const_int_at(g, index, 0);
    return even;
}

static bool is_free(const LsTokens *t, LsValueId v)
{
    return ls_is(v) && role(t, v) == LS_FREE_OF_SAMPLES && !t->random[v.i];
}

bool ls_tokens_table(const LsTokens *t, LsNodeId n, int k, LsTable *to)
{
    const LsGraph *g = t->g;
    const LsValueId y = ls_out(g, n, 0);
    if (!t->need[n.i] || ls_op[g->node[n.i].op]->kernel != LS_K_MAP || t->masks[y.i]
        || !is_free(t, ls_in(g, n, k)))
        return false;
    to->token = axis_of(&t->by_token, g, y);
    to->sample = t->samples > 1 ? axis_of(&t->by_sample, g, y) : -1;
    if (to->token < 0 || length_at(g, n, k, to->token) == 1)
        return false;
    to->axis = to->token - (ls_shape(g, y)->rank - ls_in_shape(g, n, k)->rank);
    return !is_even(g, ls_in(g, n, k), to->axis);
}

/* The tokens lie within an axis of node n's result along which operand k differs, too. */
static bool differs_within(const LsTokens *t, LsNodeId n, int k)
{
    const LsValueId y = ls_out(t->g, n, 0);
    const int axis = axis_within(&t->by_token, t->g, y);
    return axis_of(&t->by_token, t->g, y) < 0 && (axis < 0 || length_at(t->g, n, k, axis) > 1);
}

static bool check_tables(const LsTokens *t, LsNodeId n)
{
    const LsGraph *g = t->g;
    const LsNode *node = &g->node[n.i];
    const LsValueId y = ls_out(g, n, 0);
    const LsKernelId kernel = ls_op[node->op]->kernel;
    const int token = axis_within(&t->by_token, g, y), rank = ls_shape(g, y)->rank;
    const bool stacked = kernel == LS_K_MATMUL && token < rank - 2;
    const bool joins = node->op == LS_OP_CONCAT || node->op == LS_OP_GATHER_EACH
                       || node->op == LS_OP_SCATTER || node->op == LS_OP_SCATTER_EACH
                       || kernel == LS_K_REDUCE;
    for (int k = 0; k < node->nin && role(t, y) == LS_PLACED; k++) {
        LsTable table;
        if (!is_free(t, ls_in(g, n, k)))
            continue;
        if ((stacked || joins) && (token < 0 || length_at(g, n, k, token) > 1))
            return refuse(t, n,
                          "reads other numbers for each position of a row, which cannot "
                          "begin anew with each sample");
        if (kernel == LS_K_MAP
            && (differs_within(t, n, k)
                || (ls_tokens_table(t, n, k, &table) && t->samples > 1
                    && (table.sample < 0 || length_at(g, n, k, table.sample) > 1))))
            return refuse(t, n,
                          "reads other numbers for each position, in an order that is not "
                          "known");
    }
    return true;
}

/* ---- attention ---- */

/* Part k of q, k, v has the tokens as rows. */
static bool is_over(const LsTokens *t, LsNodeId n, int part)
{
    const LsAttentionAttr *at = &t->g->node[n.i].attr.attention;
    const bool joint = ls_attention_is_joint(t->g, n);
    const int axis = joint || (at->by_token >> part & 1) ? 1 : 2;
    return axis_of(&t->by_token, t->g, ls_in(t->g, n, joint ? 0 : part)) == axis;
}

bool ls_tokens_attend(const LsTokens *t, LsNodeId n)
{
    const LsNode *node = &t->g->node[n.i];
    return t->need[n.i] && (node->op == LS_OP_ATTENTION || node->op == LS_OP_ATTENTION_JOINT)
           && (is_over(t, n, LS_ATT_K) || is_over(t, n, LS_ATT_V));
}

static bool check_attention(const LsTokens *t, LsNodeId n)
{
    const LsGraph *g = t->g;
    const LsAttentionSize s = ls_attention_size(g, n);
    const LsAttentionAttr *at = &g->node[n.i].attr.attention;
    const LsValueId mask = ls_in(g, n, ls_attention_mask(g, n));
    if (!ls_tokens_attend(t, n))
        return true;
    if (!is_over(t, n, LS_ATT_Q) || !is_over(t, n, LS_ATT_K) || !is_over(t, n, LS_ATT_V)
        || s.rows != t->tokens || s.cols != t->tokens || (at->causal && at->past != 0))
        return refuse(t, n, "has queries and keys of different tokens");
    if (s.batch != t->samples || (t->samples > 1 && axis_of(&t->by_sample, g, ls_in(g, n, 0)) != 0))
        return refuse(t, n, "has samples and heads on one axis");
    if (is_free(t, mask) && !is_of_distance(t, mask))
        return refuse(t, n,
                      "has a mask or bias that does not depend on the distance of two tokens "
                      "alone");
    return true;
}

/* ---- all nodes ---- */

static bool check_mask(const LsTokens *t, LsNodeId n)
{
    const LsGraph *g = t->g;
    const LsPlaces *y = &t->by_token.of[ls_out(g, n, 0).i];
    bool known = !y->lost;
    for (int k = 0; k < g->node[n.i].nin && y->sampled; k++)
        known = known && (!is_free(t, ls_in(g, n, k)) || is_of_distance(t, ls_in(g, n, k)));
    return known ? true
                 : refuse(t, n,
                          "makes a mask of which is not known that it depends on the distance "
                          "of two tokens alone");
}

/* The losses of tokens add up; nothing else may. */
static bool check_loss(const LsTokens *t, LsNodeId n)
{
    const LsSampleRole of = role(t, ls_in(t->g, n, 0));
    return of == LS_PLACED || of == LS_SUMMED || refuse(t, n, "is not a loss of each token");
}

static bool check_node(const LsTokens *t, LsNodeId n)
{
    const LsGraph *g = t->g;
    const LsNode *node = &g->node[n.i];
    const LsValueId y = ls_out(g, n, 0);
    bool placed = false;
    if (ls_op[node->op]->kernel == LS_K_LOSS)
        return check_loss(t, n);
    if (t->masks[y.i])
        return check_mask(t, n);
    for (int k = 0; k < node->nin; k++)
        placed |= role(t, ls_in(g, n, k)) == LS_PLACED;
    if (placed && t->by_token.mixed.i == n.i)
        return refuse(t, n, "combines the tokens of a row");
    if (placed && role(t, y) == LS_NOT_FOLLOWED)
        return refuse(t, n, "is not known to keep each token in its place");
    if (placed && role(t, y) == LS_SUMMED)
        return refuse(t, n, "takes the tokens of a row together");
    return check_tables(t, n)
           && (ls_op[node->op]->kernel != LS_K_ATTENTION || check_attention(t, n));
}

/* The first loss of the objective has tokens: a sum of losses has no places. */
static bool has_losses(const LsTokens *t)
{
    for (uint32_t i = 1; i < t->g->nnode; i++)
        if (t->need[i] && ls_op[t->g->node[i].op]->kernel == LS_K_LOSS
            && role(t, ls_in(t->g, (LsNodeId){i}, 0)) == LS_PLACED)
            return true;
    return false;
}

bool ls_tokens_find(LsTokens *t, LsCtx *cx, const LsGraph *g, int64_t tokens)
{
    *t = (LsTokens){.cx = cx, .g = g, .samples = g->batch, .tokens = tokens};
    t->need = ls_nodes_of_loss(cx, g);
    t->masks = find_masks(cx, g);
    t->random = find_random(cx, g);
    t->by_token = ls_follow_tokens(cx, g, t->need, tokens);
    t->by_sample = ls_follow_samples(cx, g, t->need, NULL);
    for (uint32_t i = 1; i < g->nnode; i++)
        if (t->need[i] && g->node[i].nout > 0 && !check_node(t, (LsNodeId){i}))
            return false;
    if (g->objective.of_file || !has_losses(t))
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "train with --loss=ce on the scores of tokens",
                        "--segments: the loss is not one of each token");
    return true;
}
