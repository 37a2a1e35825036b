/* codegen/fusion/inline_bodies.c */
#include "codegen/fusion/inline_bodies.h"

#include "base/arena.h"

#include <string.h>

const LsFused *ls_body_of(const LsGraph *g, LsNodeId n)
{
    return g->node[n.i].op == LS_OP_FUSED ? g->node[n.i].attr.fused.body : NULL;
}

const LsStmt *ls_only_statement(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    const LsFused *f = ls_body_of(g, n);
    if (f == NULL || node->nout != 1 || f->nstmt != 1)
        return NULL;
    const LsStmt *st = &f->stmt[0];
    if (st->narg != node->nin || ls_type(g, ls_out(g, n, 0)) != LS_REAL || f->out[0].length > 0)
        return NULL;
    for (int k = 0; k < st->narg; k++)
        if (st->arg[k] != ~k)
            return NULL;
    return st;
}

static bool has(const LsValueSet *s, LsValueId v)
{
    for (int k = 0; k < s->n; k++)
        if (s->v[k].i == v.i)
            return true;
    return false;
}

void ls_value_set_put(LsValueSet *s, LsValueId v)
{
    if (!has(s, v) && s->n < LS_MERGE_VALUES)
        s->v[s->n++] = v;
}

LsNodeId ls_first_reader(const LsGraph *g, LsValueId v, bool *shared)
{
    LsNodeId first = {0};
    *shared = v.i == g->objective.loss.i;
    for (uint32_t k = 0; k < g->noutput; k++)
        *shared |= g->output[k].i == v.i;
    for (uint32_t k = 0; k < g->ngrad; k++)
        *shared |= g->grad[k].grad.i == v.i;
    for (uint32_t i = g->value[v.i].def.i + 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++) {
            if (ls_in(g, (LsNodeId){i}, k).i != v.i)
                continue;
            if (first.i == 0)
                first.i = i;
            *shared |= i != first.i;
        }
    return first;
}

int ls_root_statement(const LsGraph *g, LsValueId v)
{
    LsNodeId def = g->value[v.i].def;
    const LsFused *f = ls_body_of(g, def);
    if (def.i == 0 || f == NULL)
        return -1;
    const LsFusedOut *out = &f->out[v.i - g->node[def.i].out];
    return ls_is_stored(out) ? out->stmt : -1;
}

uint64_t ls_needed_statements(const LsGraph *g, LsValueId v)
{
    int root = ls_root_statement(g, v);
    const LsFused *f = ls_body_of(g, g->value[v.i].def);
    if (root < 0)
        return 0;
    uint64_t mask = UINT64_C(1) << root;
    for (int s = root; s >= 0; s--)
        for (int k = 0; mask >> s & 1 && k < f->stmt[s].narg; k++)
            if (f->stmt[s].arg[k] >= 0)
                mask |= UINT64_C(1) << f->stmt[s].arg[k];
    return mask;
}

int16_t ls_merge_statement(LsMerge *m, LsNodeId n, int s)
{
    for (int k = 0; k < m->nstmt; k++)
        if (m->from[k].node == n.i && m->from[k].stmt == s)
            return (int16_t)k;
    LsStmt st = ls_body_of(m->g, n)->stmt[s];
    for (int k = 0; k < st.narg; k++)
        st.arg[k] = st.arg[k] >= 0 ? ls_merge_statement(m, n, st.arg[k])
                                   : ls_merge_operand(m, ls_in(m->g, n, ~st.arg[k]));
    if (m->nstmt == LS_MERGE_STMT) {
        m->full = true;
        return 0;
    }
    m->from[m->nstmt].node = n.i;
    m->from[m->nstmt].stmt = s;
    m->stmt[m->nstmt] = st;
    return (int16_t)m->nstmt++;
}

int16_t ls_merge_operand(LsMerge *m, LsValueId v)
{
    if (has(m->set, v))
        return ls_merge_statement(m, m->g->value[v.i].def, ls_root_statement(m->g, v));
    for (int k = 0; k < m->nin; k++)
        if (m->in[k].i == v.i)
            return (int16_t)~k;
    if (m->nin == LS_MERGE_IN) {
        m->full = true;
        return ~0;
    }
    m->in[m->nin] = v;
    return (int16_t)~m->nin++;
}

LsFused *ls_merge_body(struct LsArena *a, const LsMerge *m, const LsFused *like, int nout)
{
    LsFused *f = ls_arena_alloc(a, 1, sizeof *f);
    *f = *like;
    f->out = ls_arena_alloc(a, (size_t)nout, sizeof *f->out);
    f->nstmt = m->nstmt;
    f->stmt = ls_arena_alloc(a, (size_t)m->nstmt, sizeof *f->stmt);
    memcpy(f->stmt, m->stmt, (size_t)m->nstmt * sizeof *f->stmt);
    return f;
}
