/* scheduler/blocks/block_cuts.c -- see the header. */
#include "scheduler/blocks/block_cuts.h"

#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"
#include "scheduler/graph/backward_start.h"

typedef struct Cutting {
    LsArena *arena;
    LsBlocks *b;
    bool *back;                 /* by node */
    uint32_t *line, nline;      /* nodes before the turn */
    int64_t *cross;             /* by place in line, plus one: bytes that cross before it */
    uint32_t *cut, ncut;        /* places where a block begins; the first is 0 */
} Cutting;

static void find_line(Cutting *c)
{
    const LsProb *p = c->b->p;
    for (uint32_t v = 0; v < p->n; v++)
        if (p->needed[v] && !c->back[v] && p->role[v] != LS_ROLE_UPDATE) {
            c->b->rank[v] = c->nline;
            c->line[c->nline++] = v;
        }
}

static void find_crossing(Cutting *c)
{
    const LsProb *p = c->b->p;
    uint32_t *last = ls_arena_alloc(c->arena, p->nt + 1u, sizeof *last);
    for (uint32_t s = 0; s < c->nline; s++)
        for (uint32_t k = p->in.at[c->line[s]]; k < p->in.at[c->line[s] + 1]; k++)
            last[p->in.id[k]] = s;
    for (uint32_t s = 0; s < c->nline; s++)
        for (uint32_t k = p->out.at[c->line[s]]; k < p->out.at[c->line[s] + 1]; k++) {
            uint32_t t = p->out.id[k];
            if (last[t] > s) {
                c->cross[s + 1] += p->size[t];
                c->cross[last[t] + 1] -= p->size[t];
            }
        }
    for (uint32_t s = 1; s <= c->nline; s++)
        c->cross[s] += c->cross[s - 1];
}

/* Cuts at the bottom of each valley of the crossing bytes, ignoring shallow valleys. */
static void find_valleys(Cutting *c)
{
    const double deep = 1.04;
    uint32_t low = 0;
    bool falling = false;
    int64_t high = 0;
    c->cut[c->ncut++] = 0;
    for (uint32_t s = 1; s < c->nline; s++) {
        int64_t now = c->cross[s];
        if (falling && (double)now > deep * (double)c->cross[low]) {
            c->cut[c->ncut++] = low;
            falling = false;
            high = now;
        } else if (falling && now < c->cross[low]) {
            low = s;
        } else if (!falling && (double)high > deep * (double)now) {
            falling = true;
            low = s;
        } else if (!falling && now > high) {
            high = now;
        }
    }
    c->cut[c->ncut] = c->nline;
}

static void cut_everywhere(Cutting *c)
{
    for (uint32_t s = 0; s < c->nline; s++)
        c->cut[c->ncut++] = s;
    c->cut[c->ncut] = c->nline;
}

/* Joins the two neighbours of least joint cost until at most `most` blocks remain. */
static void join(Cutting *c, uint32_t most)
{
    const LsProb *p = c->b->p;
    double *sum = ls_arena_alloc(c->arena, c->nline + 1u, sizeof *sum);
    for (uint32_t s = 0; s < c->nline; s++)
        sum[s + 1] = sum[s] + p->cost[c->line[s]];
    while (c->ncut > most) {
        uint32_t best = 1;
        double least = 1e300;
        for (uint32_t k = 1; k < c->ncut; k++) {
            double cost = sum[c->cut[k + 1]] - sum[c->cut[k - 1]];
            if (cost < least) {
                least = cost;
                best = k;
            }
        }
        memmove(c->cut + best, c->cut + best + 1, (c->ncut - best) * sizeof *c->cut);
        c->ncut--;
    }
}

/* Returns the block of a backward node: the block of the node it differentiates, else the last
 * block whose values it reads. As blocks run backward from the last, the block is never later than
 * the blocks of the backward values it reads. */
static uint32_t block_behind(const LsBlocks *b, uint32_t v)
{
    const LsProb *p = b->p;
    int64_t of = p->dag->node[v].of;
    uint32_t most = 0, block = b->n - 1;
    bool known = of >= 0 && of < (int64_t)p->n && b->rank[of] != LS_NO_ID, reads = false;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++) {
        uint32_t m = p->maker[p->in.id[k]];
        if (b->rank[m] == LS_NO_ID) {
            block = b->block[m] < block ? b->block[m] : block;
            continue;
        }
        most = b->block[m] > most ? b->block[m] : most;
        reads = true;
    }
    if (known)
        most = b->block[of];
    return (known || reads) && most < block ? most : block;
}

/* Returns the nodes of each block, in list order. */
static LsRows rows_of_blocks(LsArena *arena, const LsBlocks *b, bool ahead)
{
    LsPairs of = {0};
    for (uint32_t v = 0; v < b->p->n; v++)
        if (b->block[v] != LS_NO_ID && (b->rank[v] != LS_NO_ID) == ahead)
            ls_pairs_add(arena, &of, b->block[v], v);
    return ls_rows(arena, &of, b->n);
}

