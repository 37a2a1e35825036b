/* scheduler/strategies/evict_by_next_use.c -- schedules of one pass over the list of nodes in a
 * given room: what does not fit is thrown away, and made again when it is read.
 *
 * The node that runs next has all its operands made, if need be by other nodes that run again. If
 * the results do not fit into the room, values leave it: those first that are large, are read late
 * and are cheap to make again. A value is read by nodes that have not run yet, and by those that
 * will make values again which were thrown away before. Other strategies choose what is kept at
 * the turn from forward to backward or between blocks; in graphs of many equal parts, as those of
 * --tiles, what is kept changes all the time, and searches of single moves hardly come there.
 *
 * Source: the greedy rule of Kirisame et al., Dynamic Tensor Rematerialization (ICLR 2021), with
 * the next read, which is known here, in place of the last one. */
#include "scheduler/order/run_order.h"
#include "scheduler/strategies/published_strategies.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define LS_NEVER UINT32_MAX

typedef struct Room {
    const LsProb *p;
    LsArena *arena;
    LsRows reads;               /* by tensor: the nodes of the list that read it, in order */
    double *time;               /* by node: of all before it, each once */
    uint32_t *next;             /* by tensor: its next read, in `reads` */
    bool *there;                /* by tensor */
    uint32_t *pins;             /* by tensor: nodes that are about to read it */
    uint32_t *need;             /* by tensor: the node before which it is read next, or LS_NEVER */
    double *again;              /* by node: cost of making its results once more */
    uint32_t now;               /* node of the list that is about to run */
    int64_t bytes, most;        /* there; that shall be there */
    double power;               /* of the cost of a value, against its bytes */
    uint32_t near;              /* so many nodes of the list ahead, what they read stays; 0: it may
                                 * leave */
    LsSeq seq;
    uint32_t room, longest;     /* of seq */
} Room;

/* The next read in the list; outputs are read at its end. */
static uint32_t next_read(const Room *z, uint32_t t)
{
    return z->next[t] < z->reads.at[t + 1] ? z->reads.id[z->next[t]]
           : z->p->dag->tensor[t].output     ? z->p->n - 1
                                             : LS_NEVER;
}

/* Sets need and again, for what is there now. */
static void look_ahead(Room *z)
{
    const LsProb *p = z->p;
    for (uint32_t t = 0; t < p->nt; t++)
        z->need[t] = next_read(z, t);
    for (uint32_t v = z->now; v-- > 0;) {
        uint32_t when = LS_NEVER;
        for (uint32_t k = p->out.at[v]; ls_prob_is_listed(p, v) && k < p->out.at[v + 1]; k++)
            if (!z->there[p->out.id[k]] && z->need[p->out.id[k]] < when)
                when = z->need[p->out.id[k]];
        for (uint32_t k = p->in.at[v]; when != LS_NEVER && k < p->in.at[v + 1]; k++)
            if (when < z->need[p->in.id[k]])
                z->need[p->in.id[k]] = when;
    }
    for (uint32_t v = 0; v < z->now; v++) {
        z->again[v] = p->stuck[v] ? DBL_MAX : p->cost[v];
        for (uint32_t k = p->in.at[v]; z->again[v] < DBL_MAX && k < p->in.at[v + 1]; k++) {
            const uint32_t t = p->in.id[k];
            if (!z->there[t] && p->maker[t] != LS_NO_ID) {
                const double more = z->again[p->maker[t]];
                z->again[v] = more < DBL_MAX ? z->again[v] + more : DBL_MAX;
            }
        }
        if (z->again[v] < DBL_MAX && z->again[v] > z->time[v + 1])
            z->again[v] = z->time[v + 1];   /* operands of several nodes were counted for each */
    }
}

static void leave(Room *z, uint32_t t)
{
    z->there[t] = false;
    z->bytes -= z->p->size[t];
}

/* Small values stay: where the room is too small for what a node reads and writes, all would leave,
 * statistics too, whose parts are most of a step. */
static bool is_small(const Room *z, uint32_t t) { return z->p->size[t] <= z->most / 1024; }

/* How well it would be to throw t away; 0: it must stay. */
static double value_of(const Room *z, uint32_t t)
{
    const uint32_t m = z->p->maker[t];
    if (!z->there[t] || z->pins[t] > 0 || is_small(z, t) || m == LS_NO_ID
        || z->again[m] >= DBL_MAX || (z->near > 0 && next_read(z, t) <= z->now + z->near))
        return 0;
    const double later = z->time[z->need[t]] - z->time[z->now] + 1;
    const double cost = z->again[m] / (z->p->base_cost + 1) + 1e-6;
    return later * (double)z->p->size[t] / pow(cost, z->power);
}

/* Throws away until `more` bytes fit, as far as something may leave. */
static void make_room(Room *z, int64_t more)
{
    enum { FRESH = 4 };         /* values that leave by one look ahead */
    const LsProb *p = z->p;
    while (z->bytes + more > z->most) {
        look_ahead(z);
        for (uint32_t t = 0; t < p->nt; t++)
            if (z->there[t] && z->need[t] == LS_NEVER && z->pins[t] == 0)
                leave(z, t);
        for (int k = 0; k < FRESH && z->bytes + more > z->most; k++) {
            uint32_t best = LS_NO_ID;
            double most = 0;
            for (uint32_t t = 0; t < p->nt; t++) {
                const double value = value_of(z, t);
                if (value > most) {
                    most = value;
                    best = t;
                }
            }
            if (best == LS_NO_ID)
                return;
            leave(z, best);
        }
    }
}

