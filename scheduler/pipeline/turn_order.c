/* scheduler/pipeline/turn_order.c -- see the header. */
#include "scheduler/pipeline/turn_order.h"

#include "base/reason.h"

/* Without a phase W of its own, B has its nodes. */
static LsPipeFlow flow_of(LsArena *arena, const LsPipeCut *c, LsOrderKind kind, uint32_t rank,
                          uint32_t micros)
{
    const LsRankOrder o = ls_rank_order(arena, kind, rank, c->k, micros);
    LsPipeFlow f = {.turn = ls_arena_alloc(arena, o.n + 1u, sizeof *f.turn)};
    for (uint32_t k = 0; k < o.n; k++)
        if (o.step[k].phase != LS_PHASE_W || c->splits)
            f.turn[f.nturn++] =
                (LsPipeTurn){(uint8_t)o.step[k].phase, LS_PIPE_USUAL, o.step[k].micro};
    f.most = ls_rank_order_slots(&o, c->splits ? LS_PHASE_W : LS_PHASE_B);
    return f;
}

uint32_t *ls_pipe_turns(LsArena *arena, const LsPipeFlow *flow, uint32_t micros)
{
    uint32_t *at = ls_arena_alloc(arena, (size_t)LS_PHASES * micros + 1, sizeof *at);
    for (uint32_t k = 0; k < flow->nturn; k++)
        at[(size_t)flow->turn[k].phase * micros + flow->turn[k].micro] = k;
    return at;
}

void ls_pipe_flow_keep(LsPipeFlow *flow)
{
    uint32_t first = 0;
    while (first < flow->nturn && flow->turn[first].phase != LS_PHASE_B)
        first++;
    for (uint32_t k = 0; k < flow->nturn; k++)
        if (flow->turn[k].micro == flow->turn[first].micro)
            flow->turn[k].plan = LS_PIPE_KEPT;
}

typedef struct Sim {
    const LsPipeCut *c;
    const LsPipeFlow *flow;
    uint32_t micros, ring;
    uint32_t *at;               /* by stage: turns that have ended */
    bool *begun;                /* by stage: the next turn has begun */
    bool *did, *began;          /* [stage][phase][micro] */
} Sim;

static bool *of(const Sim *x, bool *table, uint32_t stage, int phase, uint32_t micro)
{
    return &table[((size_t)stage * LS_PHASES + (size_t)phase) * x->micros + micro];
}

/* Whether the messages have been asked for that the stage waits for before the turn. */
static bool are_asked_for(const Sim *x, uint32_t stage, const LsPipeTurn *t)
{
    for (uint32_t k = 0; k < x->c->nmove; k++) {
        const LsPipeMove *m = &x->c->move[k];
        if (m->from != stage || m->read == LS_PHASE_LATE)
            continue;
        uint32_t ends[2];
        for (uint32_t j = ls_move_ends(m, t->phase, t->micro, ends); j-- > 0;)
            if (!*of(x, x->began, m->to, m->read, ends[j]))
                return false;
    }
    return true;
}

/* Whether every stage that reads inputs is done with that micro-batch and those before. */
static bool is_released(const Sim *x, uint32_t micro)
{
    for (uint32_t s = 0; s < x->c->k; s++)
        for (uint32_t m = 0; x->flow[s].reads && m <= micro; m++)
            if (!*of(x, x->did, s, x->c->splits ? LS_PHASE_W : LS_PHASE_B, m))
                return false;
    return true;
}

static bool may_begin(const Sim *x, uint32_t stage, const LsPipeTurn *t)
{
    const bool feeds = t->phase == LS_PHASE_F && x->flow[stage].reads;
    return are_asked_for(x, stage, t)
           && (!feeds || t->micro < x->ring || is_released(x, t->micro - x->ring));
}

