/* scheduler/improve.c -- repair and improvement of sequences, by true liveness. */
#include "scheduler/improve.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler/sequence.h"

enum { DEEP = 60 };             /* runs that making one tensor again may take */

typedef struct Repair {
    LsProb *p;
    const LsLive *live;
    const LsSeq *seq;
    int64_t target;
    uint32_t *newest;           /* by tensor: its last instance, or LS_NO_ID */
    uint32_t *older;            /* by instance: the tensor's one before */
    uint32_t *next;             /* by tensor: first read behind the peak, or LS_NO_ID */
    uint32_t *mark, stamp;      /* by node */
    uint32_t best[DEEP], nbest, at;     /* the best choice: runs to insert before run `at` */
    double price;
} Repair;

static void index_instances(Repair *r)
{
    const LsProb *p = r->p;
    memset(r->newest, 0xff, p->nt * sizeof *r->newest);
    memset(r->next, 0xff, p->nt * sizeof *r->next);
    for (uint32_t k = 0; k < r->live->ninst; k++) {
        r->older[k] = r->newest[r->live->inst[k].tensor];
        r->newest[r->live->inst[k].tensor] = k;
    }
    for (uint32_t s = r->seq->n; s-- > r->live->peak_run + 1;) {
        uint32_t v = r->seq->node[s];
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
            r->next[p->in.id[k]] = s;
    }
}

/* Whether t is live when run `at` starts. */
static bool there(const Repair *r, uint32_t t, uint32_t at)
{
    uint32_t k = r->newest[t];
    while (k != LS_NO_ID && r->live->inst[k].from >= at)
        k = r->older[k];
    return k != LS_NO_ID && at <= r->live->inst[k].to;
}

static int by_id(const void *x, const void *y)
{
    const uint32_t *a = x, *b = y;
    return *a < *b ? -1 : *a > *b;
}

/* Prices making t again before run `at`, and remembers it if it is the best yet. */
static void consider(Repair *r, uint32_t t, uint32_t at)
{
    const LsProb *p = r->p;
    uint32_t run[DEEP], n = 0;
    double cost = 0;
    int64_t over = 2 * (r->live->peak - r->target);
    double bytes = (double)(p->size[t] < over ? p->size[t] : over);
    r->stamp++;
    run[n++] = p->maker[t];
    r->mark[p->maker[t]] = r->stamp;
    for (uint32_t k = 0; k < n; k++) {
        cost += p->cost[run[k]];
        if (p->stuck[run[k]] || (r->nbest > 0 && cost >= r->price * bytes))
            return;
        for (uint32_t j = p->in.at[run[k]]; j < p->in.at[run[k] + 1]; j++) {
            uint32_t m = p->maker[p->in.id[j]];
            if (r->mark[m] == r->stamp || there(r, p->in.id[j], at))
                continue;
            if (n == DEEP)
                return;
            r->mark[m] = r->stamp;
            run[n++] = m;
        }
    }
    double price = (cost + 1e-6) / bytes;
    if (r->nbest > 0 && price >= r->price)
        return;
    qsort(run, n, sizeof *run, by_id);
    memcpy(r->best, run, n * sizeof *run);
    r->nbest = n;
    r->at = at;
    r->price = price;
}

static void find_best(Repair *r)
{
    const LsProb *p = r->p;
    uint32_t s = r->live->peak_run, v = r->seq->node[s];
    r->nbest = 0;
    index_instances(r);
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
        r->next[p->in.id[k]] = LS_NO_ID;            /* busy */
    for (uint32_t k = 0; k < r->live->ninst; k++) {
        const LsInstance *in = &r->live->inst[k];
        if (in->from < s && s < in->to && p->size[in->tensor] > 0
            && r->next[in->tensor] != LS_NO_ID)
            consider(r, in->tensor, r->next[in->tensor]);
    }
}

static void open_repair(LsCandidates *pool, Repair *r)
{
    LsProb *p = pool->prob;
    r->newest = ls_arena_alloc(p->arena, p->nt + 1u, sizeof *r->newest);
    r->next = ls_arena_alloc(p->arena, p->nt + 1u, sizeof *r->next);
    r->mark = ls_arena_alloc(p->arena, p->n + 1u, sizeof *r->mark);
    r->stamp = 0;
    r->older = NULL;
}

