/* scheduler/pipeline/phases_and_messages.c -- see the header. */
#include "scheduler/pipeline/phases_and_messages.h"

#include "base/reason.h"

#include <string.h>

typedef struct Cut {
    LsArena *arena;
    const LsProb *p;
    const LsStages *s;
    LsPipeCut *c;
    const uint32_t *home;       /* by tensor: the stage that has a state which changes; LS_NO_ID: it
                                 * is none */
    LsWhy why;
} Cut;

static bool is_update(const LsProb *p, uint32_t i)
{
    return p->dag->node[i].kind == LS_DAG_OPTIMIZER;
}

/* Updates go where most of what they read is made, as gradients of all parameters are. */
static void place_updates(Cut *x)
{
    const LsProb *p = x->p;
    for (uint32_t i = 0; i < p->n; i++) {
        int64_t most = -1;
        for (uint32_t k = p->in.at[i]; p->needed[i] && is_update(p, i) && k < p->in.at[i + 1];
             k++) {
            const uint32_t t = p->in.id[k];
            if (p->dag->tensor[t].bytes > most)
                x->c->stage[i] = x->c->stage[p->maker[t]];
            most = p->dag->tensor[t].bytes > most ? p->dag->tensor[t].bytes : most;
        }
    }
}

/* By persistent tensor: the needed node that changes it, or LS_NO_ID. */
static uint32_t *find_updaters(const Cut *x)
{
    const LsProb *p = x->p;
    uint32_t *by = ls_arena_alloc(x->arena, p->nt + 1u, sizeof *by);
    memset(by, 0xff, p->nt * sizeof *by);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; p->needed[i] && k < p->dag->node[i].nupd; k++)
            by[p->dag->node[i].upd[k]] = i;
    return by;
}

/* The stage of the forward and backward nodes that read a changing state; LS_NO_ID: there are none,
 * or they are in several. */
static uint32_t only_stage(const Cut *x, uint32_t t)
{
    const LsProb *p = x->p;
    uint32_t one = LS_NO_ID;
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->needed[i] || is_update(p, i)
            || !ls_id_in(p->dag->node[i].in, p->dag->node[i].nin, t))
            continue;
        if (one != LS_NO_ID && one != x->c->stage[i])
            return LS_NO_ID;
        one = x->c->stage[i];
    }
    return one;
}

static void move_updates(Cut *x, const uint32_t *home)
{
    const LsProb *p = x->p;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; p->needed[i] && is_update(p, i) && k < p->dag->node[i].nin; k++)
            if (home[p->dag->node[i].in[k]] != LS_NO_ID)
                x->c->stage[i] = home[p->dag->node[i].in[k]];
}

/* Whether an update in that stage must wait until the end of the step for gradients of operand k.
 * Where its micro-batch has ended there, other stages have not made them yet. */
static bool comes_too_late(const Cut *x, uint32_t k, uint32_t stage)
{
    const LsProb *p = x->p;
    const uint32_t m = p->maker[p->in.id[k]], at = x->c->stage[m];
    return p->dag->node[m].kind == LS_DAG_BACKWARD && at != stage
           && (x->s->phase[m] == LS_PHASE_W || at < stage);
}

/* The stage that makes the gradients which an update would get too late, if it gets all of them in
 * time there; else its own. What adds up gradients of all micro-batches must run with each. */
static uint32_t stage_in_time(const Cut *x, uint32_t i)
{
    const LsProb *p = x->p;
    uint32_t stage = x->c->stage[i];
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++)
        if (comes_too_late(x, k, stage))
            stage = x->c->stage[p->maker[p->in.id[k]]];
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++)
        if (comes_too_late(x, k, stage))
            return x->c->stage[i];
    return stage;
}

/* Moves updates to gradients that come too late for them, with the states that they change. */
static void follow_gradients(Cut *x, uint32_t *home)
{
    const LsProb *p = x->p;
    for (uint32_t i = 0; i < p->n; i++) {
        const uint32_t stage =
            p->needed[i] && is_update(p, i) ? stage_in_time(x, i) : x->c->stage[i];
        for (uint32_t k = 0; stage != x->c->stage[i] && k < p->dag->node[i].nupd; k++)
            home[p->dag->node[i].upd[k]] = stage;
        x->c->stage[i] = stage;
    }
    move_updates(x, home);
}

/* The stage of the one update that reads what node i makes, and changes a state; LS_NO_ID: i has
 * other readers. */
static uint32_t stage_of_reader(const Cut *x, uint32_t i)
{
    const LsProb *p = x->p;
    uint32_t one = LS_NO_ID;
    for (uint32_t j = i + 1; j < p->n; j++)
        for (uint32_t k = p->in.at[j]; p->needed[j] && k < p->in.at[j + 1]; k++) {
            if (p->maker[p->in.id[k]] != i)
                continue;
            if (one != LS_NO_ID || !is_update(p, j) || p->dag->node[j].nupd == 0)
                return LS_NO_ID;
            one = x->c->stage[j];
        }
    return one;
}