static bool may_end(const Sim *x, uint32_t stage, const LsPipeTurn *t)
{
    for (uint32_t k = 0; k < x->c->nmove; k++) {
        const LsPipeMove *m = &x->c->move[k];
        if (m->to == stage && m->read == t->phase && !*of(x, x->did, m->from, m->made, t->micro))
            return false;
    }
    return true;
}

/* Runs all turns as far as they come. */
static void run(Sim *x)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t s = 0; s < x->c->k; s++) {
            const LsPipeTurn *t = &x->flow[s].turn[x->at[s]];
            if (x->at[s] == x->flow[s].nturn)
                continue;
            if (!x->begun[s] && may_begin(x, s, t))
                x->begun[s] = moved = *of(x, x->began, s, t->phase, t->micro) = true;
            if (x->begun[s] && may_end(x, s, t)) {
                moved = *of(x, x->did, s, t->phase, t->micro) = true;
                x->begun[s] = false;
                x->at[s]++;
            }
        }
    }
}

/* Says of every stage that has not ended what it waits for. */
static bool explain(const Sim *x, const LsWhy *why)
{
    static const char letter[] = "FBW";
    char text[400] = "";
    size_t n = 0;
    for (uint32_t s = 0; s < x->c->k && n + 1 < sizeof text; s++) {
        const LsPipeTurn *t = &x->flow[s].turn[x->at[s]];
        if (x->at[s] == x->flow[s].nturn)
            continue;
        int len = snprintf(text + n, sizeof text - n, "%sstage %u waits %s %c of micro-batch %u",
                           n > 0 ? ", " : "", s + 1, x->begun[s] ? "in" : "before",
                           letter[t->phase], t->micro);
        n += (size_t)len;
        for (uint32_t k = 0; x->begun[s] && k < x->c->nmove && n + 1 < sizeof text; k++) {
            const LsPipeMove *m = &x->c->move[k];
            if (m->to != s || m->read != t->phase || *of(x, x->did, m->from, m->made, t->micro))
                continue;
            len = snprintf(text + n, sizeof text - n, " for %c of stage %u", letter[m->made],
                           m->from + 1);
            n += (size_t)len;
            break;
        }
    }
    return ls_why(why, "%s", text);
}

bool ls_pipe_flow_ends(const LsPipeCut *c, const LsPipeFlow *flow, uint32_t micros, uint32_t ring,
                       char *why, size_t room)
{
    const LsWhy to = {.text = why, .size = room};
    const size_t table = (size_t)c->k * LS_PHASES * micros;
    LsArena *tmp = ls_arena_new();
    Sim x = {c,
             flow,
             micros,
             ring,
             ls_arena_alloc(tmp, c->k, sizeof *x.at),
             ls_arena_alloc(tmp, c->k, 1),
             ls_arena_alloc(tmp, table, 1),
             ls_arena_alloc(tmp, table, 1)};
    bool ok = true;
    run(&x);
    for (uint32_t s = 0; s < c->k && ok; s++)
        ok = x.at[s] == flow[s].nturn || explain(&x, &to);
    ls_arena_free(tmp);
    return ok;
}

void ls_pipe_flow(LsArena *arena, const LsPipeCut *c, LsOrderKind kind, uint32_t micros,
                  const bool *reads, LsPipeFlow *flow)
{
    for (uint32_t s = 0; s < c->k; s++) {
        flow[s] = flow_of(arena, c, kind, s, micros);
        flow[s].reads = reads[s];
    }
}

bool ls_pipe_ring(const LsPipeCut *c, const LsPipeFlow *flow, uint32_t micros, uint32_t *ring,
                  char *why, size_t room)
{
    *ring = 1;
    for (uint32_t s = 0; s < c->k; s++)
        if (flow[s].reads && flow[s].most > *ring)
            *ring = flow[s].most;
    if (!ls_pipe_flow_ends(c, flow, micros, micros, why, room))
        return false;
    while (*ring < micros && !ls_pipe_flow_ends(c, flow, micros, *ring, why, room))
        ++*ring;
    return true;
}