bool ls_seq_repair(LsCandidates *pool, LsSeq *seq, uint32_t room, int64_t target)
{
    enum { OFTEN = 24 };
    LsProb *p = pool->prob;
    Repair r = {.p = p, .seq = seq, .target = target};
    uint32_t most = p->n / 2 + 100, older_room = 0;
    for (uint32_t round = 0; round < most; round++) {
        if (round % OFTEN == 0) {
            ls_candidates_renew(pool);
            open_repair(pool, &r);
            older_room = 0;
        }
        ls_live(p, seq, pool->live);
        r.live = pool->live;
        if (r.live->peak <= target)
            return true;
        if (r.live->ninst > older_room)
            r.older = ls_arena_alloc(p->arena, older_room = 2 * r.live->ninst, sizeof *r.older);
        find_best(&r);
        if (r.nbest == 0 || seq->n + r.nbest + p->n > room)
            return false;
        memmove(seq->node + r.at + r.nbest, seq->node + r.at, (seq->n - r.at) * sizeof *seq->node);
        memcpy(seq->node + r.at, r.best, r.nbest * sizeof *seq->node);
        seq->n += r.nbest;
        ls_seq_place_updates(p, seq);
    }
    return false;
}

/* ---- taking back ---- */

typedef struct Extra { double cost; uint32_t at; } Extra;

static int by_cost(const void *x, const void *y)
{
    const Extra *a = x, *b = y;
    return a->cost > b->cost ? -1 : a->cost < b->cost ? 1 : a->at < b->at ? -1 : a->at > b->at;
}

/* Bytes that the run at q must not exceed for its removal to have a chance: what lies between it
 * and the instances that would have to live on. */
static bool hopeless(LsProb *p, const LsSeq *seq, const LsLive *live, uint32_t q, uint32_t before,
                     int64_t target)
{
    uint32_t v = seq->node[q], from = q;
    int64_t size = 0, gain = 0;
    for (uint32_t k = live->first[before]; k < live->first[before + 1]; k++)
        from = live->inst[k].to < from ? live->inst[k].to : from;
    for (uint32_t k = live->first[q]; k < live->first[q + 1]; k++)
        size += live->inst[k].to > q ? p->size[live->inst[k].tensor] : 0;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
        gain += p->size[p->in.id[k]];
    for (uint32_t s = from + 1; s < q; s++)
        if (live->mem[s] + size - gain > target)
            return live->first[before + 1] - live->first[before] == 1;
    return false;
}

static uint32_t find_extras(LsProb *p, const LsSeq *seq, Extra *extra, uint32_t *before)
{
    uint32_t *last = ls_arena_alloc(p->arena, p->n + 1u, sizeof *last), n = 0;
    for (uint32_t s = 0; s < seq->n; s++) {
        uint32_t v = seq->node[s];
        if (last[v] != 0) {
            extra[n++] = (Extra){p->cost[v], s};
            before[s] = last[v] - 1;
        }
        last[v] = s + 1;
    }
    qsort(extra, n, sizeof *extra, by_cost);
    return n;
}

void ls_seq_improve(LsCandidates *pool, LsSeq *seq, int64_t target)
{
    ls_candidates_renew(pool);
    LsProb *p = pool->prob;
    Extra *extra = ls_arena_alloc(p->arena, seq->n + 1u, sizeof *extra);
    uint32_t *before = ls_arena_alloc(p->arena, seq->n + 1u, sizeof *before);
    bool *gone = ls_arena_alloc(p->arena, seq->n + 1u, sizeof *gone);
    LsLive *trial = ls_live_new(p);
    LsSeq now = {ls_arena_alloc(p->arena, seq->n + 1u, sizeof *now.node), 0};
    uint32_t n = find_extras(p, seq, extra, before), tries = 2000000 / (seq->n + 100) + 50;
    ls_live(p, seq, pool->live);                    /* a guide for what is worth trying */
    for (uint32_t k = 0; k < n && tries > 0; k++) {
        uint32_t q = extra[k].at;
        if (hopeless(p, seq, pool->live, q, before[q], target))
            continue;
        gone[q] = true;
        now.n = 0;
        for (uint32_t s = 0; s < seq->n; s++)
            if (!gone[s])
                now.node[now.n++] = seq->node[s];
        ls_live(p, &now, trial);
        gone[q] = trial->peak <= target;
        tries--;
    }
    now.n = 0;
    for (uint32_t s = 0; s < seq->n; s++)
        if (!gone[s])
            now.node[now.n++] = seq->node[s];
    memcpy(seq->node, now.node, now.n * sizeof *now.node);
    seq->n = now.n;
    ls_seq_drop_dead(p, seq);
    ls_seq_place_updates(p, seq);
}
