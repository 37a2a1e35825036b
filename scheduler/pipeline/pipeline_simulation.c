/* scheduler/pipeline/pipeline_simulation.c -- see the header. */
#include "scheduler/pipeline/pipeline_simulation.h"

#include <math.h>
#include <stdlib.h>

typedef struct Event { double at; int64_t bytes; } Event;

typedef struct Events { Event *item; uint32_t n, room; } Events;    /* of one rank's memory */

typedef struct Sim {
    LsArena *tmp;
    const LsPipelineRun *run;
    LsFlows flows;
    LsPipelineTimes *out;
    uint32_t *next;             /* by rank: step */
    double *free;               /* by rank: when it has ended its last step */
    double *link;               /* by sender and receiver: when the link is free */
    double *arrival;            /* by flow and micro-batch; NaN: not sent yet */
    Events *memory;             /* by rank */
} Sim;

static void note(Sim *s, uint32_t rank, double at, int64_t bytes)
{
    Events *e = &s->memory[rank];
    if (bytes == 0)
        return;
    e->item = ls_arena_grow(s->tmp, e->item, e->n, e->n + 1u, sizeof *e->item, &e->room);
    e->item[e->n++] = (Event){at, bytes};
}

static const LsStageFigures *figures(const Sim *s, uint32_t rank, uint32_t micro)
{
    return micro == 0 ? &s->run->first[rank] : &s->run->of[rank];
}

static double duration(const Sim *s, const LsStageFigures *f, LsPipePhase phase)
{
    if (s->out->joint && phase == LS_PHASE_B)
        return f->ns[LS_PHASE_B] + f->ns[LS_PHASE_W];
    return s->out->joint && phase == LS_PHASE_W ? 0 : f->ns[phase];
}

/* The bytes of a micro-batch before, in and behind a phase. */
static void note_phase(Sim *s, uint32_t rank, const LsStageFigures *f, LsPipePhase phase, double begin, double end)
{
    const bool joint = s->out->joint;
    int64_t before = phase == LS_PHASE_F ? 0 : phase == LS_PHASE_B ? f->kept : f->late, in = f->peak[phase];
    int64_t behind = phase == LS_PHASE_F ? f->kept : phase == LS_PHASE_B && !joint ? f->late : 0;
    if (joint && phase == LS_PHASE_W)
        return;
    if (joint && phase == LS_PHASE_B && f->peak[LS_PHASE_W] > in)
        in = f->peak[LS_PHASE_W];
    note(s, rank, begin, in - before);
    note(s, rank, end, behind - in);
}

static void send(Sim *s, uint32_t rank, LsPipePhase phase, uint32_t micro, double end)
{
    const LsLinkSpeed *speed = &s->run->link;
    for (uint32_t k = 0; k < s->flows.n; k++) {
        const LsFlow *f = &s->flows.flow[k];
        if (f->from != rank || f->made != phase)
            continue;
        double *link = &s->link[rank * s->out->k + f->to];
        const double begin = fmax(end, *link);
        *link = begin + (speed->bytes_per_ns > 0 ? (double)f->bytes / speed->bytes_per_ns : 0);
        s->arrival[(size_t)k * s->run->micros + micro] = *link + speed->latency;
        note(s, rank, end, f->bytes);
        note(s, rank, *link, -f->bytes);
    }
}

/* When all messages for the step are there; NaN: some were not sent yet. */
static double ready(const Sim *s, uint32_t rank, const LsRankStep *step)
{
    double at = 0;
    for (uint32_t k = 0; k < s->flows.n; k++) {
        const LsFlow *f = &s->flows.flow[k];
        if (f->to != rank || f->read != step->phase)
            continue;
        const double arrival = s->arrival[(size_t)k * s->run->micros + step->micro];
        if (isnan(arrival))
            return arrival;
        at = fmax(at, arrival);
    }
    return at;
}

static void note_received(Sim *s, uint32_t rank, const LsRankStep *step, double begin)
{
    for (uint32_t k = 0; k < s->flows.n; k++) {
        const LsFlow *f = &s->flows.flow[k];
        if (f->to != rank || f->read != step->phase)
            continue;
        note(s, rank, s->arrival[(size_t)k * s->run->micros + step->micro], f->bytes);
        note(s, rank, begin, -f->bytes);
    }
}

