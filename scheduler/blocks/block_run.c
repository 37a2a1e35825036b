/* scheduler/blocks/block_run.c -- see the header. */
#include "scheduler/blocks/block_run.h"

#include <assert.h>
#include <string.h>

#include "scheduler/order/run_order.h"

LsBlockWork *ls_block_work_new(LsArena *arena, const LsBlocks *b)
{
    const LsProb *p = b->p;
    LsBlockWork *w = ls_arena_alloc(arena, 1, sizeof *w);
    *w = (LsBlockWork){.b = b, .p = b->p, .arena = arena};
    w->there = ls_arena_alloc(arena, p->nt + 1u, sizeof *w->there);
    w->left = ls_arena_alloc(arena, p->nt + 1u, sizeof *w->left);
    w->later = ls_arena_alloc(arena, p->nt + 1u, sizeof *w->later);
    w->taken = ls_arena_alloc(arena, p->nt + 1u, sizeof *w->taken);
    w->mark = ls_arena_alloc(arena, p->n + 1u, sizeof *w->mark);
    w->stack = ls_arena_alloc(arena, p->n + 1u, sizeof *w->stack);
    for (uint32_t t = 0; t < p->nt; t++)
        w->there[t] = true;
    for (uint32_t s = 0; b->n > 0 && s < b->ahead.at[b->n]; s++)
        w->cost += p->cost[b->ahead.id[s]];
    for (uint32_t t = 0; t < p->nt; t++)
        w->bytes += (double)p->size[t];
    return w;
}

/* ---- the backward part ---- */

static void run(LsBlockWork *w, uint32_t v)
{
    w->run = ls_arena_grow(w->arena, w->run, w->nrun, w->nrun + 1u, sizeof *w->run, &w->run_room);
    w->run[w->nrun++] = v;
}

/* Counts down the readers of operands that blocks from `first` on made; values without readers
 * leave memory. */
static void release(LsBlockWork *w, uint32_t v, uint32_t first)
{
    const LsProb *p = w->p;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
        uint32_t t = p->in.id[k];
        bool counts = w->left[t] > 0 && w->b->block[p->maker[t]] >= first;
        if (counts && --w->left[t] == 0 && !p->stuck[p->maker[t]])
            w->there[t] = false;
    }
}

/* Returns whether a value recomputed during the backward part of `block` is held for its
 * readers. */
static bool holds(const LsBlockWork *w, uint32_t t, uint32_t block, bool brief)
{
    uint32_t mine = w->b->block[w->p->maker[t]];
    return w->left[t] > 0 && (!brief || mine == block || w->b->reach[t] > mine);
}

/* Runs, in list order, the nodes needed to recompute t. */
static void make(LsBlockWork *w, uint32_t t, uint32_t block, bool brief)
{
    const LsProb *p = w->p;
    uint32_t n = ls_prob_remake(p, t, w->there, w->mark, ++w->stamp, w->stack);
    for (uint32_t k = 0; k < n; k++) {
        run(w, w->stack[k]);
        if (!brief)
            release(w, w->stack[k], w->first);
        for (uint32_t j = p->out.at[w->stack[k]]; j < p->out.at[w->stack[k] + 1]; j++) {
            uint32_t out = p->out.id[j];
            w->there[out] |= out == t || holds(w, out, block, brief);
        }
    }
}

static void run_behind(LsBlockWork *w, uint32_t v, uint32_t block, bool brief)
{
    const LsProb *p = w->p;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
        if (!w->there[p->in.id[k]])
            make(w, p->in.id[k], block, brief);
    run(w, v);
    release(w, v, 0);
}

void ls_block_run_back(LsBlockWork *w, uint32_t from, uint32_t to, bool brief)
{
    w->first = from;
    for (uint32_t k = to; k-- > from;)
        for (uint32_t s = w->b->behind.at[k]; s < w->b->behind.at[k + 1]; s++)
            run_behind(w, w->b->behind.id[s], k, brief);
}