typedef struct Spot { uint32_t key, at, node; } Spot;

static int by_key(const void *x, const void *y)
{
    const Spot *a = x, *b = y;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Moves leaves to right after the last backward value they read is made. Their operands then die
 * with their other readers and are not recomputed for the leaves. */
static void put_leaves_forward(LsArena *arena, LsBlocks *b)
{
    const LsProb *p = b->p;
    Spot *spot = ls_arena_alloc(arena, p->n + 1u, sizeof *spot);
    uint32_t *place = ls_arena_alloc(arena, p->n + 1u, sizeof *place);     /* by node, from 1 */
    for (uint32_t s = 0; s < b->behind.at[b->n]; s++)
        place[b->behind.id[s]] = s + 1;
    for (uint32_t k = 0; k < b->n; k++) {
        uint32_t first = b->behind.at[k], n = b->behind.at[k + 1] - first;
        for (uint32_t s = 0; s < n; s++) {
            uint32_t v = b->behind.id[first + s];
            spot[s] = (Spot){2 * (first + s + 1), s, v};
            if (p->role[v] != LS_ROLE_LEAF)
                continue;
            spot[s].key = 2 * first + 1;
            for (uint32_t j = p->in.at[v]; j < p->in.at[v + 1]; j++) {
                uint32_t m = p->maker[p->in.id[j]];
                if (b->block[m] == k && 2 * place[m] + 1 > spot[s].key)
                    spot[s].key = 2 * place[m] + 1;
            }
        }
        qsort(spot, n, sizeof *spot, by_key);
        for (uint32_t s = 0; s < n; s++)
            b->behind.id[first + s] = spot[s].node;
    }
}

static void assign(Cutting *c)
{
    LsBlocks *b = c->b;
    const LsProb *p = b->p;
    for (uint32_t k = 0; k < c->ncut; k++)
        for (uint32_t s = c->cut[k]; s < c->cut[k + 1]; s++)
            b->block[c->line[s]] = k;
    for (uint32_t v = 0; v < p->n; v++)
        if (c->back[v] && p->role[v] != LS_ROLE_UPDATE)
            b->block[v] = block_behind(b, v);
    b->ahead = rows_of_blocks(c->arena, b, true);
    b->behind = rows_of_blocks(c->arena, b, false);
    put_leaves_forward(c->arena, b);
}

static void find_tensors(LsArena *arena, LsBlocks *b)
{
    const LsProb *p = b->p;
    LsPairs made = {0};
    for (uint32_t s = 0; s < b->ahead.at[b->n]; s++) {
        uint32_t v = b->ahead.id[s];
        for (uint32_t j = p->out.at[v]; j < p->out.at[v + 1]; j++) {
            b->place[p->out.id[j]] = made.n;
            b->reach[p->out.id[j]] = b->block[v];
            ls_pairs_add(arena, &made, b->block[v], p->out.id[j]);
        }
    }
    b->made = ls_rows(arena, &made, b->n);
    for (uint32_t v = 0; v < p->n; v++)
        for (uint32_t k = p->in.at[v]; b->block[v] != LS_NO_ID && k < p->in.at[v + 1]; k++) {
            uint32_t t = p->in.id[k];
            if (b->place[t] == LS_NO_ID)
                continue;
            b->reach[t] = b->block[v] > b->reach[t] ? b->block[v] : b->reach[t];
            b->reads[t] += b->rank[v] == LS_NO_ID;
        }
    for (uint32_t t = 0; t < p->nt; t++)
        if (p->dag->tensor[t].output)
            b->reach[t] = b->n;
}

/* Row k: the tensors made behind the turn by block k or a later one and read by an earlier
 * block. */
static void find_cross(LsArena *arena, LsBlocks *b)
{
    const LsProb *p = b->p;
    LsArena *tmp = ls_arena_new();
    uint32_t *until = ls_arena_alloc(tmp, p->nt + 1u, sizeof *until);
    LsPairs cross = {0};        /* many where blocks are small */
    for (uint32_t t = 0; t < p->nt; t++)
        until[t] = p->dag->tensor[t].output ? 0 : LS_NO_ID;     /* the block plus one */
    for (uint32_t v = 0; v < p->n; v++)
        for (uint32_t k = p->in.at[v]; b->block[v] != LS_NO_ID && k < p->in.at[v + 1]; k++)
            if (b->block[v] + 1 < until[p->in.id[k]])
                until[p->in.id[k]] = b->block[v] + 1;
    for (uint32_t t = 0; t < p->nt; t++) {
        uint32_t m = p->maker[t];
        if (m == LS_NO_ID || b->rank[m] != LS_NO_ID || b->block[m] == LS_NO_ID)
            continue;
        for (uint32_t k = until[t]; k <= b->block[m]; k++)
            ls_pairs_add(tmp, &cross, k, t);
    }
    b->cross = ls_rows(arena, &cross, b->n + 1);
    ls_arena_free(tmp);
}

LsBlocks *ls_blocks_new(LsArena *arena, const LsProb *p, uint32_t most, LsBlockCuts cuts)
{
    LsBlocks *b = ls_arena_alloc(arena, 1, sizeof *b);
    Cutting c = {.arena = arena, .b = b};
    b->p = p;
    b->rank = ls_arena_alloc(arena, p->n + 1u, sizeof *b->rank);
    b->place = ls_arena_alloc(arena, p->nt + 1u, sizeof *b->place);
    b->block = ls_arena_alloc(arena, p->n + 1u, sizeof *b->block);
    b->reach = ls_arena_alloc(arena, p->nt + 1u, sizeof *b->reach);
    b->reads = ls_arena_alloc(arena, p->nt + 1u, sizeof *b->reads);
    memset(b->rank, 0xff, p->n * sizeof *b->rank);
    memset(b->place, 0xff, p->nt * sizeof *b->place);
    memset(b->block, 0xff, p->n * sizeof *b->block);
    c.back = ls_arena_alloc(arena, p->n + 1u, sizeof *c.back);
    c.line = ls_arena_alloc(arena, p->n + 1u, sizeof *c.line);
    c.cut = ls_arena_alloc(arena, p->n + 2u, sizeof *c.cut);
    c.cross = ls_arena_alloc(arena, p->n + 2u, sizeof *c.cross);
    if (!ls_turn_mark(p, c.back))
        return b;
    find_line(&c);
    if (c.nline == 0)
        return b;
    find_crossing(&c);
    if (cuts == LS_CUT_VALLEYS)
        find_valleys(&c);
    else
        cut_everywhere(&c);
    join(&c, most);
    b->n = c.ncut;
    assign(&c);
    find_tensors(arena, b);
    find_cross(arena, b);
    return b;
}

/* ---- fingerprints of blocks ---- */

typedef struct Print {
    const LsBlocks *b;
    uint32_t from, to, seen;
    uint32_t *number;           /* by tensor made behind the turn: numbered in order of
                                 * appearance */
    uint64_t hash;
} Print;

static void mix(Print *p, uint64_t x)
{
    p->hash = (p->hash ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    p->hash ^= p->hash >> 29;
}

static void mix_tensor(Print *h, uint32_t t)
{
    const LsBlocks *b = h->b;
    uint32_t place = b->place[t], first = b->made.at[h->from];
    mix(h, (uint64_t)b->p->size[t]);
    if (place == LS_NO_ID) {
        if (h->number[t] == LS_NO_ID)
            h->number[t] = h->seen++;
        mix(h, 1 + ((uint64_t)h->number[t] << 2));
    } else if (place >= first && place < b->made.at[h->to]) {
        bool stays = b->reach[t] >= h->to;
        mix(h, 2 + ((uint64_t)(place - first) << 2));
        mix(h, stays ? h->to - h->from : b->reach[t] - h->from);
        mix(h, b->reads[t]);
    } else {
        mix(h, 3);
    }
}

static void mix_node(Print *h, uint32_t v)
{
    const LsProb *p = h->b->p;
    const LsDagNode *node = &p->dag->node[v];
    uint64_t cost;
    memcpy(&cost, &p->cost[v], sizeof cost);
    mix(h, cost);
    mix(h, (uint64_t)p->workspace[v] * 2 + p->stuck[v]);
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
        mix_tensor(h, p->in.id[k]);
    mix(h, p->in.at[v + 1] - p->in.at[v]);
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)
        mix_tensor(h, p->out.id[k]);
    for (uint32_t k = 0; k < node->ninplace; k++) {
        mix_tensor(h, node->inplace[k].in);
        mix_tensor(h, node->inplace[k].out);
    }
}

uint64_t ls_blocks_print(const LsBlocks *b, uint32_t from, uint32_t to, uint32_t *scratch)
{
    Print h = {.b = b, .from = from, .to = to, .number = scratch,
               .hash = LS_FNV_START};
    memset(scratch, 0xff, b->p->nt * sizeof *scratch);
    for (uint32_t k = from; k < to; k++) {
        mix(&h, k - from);
        for (uint32_t s = b->ahead.at[k]; s < b->ahead.at[k + 1]; s++)
            mix_node(&h, b->ahead.id[s]);
    }
    for (uint32_t k = to; k-- > from;)
        for (uint32_t s = b->behind.at[k]; s < b->behind.at[k + 1]; s++)
            mix_node(&h, b->behind.id[s]);
    for (uint32_t s = b->cross.at[from]; s < b->cross.at[from + 1]; s++)
        mix_tensor(&h, b->cross.id[s]);
    return h.hash;
}
