/* scheduler/pipeline/pipeline_simulation.c -- see the header. */
#include "scheduler/pipeline/pipeline_simulation.h"

#include <math.h>

typedef struct Sim {
    const LsPipelineRun *run;
    LsPipelineTimes *out;
    uint32_t *next;             /* by rank: turn */
    double *free;               /* by rank: when it has ended its last turn */
    double *waits;              /* by rank: since when it waits for messages of the next turn; NaN:
                                 * it does not yet */
    double *link;               /* by sender and receiver: when the link is free */
    double *arrival;            /* by message and micro-batch; NaN: not sent yet */
    double *asked;              /* likewise: when the receiver begins to wait for it; NaN: not
                                 * yet */
    LsRows sent, received;      /* by rank: messages */
} Sim;

static double duration(const Sim *s, uint32_t rank, const LsPipeTurn *t)
{
    const double *ns = s->run->of[rank][t->plan].ns;
    return s->out->joint && t->phase == LS_PHASE_B ? ns[LS_PHASE_B] + ns[LS_PHASE_W] : ns[t->phase];
}

/* Copies of state, and what the late phase reads. */
static bool is_once(const LsPipeMove *m) { return m->read == LS_PHASE_LATE; }

static double on_link(const Sim *s, int64_t bytes)
{
    const double speed = s->run->link.bytes_per_ns;
    return speed > 0 ? (double)bytes / speed : 0;
}

static double *arrival(const Sim *s, uint32_t move, uint32_t micro)
{
    return &s->arrival[(size_t)move * s->run->micros + micro];
}

static double *asked(const Sim *s, uint32_t move, uint32_t micro)
{
    return &s->asked[(size_t)move * s->run->micros + micro];
}

static void send(Sim *s, uint32_t rank, const LsPipeTurn *t, double end)
{
    for (uint32_t j = s->sent.at[rank]; j < s->sent.at[rank + 1]; j++) {
        const uint32_t k = s->sent.id[j];
        const LsPipeMove *m = &s->run->cut->move[k];
        if (m->made != t->phase || is_once(m))
            continue;
        double *link = &s->link[rank * s->out->k + m->to];
        *link = fmax(end, *link) + on_link(s, m->bytes);
        *arrival(s, k, t->micro) = *link + s->run->link.latency;
    }
}

/* When the rank has seen the messages go that it waits for before the turn; NaN: some receivers
 * have not asked yet. */
static double gone(const Sim *s, uint32_t rank, const LsPipeTurn *t)
{
    double at = s->free[rank];
    for (uint32_t j = s->sent.at[rank]; j < s->sent.at[rank + 1]; j++) {
        const LsPipeMove *m = &s->run->cut->move[s->sent.id[j]];
        uint32_t micro[2];
        for (uint32_t i = is_once(m) ? 0 : ls_move_ends(m, t->phase, t->micro, micro); i-- > 0;) {
            const double when = *asked(s, s->sent.id[j], micro[i]);
            if (isnan(when))
                return when;
            at = fmax(at, when);
        }
    }
    return at;
}

static void ask(const Sim *s, uint32_t rank, const LsPipeTurn *t, double when)
{
    for (uint32_t j = s->received.at[rank]; j < s->received.at[rank + 1]; j++)
        if (s->run->cut->move[s->received.id[j]].read == t->phase)
            *asked(s, s->received.id[j], t->micro) = when;
}

/* When all messages for the turn are there; NaN: some were not sent yet. */
static double ready(const Sim *s, uint32_t rank, const LsPipeTurn *t)
{
    double at = 0;
    for (uint32_t j = s->received.at[rank]; j < s->received.at[rank + 1]; j++) {
        if (s->run->cut->move[s->received.id[j]].read != t->phase)
            continue;
        const double there = *arrival(s, s->received.id[j], t->micro);
        if (isnan(there))
            return there;
        at = fmax(at, there);
    }
    return at;
}

/* Asks for the messages of the rank's next turn or, if they are there, runs it. Returns whether it
 * could. */
static bool advance(Sim *s, uint32_t rank)
{
    LsRankTimes *r = &s->out->rank[rank];
    const uint32_t k = s->next[rank];
    if (k == r->flow->nturn)
        return false;
    const LsPipeTurn *t = &r->flow->turn[k];
    if (isnan(s->waits[rank])) {
        s->waits[rank] = gone(s, rank, t);
        ask(s, rank, t, s->waits[rank]);
        return !isnan(s->waits[rank]);
    }
    const double there = ready(s, rank, t);
    if (isnan(there))
        return false;
    const double ns = duration(s, rank, t);
    r->begin[k] = fmax(there, s->waits[rank]);
    s->waits[rank] = NAN;
    r->end[k] = s->free[rank] = r->begin[k] + ns;
    r->busy += ns;
    send(s, rank, t, r->end[k]);
    s->next[rank]++;
    return true;
}

