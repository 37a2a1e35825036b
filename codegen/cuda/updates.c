/* codegen/cuda/updates.c */
#include "codegen/cuda/updates.h"

#include "base/arena.h"
#include "compiler/ir/rewrite.h"
#include "runtime/cuda/ls_cuda_run.h"

#include <string.h>

enum {
    SMALL = 4096,               /* most elements of a tensor */
    TOGETHER = 32,              /* most tensors of a kernel */
    ARGUMENTS = LS_CUDA_ARGS - 16,      /* most arguments of a kernel; a part has room for its
                                         * numbers, too */
};

typedef struct Group {
    uint32_t node[TOGETHER]; int n;
} Group;

typedef struct Search {
    const LsGraph *g;
    Group *group; uint32_t ngroup, cap;
    uint32_t *of;               /* by node: its group, from 1; 0: none */
} Search;

static bool fits(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    return ls_op[node->op]->kernel == LS_K_UPDATE && node->nout == 0 && ls_updated(node) == 1
        && ls_count(ls_in_shape(g, n, 0)) <= SMALL;
}

/* Whether two updates do the same operation and lack the same operands. */
static bool alike(const LsGraph *g, const LsNode *a, const LsNode *b)
{
    const LsUpdateAttr *x = &a->attr.update, *y = &b->attr.update;
    bool same = a->op == b->op && a->nin == b->nin && a->phase == b->phase
                && memcmp(&x->hyper, &y->hyper, sizeof x->hyper) == 0 && x->clip == y->clip
                && x->sum.scale == y->sum.scale && x->sum.by_samples == y->sum.by_samples
                && x->sum.levels == y->sum.levels && x->skips == y->skips;
    for (uint32_t k = 0; same && k < a->nin; k++)
        same = ls_is(g->operand[a->in + k]) == ls_is(g->operand[b->in + k]);
    return same;
}

static void put(Search *s, LsArena *a, uint32_t n)
{
    uint32_t k = 0;
    while (k < s->ngroup
           && (s->group[k].n == TOGETHER || (s->group[k].n + 1) * s->g->node[n].nin > ARGUMENTS
               || !alike(s->g, &s->g->node[s->group[k].node[0]], &s->g->node[n])))
        k++;
    if (k == s->ngroup) {
        s->group = ls_arena_grow(a, s->group, k, k + 1, sizeof *s->group, &s->cap);
        s->group[s->ngroup++].n = 0;
    }
    s->group[k].node[s->group[k].n++] = n;
    s->of[n] = k + 1;
}

static void append(LsRewrite *r, const Search *s, const Group *group)
{
    const LsNode *last = &s->g->node[group->node[group->n - 1]];
    LsValueId in[TOGETHER * LS_MAX_IN];
    LsAttr attr = last->attr;
    int nin = 0;
    for (int i = 0; i < group->n; i++)
        for (int k = 0; k < last->nin; k++)
            in[nin++] = ls_in(s->g, (LsNodeId){group->node[i]}, k);
    attr.update.many = group->n;
    LsNodeId to = ls_rewrite_append(r, last->op, nin, in, 0, NULL, &attr);
    r->to->node[to.i].name = ls_arena_printf(r->cx->arena, "%s and %d before", last->name,
                                             group->n - 1);
}

static bool visit(LsRewrite *r, LsNodeId n)
{
    const Search *s = r->user;
    const Group *group = s->of[n.i] != 0 ? &s->group[s->of[n.i] - 1] : NULL;
    if (group == NULL || group->n < 2)
        return false;
    if (group->node[group->n - 1] == n.i)
        append(r, s, group);
    return true;
}

uint32_t ls_join_updates(LsCtx *cx, LsGraph *g, const LsTarget *t)
{
    Search s = {.g = g};
    uint32_t joined = 0;
    if (t->kind != LS_TARGET_CUDA)
        return 0;
    s.of = ls_arena_alloc(cx->arena, g->nnode, sizeof *s.of);
    for (uint32_t i = 1; i < g->nnode; i++)
        if (fits(g, (LsNodeId){i}))
            put(&s, cx->arena, i);
    for (uint32_t k = 0; k < s.ngroup; k++)
        joined += s.group[k].n > 1 ? (uint32_t)s.group[k].n : 0;
    if (joined > 0)
        ls_rewrite(cx, g, visit, &s);
    return joined;
}
