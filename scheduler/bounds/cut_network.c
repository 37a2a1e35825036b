/* scheduler/bounds/cut_network.c -- builds the network from the end of the path, with only the
 * vertices reached. */
#include "scheduler/bounds/cut_network.h"

#include <math.h>
#include <string.h>

/* Returns whether g is separator k or waits for it: g runs there or later at no cost. */
static bool is_later(const LsBoundNet *net, uint32_t g, uint32_t k)
{
    return ls_bound_is_later(net->b, g, net->sep[k]);
}

/* Returns whether sk waits for g, so g has run before. */
static bool has_run(const LsBoundNet *net, uint32_t g, uint32_t k)
{
    return ls_bound_has_run(net->b, g, net->sep[k]);
}

/* Returns whether g cannot run at sk or later: it may run only once and has, or a tensor it reads
 * has been updated. */
static bool is_over(const LsBoundNet *net, uint32_t g, uint32_t k, const uint32_t *closes)
{
    return (net->b->stuck[g] && has_run(net, g, k)) || closes[g] <= net->sep[k];
}

/* By group: the first place of the path where a tensor it reads has been updated, or LS_NO_ID. */
static uint32_t *closings(const LsBoundGraph *b, LsArena *arena)
{
    const LsProb *p = b->p;
    uint32_t *closes = ls_arena_alloc(arena, p->n + 1u, sizeof *closes);
    memset(closes, 0xff, (p->n + 1u) * sizeof *closes);
    for (uint32_t u = 0; u < p->n; u++)
        for (uint32_t k = p->before.at[u]; k < p->before.at[u + 1]; k++) {
            uint32_t r = p->before.id[k];       /* u as a separator has not run when it starts */
            if (b->alone[u] && b->alone[r] && b->before[u] < closes[r])
                closes[r] = b->before[u];
        }
    return closes;
}

static void enqueue(LsBoundNet *net, uint32_t item)
{
    net->queue = ls_arena_grow(net->b->arena, net->queue, net->nqueue, net->nqueue + 1u,
                               sizeof *net->queue, &net->queue_room);
    net->queue[net->nqueue++] = item;
}

static uint32_t vertex_of_group(LsBoundNet *net, uint32_t g, uint32_t k)
{
    uint32_t *v = &net->group[g * net->nsep + k];
    if (*v == 0) {
        *v = net->nvertex++;
        enqueue(net, g * net->nsep + k);
    }
    return *v;
}

/* Returns the bytes of a tensor of the form set that stays at sk, beside sk's own bytes. */
static int64_t form_to_keep(const LsBoundNet *net, uint32_t set, const LsDagNode *s)
{
    const LsRows *form = &net->b->form;
    for (uint32_t k = form->at[set]; k < form->at[set + 1]; k++)
        if (ls_id_in(s->in, s->nin, form->id[k]) || ls_id_in(s->out, s->nout, form->id[k]))
            return 0;
    return net->b->bytes[net->b->p->nt + set];
}

/* Returns the bytes of t at sk that are not counted for its form sets. */
static int64_t bytes_beside_sets(const LsBoundNet *net, uint32_t t, uint32_t k)
{
    const LsBoundGraph *b = net->b;
    int64_t bytes = ls_bound_bytes(b->p, t);
    for (uint32_t j = b->sets.at[t]; j < b->sets.at[t + 1]; j++)
        if (!net->covered[b->sets.id[j] * net->nsep + k])
            bytes -= b->bytes[b->p->nt + b->sets.id[j]];
    return bytes;
}

/* Returns the bytes of keeping t at sk, beside sk's own bytes. An operand of sk is live anyway, but
 * if it stays no result can take its place. */
static int64_t bytes_to_keep(const LsBoundNet *net, uint32_t t, uint32_t k)
{
    const LsProb *p = net->b->p;
    const LsDagNode *s = &p->dag->node[net->b->path[net->sep[k]]];
    if (t >= p->nt)
        return net->covered[(t - p->nt) * net->nsep + k] ? 0 : form_to_keep(net, t - p->nt, s);
    if (!ls_id_in(s->in, s->nin, t))
        return bytes_beside_sets(net, t, k);
    int64_t bytes = 0;
    uint32_t npair = 0;         /* only if t alone may give its place, to one result */
    for (uint32_t a = 0; a < s->ninplace; a++) {
        if (!ls_bound_pair_fits(p, s->inplace[a]))
            continue;
        if (s->inplace[a].in == t) {
            npair++;
            bytes = ls_bound_bytes(p, s->inplace[a].out);
            for (uint32_t c = 0; c < s->ninplace; c++)
                npair += c != a && s->inplace[c].out == s->inplace[a].out
                         && ls_bound_pair_fits(p, s->inplace[c]);
        }
    }
    return npair == 1 ? bytes : 0;
}