static bool advance(Sim *s, uint32_t rank)
{
    LsRankTimes *r = &s->out->rank[rank];
    const uint32_t k = s->next[rank];
    if (k == r->order.n)
        return false;
    const LsRankStep *step = &r->order.step[k];
    const double there = ready(s, rank, step);
    if (isnan(there))
        return false;
    const LsStageFigures *f = figures(s, rank, step->micro);
    const double ns = duration(s, f, step->phase);
    r->begin[k] = fmax(there, s->free[rank]);
    r->end[k] = s->free[rank] = r->begin[k] + ns;
    r->busy += ns;
    note_phase(s, rank, f, step->phase, r->begin[k], r->end[k]);
    note_received(s, rank, step, r->begin[k]);
    send(s, rank, step->phase, step->micro, r->end[k]);
    s->next[rank]++;
    return true;
}

static int by_time(const void *x, const void *y)
{
    const Event *a = x, *b = y;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;      /* what ends makes room first */
}

static int64_t peak_of(Events *e)
{
    int64_t now = 0, most = 0;
    if (e->n > 0)
        qsort(e->item, e->n, sizeof *e->item, by_time);
    for (uint32_t k = 0; k < e->n; k++) {
        now += e->item[k].bytes;
        most = now > most ? now : most;
    }
    return most;
}

/* ns that the slowest link takes for what is sent once per step. */
static double once_per_step(const Sim *s)
{
    const LsStages *st = s->run->stages;
    const LsLinkSpeed *speed = &s->run->link;
    double *link = ls_arena_alloc(s->tmp, (size_t)st->k * st->k, sizeof *link), most = 0;
    for (uint32_t k = 0; k < st->nsend; k++)
        if (st->send[k].once && speed->bytes_per_ns > 0)
            link[st->send[k].from * st->k + st->send[k].to] += (double)st->send[k].bytes / speed->bytes_per_ns;
    for (uint32_t k = 0; k < st->ncopy; k++)
        if (speed->bytes_per_ns > 0)
            link[st->copy[k].from * st->k + st->copy[k].to] += (double)st->copy[k].bytes / speed->bytes_per_ns;
    bool any = st->ncopy > 0;
    for (uint32_t k = 0; k < st->nsend; k++)
        any |= st->send[k].once;
    for (uint32_t k = 0; k < st->k * st->k; k++)
        most = fmax(most, link[k]);
    return any ? most + speed->latency : 0;
}

static void open_ranks(LsArena *arena, Sim *s)
{
    LsPipelineTimes *t = s->out;
    t->rank = ls_arena_alloc(arena, t->k, sizeof *t->rank);
    for (uint32_t k = 0; k < t->k; k++) {
        LsRankTimes *r = &t->rank[k];
        r->order = ls_rank_order(arena, s->run->order, k, t->k, s->run->micros);
        r->begin = ls_arena_alloc(arena, r->order.n + 1u, sizeof *r->begin);
        r->end = ls_arena_alloc(arena, r->order.n + 1u, sizeof *r->end);
    }
}

LsPipelineTimes ls_pipeline_simulate(LsArena *arena, const LsPipelineRun *run)
{
    const uint32_t k = run->stages->k;
    LsPipelineTimes t = {.k = k, .joint = !ls_order_is_apart(run->order)};
    LsArena *tmp = ls_arena_new();
    Sim s = {.tmp = tmp, .run = run, .out = &t, .flows = ls_flows(tmp, run->stages, t.joint)};
    s.next = ls_arena_alloc(tmp, k, sizeof *s.next);
    s.free = ls_arena_alloc(tmp, k, sizeof *s.free);
    s.link = ls_arena_alloc(tmp, (size_t)k * k, sizeof *s.link);
    s.memory = ls_arena_alloc(tmp, k, sizeof *s.memory);
    s.arrival = ls_arena_alloc(tmp, (size_t)s.flows.n * run->micros + 1, sizeof *s.arrival);
    for (size_t i = 0; i < (size_t)s.flows.n * run->micros; i++)
        s.arrival[i] = NAN;
    open_ranks(arena, &s);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t r = 0; r < k; r++)
            while (advance(&s, r))
                moved = true;
    }
    double busy = 0;
    for (uint32_t r = 0; r < k; r++) {
        t.step = fmax(t.step, s.free[r]);
        busy += t.rank[r].busy;
        t.rank[r].peak = run->of[r].state + peak_of(&s.memory[r]);
    }
    t.bubble = t.step > 0 ? fmax(0, 1 - busy / (k * t.step)) : 0;
    t.step += once_per_step(&s);
    ls_arena_free(tmp);
    return t;
}
