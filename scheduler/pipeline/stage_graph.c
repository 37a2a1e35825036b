/* scheduler/pipeline/stage_graph.c -- see the header. */
#include "scheduler/pipeline/stage_graph.h"

#include <string.h>

typedef struct Build {
    LsArena *arena;
    const LsPipeCut *c;
    const LsProb *p;
    uint32_t stage;
    bool late;
    LsPipeGraph *g;
    uint32_t *place;            /* by node of the whole graph: its place here, or LS_NO_ID */
    bool *forward;              /* by tensor: it is sent from F to F */
    bool *held;                 /* by tensor: it is sent, not from F to F, and made once */
    uint32_t *changed, nchanged;        /* tokens of nodes of this phase that change a state */
} Build;

static bool is_mine(const Build *b, uint32_t i)
{
    const LsPipeCut *c = b->c;
    return c->stage[i] == b->stage && (b->p->needed[i] || b->p->dag->node[i].alternative)
           && (c->phase[i] != LS_PHASE_LATE || b->late);
}

static bool makes_one(const LsDagNode *n, const bool *of)
{
    for (uint32_t k = 0; k < n->nout; k++)
        if (of[n->out[k]])
            return true;
    return false;
}

/* What the stage sends, and the late phase reads. Later phases of other stages may receive at any
 * time after the phase that made it, so plans have it live to the end, and make it once. In the
 * graph that runs the layout says how long it lives. */
static void mark_outputs(Build *b)
{
    const LsPipeCut *c = b->c;
    LsDagTensor *t = b->g->dag.tensor;
    for (uint32_t i = 0; i < b->g->dag.ntensor; i++)
        t[i].output &= b->p->maker[i] != LS_NO_ID && is_mine(b, b->p->maker[i]);
    for (uint32_t k = 0; k < c->nmove; k++) {
        const LsPipeMove *m = &c->move[k];
        b->forward[m->tensor] |= m->from == b->stage && ls_move_is_forward(m);
        if (m->from != b->stage || (m->made == LS_PHASE_F && m->read == LS_PHASE_F)
            || (m->made == LS_PHASE_LATE && !b->late))
            continue;
        b->held[m->tensor] = true;
        t[m->tensor].output |= !b->late || m->read == LS_PHASE_LATE;
    }
    for (uint32_t i = 0; i < b->p->n && !b->late; i++)
        for (uint32_t k = b->p->in.at[i]; k < b->p->in.at[i + 1]; k++) {
            const uint32_t in = b->p->in.id[k];
            if (b->p->needed[i] && c->stage[i] == b->stage && c->phase[i] == LS_PHASE_LATE
                && is_mine(b, b->p->maker[in]))
                t[in].output = true;
        }
}

static void add(Build *b, const LsDagNode *n, uint32_t of)
{
    b->g->node_of[b->g->dag.nnode] = of;
    b->g->dag.node[b->g->dag.nnode++] = *n;
}

/* Writes what all of phase B leads to: what W reads of it (and B's own token, if W reads nothing).
 * Returns the number. */
static uint32_t add_end_of_b(const Build *b, bool *seen, uint32_t *to)
{
    const LsDagNode *begin = &b->g->dag.node[b->g->begin[LS_PHASE_B]];
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->p->n; i++)
        for (uint32_t k = b->p->in.at[i];
             b->p->needed[i] && is_mine(b, i) && k < b->p->in.at[i + 1]; k++) {
            const uint32_t t = b->p->in.id[k], m = b->p->maker[t];
            if (b->c->phase[i] != LS_PHASE_W || seen[t] || b->c->stage[m] != b->stage
                || b->c->phase[m] != LS_PHASE_B)
                continue;
            seen[t] = true;
            to[n++] = t;
        }
    to[n++] = begin->out[begin->nout - 1];
    return n;
}

static uint32_t new_token(Build *b, const char *name)
{
    b->g->dag.tensor[b->g->dag.ntensor] = (LsDagTensor){.name = name};
    return b->g->dag.ntensor++;
}

