/* codegen/planning/stage_problem.c -- see the header. */
#include "codegen/planning/stage_problem.h"

#include "compiler/ir/optimizer.h"

LsProblem *ls_stage_problem(LsArena *arena, const LsProblem *whole, const LsPipeGraph *stage)
{
    LsProblem *p = ls_arena_alloc(arena, 1, sizeof *p);
    *p = *whole;
    p->dag = stage->dag;
    p->whole = stage->node_of;
    p->node_of = ls_arena_alloc(arena, stage->dag.nnode + 1u, sizeof *p->node_of);
    for (uint32_t i = 0; i < stage->dag.nnode; i++)
        p->node_of[i] =
            stage->node_of[i] != LS_NO_ID ? whole->node_of[stage->node_of[i]] : (LsNodeId){0};
    return p;
}

/* Whether the node keeps a sum, or a statistic, that every micro-batch moves. */
static bool adds_up(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    const LsRule *rule = ls_rule_of((LsOpCode)node->op);
    const int acc = rule != NULL ? ls_rule_acc(rule) : -1;
    return node->op == LS_OP_ACCUMULATE || node->op == LS_OP_RUNNING_STAT
        || (acc >= 0 && acc < node->nin && ls_is(ls_in(g, n, acc)));
}

static bool is_copied(const LsPipeCut *c, uint32_t tensor)
{
    for (uint32_t k = 0; k < c->ncopy; k++)
        if (c->copy[k].tensor == tensor)
            return true;
    return false;
}

/* Whether the node moves a state with every micro-batch of which other stages have copies. */
static bool moves_copied(const LsProblem *whole, const LsPipeCut *c, uint32_t i)
{
    const LsDagNode *n = &whole->dag.node[i];
    bool copied = false;
    for (uint32_t k = 0; k < n->nupd; k++)
        copied |= is_copied(c, n->upd[k]);
    return copied
           && (n->kind != LS_DAG_OPTIMIZER
               || whole->g->node[whole->node_of[i].i].op == LS_OP_RUNNING_STAT);
}

static bool refuse(LsStagesReason *to, LsWhere at, const char *why, const char *hint)
{
    *to = (LsStagesReason){at, why, hint};
    return false;
}

bool ls_stages_check(const LsProblem *whole, const LsPipeCut *c, LsStagesReason *reason)
{
    for (uint32_t i = 0; i < whole->dag.nnode; i++) {
        const LsNodeId n = whole->node_of[i];
        if (moves_copied(whole, c, i))
            return refuse(reason, ls_where(whole->g, n),
                          "every micro-batch moves a state that several stages read", NULL);
        if (c->stage[i] != LS_NO_ID && c->phase[i] == LS_PHASE_LATE && adds_up(whole->g, n))
            return refuse(reason, ls_where(whole->g, n),
                          "what every micro-batch adds up here depends on gradients of all "
                          "stages, which are known at the end of the step",
                          "leave --stages out, or what updates share (--loss-scale, --clip-norm)");
    }
    return true;
}

typedef bool Counts(const LsGraph *g, LsValueId v);

static bool is_input(const LsGraph *g, LsValueId v) { return g->value[v.i].kind == LS_V_INPUT; }

static int64_t *bytes_of(LsArena *arena, const LsProblem *whole, Counts *counts)
{
    const LsDag *d = &whole->dag;
    int64_t *bytes = ls_arena_alloc(arena, d->ntensor + 1u, sizeof *bytes);
    for (uint32_t t = 0; t < d->ntensor; t++)
        if (d->tensor[t].persistent && counts(whole->g, whole->value_of[t]))
            bytes[t] =
                ls_align(ls_stored_bytes(whole->g, whole->value_of[t], whole->target.real_bytes),
                         LS_ALIGNMENT);
    return bytes;
}

int64_t *ls_state_bytes(LsArena *arena, const LsProblem *whole)
{
    return bytes_of(arena, whole, ls_is_state);
}

int64_t *ls_input_bytes(LsArena *arena, const LsProblem *whole)
{
    return bytes_of(arena, whole, is_input);
}
