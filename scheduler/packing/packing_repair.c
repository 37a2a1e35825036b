/* scheduler/packing/packing_repair.c -- ejection with rising prices, after the guided ejection
 * search of Nagata and Bräysy (2009) for vehicle routes.
 *
 * Boxes that end above the capacity are taken out and placed again, the dearest first. A box goes
 * to the lowest free place. If there is none, it goes where the boxes in its way cost least, and
 * these are taken out in turn. A box that had to displace others rises in price. So boxes that are
 * hard to place stay, and the others find places around them. */
#include "scheduler/packing/packing_repair.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define OUT INT64_MIN           /* the place of a box that is taken out */

/* the bottom or top of a placed box */
typedef struct Wall { int64_t at; uint32_t box, from, to; } Wall;

typedef struct Eject {
    const LsBox *box;
    int64_t cap;
    int64_t *place;             /* by box */
    double *price;              /* by box */
    uint32_t *out, nout;        /* boxes to be placed */
    Wall *low, *high; uint32_t n;           /* bottoms and tops of placed boxes, rising */
    Wall *near_low, *near_high; uint32_t nnear;     /* those among them that overlap the current box
                                                     * in time */
    uint64_t rnd;               /* state of the generator; never 0 */
    int64_t work;
} Eject;

/* Returns a factor from 1 to 1.5 that varies the choice among places of about equal cost. */
static double noise(Eject *e)
{
    e->rnd ^= e->rnd >> 12;                         /* xorshift64* (Vigna 2016) */
    e->rnd ^= e->rnd << 25;
    e->rnd ^= e->rnd >> 27;
    uint64_t high = (e->rnd * UINT64_C(0x2545f4914f6cdd1d)) >> 54;
    return 1 + (double)high / 2048;
}

/* Returns the first price of a box, and its rise: its size times its sections. */
static double worth(const LsBox *x)
{
    return (double)x->size * ((double)x->to - x->from + 1);
}

static uint32_t find_meeting(const Wall *all, uint32_t n, const LsBox *x, Wall *out)
{
    uint32_t m = 0;
    for (uint32_t k = 0; k < n; k++) {              /* without branches */
        out[m] = all[k];
        m += all[k].from <= x->to && all[k].to >= x->from;
    }
    return m;
}

/* Returns the first wall at or above `at`. */
static uint32_t find_wall(const Wall *all, uint32_t n, int64_t at)
{
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (all[mid].at < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void put_wall(Wall *all, uint32_t n, Wall w)
{
    uint32_t k = find_wall(all, n, w.at);
    memmove(all + k + 1, all + k, (n - k) * sizeof *all);
    all[k] = w;
}

static void take_wall(Wall *all, uint32_t n, int64_t at, uint32_t box)
{
    uint32_t k = find_wall(all, n, at);
    while (all[k].box != box)
        k++;
    memmove(all + k, all + k + 1, (n - 1 - k) * sizeof *all);
}

static void enter(Eject *e, uint32_t k, int64_t at)
{
    const LsBox *x = &e->box[k];
    put_wall(e->low, e->n, (Wall){at, k, x->from, x->to});
    put_wall(e->high, e->n, (Wall){at + x->size, k, x->from, x->to});
    e->n++;
    e->place[k] = at;
}

static void leave(Eject *e, uint32_t k)
{
    take_wall(e->low, e->n, e->place[k], k);
    take_wall(e->high, e->n, e->place[k] + e->box[k].size, k);
    e->n--;
    e->place[k] = OUT;
    e->out[e->nout++] = k;
}

/* Returns the next place above `at` that touches a wall from below or above; `top` is the last
 * place. */
static int64_t next_place(const Eject *e, int64_t at, int64_t size, int64_t top, uint32_t *below,
                          uint32_t *above)
{
    while (*below < e->nnear && e->near_low[*below].at - size <= at)
        (*below)++;
    while (*above < e->nnear && e->near_high[*above].at <= at)
        (*above)++;
    int64_t a = *below < e->nnear ? e->near_low[*below].at - size : INT64_MAX;
    int64_t b = *above < e->nnear ? e->near_high[*above].at : INT64_MAX;
    int64_t next = a < b ? a : b;
    return at < top && next > top ? top : next;
}

/* Returns the place where the boxes in the way cost least together; *free: no box is in the way. */
static int64_t cheapest_place(Eject *e, uint32_t me, bool *free)
{
    int64_t size = e->box[me].size, top = e->cap - size, best = 0;
    uint32_t in = 0, past = 0, below = 0, above = 0;
    double sum = 0, least = -1;
    for (int64_t at = 0; at <= top; at = next_place(e, at, size, top, &below, &above)) {
        while (in < e->nnear && e->near_low[in].at < at + size)
            sum += e->price[e->near_low[in++].box];
        while (past < e->nnear && e->near_high[past].at <= at)
            sum -= e->price[e->near_high[past++].box];
        *free = in == past;
        if (*free)
            return at;
        double cost = sum * noise(e);
        if (least < 0 || cost < least) {
            least = cost;
            best = at;
        }
    }
    return best;
}

static void place_again(Eject *e, uint32_t me)
{
    const LsBox *x = &e->box[me];
    bool free = true;
    e->nnear = find_meeting(e->low, e->n, x, e->near_low);
    find_meeting(e->high, e->n, x, e->near_high);
    e->work -= e->n + 4 * (int64_t)e->nnear;
    int64_t at = cheapest_place(e, me, &free);
    if (!free)
        e->price[me] += worth(x);
    for (uint32_t k = 0; !free && k < e->nnear && e->near_low[k].at < at + x->size; k++) {
        uint32_t other = e->near_low[k].box;
        if (e->near_low[k].at + e->box[other].size > at)
            leave(e, other);
    }
    enter(e, me, at);
}

static uint32_t take_dearest(Eject *e)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < e->nout; k++)
        if (e->price[e->out[k]] > e->price[e->out[best]])
            best = k;
    e->work -= e->nout;
    uint32_t box = e->out[best];
    e->out[best] = e->out[--e->nout];
    return box;
}

