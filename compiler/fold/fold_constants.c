/* compiler/fold/fold_constants.c -- decides which nodes are folded; fold_map.c and fold_move.c
 * evaluate them. */
#include "compiler/fold/fold_constants.h"

#include "compiler/fold/fold_eval.h"

/* Larger results stay nodes: compilation must not need more memory than the program. */
static const int64_t most_elements = INT64_C(1) << 26;
/* Limit on the elements of all folded constants: 4 GiB of floats. */
static const int64_t most_in_all = INT64_C(1) << 30;
/* Results that repeat their operand are cheaper to recompute than to store, unless small. */
static const int64_t most_repeated = INT64_C(1) << 18;

static bool operands_known(const LsGraph *g, LsNodeId n)
{
    for (int k = 0; k < g->node[n.i].nin; k++) {
        LsValueId v = ls_in(g, n, k);
        if (!ls_is_const(g, v) || g->value[v.i].data == NULL)
            return false;
    }
    return g->node[n.i].nin > 0;
}

bool ls_fold_affords(LsGraph *g, int64_t elements)
{
    if (elements > most_elements || elements > most_in_all - g->folded)
        return false;
    g->folded += elements;
    return true;
}

static bool size_fits(LsGraph *g, LsNodeId n, int64_t count)
{
    int64_t in = 0;
    for (int k = 0; k < g->node[n.i].nin; k++)
        if (in < ls_count(ls_in_shape(g, n, k)))
            in = ls_count(ls_in_shape(g, n, k));
    return (count <= most_repeated || count <= in) && ls_fold_affords(g, count > in ? count : in);
}

static bool evaluate(const LsFold *f)
{
    const LsOp *row = ls_op[f->g->node[f->n.i].op];
    switch (row->kernel) {
    case LS_K_MAP:    return ls_fold_map(f);
    case LS_K_REDUCE: return ls_fold_reduce(f);
    default:          return ls_fold_move(f);
    }
}

bool ls_fold(LsCtx *cx, LsGraph *g, LsNodeId n, LsValueId *out)
{
    if (g->node[n.i].nout != 1 || !operands_known(g, n))
        return false;
    LsValueId y = ls_out(g, n, 0);
    const LsShape shape = *ls_shape(g, y);
    if (g->node[n.i].op == LS_OP_RESHAPE) {
        *out = ls_const_add(cx, g, ls_type(g, y), &shape, g->value[ls_in(g, n, 0).i].data);
        return true;
    }
    LsFold f = {.arena = cx->arena, .g = g, .n = n, .type = ls_type(g, y), .shape = shape};
    if (!ls_fold_known(&f) || !size_fits(g, n, ls_count(&shape)))
        return false;
    f.data = ls_arena_alloc(cx->arena, (size_t)ls_count(&shape), (size_t)ls_type_bytes(f.type, 4));
    if (!evaluate(&f))
        return false;
    *out = ls_const_add(cx, g, f.type, &shape, f.data);
    return true;
}
