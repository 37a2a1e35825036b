/* scheduler/pipeline/message_lifetimes.c -- see the header.
 *
 * A sender that waits for a receiver stands still, and one that keeps its messages for long needs
 * memory for many of them. Without any waiting a step takes the least time. Then, for one group of
 * messages after the other, the earliest turn is sought before which the sender may wait for them
 * without making the step longer. The search looks at few micro-batches; what it takes must hold
 * for all, as a wait that comes late among few comes too early among many. */
#include "scheduler/pipeline/message_lifetimes.h"

#include <stdlib.h>

/* after: turns between the message and the wait */
typedef struct Hold { uint8_t until; uint32_t lag, after; } Hold;

typedef struct Steps {          /* of some micro-batches */
    LsPipeFlow *flow;           /* by stage */
    LsPipelineRun run;
    double most;                /* ns that a step may take */
} Steps;

typedef struct Holds {
    LsArena *tmp;
    LsPipeCut *c;
    Steps few, all;
} Holds;

static int by_turns(const void *x, const void *y)
{
    const Hold *a = x, *b = y;
    if (a->after != b->after)
        return a->after < b->after ? -1 : 1;
    return a->lag != b->lag ? (a->lag < b->lag ? -1 : 1) : (int)a->until - (int)b->until;
}

/* A wait must come behind the message, and that for a message to a phase F not behind the sender's
 * own phase B, where it comes anyway. at: turns of the sender. */
static bool comes_behind(const uint32_t *at, uint32_t micros, const LsPipeMove *m, Hold *h)
{
    bool ok = h->until != m->made || h->lag > 0;
    for (uint32_t i = 0; ok && i + h->lag < micros; i++) {
        const uint32_t made = at[m->made * micros + i], end = at[h->until * micros + i + h->lag];
        ok = end > made && (!ls_move_is_forward(m) || end <= at[LS_PHASE_B * micros + i]);
        h->after = end - made > h->after ? end - made : h->after;
    }
    return ok;
}

/* Writes where the sender may wait for a message among few micro-batches, the earliest first. */
static uint32_t find_holds(const Holds *x, const LsPipeMove *m, Hold **to)
{
    const uint32_t micros = x->few.run.micros,
                   *at = ls_pipe_turns(x->tmp, &x->few.flow[m->from], micros);
    const uint8_t phases = x->c->splits ? LS_PHASES : LS_PHASE_W;
    uint32_t n = 0;
    *to = ls_arena_alloc(x->tmp, (size_t)LS_PHASES * micros + 1, sizeof **to);
    for (uint8_t until = 0; until < phases; until++)
        for (uint32_t lag = 0; lag < micros; lag++) {
            Hold h = {until, lag, 0};
            if (comes_behind(at, micros, m, &h))
                (*to)[n++] = h;
        }
    qsort(*to, n, sizeof **to, by_turns);
    return n;
}

/* Messages between the same stages and phases are kept equally long. */
static bool is_alike(const LsPipeMove *a, const LsPipeMove *b)
{
    return a->from == b->from && a->to == b->to && a->made == b->made && a->read == b->read;
}

static void set(const Holds *x, const LsPipeMove *like, uint8_t until, uint32_t lag)
{
    for (uint32_t k = 0; k < x->c->nmove; k++)
        if (is_alike(&x->c->move[k], like)) {
            x->c->move[k].until = until;
            x->c->move[k].lag = lag;
        }
}

static double step_time(const Steps *s)
{
    LsArena *tmp = ls_arena_new();
    const double ns = ls_pipeline_simulate(tmp, &s->run).step;
    ls_arena_free(tmp);
    return ns;
}

/* Whether the messages may be kept as they are set, by `h`. at: turns of the sender among all
 * micro-batches. */
static bool is_good(const Holds *x, const LsPipeMove *m, const uint32_t *at, Hold h)
{
    if (step_time(&x->few) > x->few.most)
        return false;
    return x->all.run.micros == x->few.run.micros
           || (comes_behind(at, x->all.run.micros, m, &h) && step_time(&x->all) <= x->all.most);
}

static void shorten(const Holds *x, const LsPipeMove *m)
{
    const LsPipeMove like = *m;
    const uint32_t *at = ls_pipe_turns(x->tmp, &x->all.flow[m->from], x->all.run.micros);
    Hold *hold;
    const uint32_t n = find_holds(x, m, &hold);
    for (uint32_t k = 0; k < n; k++) {
        set(x, &like, hold[k].until, hold[k].lag);
        if (is_good(x, &like, at, hold[k]))
            return;
    }
    set(x, &like, LS_PHASE_F, LS_TO_THE_END);
}

static bool is_first(const LsPipeCut *c, uint32_t k)
{
    for (uint32_t j = 0; j < k; j++)
        if (is_alike(&c->move[j], &c->move[k]))
            return false;
    return true;
}

/* The steps of so many micro-batches, while nobody waits. reads: of no stage, as rings follow from
 * holds. */
static Steps steps_of(const Holds *x, LsOrderKind kind, uint32_t micros,
                      LsStageTimes (*of)[LS_PIPE_PLANS], LsLinkSpeed link)
{
    static const double LONGER = 1.001;
    static const bool reads[LS_MOST_STAGES];
    Steps s = {.flow = ls_arena_alloc(x->tmp, x->c->k, sizeof *s.flow)};
    ls_pipe_flow(x->tmp, x->c, kind, micros, reads, s.flow);
    s.run = (LsPipelineRun){x->c, s.flow, micros, of, link};
    s.most = step_time(&s) * LONGER;
    return s;
}

void ls_pipe_holds(LsPipeCut *c, LsOrderKind kind, uint32_t micros,
                   LsStageTimes (*of)[LS_PIPE_PLANS], LsLinkSpeed link)
{
    enum { ROUNDS = 3 };        /* of all stages: more micro-batches mostly show nothing new */
    const uint32_t enough = ROUNDS * c->k + 1;
    Holds x = {.tmp = ls_arena_new(), .c = c};
    for (uint32_t k = 0; k < c->nmove; k++)
        set(&x, &c->move[k], LS_PHASE_F, LS_TO_THE_END);
    x.few = steps_of(&x, kind, micros < enough ? micros : enough, of, link);
    x.all = micros > enough ? steps_of(&x, kind, micros, of, link) : x.few;
    for (uint32_t k = 0; k < c->nmove; k++)
        if (c->move[k].read != LS_PHASE_LATE && is_first(c, k))
            shorten(&x, &c->move[k]);
    ls_arena_free(x.tmp);
}