/* What only widens a gradient for an update goes where the update is, if the gradient comes in time
 * there: sent behind the micro-batch that made it, it would come too late. */
static void follow_readers(Cut *x)
{
    const LsProb *p = x->p;
    for (uint32_t i = p->n; i-- > 0;) {
        const LsDagNode *n = &p->dag->node[i];
        if (!p->needed[i] || !is_update(p, i) || n->nupd > 0 || n->nout != 1
            || p->in.at[i + 1] - p->in.at[i] != 1
            || p->dag->tensor[n->out[0]].bytes < p->dag->tensor[p->in.id[p->in.at[i]]].bytes)
            continue;
        const uint32_t stage = stage_of_reader(x, i);
        if (stage != LS_NO_ID && !comes_too_late(x, p->in.at[i], stage))
            x->c->stage[i] = stage;
    }
}

/* By persistent tensor that changes: the stage that has it; others have copies. It is the stage of
 * the forward and backward nodes that read it or, if they are in several stages, that of its
 * update. Updates move to the state that they use, unless their gradients would come too late
 * there. */
static uint32_t *find_homes(Cut *x)
{
    const LsProb *p = x->p;
    const uint32_t *by = find_updaters(x);
    uint32_t *home = ls_arena_alloc(x->arena, p->nt + 1u, sizeof *home);
    for (uint32_t t = 0; t < p->nt; t++)
        home[t] = by[t] != LS_NO_ID ? only_stage(x, t) : LS_NO_ID;
    move_updates(x, home);
    for (uint32_t t = 0; t < p->nt; t++)
        if (by[t] != LS_NO_ID && home[t] == LS_NO_ID)
            home[t] = x->c->stage[by[t]];
    move_updates(x, home);
    follow_readers(x);
    follow_gradients(x, home);
    follow_readers(x);
    return home;
}

/* Nodes of other stages than that of a changing state get copies of it, unless they are updates. */
static bool gather_state(Cut *x)
{
    const LsProb *p = x->p;
    LsPipeCut *c = x->c;
    const uint32_t *home = x->home = find_homes(x);
    bool *copied = ls_arena_alloc(x->arena, (size_t)p->nt * c->k + 1, 1);
    uint32_t room = 0;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; p->needed[i] && k < p->dag->node[i].nin; k++) {
            const uint32_t t = p->dag->node[i].in[k], stage = c->stage[i];
            if (home[t] == LS_NO_ID || stage == home[t])
                continue;
            if (is_update(p, i))
                return ls_why(&x->why,
                              "'%s' changes with every step, and updates of stages %u and %u of "
                              "the pipeline need it",
                              p->dag->tensor[t].name, home[t] + 1, stage + 1);
            if (copied[(size_t)t * c->k + stage])
                continue;
            copied[(size_t)t * c->k + stage] = true;
            c->copy =
                ls_arena_grow(x->arena, c->copy, c->ncopy, c->ncopy + 1u, sizeof *c->copy, &room);
            c->copy[c->ncopy++] = (LsPipeCopy){t, home[t], stage, p->dag->tensor[t].bytes};
        }
    return true;
}

/* Updates that need nothing but values of phase F run in that phase: running statistics, and what
 * other updates wait for. Those of later stages are there only when phase B begins. */
static bool is_ahead(const Cut *x, uint32_t i)
{
    const LsProb *p = x->p;
    bool f = is_update(p, i);
    for (uint32_t k = p->in.at[i]; f && k < p->in.at[i + 1]; k++) {
        const uint32_t m = p->maker[p->in.id[k]];
        f = x->c->phase[m] == LS_PHASE_F && x->c->stage[m] <= x->c->stage[i];
    }
    return f;
}

/* Whether node i can only run after all micro-batches. weight: by node, it is in phase W. */
static bool is_late(const Cut *x, uint32_t i, const bool *weight)
{
    const LsProb *p = x->p;
    const LsPipeCut *c = x->c;
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++) {
        const uint32_t m = p->maker[p->in.id[k]];
        const bool apart = c->stage[m] != c->stage[i];
        if (c->phase[m] == LS_PHASE_LATE
            || (apart && (weight[m] || (c->phase[m] == LS_PHASE_B && c->stage[m] < c->stage[i]))))
            return true;
    }
    return false;
}

static bool set_phases(Cut *x)
{
    const LsProb *p = x->p;
    bool *weight = ls_arena_alloc(x->arena, p->n + 1u, 1);
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->needed[i])
            continue;
        const bool ahead = is_ahead(x, i);
        weight[i] = !ahead && x->s->phase[i] == LS_PHASE_W;
        x->c->phase[i] = ahead ? LS_PHASE_F : x->s->phase[i];
        if (x->c->phase[i] == LS_PHASE_W && !x->c->splits)
            x->c->phase[i] = LS_PHASE_B;
        if (ahead || !is_late(x, i, weight))
            continue;
        if (!is_update(p, i))
            return ls_why(
                &x->why,
                "'%s' needs gradients of other stages of the pipeline that come after its own",
                p->dag->node[i].name);
        x->c->phase[i] = LS_PHASE_LATE;
    }
    return true;
}