/* Appends the node that begins the phase, if anything arrives for it or must wait for it. */
static void add_begin(Build *b, LsPipePhase phase, const char *name)
{
    const LsPipeCut *c = b->c;
    uint32_t *in = ls_arena_alloc(b->arena, c->nmove + b->p->nt + b->nchanged + 2u, sizeof *in),
             nin = 0;
    uint32_t *out = ls_arena_alloc(b->arena, c->nmove + 2u, sizeof *out), nout = 0;
    bool *seen = ls_arena_alloc(b->arena, b->p->nt + 1u, 1);
    for (uint32_t k = 0; k < c->nmove; k++) {
        const LsPipeMove *m = &c->move[k];
        if (!b->late && m->from == b->stage && m->made + 1 == (int)phase
            && (int)phase != LS_PHASE_LATE && !seen[m->tensor]) {
            seen[m->tensor] = true;
            in[nin++] = m->tensor;
        }
        if (m->to == b->stage && m->read == (uint8_t)phase)
            out[nout++] = m->tensor;
    }
    /* the loss is read after phase F */
    for (uint32_t t = 0; phase == LS_PHASE_B && t < b->p->nt; t++)
        if (b->p->dag->tensor[t].output && b->p->maker[t] != LS_NO_ID && is_mine(b, b->p->maker[t])
            && !seen[t] && c->phase[b->p->maker[t]] == LS_PHASE_F)
            in[nin++] = t;
    if (phase == LS_PHASE_W)
        nin += add_end_of_b(b, seen, in + nin);
    for (; b->nchanged > 0; b->nchanged--)
        in[nin++] = b->changed[b->nchanged - 1];
    if (phase != LS_PHASE_F)
        out[nout++] = new_token(b, name);
    if (nout == 0)
        return;
    b->g->begin[phase] = b->g->dag.nnode;
    /* Where B begins, the forward part ends: what hints make again comes later. */
    add(b,
        &(LsDagNode){.name = name,
                     .op = "phase",
                     .kind = phase <= LS_PHASE_B ? LS_DAG_FORWARD : LS_DAG_BACKWARD,
                     .in = in,
                     .nin = nin,
                     .out = out,
                     .nout = nout,
                     .once = true,
                     .required = true,
                     .of = -1},
        LS_NO_ID);
}

/* Whether node i of the whole graph can only run after its phase has begun, as it reads what the
 * phase makes or gets. */
static bool waits_anyway(const Build *b, uint32_t i)
{
    const LsPipeCut *c = b->c;
    const LsDagNode *begin = &b->g->dag.node[b->g->begin[c->phase[i]]];
    for (uint32_t k = b->p->in.at[i]; k < b->p->in.at[i + 1]; k++) {
        const uint32_t t = b->p->in.id[k], m = b->p->maker[t];
        if ((c->stage[m] == b->stage && c->phase[m] == c->phase[i])
            || ls_id_in(begin->out, begin->nout, t))
            return true;
    }
    return false;
}

/* No result takes the place of what may be on its way: in phase F what is sent to a phase F, and
 * ever what else is sent. */
static void keep_messages(const Build *b, uint32_t i, LsDagNode *n)
{
    LsDagPair *pair = ls_arena_alloc(b->arena, n->ninplace + 1u, sizeof *pair);
    uint32_t many = 0;
    for (uint32_t k = 0; k < n->ninplace; k++)
        if (!b->held[n->inplace[k].in]
            && !(b->forward[n->inplace[k].in] && b->c->phase[i] == LS_PHASE_F))
            pair[many++] = n->inplace[k];
    n->inplace = pair;
    n->ninplace = many;
}

/* Gives the node a token that the next phase waits for. It is a part of the forward graph then, if
 * its phase is F. */
static void add_changed(Build *b, LsDagNode *n, uint8_t phase)
{
    uint32_t *out = ls_arena_alloc(b->arena, n->nout + 1u, sizeof *out);
    if (n->nout > 0)
        memcpy(out, n->out, n->nout * sizeof *out);
    out[n->nout] = b->changed[b->nchanged++] = new_token(b, n->name);
    n->out = out;
    n->nout++;
    n->kind = phase == LS_PHASE_F ? LS_DAG_FORWARD : n->kind;
}

