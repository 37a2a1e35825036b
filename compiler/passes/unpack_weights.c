/* compiler/passes/unpack_weights.c -- weights in codes.
 *
 * requires the backward part and the update; each state that is kept in few bits (LsValue.packed)
 * is replaced by a state with its codes, and every reader reads an UNPACK of it that is its own:
 * reals live from their reader's start to its end. Kernels that read codes themselves take the
 * UNPACK's place later (codegen/fusion/read_codes.h). */
#include "compiler/fold/append.h"
#include "compiler/ir/rewrite.h"
#include "compiler/packed/packed_tensor.h"
#include "compiler/passes/passes.h"

typedef struct Unpacking {
    LsValueId *codes;           /* by value: the state with its codes; none: it is not packed */
    unsigned made;
} Unpacking;

/* The reals of a state of the old graph, for the node that is copied next. */
static LsValueId reals_of(LsRewrite *r, Unpacking *u, LsNodeId n, LsValueId v)
{
    const LsValue *w = &r->from->value[v.i];
    const LsNode *node = &r->from->node[n.i];
    const LsAttr at = {.unpack = {w->packed->codes, w->shape}};
    ls_graph_origin(r->to, (LsOrigin){node->phase, {0}, node->onnx, w->name});
    const LsValueId reals =
        ls_append1(r->cx, r->to, LS_OP_UNPACK, r->map[u->codes[v.i].i], &at);
    r->to->value[reals.i].name =
        ls_arena_printf(r->cx->arena, "%s.unpacked.%u", w->name, u->made++);
    return reals;
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    Unpacking *u = r->user;
    const LsNode *node = &r->from->node[n.i];
    LsValueId *was = NULL;
    for (int k = 0; k < node->nin; k++) {
        const LsValueId v = ls_in(r->from, n, k);
        if (!ls_is(u->codes[v.i]))
            continue;
        was = was != NULL ? was : ls_arena_alloc(r->cx->arena, node->nin, sizeof *was);
        was[k] = r->map[v.i];
        r->map[v.i] = reals_of(r, u, n, v);
    }
    if (was == NULL)
        return false;
    ls_graph_origin(r->to, (LsOrigin){node->phase, r->forward, node->onnx, node->name});
    ls_rewrite_copy(r, n);
    for (int k = 0; k < node->nin; k++)
        if (ls_is(was[k]))
            r->map[ls_in(r->from, n, k).i] = was[k];
    return true;
}

/* Adds the states with the codes; returns how many there are. */
static uint32_t add_codes(LsCtx *cx, LsGraph *g, Unpacking *u)
{
    const uint32_t n = g->nvalue;
    uint32_t made = 0;
    u->codes = ls_arena_alloc(cx->arena, 2 * n, sizeof *u->codes);
    for (uint32_t i = 1; i < n; i++) {
        LsPackedTensor *t = g->value[i].packed;
        if (t == NULL || g->value[i].kind != LS_V_STATE || g->value[i].type != LS_REAL)
            continue;
        const LsShape bytes = {.rank = 1, .dim = {ls_packed_parts(&t->codes).end}};
        u->codes[i] = ls_value_add(cx, g, LS_V_STATE,
                                   ls_arena_printf(cx->arena, "%s.codes", g->value[i].name), LS_U8,
                                   &bytes, NULL);
        g->value[u->codes[i].i].packed = t;
        t->shape = g->value[i].shape;
        t->used = true;
        made++;
    }
    return made;
}

bool ls_unpack_weights(LsCtx *cx, LsGraph *g, bool asked)
{
    Unpacking u = {.made = 0};
    if (add_codes(cx, g, &u) == 0)
        return !asked
               || ls_error(cx, LS_NOWHERE, LS_E_OPTION,
                           "give --lora, --adapter, --freeze or --train-only, or leave it out",
                           "--quantize-frozen: no weight is frozen");
    ls_rewrite(cx, g, visit, &u);
    for (uint32_t i = 1; i < g->nvalue; i++)            /* the states that nobody reads any more */
        if (g->value[i].packed != NULL && g->value[i].type == LS_REAL)
            g->value[i].kind = LS_V_NONE;
    return cx->nerror == 0;
}
