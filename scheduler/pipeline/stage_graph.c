/* scheduler/pipeline/stage_graph.c -- see the header. */
#include "scheduler/pipeline/stage_graph.h"

#include <string.h>

typedef struct Maker {
    LsArena *arena;
    const LsProb *p;
    const LsStages *s;
    uint32_t stage;
    LsStageGraph *out;
    uint32_t *node;             /* by node of the whole graph: its node here, or LS_NO_ID */
    uint8_t *there;             /* by tensor: made or received */
    const LsStageSend **from;   /* by tensor: how it comes here, or NULL */
    uint32_t *token, ntoken;    /* of the last nodes of a phase */
} Maker;

static bool is_here(const Maker *m, uint32_t i) { return m->s->stage[i] == m->stage; }

static LsDagNode *add(Maker *m, uint32_t of)
{
    LsDag *g = &m->out->dag;
    m->out->node_of[g->nnode] = of;
    return &g->node[g->nnode++];
}

static uint32_t *one_id(Maker *m, uint32_t id)
{
    uint32_t *list = ls_arena_alloc(m->arena, 1, sizeof *list);
    list[0] = id;
    return list;
}

static void receive(Maker *m, uint32_t t)
{
    const LsDagNode *maker = &m->p->dag->node[m->p->maker[t]];
    m->there[t] = true;
    *add(m, LS_NO_ID) = (LsDagNode){.name = ls_arena_printf(m->arena, "receive %s", m->p->dag->tensor[t].name),
                                    .op = "Receive", .kind = maker->kind, .once = true, .required = true, .of = -1,
                                    .out = one_id(m, t), .nout = 1};
}

/* Whether some node of the stage reads a result, in that phase; LS_PHASES: in any. */
static bool is_read_here(const Maker *m, uint32_t i, LsPipePhase phase)
{
    const LsProb *p = m->p;
    for (uint32_t j = i + 1; j < p->n; j++)
        for (uint32_t k = p->in.at[j]; p->needed[j] && is_here(m, j) && k < p->in.at[j + 1]; k++)
            if (p->maker[p->in.id[k]] == i && (phase == LS_PHASES || m->s->phase[j] == phase))
                return true;
    return false;
}

static void put(Maker *m, uint32_t i)
{
    const LsProb *p = m->p;
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++)
        if (!m->there[p->in.id[k]] && m->from[p->in.id[k]] != NULL)
            receive(m, p->in.id[k]);
    LsDagNode *n = add(m, i);
    *n = p->dag->node[i];
    m->node[i] = m->out->dag.nnode - 1;
    n->of = n->of >= 0 && m->node[n->of] != LS_NO_ID ? (int64_t)m->node[n->of] : -1;
    n->required |= p->needed[i] && !n->alternative && !is_read_here(m, i, LS_PHASES);
    for (uint32_t k = 0; k < n->nout; k++)
        m->there[n->out[k]] = true;
}

/* A tensor without bytes, behind the others. */
static uint32_t add_token(Maker *m)
{
    LsDag *g = &m->out->dag;
    g->tensor[g->ntensor] = (LsDagTensor){.name = "order"};
    return g->ntensor++;
}

/* The last nodes of a phase give the gate behind it a token; alternatives cannot, and are left out there. */
static void put_token(Maker *m, LsDagNode *n)
{
    uint32_t *out = ls_arena_alloc(m->arena, n->nout + 1u, sizeof *out);
    for (uint32_t k = 0; k < n->nout; k++)
        out[k] = n->out[k];
    out[n->nout++] = m->token[m->ntoken++] = add_token(m);
    n->out = out;
}

static void wait_for(LsArena *arena, LsDagNode *n, uint32_t token)
{
    uint32_t *in = ls_arena_alloc(arena, n->nin + 1u, sizeof *in);
    for (uint32_t k = 0; k < n->nin; k++)
        in[k] = n->in[k];
    in[n->nin++] = token;
    n->in = in;
}

/* A node that waits for the whole phase, and for nodes from `first` on. Returns its id, or LS_NO_ID if there is nothing to
 * wait for. */
