/* scheduler/strategies/pass_by_pass.c -- values in parts: what to keep from pass to pass.
 *
 * A value in parts is many tensors. To do without it all of them must be given up and made again,
 * part after part, which moves of single runs hardly find. In a *pass* all parts run one after the
 * other (LsDag.pass). Here each pass makes again what it lacks, just before the first read, and
 * each node at most once: so the parts that it makes again pass by, too, and only some of them live
 * at a time. Between passes a value is kept if that costs less than to make it again, for a row of
 * prices of bytes times the time that they are held. */
#include <math.h>
#include <string.h>

#include "scheduler/order/run_order.h"
#include "scheduler/strategies/published_strategies.h"

enum {
    MOST_RUNS = 6,              /* times the nodes */
    AGAIN = 100,                /* most nodes that the cost of making a value again counts */
    STEPS = 24,                 /* prices that are tried */
};

typedef struct Passes {
    const LsProb *p;
    LsRows reads;               /* by tensor: the nodes of the list that read it, in order */
    uint32_t *next;             /* by tensor: place of its next read among them */
    double *at;                 /* by node: when the list runs it, ns */
    bool *there;                /* by tensor */
    uint32_t *mark, stamp, *queue;      /* by node */
    double price;               /* ns per byte, of a step of 1 ns */
    LsSeq seq;
    uint32_t most;
    bool failed;                /* too many runs */
} Passes;

static Passes passes_new(LsArena *arena, const LsProb *p)
{
    Passes e = {.p = p, .most = p->n * MOST_RUNS};
    double now = 0;
    e.at = ls_arena_alloc(arena, p->n + 1u, sizeof *e.at);
    for (uint32_t v = 0; v < p->n; v++)
        e.at[v] = now += ls_prob_is_listed(p, v) ? p->cost[v] : 0;
    e.reads = ls_prob_reads(arena, p);
    e.next = ls_arena_alloc(arena, p->nt + 1u, sizeof *e.next);
    e.there = ls_arena_alloc(arena, p->nt + 1u, sizeof *e.there);
    e.mark = ls_arena_alloc(arena, p->n + 1u, sizeof *e.mark);
    e.queue = ls_arena_alloc(arena, p->n + 1u, sizeof *e.queue);
    e.seq.node = ls_arena_alloc(arena, e.most + p->n + 1u, sizeof *e.seq.node);
    return e;
}

/* What it costs to make t again, as far as AGAIN nodes. */
static double again(Passes *e, uint32_t t)
{
    const LsProb *p = e->p;
    uint32_t n = 0;
    double cost = 0;
    e->stamp++;
    e->queue[n++] = p->maker[t];
    e->mark[p->maker[t]] = e->stamp;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t v = e->queue[k];
        cost += p->cost[v];
        for (uint32_t j = p->in.at[v]; j < p->in.at[v + 1] && n < AGAIN; j++) {
            const uint32_t in = p->in.id[j], m = p->maker[in];
            if (!e->there[in] && e->mark[m] != e->stamp) {
                e->mark[m] = e->stamp;
                e->queue[n++] = m;
            }
        }
    }
    return cost;
}

/* Behind a pass that ends before node v: gives up what is not worth its room. */
static void keep_worthy(Passes *e, uint32_t v)
{
    const LsProb *p = e->p;
    for (uint32_t t = 0; t < p->nt; t++) {
        if (!e->there[t] || p->size[t] == 0 || p->stuck[p->maker[t]] || p->dag->tensor[t].output)
            continue;
        const uint32_t *row = e->reads.id + e->reads.at[t];
        const uint32_t n = e->reads.at[t + 1] - e->reads.at[t];
        while (e->next[t] < n && row[e->next[t]] < v)
            e->next[t]++;
        e->there[t] = e->next[t] < n
                      && (double)p->size[t] * (e->at[row[e->next[t]]] - e->at[v] + p->cost[v])
                             * e->price <= again(e, t);
    }
}

/* Runs v, and before it what makes its missing operands: first those whose place a result takes. */
static void run(Passes *e, uint32_t v)
{
    const LsProb *p = e->p;
    for (int late = 0; late < 2; late++)
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1] && !e->failed; k++)
            if (!e->there[p->in.id[k]] && (late || ls_prob_takes_place(p, v, p->in.id[k])))
                run(e, p->maker[p->in.id[k]]);
    e->failed |= e->seq.n >= e->most;
    if (e->failed)
        return;
    e->seq.node[e->seq.n++] = v;
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)
        e->there[p->out.id[k]] = true;
}

static void follow_list(Passes *e, double price)
{
    const LsProb *p = e->p;
    uint32_t pass = 0;
    e->price = price;
    e->seq.n = 0;
    e->failed = false;
    memset(e->next, 0, p->nt * sizeof *e->next);
    memset(e->there, 0, p->nt * sizeof *e->there);
    for (uint32_t v = 0; v < p->n && !e->failed; v++) {
        if (!ls_prob_is_listed(p, v))
            continue;
        if (p->dag->pass[v] != pass)
            keep_worthy(e, v);
        pass = p->dag->pass[v];
        run(e, v);
    }
}

void ls_strategy_passes(LsCandidates *pool, const LsProb *p)
{
    if (p->dag->pass == NULL)
        return;
    LsArena *arena = ls_arena_new();                /* the pool's is renewed between offers */
    Passes e = passes_new(arena, p);
    double bytes = 1;
    for (uint32_t t = 0; t < p->nt; t++)
        bytes += (double)p->size[t];
    for (int k = 0; k < STEPS; k++) {
        follow_list(&e, ldexp(1, k - 6) / bytes);
        if (e.failed)
            break;
        LsSeq seq = {ls_arena_alloc(pool->tmp, e.seq.n + p->n + 1u, sizeof *seq.node), e.seq.n};
        memcpy(seq.node, e.seq.node, e.seq.n * sizeof *seq.node);
        ls_seq_place_updates(pool->tmp, p, &seq);
        ls_seq_drop_dead(pool->tmp, p, &seq);
        ls_seq_place_updates(pool->tmp, p, &seq);       /* earlier, without dead runs */
        ls_candidates_offer_moved(pool, p, &seq, "auto");
    }
    ls_arena_free(arena);
}