static void run(Room *z, uint32_t v)
{
    const LsProb *p = z->p;
    int64_t more = p->workspace[v];
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)
        more += z->there[p->out.id[k]] ? 0 : p->size[p->out.id[k]];
    make_room(z, more);
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++) {
        const uint32_t t = p->out.id[k];
        z->bytes += z->there[t] ? 0 : p->size[t];
        z->there[t] = true;
    }
    z->seq.node = ls_arena_grow(z->arena, z->seq.node, z->seq.n, z->seq.n + 1u,
                                sizeof *z->seq.node, &z->room);
    z->seq.node[z->seq.n++] = v;
}

static void pin(Room *z, uint32_t v, int by)
{
    for (uint32_t k = z->p->in.at[v]; k < z->p->in.at[v + 1]; k++)
        z->pins[z->p->in.id[k]] += (uint32_t)by;
}

/* Runs node v, and before it what makes operands that are not there, one after the other, so that
 * few values are there at a time: first those whose place a result takes. */
static void run_whole(Room *z, uint32_t v)
{
    const LsProb *p = z->p;
    pin(z, v, 1);
    for (int late = 0; late < 2; late++)
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1] && z->seq.n < z->longest; k++) {
            const uint32_t t = p->in.id[k];
            if (!z->there[t] && p->maker[t] != LS_NO_ID && (late || ls_prob_takes_place(p, v, t)))
                run_whole(z, p->maker[t]);
        }
    run(z, v);
    pin(z, v, -1);
}

/* Fills z->seq; false: it became too long. */
static bool pass(Room *z)
{
    const LsProb *p = z->p;
    memset(z->there, 0, p->nt * sizeof *z->there);
    memset(z->pins, 0, p->nt * sizeof *z->pins);
    memcpy(z->next, z->reads.at, p->nt * sizeof *z->next);
    z->bytes = 0;
    z->seq.n = 0;
    for (uint32_t v = 0; v < p->n && z->seq.n < z->longest; v++) {
        if (!ls_prob_is_listed(p, v))
            continue;
        z->now = v;
        run_whole(z, v);
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
            z->next[p->in.id[k]]++;
    }
    return z->seq.n < z->longest;
}

static void offer(LsCandidates *pool, const Room *z)
{
    const LsProb *p = z->p;
    LsSeq seq = {ls_arena_alloc(pool->tmp, z->seq.n + p->n + 1u, sizeof *seq.node), z->seq.n};
    memcpy(seq.node, z->seq.node, z->seq.n * sizeof *seq.node);
    ls_seq_place_updates(pool->tmp, p, &seq);
    ls_seq_drop_dead(pool->tmp, p, &seq);
    ls_candidates_offer_moved(pool, p, &seq, "auto");
}

static Room new_room(LsArena *arena, const LsProb *p)
{
    enum { RUNS = 3 };          /* of a node, on average, at most */
    Room z = {.p = p, .arena = arena, .longest = RUNS * p->n};
    z.next = ls_arena_alloc(arena, p->nt + 1u, sizeof *z.next);
    z.there = ls_arena_alloc(arena, p->nt + 1u, sizeof *z.there);
    z.pins = ls_arena_alloc(arena, p->nt + 1u, sizeof *z.pins);
    z.need = ls_arena_alloc(arena, p->nt + 1u, sizeof *z.need);
    z.again = ls_arena_alloc(arena, p->n + 1u, sizeof *z.again);
    z.time = ls_arena_alloc(arena, p->n + 1u, sizeof *z.time);
    for (uint32_t v = 0; v < p->n; v++)
        z.time[v + 1] = z.time[v] + (ls_prob_is_listed(p, v) ? p->cost[v] : 0);
    z.reads = ls_prob_reads(arena, p);
    return z;
}

void ls_strategy_evict(LsCandidates *pool, const LsProb *p)
{
    enum { STEPS = 24, WAYS = 3, FAILURES = 2, MOST = 8000 };   /* MOST: nodes, for its time */
    static const struct { double power; uint32_t near; } ways[WAYS] = {{1, 0}, {1.5, 0}, {1, 12}};
    if (p->dag->pass == NULL || p->n > MOST)
        return;
    LsArena *arena = ls_arena_new();                /* the pool's is renewed between offers */
    Room z = new_room(arena, p);
    double most = (double)pool->cand[0].peak;
    for (int k = 0, failures = 0; k < STEPS && failures < FAILURES; k++) {
        bool any = false;
        most *= 0.88;
        z.most = (int64_t)most;
        for (int way = 0; way < WAYS; way++) {
            z.power = ways[way].power;
            z.near = ways[way].near;
            if (pass(&z)) {
                any = true;
                offer(pool, &z);
            }
        }
        failures = any ? 0 : failures + 1;
    }
    ls_arena_free(arena);
}