static void add_keep(LsBoundNet *net, LsBoundKeep keep)
{
    net->keep = ls_arena_grow(net->b->arena, net->keep, net->nkeep, net->nkeep + 1u,
                              sizeof *net->keep, &net->keep_room);
    net->keep[net->nkeep++] = keep;
}

/* The vertex of needed(t, k), with its edge to the maker; 0: t costs nothing to keep there. */
static uint32_t vertex_of_tensor(LsBoundNet *net, uint32_t t, uint32_t k)
{
    uint32_t *v = &net->tensor[t * net->nsep + k];
    int64_t bytes = *v ? 0 : bytes_to_keep(net, t, k);
    if (bytes > 0) {
        uint32_t maker = vertex_of_group(net, net->b->maker[t], k);
        *v = net->nvertex++;
        add_keep(net, (LsBoundKeep){0, k, *v, maker, bytes});
    }
    return *v;
}

/* Marks the form sets whose root the group reads. */
static void cover(LsBoundNet *net, uint32_t g, uint32_t k)
{
    const LsBoundGraph *b = net->b;
    for (uint32_t j = b->in.at[g]; j < b->in.at[g + 1]; j++) {
        uint32_t t = b->in.id[j];
        if (t >= b->p->nt)
            continue;
        for (uint32_t i = b->sets.at[t]; i < b->sets.at[t + 1]; i++)
            if (b->form.id[b->form.at[b->sets.id[i]]] == t)
                net->covered[b->sets.id[i] * net->nsep + k] = true;
    }
}

/* Returns whether every schedule runs g after sk. */
static bool reads_behind(const LsBoundNet *net, uint32_t g, uint32_t k)
{
    return net->b->needed[g] && ls_bound_is_behind(net->b, g, net->sep[k]);
}

static void find_covered(LsBoundNet *net)
{
    const LsBoundGraph *b = net->b;
    net->covered = ls_arena_alloc(b->arena, (size_t)b->nform * net->nsep + 1, 1);
    for (uint32_t k = 0; b->nform > 0 && k < net->nsep; k++)
        for (uint32_t g = 0; g < b->p->n; g++)
            if (reads_behind(net, g, k))
                cover(net, g, k);
}

static void be_sure(LsBoundNet *net, uint32_t vertex)
{
    if (vertex == 0)
        return;
    net->sure = ls_arena_grow(net->b->arena, net->sure, net->nsure, net->nsure + 1u,
                              sizeof *net->sure, &net->sure_room);
    net->sure[net->nsure++] = vertex;
}

/* Adds the tensors that every schedule reads after sk. */
static void seed(LsBoundNet *net, uint32_t k)
{
    const LsBoundGraph *b = net->b;
    for (uint32_t g = 0; g < b->p->n; g++) {
        for (uint32_t j = b->in.at[g]; reads_behind(net, g, k) && j < b->in.at[g + 1]; j++)
            if (!is_later(net, b->maker[b->in.id[j]], k))
                be_sure(net, vertex_of_tensor(net, b->in.id[j], k));
        for (uint32_t j = b->out.at[g]; b->needed[g] && j < b->out.at[g + 1]; j++)
            if (b->p->dag->tensor[b->out.id[j]].output && !is_later(net, g, k))
                be_sure(net, vertex_of_tensor(net, b->out.id[j], k));
    }
}

/* Ends of the edges without limit, added to the flow once all vertices are known. */
typedef struct Edges {
    uint32_t *end, n, room;
} Edges;

static void add_edge(LsBoundNet *net, Edges *e, uint32_t from, uint32_t to)
{
    e->end = ls_arena_grow(net->b->arena, e->end, e->n, e->n + 2u, sizeof *e->end, &e->room);
    e->end[e->n++] = from;
    e->end[e->n++] = to;
}

