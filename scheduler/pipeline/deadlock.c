/* scheduler/pipeline/deadlock.c -- see the header. */
#include "scheduler/pipeline/deadlock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/reason.h"

static const char letter[] = "FBW";

typedef struct Rank {
    uint32_t step;              /* at which it is */
    bool sends;                 /* it has run the phase, and sends; else it receives */
    uint32_t flow;              /* the next flow to look at */
} Rank;

typedef struct Run {
    const LsFlows *flows;
    const LsRankOrder *order;
    uint32_t ranks, micros, room;
    Rank *rank;
    bool *sent;                 /* by flow and micro-batch */
    uint32_t *held;             /* by sender and receiver: messages in the link */
} Run;

static bool check_order(const LsRankOrder *o, uint32_t rank, uint32_t micros, const LsWhy *why)
{
    LsArena *tmp = ls_arena_new();
    uint8_t *done = ls_arena_alloc(tmp, micros + 1u, 1);
    bool ok = true;
    for (uint32_t k = 0; ok && k < o->n; k++) {
        const LsRankStep *step = &o->step[k];
        ok = step->micro < micros && done[step->micro] == step->phase;
        if (!ok)
            ls_why(why, "rank %" PRIu32 " is to run %c of micro-batch %" PRIu32 " out of its turn", rank, letter[step->phase],
                   step->micro);
        else
            done[step->micro]++;
    }
    for (uint32_t m = 0; ok && m < micros; m++) {
        ok = done[m] == LS_PHASES;
        if (!ok)
            ls_why(why, "rank %" PRIu32 " never runs %c of micro-batch %" PRIu32, rank, letter[done[m]], m);
    }
    ls_arena_free(tmp);
    return ok;
}

/* Whether the flow belongs to what the rank does now: messages of its phase to receive, or to send. */
static bool is_due(const Run *r, uint32_t rank, uint32_t flow)
{
    const LsFlow *f = &r->flows->flow[flow];
    const LsRankStep *step = &r->order[rank].step[r->rank[rank].step];
    return r->rank[rank].sends ? f->from == rank && f->made == step->phase : f->to == rank && f->read == step->phase;
}

/* Moves on to the next message, or past the phase; LS_NO_ID: the order has ended. */
static uint32_t due(Run *r, uint32_t rank)
{
    Rank *at = &r->rank[rank];
    while (at->step < r->order[rank].n) {
        for (; at->flow < r->flows->n; at->flow++)
            if (is_due(r, rank, at->flow))
                return at->flow;
        at->flow = 0;
        at->step += at->sends;
        at->sends = !at->sends;
    }
    return LS_NO_ID;
}

static uint32_t micro_of(const Run *r, uint32_t rank) { return r->order[rank].step[r->rank[rank].step].micro; }

/* A send without room in the link meets its receive. */
static bool meets_receive(Run *r, uint32_t sender, const LsFlow *f, uint32_t flow)
{
    if (r->room > 0 || due(r, f->to) != flow || r->rank[f->to].sends || micro_of(r, f->to) != micro_of(r, sender))
        return false;
    r->rank[f->to].flow++;
    return true;
}

/* Whether the rank could do the message at which it is. */
static bool advance(Run *r, uint32_t rank)
{
    const uint32_t flow = due(r, rank);
    if (flow == LS_NO_ID)
        return false;
    const LsFlow *f = &r->flows->flow[flow];
    uint32_t *held = &r->held[f->from * r->ranks + f->to];
    bool *sent = &r->sent[(size_t)flow * r->micros + micro_of(r, rank)];
    if (r->rank[rank].sends && *held < r->room) {
        *sent = true;
        ++*held;
    } else if (!r->rank[rank].sends && *sent) {
        --*held;
    } else if (!r->rank[rank].sends || !meets_receive(r, rank, f, flow)) {
        return false;
    }
    r->rank[rank].flow++;
    return true;
}

static uint32_t waits_for(Run *r, uint32_t rank)
{
    const LsFlow *f = &r->flows->flow[due(r, rank)];
    return r->rank[rank].sends ? f->to : f->from;
}

/* Says who waits for whom, along the circle. */
static void explain(Run *r, uint32_t rank, const LsWhy *why)
{
    char text[400];
    size_t n = 0;
    uint32_t at = rank;
    for (uint32_t k = 0; k < r->ranks && due(r, waits_for(r, at)) != LS_NO_ID; k++)
        at = waits_for(r, at);              /* into the circle, or to who waits for a rank that has ended */
    const uint32_t first = at;
    do {
        const LsRankStep *step = &r->order[at].step[r->rank[at].step];
        const int len = snprintf(text + n, sizeof text - n, "%srank %" PRIu32 " waits %s %c of micro-batch %" PRIu32
                                 " for rank %" PRIu32, n > 0 ? ", " : "", at, r->rank[at].sends ? "behind" : "before",
                                 letter[step->phase], step->micro, waits_for(r, at));
        n = n + (size_t)len < sizeof text ? n + (size_t)len : sizeof text - 1;
        at = waits_for(r, at);
    } while (at != first && due(r, at) != LS_NO_ID && n + 1 < sizeof text);
    ls_why(why, "%s%s", text, at != first && due(r, at) == LS_NO_ID ? ", which has ended" : "");
}

bool ls_orders_run(const LsStages *s, const LsFlows *flows, const LsRankOrder *order, uint32_t micros, uint32_t room,
                   char *why, size_t size)
{
    LsArena *tmp = ls_arena_new();
    const LsWhy to = {.text = why, .size = size};
    Run r = {flows, order, s->k, micros, room, ls_arena_alloc(tmp, s->k, sizeof *r.rank),
             ls_arena_alloc(tmp, (size_t)flows->n * micros + 1, 1), ls_arena_alloc(tmp, (size_t)s->k * s->k, sizeof *r.held)};
    bool ok = true;
    for (uint32_t k = 0; ok && k < s->k; k++)
        ok = check_order(&order[k], k, micros, &to);
    for (bool moved = ok; moved;) {
        moved = false;
        for (uint32_t k = 0; k < s->k; k++)
            while (advance(&r, k))
                moved = true;
    }
    for (uint32_t k = 0; ok && k < s->k; k++)
        if (due(&r, k) != LS_NO_ID) {
            explain(&r, k, &to);
            ok = false;
        }
    ls_arena_free(tmp);
    return ok;
}
