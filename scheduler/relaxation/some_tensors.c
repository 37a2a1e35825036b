/* scheduler/relaxation/some_tensors.c -- see the header.
 *
 * A node that must run, and reads tensors of the part but makes none, gets a result without bytes
 * that must be there at the end. Its alternatives make that as well. */
#include "scheduler/relaxation/some_tensors.h"

typedef struct Some {
    LsArena *arena;
    const LsBoundGraph *b;
    const bool *counts;
    uint32_t *tensor;           /* by tensor of the whole problem: its number, where it counts */
    uint32_t *token;            /* by group: the number of the result without bytes, or LS_NO_ID */
    LsDag *to;
} Some;

static bool counts(const Some *x, uint32_t t)
{
    return x->counts[t] && !x->b->p->dag->tensor[t].persistent;
}

static bool some_count(const Some *x, const uint32_t *id, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (counts(x, id[k]))
            return true;
    return false;
}

/* Returns those of the tensors that count; there is room for one more. */
static uint32_t take(const Some *x, const uint32_t *id, uint32_t n, uint32_t **to)
{
    uint32_t taken = 0;
    *to = ls_arena_alloc(x->arena, n + 1u, sizeof **to);
    for (uint32_t k = 0; k < n; k++)
        if (counts(x, id[k]))
            (*to)[taken++] = x->tensor[id[k]];
    return taken;
}

static uint32_t token_of(const Some *x, uint32_t v)
{
    const uint32_t group = x->b->group[v];
    return group == LS_NO_ID ? LS_NO_ID : x->token[group];
}

static LsDagNode copy_node(const Some *x, uint32_t v)
{
    const LsDagNode *from = &x->b->p->dag->node[v];
    LsDagNode n = *from;
    LsDagPair *pair = ls_arena_alloc(x->arena, n.ninplace + 1u, sizeof *pair);
    uint32_t *in, *out;
    n.nin = take(x, from->in, from->nin, &in);
    n.nout = take(x, from->out, from->nout, &out);
    if (token_of(x, v) != LS_NO_ID)
        out[n.nout++] = token_of(x, v);
    n.in = in;
    n.out = out;
    n.upd = NULL;
    n.nupd = n.ninplace = 0;
    for (uint32_t k = 0; k < from->ninplace; k++)
        if (counts(x, from->inplace[k].in) && counts(x, from->inplace[k].out))
            pair[n.ninplace++] = (LsDagPair){x->tensor[from->inplace[k].out],
                                             x->tensor[from->inplace[k].in]};
    n.inplace = pair;
    n.of = -1;
    n.required = false;
    return n;
}

/* Returns whether every schedule runs some member of the group, all of which read something that
 * counts and make nothing that does. */
static bool needs_token(const Some *x, uint32_t group)
{
    const LsBoundGraph *b = x->b;
    bool all = b->needed[group] && b->member.at[group] < b->member.at[group + 1];
    for (uint32_t k = b->member.at[group]; all && k < b->member.at[group + 1]; k++) {
        const LsDagNode *n = &b->p->dag->node[b->member.id[k]];
        all = some_count(x, n->in, n->nin) && !some_count(x, n->out, n->nout);
    }
    return all;
}

static void add_tensors(Some *x)
{
    const LsDag *whole = x->b->p->dag;
    for (uint32_t t = 0; t < whole->ntensor; t++)
        if (counts(x, t)) {
            x->tensor[t] = x->to->ntensor;
            x->to->tensor[x->to->ntensor++] = whole->tensor[t];
        }
    for (uint32_t v = 0; v < whole->nnode; v++) {
        x->token[v] = LS_NO_ID;
        if (!needs_token(x, v))
            continue;
        x->token[v] = x->to->ntensor;
        x->to->tensor[x->to->ntensor++] = (LsDagTensor){.name = "done", .output = true};
    }
}

LsProb *ls_some_tensors(LsArena *arena, const LsBoundGraph *b, const bool *which)
{
    const LsDag *whole = b->p->dag;
    LsDag *g = ls_arena_alloc(arena, 1, sizeof *g);
    Some x = {.arena = arena, .b = b, .counts = which, .to = g};
    *g = (LsDag){.name = whole->name, .alignment = whole->alignment};
    g->tensor = ls_arena_alloc(arena, (size_t)whole->ntensor + whole->nnode + 1,
                               sizeof *g->tensor);
    g->node = ls_arena_alloc(arena, whole->nnode + 1u, sizeof *g->node);
    x.tensor = ls_arena_alloc(arena, whole->ntensor + 1u, sizeof *x.tensor);
    x.token = ls_arena_alloc(arena, whole->nnode + 1u, sizeof *x.token);
    add_tensors(&x);
    for (uint32_t v = 0; v < whole->nnode; v++)
        if (some_count(&x, whole->node[v].out, whole->node[v].nout)
            || token_of(&x, v) != LS_NO_ID)
            g->node[g->nnode++] = copy_node(&x, v);
    return ls_prob_new(arena, g, b->p->inplace);
}
