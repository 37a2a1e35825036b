/* scheduler/strategies/step_again.c -- a whole step, and then the whole step again.
 *
 * If all updates wait for a number that is made of all gradients, such as their norm, then no order
 * of single runs lets a gradient go before its update has come. The least memory is that of a step
 * whose updates do not wait: it runs once without updates, for the number alone, and then again
 * with them. So the candidates are those of such a problem, each run twice. */
#include "scheduler/strategies/published_strategies.h"

#include <string.h>

#include "scheduler/order/run_order.h"

/* The result of a node behind the forward part that most nodes read. */
static uint32_t gate_of(LsArena *tmp, const LsProb *p)
{
    uint32_t *readers = ls_arena_alloc(tmp, p->nt + 1u, sizeof *readers), gate = LS_NO_ID;
    for (uint32_t v = 0; v < p->n; v++)
        for (uint32_t k = p->in.at[v]; p->used[v] && k < p->in.at[v + 1]; k++)
            readers[p->in.id[k]]++;
    for (uint32_t x = 0; x < p->nt; x++)
        if (p->maker[x] != LS_NO_ID && p->dag->node[p->maker[x]].kind != LS_DAG_FORWARD
            && (gate == LS_NO_ID || readers[x] > readers[gate]))
            gate = x;
    return gate;
}

/* Whether a result of the node has its flag set. */
static bool makes_one_of(const LsProb *p, uint32_t v, const bool *tensor)
{
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)
        if (tensor[p->out.id[k]])
            return true;
    return false;
}

/* Flags of the tensors that the gate is made of, with itself; returns whether a gradient is among
 * them. */
static bool mark_sources(const LsProb *p, uint32_t gate, bool *source)
{
    bool gradients = false;
    source[gate] = true;
    for (uint32_t v = p->n; v-- > 0;) {
        if (!p->used[v] || !makes_one_of(p, v, source))
            continue;
        gradients |= p->dag->node[v].kind == LS_DAG_BACKWARD;
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
            source[p->in.id[k]] = true;
    }
    return gradients;
}

/* The same graph, in which nothing reads the gate, and its maker must run. */
static LsDag *opened(LsArena *arena, const LsProb *p, uint32_t gate)
{
    LsDag *g = ls_arena_alloc(arena, 1, sizeof *g);
    *g = *p->dag;
    g->node = ls_arena_alloc(arena, g->nnode + 1u, sizeof *g->node);
    memcpy(g->node, p->dag->node, g->nnode * sizeof *g->node);
    g->node[p->maker[gate]].required = true;
    for (uint32_t v = 0; v < g->nnode; v++) {
        LsDagNode *node = &g->node[v];
        uint32_t *in = ls_arena_alloc(arena, node->nin + 1u, sizeof *in), n = 0;
        for (uint32_t k = 0; k < node->nin; k++)
            if (node->in[k] != gate)
                in[n++] = node->in[k];
        node->in = in;
        node->nin = n;
    }
    return g;
}

LsProb *ls_step_without_gate(LsArena *arena, const LsProb *p, uint32_t *gate)
{
    LsArena *tmp = ls_arena_new();
    bool *source = ls_arena_alloc(tmp, p->nt + 1u, sizeof *source);
    *gate = gate_of(tmp, p);
    const bool waits = *gate != LS_NO_ID && mark_sources(p, *gate, source);
    ls_arena_free(tmp);
    if (!waits)
        return NULL;
    LsProb *open = ls_prob_new(arena, opened(arena, p, *gate), p->inplace);
    open->unplaced = p->unplaced;
    return open;
}

/* Appends the runs of `once` that the gate is made by, whichever alternatives these are. */
static void append_first(LsArena *tmp, const LsProb *p, const LsSeq *once, uint32_t gate, LsSeq *to)
{
    bool *want = ls_arena_alloc(tmp, p->nt + 1u, sizeof *want);
    bool *keep = ls_arena_alloc(tmp, once->n + 1u, sizeof *keep);
    want[gate] = true;
    for (uint32_t s = once->n; s-- > 0;) {
        const uint32_t v = once->node[s];
        keep[s] = makes_one_of(p, v, want);
        for (uint32_t k = p->out.at[v]; keep[s] && k < p->out.at[v + 1]; k++)
            want[p->out.id[k]] = false;
        for (uint32_t k = p->in.at[v]; keep[s] && k < p->in.at[v + 1]; k++)
            want[p->in.id[k]] = true;
    }
    for (uint32_t s = 0; s < once->n; s++)
        if (keep[s])
            to->node[to->n++] = once->node[s];
}

/* Whether nodes that may run once do. */
static bool runs_once(LsArena *tmp, const LsProb *p, const LsSeq *seq)
{
    bool *ran = ls_arena_alloc(tmp, p->n + 1u, sizeof *ran);
    for (uint32_t s = 0; s < seq->n; s++) {
        const uint32_t v = seq->node[s];
        if (ran[v] && p->stuck[v])
            return false;
        ran[v] = true;
    }
    return true;
}

void ls_strategy_step_again(LsCandidates *pool, uint32_t gate, const LsCandidates *open)
{
    const LsProb *p = pool->prob;
    LsArena *arena = ls_arena_new();                /* the pool's is renewed between offers */
    bool *is_gate = ls_arena_alloc(arena, p->nt + 1u, sizeof *is_gate);
    is_gate[gate] = true;
    for (uint32_t k = 0; k < open->n; k++) {
        const LsSeq *once = &open->cand[k].seq;
        LsSeq seq = {ls_arena_alloc(pool->tmp, 2 * once->n + p->n + 1u, sizeof *seq.node), 0};
        append_first(pool->tmp, p, once, gate, &seq);
        for (uint32_t s = 0; s < once->n; s++)
            if (!makes_one_of(p, once->node[s], is_gate))
                seq.node[seq.n++] = once->node[s];
        ls_seq_drop_dead(pool->tmp, p, &seq);
        if (runs_once(pool->tmp, p, &seq))
            ls_candidates_offer(pool, &seq, "auto");
    }
    ls_arena_free(arena);
}