/* Adds the edges from later(g, k) to the vertices that it implies. */
static void expand(LsBoundNet *net, Edges *e, uint32_t g, uint32_t k)
{
    const LsBoundGraph *b = net->b;
    uint32_t v = net->group[g * net->nsep + k];
    for (uint32_t j = b->in.at[g]; j < b->in.at[g + 1]; j++) {
        uint32_t t = b->in.id[j];
        uint32_t to = is_later(net, b->maker[t], k) ? 0 : vertex_of_tensor(net, t, k);
        if (to != 0)
            add_edge(net, e, v, to);
    }
    if (k > 0 && !is_later(net, g, k - 1))
        add_edge(net, e, v, vertex_of_group(net, g, k - 1));
}

static void reach(LsBoundNet *net, Edges *e, const uint32_t *closes, uint8_t *over)
{
    for (uint32_t k = net->nsep; k-- > 0;)
        seed(net, k);
    for (uint32_t x = 0; x < net->nqueue; x++) {
        uint32_t g = net->queue[x] / net->nsep, k = net->queue[x] % net->nsep;
        over[x] = is_over(net, g, k, closes);
        net->rigid |= over[x];
        if (!over[x])
            expand(net, e, g, k);
    }
}

/* Adds a vertex for each tensor that saves cost by staying, with one edge per separator to the
 * vertex `never`. */
static void add_stays(LsBoundNet *net)
{
    const LsBoundGraph *b = net->b;
    LsArena *tmp = ls_arena_new();
    LsBoundTwice *twice;
    uint32_t n = ls_bound_twice(tmp, b, net->sep, net->nsep, &twice);
    net->never = n > 0 ? net->nvertex++ : 0;
    net->stay = ls_arena_alloc(b->arena, n + 2u, sizeof *net->stay);
    for (uint32_t x = 0; x < n; x++) {
        LsBoundStay stay = {net->nvertex++, (int64_t)floor(twice[x].cost / net->grain)};
        for (uint32_t k = twice[x].from; k <= twice[x].to; k++) {
            int64_t bytes = bytes_to_keep(net, twice[x].tensor, k);
            if (bytes > 0 && !is_later(net, b->maker[twice[x].tensor], k))
                add_keep(net, (LsBoundKeep){0, k, stay.vertex, net->never, bytes});
        }
        net->stay[net->nstay++] = stay;
    }
    ls_arena_free(tmp);
}

static void lay_flow(LsBoundNet *net, const Edges *e, const uint8_t *over)
{
    const LsBoundGraph *b = net->b;
    LsFlow *f = &net->flow;
    *f = ls_flow_new(b->arena, net->nvertex);
    for (uint32_t x = 0; x < net->nkeep; x++) {
        LsBoundKeep *keep = &net->keep[x];
        keep->edge = ls_flow_edge(f, keep->from, keep->to, 0);
    }
    for (uint32_t x = 0; x < e->n; x += 2)
        ls_flow_edge(f, e->end[x], e->end[x + 1], LS_FLOW_ENDLESS);
    for (uint32_t x = 0; x < net->nqueue; x++) {
        uint32_t g = net->queue[x] / net->nsep, k = net->queue[x] % net->nsep;
        uint32_t v = net->group[net->queue[x]];
        bool first = has_run(net, g, k) && (k == 0 || !has_run(net, g, k - 1));
        int64_t cost = (int64_t)floor(b->cost[g] / net->grain);
        ls_flow_edge(f, v, LS_FLOW_SINK, over[x] ? LS_FLOW_ENDLESS : first ? cost : 0);
        if (!over[x]) {
            net->again = ls_arena_grow(b->arena, net->again, net->nagain, net->nagain + 1u,
                                       sizeof *net->again, &net->again_room);
            net->again[net->nagain++] = (LsBoundAgain){v, g, k, first ? cost : 0};
        }
    }
}

/* Turns the costs of tensors that do not stay on or off. */
static void charge_stays(LsBoundNet *net, bool charge)
{
    for (uint32_t x = 0; x < net->nstay; x++)
        ls_flow_set_ends(&net->flow, net->stay[x].vertex, charge ? net->stay[x].cost : 0, 0);
}

/* Fixes the tensors needed in any case, and charges for tensors that do not stay. */
static void force(LsBoundNet *net)
{
    for (uint32_t x = 0; x < net->nsure; x++)
        ls_flow_set_ends(&net->flow, net->sure[x], LS_FLOW_ENDLESS, 0);
    charge_stays(net, true);
    if (net->nstay > 0)
        ls_flow_set_ends(&net->flow, net->never, 0, LS_FLOW_ENDLESS);
}

