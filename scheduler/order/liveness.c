/* scheduler/order/liveness.c -- true liveness: an instance is freed right after its last reader. */
#include "scheduler/order/liveness.h"

#include <assert.h>
#include <string.h>

LsLive *ls_live_new(LsArena *arena, const LsProb *p)
{
    LsLive *l = ls_arena_alloc(arena, 1, sizeof *l);
    l->arena = arena;
    l->now = ls_arena_alloc(arena, p->nt + 1u, sizeof *l->now);
    return l;
}

static void make_room(const LsProb *p, const LsSeq *seq, LsLive *l)
{
    uint32_t runs = seq->n + 2, made = 0;
    for (uint32_t s = 0; s < seq->n; s++) {
        assert(seq->node[s] < p->n);
        made += p->out.at[seq->node[s] + 1] - p->out.at[seq->node[s]];
    }
    if (runs > l->room) {
        l->room = runs + runs / 4;
        l->first = ls_arena_alloc(l->arena, l->room, sizeof *l->first);
        l->mem = ls_arena_alloc(l->arena, l->room, sizeof *l->mem);
    }
    if (made > l->inst_room) {
        l->inst_room = made + made / 4;
        l->inst = ls_arena_alloc(l->arena, l->inst_room, sizeof *l->inst);
    }
}

static void find_instances(const LsProb *p, const LsSeq *seq, LsLive *l)
{
    uint32_t k = 0;
    for (uint32_t s = 0; s < seq->n; s++) {
        uint32_t v = seq->node[s];
        for (uint32_t j = p->in.at[v]; j < p->in.at[v + 1]; j++) {
            uint32_t i = l->now[p->in.id[j]];
            assert(i < k && l->inst[i].tensor == p->in.id[j]);      /* the operand has been made */
            l->inst[i].to = s;
        }
        l->first[s] = k;
        l->cost += p->cost[v];
        for (uint32_t j = p->out.at[v]; j < p->out.at[v + 1]; j++) {
            uint32_t t = p->out.id[j];
            l->now[t] = k;
            l->inst[k++] = (LsInstance){t, s, s, LS_NO_ID, LS_NO_ID};
        }
    }
    l->first[seq->n] = l->ninst = k;
    for (uint32_t j = 0; j < k; j++)                /* outputs live to the end */
        if (p->dag->tensor[l->inst[j].tensor].output && l->now[l->inst[j].tensor] == j)
            l->inst[j].to = seq->n;
}

/* Applies the in-place pairs whose operand ends at the run. An operand gives its place to at most
 * one result. */
static void find_heirs(const LsProb *p, const LsSeq *seq, LsLive *l)
{
    memset(l->now, 0xff, p->nt * sizeof *l->now);
    for (uint32_t s = 0; s < seq->n; s++) {
        const LsDagNode *node = &p->dag->node[seq->node[s]];
        for (uint32_t k = 0; k < node->ninplace; k++) {
            uint32_t in = l->now[node->inplace[k].in], out = l->first[s];
            while (out < l->first[s + 1] && l->inst[out].tensor != node->inplace[k].out)
                out++;
            if (out == l->first[s + 1] || in == LS_NO_ID || l->inst[in].to != s
                || l->inst[in].heir != LS_NO_ID || l->inst[out].of != LS_NO_ID
                || !ls_prob_fits(p, node->inplace[k]))
                continue;
            l->inst[in].heir = out;
            l->inst[out].of = in;
        }
        for (uint32_t k = l->first[s]; k < l->first[s + 1]; k++)
            l->now[l->inst[k].tensor] = k;
    }
}

void ls_live(const LsProb *p, const LsSeq *seq, LsLive *l)
{
    make_room(p, seq, l);
    l->cost = 0;
    find_instances(p, seq, l);
    if (p->inplace)
        find_heirs(p, seq, l);
    memset(l->mem, 0, (seq->n + 2) * sizeof *l->mem);
    for (uint32_t k = 0; k < l->ninst; k++) {       /* differences first, summed below */
        const LsInstance *in = &l->inst[k];
        int64_t size = p->size[in->tensor];
        l->mem[in->of == LS_NO_ID ? in->from : in->from + 1] += size;
        if (in->to < seq->n)
            l->mem[in->to + 1] -= size;
    }
    l->peak = 0;
    l->peak_run = 0;
    int64_t used = 0;
    for (uint32_t s = 0; s < seq->n; s++) {
        used += l->mem[s];
        l->mem[s] = used + p->workspace[seq->node[s]];
        if (l->mem[s] > l->peak) {
            l->peak = l->mem[s];
            l->peak_run = s;
        }
    }
}
