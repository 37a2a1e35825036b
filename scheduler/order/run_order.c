/* scheduler/order/run_order.c -- turns a strategy into a sequence of runs. */
#include "scheduler/order/run_order.h"

#include <string.h>

LsSeq ls_seq_plain(LsArena *arena, const LsProb *p)
{
    LsSeq seq = {ls_arena_alloc(arena, p->n + 1u, sizeof *seq.node), 0};
    for (uint32_t i = 0; i < p->n; i++)
        if (p->needed[i])
            seq.node[seq.n++] = i;
    ls_seq_place_updates(arena, p, &seq);
    return seq;
}

void ls_seq_drop_dead(LsArena *scratch, const LsProb *p, LsSeq *seq)
{
    bool *want = ls_arena_alloc(scratch, p->nt + 1u, sizeof *want);
    bool *done = ls_arena_alloc(scratch, p->n + 1u, sizeof *done);
    for (uint32_t t = 0; t < p->nt; t++)
        want[t] = p->dag->tensor[t].output;
    uint32_t to = seq->n;                           /* kept runs collect at the end of the array */
    for (uint32_t s = seq->n; s-- > 0;) {
        uint32_t v = seq->node[s];
        const LsDagNode *node = &p->dag->node[v];
        bool keep = (node->required || node->nupd > 0) && !done[v];
        for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)
            keep |= want[p->out.id[k]];
        if (!keep)
            continue;
        done[v] = true;
        for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)
            want[p->out.id[k]] = false;
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
            want[p->in.id[k]] = true;
        seq->node[--to] = v;
    }
    seq->n -= to;
    memmove(seq->node, seq->node + to, seq->n * sizeof *seq->node);
}

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Sets slot[v] to the number of runs of `rest` that must come before update v. Updates keep the
 * list order among them, which is valid, so one pass by id sees earlier updates first. */
static void find_slots(LsArena *scratch, const LsProb *p, const LsSeq *rest, uint32_t *slot)
{
    uint32_t *made = ls_arena_alloc(scratch, p->nt + 1u, sizeof *made);
    uint32_t *last = ls_arena_alloc(scratch, p->n + 1u, sizeof *last);
    for (uint32_t s = 0; s < rest->n; s++) {
        const uint32_t v = rest->node[s];
        for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)  /* alternatives make it, too */
            if (made[p->out.id[k]] == 0)
                made[p->out.id[k]] = s + 1;
        last[v] = s + 1;
    }
    for (uint32_t v = 0; v < p->n; v++) {
        if (!p->needed[v] || p->role[v] != LS_ROLE_UPDATE)
            continue;
        uint32_t at = 0;
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
            uint32_t m = p->maker[p->in.id[k]];
            at = later(at, p->role[m] == LS_ROLE_UPDATE ? slot[m] : made[p->in.id[k]]);
        }
        for (uint32_t k = p->before.at[v]; k < p->before.at[v + 1]; k++) {
            uint32_t m = p->before.id[k];
            at = later(at, p->role[m] == LS_ROLE_UPDATE ? slot[m] : last[m]);
        }
        slot[v] = at;
    }
}

void ls_seq_place_updates(LsArena *scratch, const LsProb *p, LsSeq *seq)
{
    LsSeq rest = {ls_arena_alloc(scratch, seq->n + 1u, sizeof *rest.node), 0};
    for (uint32_t s = 0; s < seq->n; s++)
        if (p->role[seq->node[s]] != LS_ROLE_UPDATE)
            rest.node[rest.n++] = seq->node[s];
    uint32_t *slot = ls_arena_alloc(scratch, p->n + 1u, sizeof *slot);
    LsPairs in_slot = {0};
    find_slots(scratch, p, &rest, slot);
    for (uint32_t v = 0; v < p->n; v++)
        if (p->needed[v] && p->role[v] == LS_ROLE_UPDATE)
            ls_pairs_add(scratch, &in_slot, slot[v], v);
    LsRows update = ls_rows(scratch, &in_slot, rest.n + 1);
    seq->n = 0;
    for (uint32_t s = 0; s <= rest.n; s++) {        /* slot s lies before run s */
        for (uint32_t k = update.at[s]; k < update.at[s + 1]; k++)
            seq->node[seq->n++] = update.id[k];
        if (s < rest.n)
            seq->node[seq->n++] = rest.node[s];
    }
}

/* ---- canonical strategies ---- */

/* Returns, by node, the block that it belongs to, forward or backward. A backward node never runs
 * before its operands: blocks run backward from the last one. */
static uint32_t *find_blocks(LsArena *arena, const LsForward *f, const uint64_t *const cut[],
                             uint32_t ncut)
{
    const LsProb *p = f->prob;
    uint32_t *block = ls_arena_alloc(arena, p->n + 1u, sizeof *block);
    for (uint32_t v = 0; v < f->n; v++)
        while (!ls_bit(cut[block[f->node[v]]], v))
            block[f->node[v]]++;
    for (uint32_t i = 0; i < p->n; i++) {
        const LsDagNode *node = &p->dag->node[i];
        if (!p->needed[i] || p->forward[i])
            continue;
        uint32_t b = ncut - 1;
        if (node->of >= 0 && node->of < p->n && p->forward[node->of])
            b = block[node->of];
        for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++) {
            uint32_t m = p->maker[p->in.id[k]];
            if (!p->forward[m] && block[m] < b)
                b = block[m];
        }
        block[i] = b;
    }
    return block;
}

static bool kept(const LsForward *f, const uint64_t *cut, uint32_t v)
{
    if (ls_bit(f->stuck, v))
        return true;
    for (uint32_t k = f->succ.at[v]; k < f->succ.at[v + 1]; k++)
        if (!ls_bit(cut, f->succ.id[k]))
            return true;
    return false;
}

LsSeq ls_seq_canonical(LsArena *arena, const LsForward *f, const uint64_t *const cut[],
                       uint32_t ncut)
{
    const LsProb *p = f->prob;
    const uint32_t *block = find_blocks(arena, f, cut, ncut);
    LsPairs needed = {0};
    for (uint32_t i = 0; i < p->n; i++)
        if (p->needed[i])
            ls_pairs_add(arena, &needed, block[i], i);
    LsRows by = ls_rows(arena, &needed, ncut);      /* by block */
    LsSeq seq = {ls_arena_alloc(arena, p->n + f->n + 1u, sizeof *seq.node), 0};
    for (uint32_t k = 0; k < by.at[ncut]; k++)
        if (p->forward[by.id[k]])
            seq.node[seq.n++] = by.id[k];
    for (uint32_t b = ncut; b-- > 0;) {
        for (uint32_t k = by.at[b]; b + 1 < ncut && k < by.at[b + 1]; k++)
            if (p->forward[by.id[k]] && !kept(f, cut[b], f->vertex[by.id[k]]))
                seq.node[seq.n++] = by.id[k];
        for (uint32_t k = by.at[b]; k < by.at[b + 1]; k++)
            if (!p->forward[by.id[k]])
                seq.node[seq.n++] = by.id[k];
    }
    ls_seq_drop_dead(arena, p, &seq);
    ls_seq_place_updates(arena, p, &seq);
    return seq;
}