/* The grain is a power of two, so that whole costs stay whole; costs are below 2^40 grains. */
static double grain_of(double base)
{
    int power;
    bool exact = frexp(base, &power) == 0.5;        /* base is 2^(power - 1) itself */
    return base > 0 ? ldexp(1, power - exact - 40) : 1;
}

LsBoundNet *ls_bound_net_new(LsArena *arena, const LsBoundGraph *b, const uint32_t *sep,
                             uint32_t nsep)
{
    LsBoundNet *net = ls_arena_alloc(arena, 1, sizeof *net);
    *net = (LsBoundNet){.b = b, .nsep = nsep, .nvertex = 2};
    net->sep = ls_arena_alloc(arena, nsep + 1u, sizeof *net->sep);
    net->fixed = ls_arena_alloc(arena, nsep + 1u, sizeof *net->fixed);
    net->tensor = ls_arena_alloc(arena, ((size_t)b->p->nt + b->nform) * nsep + 1,
                                 sizeof *net->tensor);
    net->group = ls_arena_alloc(arena, (size_t)b->p->n * nsep + 1, sizeof *net->group);
    for (uint32_t k = 0; k < nsep; k++) {
        net->sep[k] = sep[k];
        net->fixed[k] = b->own[b->path[sep[k]]];
    }
    net->grain = grain_of(b->base);
    Edges e = {0};
    uint8_t *over = ls_arena_alloc(arena, (size_t)b->p->n * nsep + 1, 1);
    find_covered(net);
    reach(net, &e, closings(b, arena), over);
    add_stays(net);
    lay_flow(net, &e, over);
    force(net);
    net->side = ls_arena_alloc(arena, net->nvertex, sizeof *net->side);
    return net;
}

/* Returns x rounded down to a valid capacity. */
static int64_t capacity(double x)
{
    const double most = (double)(INT64_C(1) << 44);
    return x >= most ? INT64_C(1) << 44 : (int64_t)floor(x * (1 - 0x1p-50));
}

/* Returns the value of the cut: the capacities of the edges that leave the source's side. */
static int64_t cut_value(const LsBoundNet *net)
{
    const LsFlow *f = &net->flow;
    int64_t sum = 0;
    for (uint32_t k = 0; k < f->nedge; k++)
        sum += net->side[f->end[2 * k]] && !net->side[f->end[2 * k + 1]] ? f->capacity[k] : 0;
    for (uint32_t v = 2; v < f->n; v++)
        sum += net->side[v] ? f->demand[v] : f->supply[v];
    return sum;
}

int64_t ls_bound_net_solve(LsBoundNet *net, const double *price, int64_t *cost, int64_t *held)
{
    for (uint32_t x = 0; x < net->nkeep; x++)
        ls_flow_set(&net->flow, net->keep[x].edge,
                    capacity(price[net->keep[x].k] * (double)net->keep[x].bytes));
    ls_flow_cut(&net->flow, net->side);
    *cost = 0;
    memset(held, 0, net->nsep * sizeof *held);
    for (uint32_t x = 0; x < net->nagain; x++)
        *cost += net->side[net->again[x].vertex] ? net->again[x].cost : 0;
    for (uint32_t x = 0; x < net->nstay; x++)
        *cost += net->side[net->stay[x].vertex] ? 0 : net->stay[x].cost;
    for (uint32_t x = 0; x < net->nkeep; x++) {
        uint32_t e = net->keep[x].edge;
        if (net->side[net->flow.end[2 * e]] && !net->side[net->flow.end[2 * e + 1]])
            held[net->keep[x].k] += net->keep[x].bytes;
    }
    return cut_value(net);
}

int64_t ls_bound_net_least(LsBoundNet *net, uint32_t k)
{
    if (!net->rigid)
        return net->fixed[k];
    for (uint32_t x = 0; x < net->nagain; x++)
        ls_flow_set_ends(&net->flow, net->again[x].vertex,
                         net->flow.supply[net->again[x].vertex], 0);
    charge_stays(net, false);
    for (uint32_t x = 0; x < net->nkeep; x++)
        ls_flow_set(&net->flow, net->keep[x].edge,
                    net->keep[x].k == k ? net->keep[x].bytes : 0);
    ls_flow_cut(&net->flow, net->side);
    int64_t least = net->fixed[k] + cut_value(net);
    for (uint32_t x = 0; x < net->nagain; x++)
        ls_flow_set_ends(&net->flow, net->again[x].vertex,
                         net->flow.supply[net->again[x].vertex], net->again[x].cost);
    charge_stays(net, true);
    return least;
}