/* ns of what happens once per step: the slowest link's messages, copies of state among them, and
 * the slowest late phase. */
static double once_per_step(const Sim *s)
{
    const LsPipeCut *c = s->run->cut;
    LsArena *tmp = ls_arena_new();
    double *link = ls_arena_alloc(tmp, (size_t)c->k * c->k, sizeof *link), most = 0, late = 0;
    bool any = c->ncopy > 0;
    for (uint32_t k = 0; k < c->nmove; k++)
        if (is_once(&c->move[k])) {
            any = true;
            link[c->move[k].from * c->k + c->move[k].to] += on_link(s, c->move[k].bytes);
        }
    for (uint32_t k = 0; k < c->ncopy; k++)
        link[c->copy[k].from * c->k + c->copy[k].to] += on_link(s, c->copy[k].bytes);
    for (uint32_t k = 0; k < c->k * c->k; k++)
        most = fmax(most, link[k]);
    for (uint32_t k = 0; k < c->k; k++)
        late = fmax(late, s->run->of[k][LS_PIPE_USUAL].ns[LS_PHASE_LATE]);
    ls_arena_free(tmp);
    return (any ? most + s->run->link.latency : 0) + late;
}

static void open_ranks(LsArena *arena, Sim *s)
{
    LsPipelineTimes *t = s->out;
    t->rank = ls_arena_alloc(arena, t->k, sizeof *t->rank);
    for (uint32_t k = 0; k < t->k; k++) {
        LsRankTimes *r = &t->rank[k];
        r->flow = &s->run->flow[k];
        r->begin = ls_arena_alloc(arena, r->flow->nturn + 1u, sizeof *r->begin);
        r->end = ls_arena_alloc(arena, r->flow->nturn + 1u, sizeof *r->end);
    }
}

/* By rank: the messages that it sends, and those that it receives. */
static void list_messages(LsArena *tmp, Sim *s)
{
    const LsPipeCut *c = s->run->cut;
    LsPairs sent = {0}, received = {0};
    for (uint32_t k = 0; k < c->nmove; k++) {
        ls_pairs_add(tmp, &sent, c->move[k].from, k);
        ls_pairs_add(tmp, &received, c->move[k].to, k);
    }
    s->sent = ls_rows(tmp, &sent, c->k);
    s->received = ls_rows(tmp, &received, c->k);
}

LsPipelineTimes ls_pipeline_simulate(LsArena *arena, const LsPipelineRun *run)
{
    const uint32_t k = run->cut->k;
    const size_t messages = (size_t)run->cut->nmove * run->micros;
    LsPipelineTimes t = {.k = k, .joint = !run->cut->splits};
    LsArena *tmp = ls_arena_new();
    Sim s = {.run = run, .out = &t};
    s.next = ls_arena_alloc(tmp, k, sizeof *s.next);
    s.free = ls_arena_alloc(tmp, k, sizeof *s.free);
    s.waits = ls_arena_alloc(tmp, k, sizeof *s.waits);
    for (uint32_t r = 0; r < k; r++)
        s.waits[r] = NAN;
    s.link = ls_arena_alloc(tmp, (size_t)k * k, sizeof *s.link);
    s.arrival = ls_arena_alloc(tmp, messages + 1, sizeof *s.arrival);
    s.asked = ls_arena_alloc(tmp, messages + 1, sizeof *s.asked);
    for (size_t i = 0; i < messages; i++)
        s.arrival[i] = s.asked[i] = NAN;
    list_messages(tmp, &s);
    open_ranks(arena, &s);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t r = 0; r < k; r++)
            while (advance(&s, r))
                moved = true;
    }
    double busy = 0;
    for (uint32_t r = 0; r < k; r++) {
        t.step = fmax(t.step, s.next[r] == run->flow[r].nturn ? s.free[r] : INFINITY);
        busy += t.rank[r].busy;
    }
    t.bubble = t.step > 0 ? fmax(0, 1 - busy / (k * t.step)) : 0;
    t.step += once_per_step(&s);
    ls_arena_free(tmp);
    return t;
}