static uint32_t put_gate(Maker *m, LsPipePhase phase, uint32_t first)
{
    const LsProb *p = m->p;
    m->token = ls_arena_alloc(m->arena, p->n + p->nt + 1u, sizeof *m->token);
    m->ntoken = 0;
    for (uint32_t i = first; i < m->out->dag.nnode; i++)
        put_token(m, &m->out->dag.node[i]);
    for (uint32_t i = 0; i < p->n; i++)
        if (is_here(m, i) && m->s->phase[i] == phase && p->needed[i] && !is_read_here(m, i, phase))
            put_token(m, &m->out->dag.node[m->node[i]]);
    if (m->ntoken == 0)
        return LS_NO_ID;
    const uint32_t token = add_token(m), gate = m->out->dag.nnode;
    *add(m, LS_NO_ID) = (LsDagNode){.name = "gate", .op = "Gate", .required = true, .of = -1,
                                    .kind = phase == LS_PHASE_F ? LS_DAG_FORWARD : LS_DAG_BACKWARD,
                                    .in = m->token, .nin = m->ntoken, .out = one_id(m, token), .nout = 1};
    return gate;
}

static void put_phase(Maker *m, unsigned phases)
{
    for (uint32_t i = 0; i < m->p->n; i++)
        if (is_here(m, i) && (phases >> m->s->phase[i] & 1) && (m->p->needed[i] || m->p->dag->node[i].alternative))
            put(m, i);
}

/* Nodes from `first` on wait for the gate, unless they read a node that does. */
static void hold_back(Maker *m, uint32_t first, uint32_t gate)
{
    LsArena *tmp = ls_arena_new();
    LsDag *g = &m->out->dag;
    bool *behind = ls_arena_alloc(tmp, g->ntensor + 1u, 1);
    for (uint32_t i = first; gate != LS_NO_ID && i < g->nnode; i++) {
        bool waits = false;
        for (uint32_t k = 0; k < g->node[i].nin; k++)
            waits |= behind[g->node[i].in[k]];
        if (!waits)
            wait_for(m->arena, &g->node[i], g->node[gate].out[0]);
        for (uint32_t k = 0; k < g->node[i].nout; k++)
            behind[g->node[i].out[k]] = true;
    }
    ls_arena_free(tmp);
}

static void put_all(Maker *m, bool apart)
{
    LsStageGraph *out = m->out;
    put_phase(m, 1u << LS_PHASE_F);
    uint32_t first = out->dag.nnode;
    for (uint32_t t = 0; t < m->p->nt; t++)         /* what only B and W read comes in phase F, too */
        if (m->from[t] != NULL && m->from[t]->made == LS_PHASE_F && !m->there[t])
            receive(m, t);
    out->turn = put_gate(m, LS_PHASE_F, first);
    first = out->dag.nnode;
    put_phase(m, apart ? 1u << LS_PHASE_B : 1u << LS_PHASE_B | 1u << LS_PHASE_W);
    hold_back(m, first, out->turn);
    if (!apart)
        return;
    out->gate = put_gate(m, LS_PHASE_B, out->dag.nnode);
    first = out->dag.nnode;
    put_phase(m, 1u << LS_PHASE_W);
    hold_back(m, first, out->gate);
}

LsStageGraph *ls_stage_graph(LsArena *arena, const LsProb *p, const LsStages *s, uint32_t stage, bool apart)
{
    LsArena *tmp = ls_arena_new();
    LsStageGraph *out = ls_arena_alloc(arena, 1, sizeof *out);
    Maker m = {.arena = arena, .p = p, .s = s, .stage = stage, .out = out};
    out->dag = *p->dag;
    out->dag.node = ls_arena_alloc(arena, 2u * p->n + p->nt + 4, sizeof *out->dag.node);
    out->dag.nnode = 0;
    out->dag.tensor = ls_arena_alloc(arena, 2 * p->nt + 2 * p->n + 4u, sizeof *out->dag.tensor);
    if (p->nt > 0)
        memcpy(out->dag.tensor, p->dag->tensor, p->nt * sizeof *out->dag.tensor);
    out->node_of = ls_arena_alloc(arena, 2u * p->n + p->nt + 4, sizeof *out->node_of);
    out->turn = out->gate = LS_NO_ID;
    m.node = ls_arena_alloc(tmp, p->n + 1u, sizeof *m.node);
    m.there = ls_arena_alloc(tmp, p->nt + 1u, 1);
    m.from = ls_arena_alloc(tmp, p->nt + 1u, sizeof(LsStageSend *));
    for (uint32_t i = 0; i < p->n; i++)
        m.node[i] = LS_NO_ID;
    for (uint32_t k = 0; k < s->nsend; k++)
        if (s->send[k].to == stage)
            m.from[s->send[k].tensor] = &s->send[k];
    put_all(&m, apart);
    for (uint32_t t = 0; t < p->nt; t++)
        out->dag.tensor[t].output &= m.there[t];
    ls_arena_free(tmp);
    return out;
}