static bool flows(const LsPipeMove *m)
{
    const bool up = m->from < m->to;
    return m->read == LS_PHASE_LATE || m->made != m->read ? m->made <= m->read
                                                          : up == (m->made == LS_PHASE_F);
}

static bool find_moves(Cut *x)
{
    const LsProb *p = x->p;
    LsPipeCut *c = x->c;
    /* 1 + phase; 0: not read there */
    uint8_t *first = ls_arena_alloc(x->arena, (size_t)p->nt * c->k + 1, 1);
    size_t n = 0;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = p->in.at[i]; p->needed[i] && k < p->in.at[i + 1]; k++) {
            uint8_t *read = &first[(size_t)p->in.id[k] * c->k + c->stage[i]];
            n += *read == 0;
            if (*read == 0 || c->phase[i] + 1 < *read)
                *read = (uint8_t)(c->phase[i] + 1);
        }
    c->move = ls_arena_alloc(x->arena, n + 1, sizeof *c->move);
    for (uint32_t t = 0; t < p->nt; t++)
        for (uint32_t k = 0; k < c->k; k++) {
            const uint8_t read = first[(size_t)t * c->k + k];
            const uint32_t maker = p->maker[t];
            if (read == 0 || c->stage[maker] == k)
                continue;
            const LsPipeMove m = {t, c->stage[maker], k, c->phase[maker], (uint8_t)(read - 1),
                                  p->dag->tensor[t].bytes, LS_PHASE_F, LS_TO_THE_END};
            if (!flows(&m))
                return ls_why(&x->why,
                              "stage %u of the pipeline needs '%s' of stage %u before that has it",
                              k + 1, p->dag->tensor[t].name, m.from + 1);
            c->move[c->nmove++] = m;
        }
    return true;
}

/* Whether the stage has all changing states that the node reads, or copies of them. */
static bool has_states(const Cut *x, uint32_t stage, uint32_t i)
{
    const LsDagNode *n = &x->p->dag->node[i];
    for (uint32_t k = 0; k < n->nin; k++) {
        bool here = x->home[n->in[k]] == LS_NO_ID || x->home[n->in[k]] == stage;
        for (uint32_t j = 0; !here && j < x->c->ncopy; j++)
            here = x->c->copy[j].tensor == n->in[k] && x->c->copy[j].to == stage;
        if (!here)
            return false;
    }
    return true;
}

/* By tensor and stage: 1 + the phase in which it gets there; 0: never. */
static uint8_t *find_arrivals(const Cut *x)
{
    const LsProb *p = x->p;
    const LsPipeCut *c = x->c;
    uint8_t *there = ls_arena_alloc(x->arena, (size_t)p->nt * c->k + 1, 1);
    for (uint32_t t = 0; t < p->nt; t++)
        if (p->maker[t] != LS_NO_ID && p->needed[p->maker[t]])
            there[(size_t)t * c->k + c->stage[p->maker[t]]] = (uint8_t)(c->phase[p->maker[t]] + 1);
    for (uint32_t m = 0; m < c->nmove; m++)
        there[(size_t)c->move[m].tensor * c->k + c->move[m].to] = (uint8_t)(c->move[m].read + 1);
    return there;
}

/* An alternative runs where the node does that it replaces, if its operands are there in that
 * phase. */
static void place_alternatives(Cut *x)
{
    const LsProb *p = x->p;
    LsPipeCut *c = x->c;
    const uint8_t *there = find_arrivals(x);
    for (uint32_t v = 0; v < p->n; v++)
        for (uint32_t j = p->swap.at[v]; p->needed[v] && j < p->swap.at[v + 1]; j++) {
            const uint32_t i = p->swap.id[j];
            bool all = c->phase[v] != LS_PHASE_LATE && has_states(x, c->stage[v], i);
            for (uint32_t k = p->in.at[i]; all && k < p->in.at[i + 1]; k++) {
                const uint8_t at = there[(size_t)p->in.id[k] * c->k + c->stage[v]];
                all = at > 0 && at <= c->phase[v] + 1;
            }
            c->stage[i] = all ? c->stage[v] : LS_NO_ID;
            c->phase[i] = c->phase[v];
        }
}

bool ls_pipe_cut(LsArena *arena, const LsProb *p, const LsStages *s, bool splits, LsPipeCut *out,
                 char *why, size_t room)
{
    *out = (LsPipeCut){.p = p, .k = s->k, .splits = splits};
    out->stage = ls_arena_alloc(arena, p->n + 1u, sizeof *out->stage);
    out->phase = ls_arena_alloc(arena, p->n + 1u, 1);
    for (uint32_t i = 0; i < p->n; i++)
        out->stage[i] = p->needed[i] ? s->stage[i] : LS_NO_ID;
    Cut x = {.arena = arena, .p = p, .s = s, .c = out, .why = {.text = why, .size = room}};
    place_updates(&x);
    if (!gather_state(&x) || !set_phases(&x) || !find_moves(&x))
        return false;
    place_alternatives(&x);
    return true;
}
