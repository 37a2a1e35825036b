/* compiler/passes/segment_rows.c -- lets several samples share a row of tokens.
 *
 * requires the forward part and its loss; adds an input of integers, [samples, tokens]: tokens with
 * equal numbers beside each other are a segment. Attention over the tokens sees its own segment
 * alone; positions begin anew with each segment: those of an input position_ids, which is no input
 * any more, and those of tables (segments_check.h). So a row of segments computes what each of them
 * does in a row of its own. */
#include "compiler/fold/append.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ops/attention_shape.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/segments_check.h"

#include <inttypes.h>
#include <string.h>

typedef struct Restarted {
    LsTable at;
    int rank;
    LsValueId v;
} Restarted;

typedef struct Pack {
    LsTokens tokens;
    LsValueId numbers, ids;  /* inputs of the old graph; ids: position_ids, or none */
    LsValueId spans, places; /* of the new one */
    Restarted *restarted;    /* by old value: what it last became */
} Pack;

/* ---- inputs ---- */

static LsValueId input_named(const LsGraph *g, const char *name)
{
    for (uint32_t i = 0; i < g->ninput; i++)
        if (strcmp(g->value[g->input[i].i].name, name) == 0)
            return g->input[i];
    return (LsValueId){0};
}

static void drop_input(LsGraph *g, LsValueId v)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < g->ninput; i++)
        if (g->input[i].i != v.i)
            g->input[kept++] = g->input[i];
    g->ninput = kept;
}

/* Before the targets, which are the last inputs. */
static LsValueId add_input(LsCtx *cx, LsGraph *g, const char *name, const LsShape *shape)
{
    LsValueId *input = ls_arena_alloc(g->arena, g->ninput + 1, sizeof *input);
    const uint32_t at = g->ninput - g->objective.nlabel;
    const LsValueId v = ls_value_add(cx, g, LS_V_INPUT, name, LS_I32, shape, NULL);
    memcpy(input, g->input, at * sizeof *input);
    memcpy(input + at + 1, g->input + at, g->objective.nlabel * sizeof *input);
    input[at] = v;
    g->input = input;
    g->ninput++;
    return v;
}

/* One row of position_ids for all samples is a constant, from which tables begin. */
static void fix_ids(LsCtx *cx, LsGraph *g, LsValueId ids, int64_t tokens)
{
    int64_t *wide = ls_arena_alloc(g->arena, (size_t)tokens, sizeof *wide);
    int32_t *narrow = ls_arena_alloc(g->arena, (size_t)tokens, sizeof *narrow);
    (void)cx;
    for (int64_t i = 0; i < tokens; i++)
        wide[i] = narrow[i] = (int32_t)i;
    g->value[ids.i].kind = LS_V_CONST;
    g->value[ids.i].data = g->value[ids.i].type == LS_I64 ? (const void *)wide : narrow;
    drop_input(g, ids);
}

/* Takes position_ids as the positions within segments. */
static bool take_ids(LsCtx *cx, LsGraph *g, int64_t tokens, LsValueId *ids)
{
    *ids = input_named(g, "position_ids");
    if (!ls_is(*ids))
        return true;
    const LsShape *s = ls_shape(g, *ids);
    const LsType type = ls_type(g, *ids);
    if (s->rank != 2 || s->dim[1] != tokens || (s->dim[0] != 1 && s->dim[0] != g->batch)
        || (type != LS_I64 && type != LS_I32))
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, NULL,
                        "--segments: input 'position_ids' is %s, not a row of %" PRId64
                        " integers for each sample",
                        ls_dims(g, *ids), tokens);
    if (s->dim[0] == g->batch)
        return true;
    fix_ids(cx, g, *ids, tokens);
    *ids = (LsValueId){0};
    return true;
}

/* ---- tables by position ---- */

/* Whether a transpose moves no axis but those of length 1 past others: a reshape is enough. */
static bool only_ones_move(const LsShape *s, const int perm[])
{
    int last = -1;
    for (int k = 0; k < s->rank; k++) {
        if (s->dim[perm[k]] > 1 && perm[k] < last)
            return false;
        last = s->dim[perm[k]] > 1 ? perm[k] : last;
    }
    return true;
}

/* x by the positions of the tokens, [.., T, ..] to [.., N, .., T, ..] with the axes of the result
 * that reads it. */
static LsValueId restart(LsRewrite *r, const Pack *p, LsValueId x, const LsTable *at, int rank)
{
    LsCtx *cx = r->cx;
    const LsShape s = *ls_shape(r->to, x);
    const int before = rank - s.rank, drop = at->sample - before;
    LsShape less = {0}, full = {.rank = rank};
    int perm[LS_MAX_RANK], n = 0, token = at->axis;
    LsValueId places = p->places;
    if (at->sample < 0) { /* one sample */
        places = ls_reshape(cx, r->to, places, &(LsShape){1, {p->tokens.tokens}});
        return ls_append2(cx, r->to, LS_OP_GATHER, x, places, &(LsAttr){.gather = {.axis = token}});
    }
    for (int k = 0; k < s.rank; k++)
        if (k != drop)
            less.dim[less.rank++] = s.dim[k];
    token -= drop >= 0 && drop < token;
    x = ls_reshape(cx, r->to, x, &less);
    x = ls_append2(cx, r->to, LS_OP_GATHER, x, places, &(LsAttr){.gather = {.axis = token}});
    for (int k = 0, from = 0; k < rank; k++) { /* from: the next axis of `less` */
        const bool is_sample = k == at->sample, is_table = k >= before && !is_sample;
        full.dim[k] = is_sample ? p->tokens.samples : is_table ? s.dim[k - before] : 1;
        if (is_sample)
            perm[n++] = token;
        else if (is_table) {
            perm[n++] = from + (from >= token);
            from++;
        }
    }
    if (ls_is(x) && !only_ones_move(ls_shape(r->to, x), perm))
        x = ls_transpose(cx, r->to, x, perm);
    return ls_is(x) ? ls_reshape(cx, r->to, x, &full) : x;
}

