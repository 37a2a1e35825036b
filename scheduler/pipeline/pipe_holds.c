/* scheduler/pipeline/pipe_holds.c -- see the header.
 *
 * A sender that waits for a receiver stands still, and one that keeps its messages for long needs memory for many of them.
 * Without any waiting a step takes the least time. Then, for one group of messages after the other, the earliest turn is
 * sought before which the sender may wait for them without making the step longer. */
#include "scheduler/pipeline/pipe_holds.h"

#include <stdlib.h>

typedef struct Hold { uint8_t until; uint32_t lag, after; } Hold;       /* after: turns between the message and the wait */

typedef struct Holds {
    LsArena *tmp;
    LsPipeCut *c;
    LsPipeFlow *flow;           /* by stage */
    uint32_t micros;
    LsPipelineRun run;
} Holds;

static int by_turns(const void *x, const void *y)
{
    const Hold *a = x, *b = y;
    if (a->after != b->after)
        return a->after < b->after ? -1 : 1;
    return a->lag != b->lag ? (a->lag < b->lag ? -1 : 1) : (int)a->until - (int)b->until;
}

/* Writes where the sender may wait for a message, the earliest first. A wait must come behind the message, and that for a
 * message to a phase F not behind the sender's own phase B, where it comes anyway. */
static uint32_t find_holds(const Holds *x, const LsPipeMove *m, Hold **to)
{
    const uint32_t micros = x->micros, *at = ls_pipe_turns(x->tmp, &x->flow[m->from], micros);
    const uint8_t phases = x->c->splits ? LS_PHASES : LS_PHASE_W;
    uint32_t n = 0;
    *to = ls_arena_alloc(x->tmp, (size_t)LS_PHASES * micros + 1, sizeof **to);
    for (uint8_t until = 0; until < phases; until++)
        for (uint32_t lag = 0; lag < micros; lag++) {
            Hold h = {until, lag, 0};
            bool ok = until != m->made || lag > 0;
            for (uint32_t i = 0; ok && i + lag < micros; i++) {
                const uint32_t made = at[m->made * micros + i], end = at[until * micros + i + lag];
                ok = end > made && (!ls_move_is_forward(m) || end <= at[LS_PHASE_B * micros + i]);
                h.after = end - made > h.after ? end - made : h.after;
            }
            if (ok)
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

static double step_time(const Holds *x)
{
    LsArena *tmp = ls_arena_new();
    const double ns = ls_pipeline_simulate(tmp, &x->run).step;
    ls_arena_free(tmp);
    return ns;
}

static void shorten(const Holds *x, const LsPipeMove *m, double most)
{
    const LsPipeMove like = *m;
    Hold *hold;
    const uint32_t n = find_holds(x, m, &hold);
    for (uint32_t k = 0; k < n; k++) {
        set(x, &like, hold[k].until, hold[k].lag);
        if (step_time(x) <= most)
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

void ls_pipe_holds(LsPipeCut *c, LsOrderKind kind, uint32_t micros, LsStageTimes (*of)[LS_PIPE_PLANS], LsLinkSpeed link)
{
    enum { ROUNDS = 3 };        /* of all stages: more micro-batches show nothing new */
    static const double LONGER = 1.001;
    const uint32_t enough = ROUNDS * c->k + 1;
    Holds x = {.tmp = ls_arena_new(), .c = c, .micros = micros < enough ? micros : enough};
    bool *reads = ls_arena_alloc(x.tmp, c->k, 1);
    x.flow = ls_arena_alloc(x.tmp, c->k, sizeof *x.flow);
    ls_pipe_flow(x.tmp, c, kind, x.micros, reads, x.flow);
    x.run = (LsPipelineRun){c, x.flow, x.micros, of, link};
    for (uint32_t k = 0; k < c->nmove; k++)
        set(&x, &c->move[k], LS_PHASE_F, LS_TO_THE_END);
    const double most = step_time(&x) * LONGER;
    for (uint32_t k = 0; k < c->nmove; k++)
        if (c->move[k].read != LS_PHASE_LATE && is_first(c, k))
            shorten(&x, &c->move[k], most);
    ls_arena_free(x.tmp);
}