static int by_height(const void *x, const void *y)
{
    const Wall *a = x, *b = y;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->box < b->box ? -1 : a->box > b->box;
}

/* Enters all boxes at their places, then takes out those that end too high. */
static void start(Eject *e, uint32_t from, uint32_t to, const int64_t *place)
{
    for (uint32_t k = from; k < to; k++) {
        const LsBox *x = &e->box[k];
        e->price[k] = worth(x);
        e->place[k] = place[k];
        e->low[e->n] = (Wall){place[k], k, x->from, x->to};
        e->high[e->n++] = (Wall){place[k] + x->size, k, x->from, x->to};
    }
    qsort(e->low, e->n, sizeof *e->low, by_height);
    qsort(e->high, e->n, sizeof *e->high, by_height);
    for (uint32_t k = from; k < to; k++)
        if (place[k] > e->cap - e->box[k].size)
            leave(e, k);
}

bool ls_offsets_eject(LsArena *arena, const LsBoxes *b, uint32_t from, uint32_t to, int64_t cap,
                      int64_t *work, int64_t *place)
{
    assert(from <= to && to <= b->n);
    uint32_t n = to - from;
    Eject e = {.box = b->box, .cap = cap, .rnd = UINT64_C(0x9e3779b97f4a7c15), .work = *work};
    for (uint32_t k = from; k < to; k++)
        if (b->box[k].size > cap)
            return false;
    e.place = ls_arena_alloc(arena, b->n + 1u, sizeof *e.place);
    e.price = ls_arena_alloc(arena, b->n + 1u, sizeof *e.price);
    e.out = ls_arena_alloc(arena, n + 1u, sizeof *e.out);
    e.low = ls_arena_alloc(arena, n + 1u, sizeof *e.low);
    e.high = ls_arena_alloc(arena, n + 1u, sizeof *e.high);
    e.near_low = ls_arena_alloc(arena, n + 1u, sizeof *e.near_low);
    e.near_high = ls_arena_alloc(arena, n + 1u, sizeof *e.near_high);
    start(&e, from, to, place);
    while (e.nout > 0 && e.work > 0)
        place_again(&e, take_dearest(&e));
    *work = e.work;
    if (e.nout > 0)
        return false;
    memcpy(place + from, e.place + from, n * sizeof *place);
    return true;
}