/* Counts the readers of the range's values in its own backward part. */
static void count_readers(LsBlockWork *w, uint32_t from, uint32_t to)
{
    const LsBlocks *b = w->b;
    const LsProb *p = w->p;
    for (uint32_t k = b->made.at[from]; k < b->made.at[to]; k++)
        w->left[b->made.id[k]] = 0;
    for (uint32_t s = b->behind.at[from]; s < b->behind.at[to]; s++)
        for (uint32_t j = p->in.at[b->behind.id[s]]; j < p->in.at[b->behind.id[s] + 1]; j++) {
            uint32_t place = b->place[p->in.id[j]];
            if (place != LS_NO_ID && place >= b->made.at[from])
                w->left[p->in.id[j]]++;
        }
}

/* Adds the nodes that will run again to the readers of the range's values. */
static void count_again(LsBlockWork *w, uint32_t from, uint32_t to)
{
    const LsBlocks *b = w->b;
    const LsProb *p = w->p;
    uint32_t n = 0;
    w->stamp++;
    for (uint32_t k = b->made.at[from]; k < b->made.at[to]; k++) {
        uint32_t t = b->made.id[k], m = p->maker[t];
        if (!w->there[t] && w->left[t] > 0 && w->mark[m] != w->stamp) {
            w->mark[m] = w->stamp;
            w->stack[n++] = m;
        }
    }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = p->in.at[w->stack[k]]; j < p->in.at[w->stack[k] + 1]; j++) {
            uint32_t t = p->in.id[j], m = p->maker[t];
            if (b->block[m] < from)
                continue;
            w->left[t]++;
            if (!w->there[t] && w->mark[m] != w->stamp) {
                w->mark[m] = w->stamp;
                w->stack[n++] = m;
            }
        }
}

void ls_block_set_kept(LsBlockWork *w, uint32_t from, uint32_t to, const LsKeepOption *o)
{
    const LsBlocks *b = w->b;
    for (uint32_t k = b->made.at[from]; k < b->made.at[to]; k++)
        w->there[b->made.id[k]] = o->keep[k - b->made.at[from]];
    count_readers(w, from, to);
    if (!o->brief)
        count_again(w, from, to);
}

/* Runs the blocks forward; again: without stuck nodes, which have run before. */
static void run_ahead(LsBlockWork *w, uint32_t from, uint32_t to, bool again)
{
    const LsBlocks *b = w->b;
    for (uint32_t s = b->ahead.at[from]; s < b->ahead.at[to]; s++)
        if (!again || !w->p->stuck[b->ahead.id[s]])
            run(w, b->ahead.id[s]);
    for (uint32_t k = b->made.at[from]; k < b->made.at[to]; k++)
        w->there[b->made.id[k]] = true;
}

LsSeq ls_block_sequence(LsArena *arena, LsBlockWork *w, const LsPhase *phase, uint32_t n)
{
    const LsBlocks *b = w->b;
    w->nrun = 0;
    run_ahead(w, 0, b->n, false);
    for (uint32_t k = 0; k < n; k++) {
        assert(phase[k].from < phase[k].to && phase[k].to <= b->n);
        if (phase[k].option == NULL) {
            run_ahead(w, phase[k].from, phase[k].to, true);
            continue;
        }
        ls_block_set_kept(w, phase[k].from, phase[k].to, phase[k].option);
        ls_block_run_back(w, phase[k].from, phase[k].to, phase[k].option->brief);
    }
    for (uint32_t v = 0; v < w->p->n; v++)          /* so that their operands are not dead */
        if (w->p->needed[v] && w->p->role[v] == LS_ROLE_UPDATE)
            run(w, v);
    for (uint32_t k = 0; k < b->made.at[b->n]; k++) {
        w->there[b->made.id[k]] = true;
        w->left[b->made.id[k]] = 0;
    }
    LsSeq seq = {ls_arena_alloc(arena, w->nrun + w->p->n + 1u, sizeof *seq.node), w->nrun};
    memcpy(seq.node, w->run, w->nrun * sizeof *seq.node);
    ls_seq_drop_dead(arena, w->p, &seq);
    ls_seq_place_updates(arena, w->p, &seq);
    return seq;
}