static LsValueId operand_of(LsRewrite *r, Pack *p, LsNodeId n, int k)
{
    const LsValueId v = ls_in(r->from, n, k);
    LsTable at;
    if (!ls_is(v) || !ls_tokens_table(&p->tokens, n, k, &at))
        return ls_image(r, v);
    const int rank = ls_shape(r->from, ls_out(r->from, n, 0))->rank;
    Restarted *known = &p->restarted[v.i];
    if (!ls_is(known->v) || known->rank != rank || memcmp(&known->at, &at, sizeof at) != 0)
        *known = (Restarted){at, rank, restart(r, p, ls_image(r, v), &at, rank)};
    return known->v;
}

/* ---- the pass ---- */

static void begin(LsRewrite *r, Pack *p)
{
    const LsValueId made = ls_append1(r->cx, r->to, LS_OP_SEGMENTS, ls_image(r, p->numbers), NULL);
    p->spans = made;
    p->places = (LsValueId){made.i + 1};
    if (!ls_is(p->ids))
        return;
    r->map[p->ids.i] =
        ls_type(r->from, p->ids) == LS_I32
            ? p->places
            : ls_append1(r->cx, r->to, LS_OP_CAST, p->places, &(LsAttr){.cast = LS_I64});
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    Pack *p = r->user;
    const LsGraph *g = r->from;
    const LsNode *node = &g->node[n.i];
    if (!ls_is(p->spans))
        begin(r, p);
    const int spans = ls_tokens_attend(&p->tokens, n) ? ls_attention_spans(g, n) : -1;
    const int nin = spans >= 0 ? spans + 1 : node->nin;
    LsValueId *in = ls_arena_alloc(r->cx->arena, (size_t)nin, sizeof *in);
    for (int k = 0; k < node->nin; k++)
        in[k] = operand_of(r, p, n, k);
    if (spans >= 0)
        in[spans] = p->spans;
    const LsNodeId id = ls_append_bare(r->to, (LsOpCode)node->op, nin, in, node->nout, &node->attr);
    r->to->node[id.i].rounds = node->rounds;
    for (int k = 0; k < node->nout; k++)
        ls_rewrite_result(r, id, k, ls_out(g, n, k));
    return true;
}

/* The tokens of a row: the second axis of the first input that has two. 0: there is none. */
static int64_t count_tokens(const LsGraph *g)
{
    for (uint32_t i = 0; i + g->objective.nlabel < g->ninput; i++) {
        const LsShape *s = ls_shape(g, g->input[i]);
        if (s->rank > 1 && s->dim[0] == g->batch && s->dim[1] > 1)
            return s->dim[1];
    }
    return 0;
}

static bool can_have(LsCtx *cx, const LsGraph *g, const char *name, int64_t tokens)
{
    if (tokens == 0)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "leave --segments out",
                        "--segments: no input has samples along its first axis and tokens along "
                        "its second one");
    if (ls_is(input_named(g, name)))
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "give the model's input another name",
                        "--segments: the model has an input '%s' already", name);
    for (uint32_t i = 0; i + g->objective.nlabel < g->ninput; i++) {
        const LsShape *s = ls_shape(g, g->input[i]);
        if ((s->rank < 2 || s->dim[1] != tokens)
            && strcmp(g->value[g->input[i].i].name, "position_ids") != 0)
            return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "leave --segments out",
                            "--segments: input '%s' is %s, not of %" PRId64 " tokens: samples that "
                            "share a row would share it, too",
                            g->value[g->input[i].i].name, ls_dims(g, g->input[i]), tokens);
    }
    return true;
}

bool ls_segments(LsCtx *cx, LsGraph *g, const char *name)
{
    Pack p = {.numbers = {0}};
    if (name == NULL)
        return true;
    const int64_t tokens = count_tokens(g);
    if (!can_have(cx, g, name, tokens) || !take_ids(cx, g, tokens, &p.ids)
        || !ls_tokens_find(&p.tokens, cx, g, tokens))
        return false;
    if (ls_is(p.ids)) {
        drop_input(g, p.ids);
        g->value[p.ids.i].kind = LS_V_NONE;
    }
    p.numbers = add_input(cx, g, name, &(LsShape){2, {g->batch, tokens}});
    g->segments = p.numbers;
    p.restarted = ls_arena_alloc(cx->arena, g->nvalue, sizeof *p.restarted);
    ls_rewrite(cx, g, visit, &p);
    return true;
}
