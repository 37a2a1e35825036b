/* compiler/updates/decay_groups.c -- see decay_groups.h. */
#include "compiler/updates/decay_groups.h"

#include <fnmatch.h>

/* Kinds of kernels that read p, or a view of it, in the forward part: bits. */
static uint64_t readers(const LsGraph *g, LsValueId p)
{
    uint64_t kinds = 0;
    _Static_assert((int)LS_NKERNELS <= 64, "a bit for each kind");
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; g->node[i].phase == LS_FORWARD && k < g->node[i].nin; k++)
            if (ls_is(ls_in(g, (LsNodeId){i}, k))
                && ls_viewed(g, ls_in(g, (LsNodeId){i}, k)).i == p.i)
                kinds |= (uint64_t)1 << ls_op[g->node[i].op]->kernel;
    return kinds & ~((uint64_t)1 << LS_K_VIEW);
}

static bool is_vector(const LsGraph *g, LsValueId p)
{
    const LsShape *s = ls_shape(g, p);
    int longer = 0;
    for (int k = 0; k < s->rank; k++)
        longer += s->dim[k] > 1;
    const uint64_t kinds = s->rank > 1 ? readers(g, p) : 0;
    return s->rank <= 1 || (kinds >> LS_K_NORM & 1) != 0
           || (longer <= 1 && kinds == (uint64_t)1 << LS_K_MAP);
}

bool ls_decays(const LsGraph *g, LsValueId p, const LsOptimizerOptions *o)
{
    for (int k = 0; k < o->nno_decay; k++)
        if (fnmatch(o->no_decay[k], g->value[p.i].name, 0) == 0)
            return false;
    return o->hyper.decay != 0 && !(o->spares_vectors && is_vector(g, p));
}

bool ls_decay_groups_check(LsCtx *cx, const LsGraph *g, const LsOptimizerOptions *o)
{
    bool all = true;
    for (int k = 0; k < o->nno_decay; k++) {
        bool any = false;
        for (uint32_t i = 0; i < ls_gradients(g) && !any; i++)
            any = fnmatch(o->no_decay[k], g->value[g->grad[i].param.i].name, 0) == 0;
        if (!any)
            all = ls_error(cx, LS_NOWHERE, LS_E_UNSUPPORTED,
                           "`lowerset inspect` lists the parameters",
                           "--no-decay: no trained parameter is called '%s'", o->no_decay[k]);
    }
    return all;
}