static void add_node(Build *b, uint32_t i)
{
    const LsDagNode *from = &b->p->dag->node[i];
    LsDagNode n = *from;
    const uint8_t phase = b->c->phase[i];
    n.of = from->of >= 0 && b->place[from->of] != LS_NO_ID ? (int64_t)b->place[from->of] : -1;
    n.once |= makes_one(from, b->held);
    if (b->late)
        keep_messages(b, i, &n);
    if (phase != LS_PHASE_F && !waits_anyway(b, i)) {
        const LsDagNode *begin = &b->g->dag.node[b->g->begin[phase]];
        uint32_t *in = ls_arena_alloc(b->arena, n.nin + 1u, sizeof *in);
        if (n.nin > 0)
            memcpy(in, n.in, n.nin * sizeof *in);
        in[n.nin++] = begin->out[begin->nout - 1];
        n.in = in;
    }
    if (n.nupd > 0 && phase < (b->c->splits ? LS_PHASE_W : LS_PHASE_B))
        add_changed(b, &n, phase);
    b->place[i] = b->g->dag.nnode;
    add(b, &n, i);
}

static void add_phase(Build *b, int phase)
{
    static const char *const name[LS_STAGE_PHASES] = {"(phase F)", "(phase B)", "(phase W)",
                                                      "(after all micro-batches)"};
    add_begin(b, (LsPipePhase)phase, name[phase]);
    for (uint32_t i = 0; i < b->p->n; i++)
        if (is_mine(b, i) && b->c->phase[i] == phase)
            add_node(b, i);
}

void ls_pipe_graph(LsArena *arena, const LsPipeCut *c, uint32_t stage, bool late, LsPipeGraph *out)
{
    const LsProb *p = c->p;
    Build b = {.arena = arena, .c = c, .p = p, .stage = stage, .late = late, .g = out};
    const size_t nodes = p->n + (size_t)LS_STAGE_PHASES, tensors = p->nt + nodes;
    *out = (LsPipeGraph){.dag = *p->dag};
    out->dag.node = ls_arena_alloc(arena, nodes, sizeof *out->dag.node);
    out->dag.nnode = 0;
    out->dag.tensor = ls_arena_alloc(arena, tensors, sizeof *out->dag.tensor);
    memcpy(out->dag.tensor, p->dag->tensor, p->nt * sizeof *out->dag.tensor);
    out->node_of = ls_arena_alloc(arena, nodes, sizeof *out->node_of);
    memset(out->begin, 0xff, sizeof out->begin);
    b.place = ls_arena_alloc(arena, p->n + 1u, sizeof *b.place);
    memset(b.place, 0xff, p->n * sizeof *b.place);
    b.forward = ls_arena_alloc(arena, p->nt + 1u, 1);
    b.held = ls_arena_alloc(arena, p->nt + 1u, 1);
    b.changed = ls_arena_alloc(arena, p->n + 1u, sizeof *b.changed);
    mark_outputs(&b);
    for (int phase = LS_PHASE_F; phase < LS_PHASE_LATE; phase++)
        if (phase != LS_PHASE_W || c->splits)
            add_phase(&b, phase);
    out->nplanned = out->dag.nnode;
    if (late)
        add_phase(&b, LS_PHASE_LATE);
}

static void mark_all(bool *at, const uint32_t *id, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        at[id[k]] = true;
}

LsDag ls_pipe_graph_alone(LsArena *arena, const LsPipeGraph *of, const char *name)
{
    LsDag g = of->dag;
    bool *here = ls_arena_alloc(arena, g.ntensor + 1u, 1);
    for (uint32_t i = 0; i < g.nnode; i++) {
        mark_all(here, g.node[i].in, g.node[i].nin);
        mark_all(here, g.node[i].out, g.node[i].nout);
        mark_all(here, g.node[i].upd, g.node[i].nupd);
    }
    g.name = name;
    g.tensor = ls_arena_alloc(arena, g.ntensor + 1u, sizeof *g.tensor);
    for (uint32_t t = 0; t < g.ntensor; t++)
        g.tensor[t] = here[t] ? of->dag.tensor[t] : (LsDagTensor){.name = of->dag.tensor[t].name};
    return g;
}
