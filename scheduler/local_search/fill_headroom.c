/* scheduler/local_search/fill_headroom.c -- see the header.
 *
 * In graphs of equal layers values have few sizes, and a search ends with less free memory than the
 * smallest value. In a large graph annealing has few moves per node, and exchanges two small values
 * for one of twice the size only by luck. So this search prices all kept values and tries the
 * cheapest per byte in turn. */
#include "scheduler/local_search/fill_headroom.h"

#include <stdlib.h>

#include "scheduler/order/moves_parts.h"

/* A recomputation that may be removed, or a tensor kept at the turn with a way to let go of it;
 * price: the added cost per byte. */
typedef struct Item { double price; uint32_t id, node; LsRelief way; } Item;

static int by_price(const void *x, const void *y)
{
    const Item *a = x, *b = y;
    return a->price != b->price ? (a->price < b->price ? -1 : 1)
         : a->id < b->id ? -1 : a->id > b->id;
}

static int64_t bytes_made(const LsProb *p, uint32_t node)
{
    int64_t bytes = 0;
    for (uint32_t k = p->out.at[node]; k < p->out.at[node + 1]; k++)
        bytes += p->size[p->out.id[k]];
    return bytes;
}

/* Returns the recomputations that can be removed, those first that save most per byte. */
static Item *find_extras(LsArena *arena, const LsMoves *m, uint32_t *n)
{
    const LsTape *t = m->t;
    Item *extra = ls_arena_alloc(arena, t->n + 1u, sizeof *extra);
    *n = 0;
    for (uint32_t r = t->run[LS_TAPE_END].next; r != LS_TAPE_END; r = t->run[r].next) {
        uint32_t v = t->run[r].node;
        int64_t bytes = bytes_made(m->p, v);
        if (bytes > 0 && ls_moves_can_drop(m, r))
            extra[(*n)++] = (Item){.price = -m->p->cost[v] / (double)bytes, .id = r, .node = v};
    }
    qsort(extra, *n, sizeof *extra, by_price);
    return extra;
}

/* Returns the tensors kept at the turn, those first whose relief costs least per byte. */
static Item *find_kept(LsArena *arena, LsMoves *m, uint32_t turn, uint32_t *n)
{
    const double any = 1e300;
    Item *kept = ls_arena_alloc(arena, m->p->nt + 1u, sizeof *kept);
    *n = 0;
    for (uint32_t x = 0; x < m->p->nt; x++) {
        uint32_t next = ls_tape_next_read(m->t, x, turn);
        Item one = {.id = x};
        double cost = next == LS_TAPE_END ? -1 : ls_moves_price_relief(m, x, next, any, &one.way);
        one.price = cost / (double)m->p->size[x];
        if (cost >= 0)
            kept[(*n)++] = one;
    }
    qsort(kept, *n, sizeof *kept, by_price);
    return kept;
}

/* Lets go of one tensor and removes those of n recomputations that then fit. Undoes this unless it
 * is cheaper. */
static bool exchange(LsAnneal *s, const Item *kept, const Item *extra, uint32_t n)
{
    LsTape *t = s->t;
    const double before = t->cost;
    t->nchange = 0;
    bool ok = ls_moves_let_go(s->m, kept->id, &kept->way) && t->bad == 0;
    for (uint32_t k = 0; ok && k < n; k++) {
        uint32_t mark = t->nchange, run = extra[k].id;
        if (t->run[run].node != extra[k].node           /* already removed, or too large */
            || bytes_made(s->p, extra[k].node) > s->m->target - ls_tape_peak(t))
            continue;
        if (!ls_move_drop(s->m, run) || t->bad > 0 || ls_tape_peak(t) > s->m->target)
            ls_tape_undo(t, mark);
    }
    if (ok && t->cost < before * (1 - 1e-9) && ls_tape_peak(t) <= s->m->target)
        return true;
    ls_tape_undo(t, 0);
    return false;
}

static uint32_t find_turn(const LsTape *t)
{
    uint32_t r = t->run[LS_TAPE_END].next;
    while (r != LS_TAPE_END && t->p->dag->node[t->run[r].node].kind != LS_DAG_BACKWARD)
        r = t->run[r].next;
    return r;
}

void ls_exchange(LsAnneal *s)
{
    enum { MOST = 16 };
    LsArena *arena = ls_arena_new();
    uint32_t turn = find_turn(s->t);
    for (bool found = turn != LS_TAPE_END; found && !s->cut;) {
        uint32_t nextra, nkept;
        const Item *extra = find_extras(arena, s->m, &nextra);
        const Item *kept = find_kept(arena, s->m, turn, &nkept);
        found = false;
        for (uint32_t k = 0; k < nkept && k < MOST && !found && !s->cut; k++) {
            found = exchange(s, &kept[k], extra, nextra);
            s->cut = ls_moves_worked_long(s->m) && ls_moves_out_of_time(s->m, &s->limit);
        }
        if (s->cut)
            break;
        s->cut = ls_moves_out_of_time(s->m, &s->limit);
    }
    s->t->nchange = 0;
    ls_front_offer(&s->front, s->t);
    ls_arena_free(arena);
}
