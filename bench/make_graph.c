/* bench/make_graph.c -- make_graph FAMILY SIZE [SEED]: prints a graph of the interchange
 * format, forward, backward and updates, to measure planners with.
 *
 *   chain N        N convolutions, each with a rectifier
 *   resnet N       N residual blocks with norms, in four stages that halve the values
 *   unet N         N levels down and up, a skip connection at each
 *   dense N        N layers, each of which reads all before it
 *   transformer N  N layers of attention and two dense layers
 *   dag N          N nodes that read one or two of the twelve before them
 *   layered N      N nodes in random layers, nothing backward: the kind of graph that orders are
 *                  measured with (Gagrani et al. 2022, appendix A), what became ready last
 *                  first
 *
 * Costs are ns of a machine with fast products; sizes are those of small training batches. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "scheduler/graph/dag_read.h"

/* The backward nodes of a forward node. All read the gradient of its result. If it has a weight,
 * they also read the weight, and the weight's gradient reads the first operand. */
enum {
    READS_IN = 1, READS_OUT = 2,        /* read the operands, the result */
    PASSES = 4,                 /* no backward nodes: the gradient of every operand is the result's
                                 * gradient */
    IN_PLACE = 8                /* result and gradient may take the place of what they are made
                                 * from */
};
enum { MOST_IN = 512, NONE = -1 };

typedef struct Layer {          /* a forward node with all that its backward part needs */
    uint32_t node, out;
    int in[MOST_IN], nin;       /* layers */
    int64_t weight;             /* tensor; NONE: there is none */
    int flags;
} Layer;

typedef struct Net {
    LsArena *arena;
    LsDag g;
    uint32_t node_room, tensor_room;
    Layer **layer; int nlayer; uint32_t layer_room;
    uint32_t *grad[2];          /* by layer: sum so far, number of parts */
    uint32_t x;
    uint64_t seed;
} Net;

static uint32_t below(Net *n, uint32_t limit)
{
    n->seed = n->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(n->seed >> 33) % limit;
}

static uint32_t tensor(Net *n, const char *name, uint32_t of, int64_t bytes, bool persistent)
{
    LsDag *g = &n->g;
    g->tensor = ls_arena_grow(n->arena, g->tensor, g->ntensor, g->ntensor + 1u, sizeof *g->tensor,
                              &n->tensor_room);
    g->tensor[g->ntensor] = (LsDagTensor){ls_arena_printf(n->arena, "%s%u", name, of), bytes,
                                          persistent, false};
    return g->ntensor++;
}

/* A node that makes `out`, if there is one, from the operands; optionally in place of the first. */
static LsDagNode *node(Net *n, const char *op, LsDagKind kind, double cost, const uint32_t *in,
                       uint32_t nin, int64_t out, bool inplace)
{
    LsDag *g = &n->g;
    g->node = ls_arena_grow(n->arena, g->node, g->nnode, g->nnode + 1u, sizeof *g->node,
                            &n->node_room);
    LsDagNode *v = &g->node[g->nnode];
    uint32_t *id = ls_arena_alloc(n->arena, nin + 2u, sizeof *id);
    *v = (LsDagNode){.name = ls_arena_printf(n->arena, "%s%u", op, g->nnode), .op = op,
                     .kind = kind, .cost = cost, .in = id, .out = id + nin, .nout = out != NONE,
                     .of = -1};
    for (uint32_t k = 0; k < nin; k++)          /* no operand twice */
        if (!ls_id_in(id, v->nin, in[k]))
            id[v->nin++] = in[k];
    id[nin] = (uint32_t)out;
    if (inplace && out != NONE && nin > 0 && !g->tensor[in[0]].persistent) {
        LsDagPair *pair = ls_arena_alloc(n->arena, 1, sizeof *pair);
        *pair = (LsDagPair){(uint32_t)out, in[0]};
        v->inplace = pair;
        v->ninplace = 1;
    }
    g->nnode++;
    return v;
}

/* A forward node; in: layers, NONE for the input of the network. returns its layer. */
static int layer(Net *n, const char *op, const int *in, int nin, int64_t bytes, int64_t weight,
                 double cost, int flags)
{
    uint32_t id[MOST_IN + 1];
    Layer *l = ls_arena_alloc(n->arena, 1, sizeof *l);
    *l = (Layer){.nin = nin, .weight = NONE, .flags = flags, .node = n->g.nnode};
    for (int k = 0; k < nin; k++) {
        l->in[k] = in[k];
        id[k] = in[k] == NONE ? n->x : n->layer[in[k]]->out;
    }
    if (weight > 0) {
        l->weight = tensor(n, "w", n->g.nnode, weight, true);
        id[nin] = (uint32_t)l->weight;
    }
    l->out = tensor(n, op, n->g.nnode, bytes, false);
    node(n, op, LS_DAG_FORWARD, cost, id, (uint32_t)nin + (weight > 0), l->out,
         (flags & IN_PLACE) != 0);
    n->layer = ls_arena_grow(n->arena, n->layer, (uint32_t)n->nlayer, (uint32_t)n->nlayer + 1,
                             sizeof *n->layer, &n->layer_room);
    n->layer[n->nlayer] = l;
    return n->nlayer++;
}

static int one(Net *n, const char *op, int in, int64_t bytes, int64_t weight, double cost,
               int flags)
{
    return layer(n, op, &in, 1, bytes, weight, cost, flags);
}

static int64_t size_of(const Net *n, int l) { return n->g.tensor[n->layer[l]->out].bytes; }

static int conv(Net *n, int in, int64_t bytes)
{
    return one(n, "Conv", in, bytes, 36864, 0.02 * (double)bytes, 0);
}
static int norm(Net *n, int in)
{
    return one(n, "Norm", in, size_of(n, in), 512, 0.002 * (double)size_of(n, in), READS_IN);
}
static int relu(Net *n, int in)
{
    return one(n, "Relu", in, size_of(n, in), 0, 0.001 * (double)size_of(n, in),
               READS_OUT | IN_PLACE);
}
static int add(Net *n, int a, int b)
{
    return layer(n, "Add", (int[]){a, b}, 2, size_of(n, a), 0, 0.0015 * (double)size_of(n, a),
                 PASSES | IN_PLACE);
}

/* One more part of the gradient of a layer. */
static void add_gradient(Net *n, int l, uint32_t part)
{
    uint32_t *sum = &n->grad[0][l];
    if (n->grad[1][l]++ == 0) {
        *sum = part;
        return;
    }
    int64_t bytes = size_of(n, l);
    uint32_t to = tensor(n, "sum", n->g.nnode, bytes, false);
    node(n, "Sum", LS_DAG_BACKWARD, 0.0015 * (double)bytes, (uint32_t[]){*sum, part}, 2, to,
         false);
    *sum = to;
}

static void weight_gradient(Net *n, const Layer *l, uint32_t dy, double cost)
{
    uint32_t w = (uint32_t)l->weight;
    uint32_t x = l->in[0] == NONE ? n->x : n->layer[l->in[0]]->out;
    uint32_t dw = tensor(n, "dw", n->g.nnode, n->g.tensor[w].bytes, false);
    node(n, "GradW", LS_DAG_BACKWARD, cost, (uint32_t[]){dy, x}, 2, dw, false)->of = l->node;
    uint32_t *upd = ls_arena_alloc(n->arena, 1, sizeof *upd);
    LsDagNode *v = node(n, "Sgd", LS_DAG_OPTIMIZER, 0.002 * (double)n->g.tensor[w].bytes,
                        (uint32_t[]){dw, w}, 2, NONE, false);
    *upd = w;
    v->upd = upd;
    v->nupd = 1;
    v->of = l->node;
}

static void backward(Net *n, int i)
{
    const Layer *l = n->layer[i];
    double cost = n->g.node[l->node].cost;
    uint32_t dy = n->grad[0][i], id[MOST_IN + 3];
    if (n->grad[1][i] == 0)
        return;
    for (int k = 0; k < l->nin; k++) {
        if (l->in[k] == NONE)
            continue;
        if (l->flags & PASSES) {
            add_gradient(n, l->in[k], dy);
            continue;
        }
        uint32_t nid = 0;
        id[nid++] = dy;
        for (int j = 0; j < l->nin && l->flags & READS_IN; j++)
            id[nid++] = n->layer[l->in[j]]->out;
        if (l->flags & READS_OUT)
            id[nid++] = l->out;
        if (l->weight != NONE)
            id[nid++] = (uint32_t)l->weight;
        uint32_t dx = tensor(n, "dx", n->g.nnode, size_of(n, l->in[k]), false);
        node(n, "GradX", LS_DAG_BACKWARD, cost, id, nid, dx, (l->flags & IN_PLACE) != 0)->of =
            l->node;
        add_gradient(n, l->in[k], dx);
    }
    if (l->weight != NONE)
        weight_gradient(n, l, dy, cost);
}

/* The loss of the last layer, and everything backward. */
static void finish(Net *n, int last)
{
    int loss = one(n, "Loss", last, 4, 0, 0.002 * (double)size_of(n, last), READS_IN);
    n->grad[0] = ls_arena_alloc(n->arena, (size_t)n->nlayer, sizeof *n->grad[0]);
    n->grad[1] = ls_arena_alloc(n->arena, (size_t)n->nlayer, sizeof *n->grad[1]);
    n->g.tensor[n->layer[loss]->out].output = true;
    uint32_t seed = tensor(n, "dloss", 0, 4, true);
    add_gradient(n, loss, seed);
    for (int i = n->nlayer; i-- > 0;)
        backward(n, i);
}

enum { KIB = 1024 };

static int chain(Net *n, int size)
{
    int at = NONE;
    for (int k = 0; k < size; k++)
        at = relu(n, conv(n, at, (int64_t)(512 + 256 * (k % 3)) * KIB));
    return at;
}

static int resnet(Net *n, int size)
{
    int64_t bytes = 2048 * KIB;
    int at = relu(n, norm(n, conv(n, NONE, bytes)));
    for (int k = 0; k < size; k++) {
        bool half = k > 0 && 4 * k / size != 4 * (k - 1) / size;
        bytes = half ? bytes / 2 : bytes;
        int skip = half ? conv(n, at, bytes) : at;
        int in = relu(n, norm(n, conv(n, at, bytes)));
        at = relu(n, add(n, norm(n, conv(n, in, bytes)), skip));
    }
    return at;
}

static int unet(Net *n, int size)
{
    int64_t bytes = (int64_t)4096 * KIB;
    int *skip = ls_arena_alloc(n->arena, (size_t)size, sizeof *skip), at = NONE;
    for (int k = 0; k < size; k++, bytes = bytes > 64 ? bytes / 2 : bytes) {
        skip[k] = relu(n, conv(n, relu(n, conv(n, at, bytes)), bytes));
        at = one(n, "MaxPool", skip[k], bytes / 4, 0, 0.002 * (double)bytes, READS_IN);
    }
    at = relu(n, conv(n, at, bytes / 2));
    for (int k = size; k-- > 0;) {
        bytes = size_of(n, skip[k]);
        int up = one(n, "Upsample", at, bytes, 0, 0.002 * (double)bytes, 0);
        int both = layer(n, "Concat", (int[]){up, skip[k]}, 2, 2 * bytes, 0,
                         0.002 * (double)bytes, 0);
        at = relu(n, conv(n, relu(n, conv(n, both, bytes)), bytes));
    }
    return at;
}

static int dense(Net *n, int size)
{
    int in[MOST_IN], many = 0;
    in[many++] = conv(n, NONE, 1024 * KIB);
    for (int k = 0; k < size && many < MOST_IN; k++) {
        int64_t bytes = (int64_t)(1024 + 256 * k) * KIB;
        int all = layer(n, "Concat", in, many, bytes, 0, 0.002 * (double)bytes, 0);
        in[many++] = conv(n, relu(n, norm(n, all)), 256 * KIB);
    }
    return in[many - 1];
}

static int transformer(Net *n, int size)
{
    int64_t bytes = 512 * KIB;
    int at = one(n, "Gather", NONE, bytes, 65536, 0.002 * (double)bytes, 0);
    for (int k = 0; k < size; k++) {
        int in = norm(n, at), part[3];
        for (int j = 0; j < 3; j++)
            part[j] = one(n, "MatMul", in, bytes, 65536, 0.01 * (double)bytes, 0);
        int scores = layer(n, "MatMul", part, 2, 4 * bytes, 0, 0.02 * (double)bytes, READS_IN);
        int weights = one(n, "Softmax", scores, 4 * bytes, 0, 0.008 * (double)bytes,
                          READS_OUT | IN_PLACE);
        int mixed = layer(n, "MatMul", (int[]){weights, part[2]}, 2, bytes, 0,
                          0.02 * (double)bytes, READS_IN);
        at = add(n, one(n, "MatMul", mixed, bytes, 65536, 0.01 * (double)bytes, 0), at);
        int wide = one(n, "MatMul", norm(n, at), 4 * bytes, 262144, 0.04 * (double)bytes, 0);
        wide = one(n, "Gelu", wide, 4 * bytes, 0, 0.008 * (double)bytes, READS_IN);
        at = add(n, one(n, "MatMul", wide, bytes, 262144, 0.04 * (double)bytes, 0), at);
    }
    return at;
}

static int dag(Net *n, int size)
{
    enum { REACH = 12 };
    int at = conv(n, NONE, 512 * KIB);
    for (int k = 1; k < size; k++) {
        uint32_t reach = at + 1 < REACH ? (uint32_t)at + 1 : REACH;
        int64_t bytes = (int64_t)(64 + below(n, 1024)) * KIB;
        int in[2] = {at, at - (int)below(n, reach)};
        at = layer(n, "Op", in, in[0] == in[1] ? 1 : 2, bytes, below(n, 2) ? 16384 : 0,
                   0.001 * (double)(bytes * (1 + below(n, 20))), 1 << below(n, 2));
    }
    return at;
}

/* ---- layered ---- */

/* Widths vary by three quarters about two thirds of the root of the size; a node is joined to nodes
 * within a tenth of the width to both sides, and one edge in seven skips layers. */
typedef struct Layers {
    int n, width[1001];         /* nodes between the first and the last; nodes of a layer */
    int first[1001], depth;     /* node that a layer begins with */
    bool *edge;                 /* from * (n + 2) + to */
} Layers;

static double part(Net *n) { return below(n, 1u << 20) / (double)(1u << 20); }

static void join(Layers *l, int from, int to) { l->edge[(size_t)from * (l->n + 2) + to] = true; }

static void find_layers(Net *n, Layers *l)
{
    double mean = 0.66 * sqrt(l->n);
    for (int left = l->n, at = 1; left > 0; l->depth++) {
        int width = (int)(mean * (0.25 + 1.5 * part(n)) + 0.5);
        width = width < 1 ? 1 : width > left ? left : width;
        l->first[l->depth] = at;
        l->width[l->depth] = width;
        at += width;
        left -= width;
    }
}

/* Joins layers k and k + 1: nodes at a similar relative position, and always the nearest node. */
static void join_neighbours(Layers *l, int k)
{
    int a = l->width[k], b = l->width[k + 1];
    for (int i = 0; i < a; i++) {
        int near = (2 * i + 1) * b / (2 * a);
        join(l, l->first[k] + i, l->first[k + 1] + near);
        for (int j = 0; j < b; j++) {
            if (fabs((i + 0.5) / a - (j + 0.5) / b) < 0.1 + 0.5 / b)
                join(l, l->first[k] + i, l->first[k + 1] + j);
        }
    }
    for (int j = 0; j < b; j++)
        join(l, l->first[k] + (2 * j + 1) * a / (2 * b), l->first[k + 1] + j);
}

static void join_all(Net *n, Layers *l)
{
    int edges = 0, last = l->n + 1;
    for (int k = 0; k + 1 < l->depth; k++)
        join_neighbours(l, k);
    for (int k = 0; k < l->width[0]; k++)
        join(l, 0, 1 + k);
    for (int k = 0; k < l->width[l->depth - 1]; k++)
        join(l, last - 1 - k, last);
    for (int k = 0; k < (last + 1) * (last + 1); k++)
        edges += l->edge[k];
    for (int k = 0; k < edges / 6 && l->depth > 2; k++) {
        int from = (int)below(n, (uint32_t)l->depth - 2);
        int to = from + 2 + (int)below(n, (uint32_t)(l->depth - from - 2));
        join(l, l->first[from] + (int)below(n, (uint32_t)l->width[from]),
             l->first[to] + (int)below(n, (uint32_t)l->width[to]));
    }
}

/* The waiting nodes: the node that became ready last runs first; nodes that became ready together
 * run in any order. */
typedef struct Stack { int *v, n; } Stack;

static void push(Stack *s, int v) { s->v[s->n++] = v; }

/* Shuffles the nodes above `first`. */
static void shuffle(Net *n, Stack *s, int first)
{
    for (int k = s->n - 1; k > first; k--) {
        int other = first + (int)below(n, (uint32_t)(k - first + 1)), v = s->v[k];
        s->v[k] = s->v[other];
        s->v[other] = v;
    }
}

static int layered(Net *n, int size)
{
    Layers l = {.n = size < 3 ? 1 : size < 10000 ? size - 2 : 9998};
    int many = l.n + 2;
    l.edge = ls_arena_alloc(n->arena, (size_t)many * (size_t)many, sizeof *l.edge);
    find_layers(n, &l);
    join_all(n, &l);
    uint32_t *made = ls_arena_alloc(n->arena, (size_t)many, sizeof *made);
    uint32_t *in = ls_arena_alloc(n->arena, (size_t)many, sizeof *in);
    int *wait = ls_arena_alloc(n->arena, (size_t)many, sizeof *wait);
    for (int k = 0; k < many * many; k++)
        wait[k % many] += l.edge[k];
    Stack ready = {.v = ls_arena_alloc(n->arena, (size_t)many, sizeof(int))};
    for (push(&ready, 0); ready.n > 0;) {
        int v = ready.v[--ready.n], first = ready.n;
        uint32_t nin = 0;
        int64_t bytes = 10 * (1 + (int64_t)(400 * part(n) * (part(n) + part(n))));
        made[v] = tensor(n, "v", (uint32_t)v, bytes, false);
        for (int u = 0; u < many; u++) {
            if (l.edge[(size_t)u * many + v])
                in[nin++] = made[u];
            if (l.edge[(size_t)v * many + u] && --wait[u] == 0)
                push(&ready, u);
        }
        shuffle(n, &ready, first);
        node(n, "Op", LS_DAG_FORWARD, below(n, 1000), in, nin, made[v], false)->required =
            v == many - 1;
    }
    return NONE;
}

int main(int argc, char **argv)
{
    static const struct { const char *name; int (*make)(Net *n, int size); } family[] = {
        {"chain", chain}, {"resnet", resnet}, {"unet", unet},
        {"dense", dense}, {"transformer", transformer}, {"dag", dag}, {"layered", layered}};
    long size = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    Net n = {.arena = ls_arena_new(), .seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1};
    char why[300];
    for (size_t k = 0; k < sizeof family / sizeof *family && size > 0 && size <= 1000000; k++) {
        if (strcmp(argv[1], family[k].name) != 0)
            continue;
        n.g.name = ls_arena_printf(n.arena, "%s%ld", argv[1], size);
        bool trains = family[k].make != layered;
        n.g.alignment = trains ? 64 : 1;
        if (trains)
            n.x = tensor(&n, "x", 0, 602112, true);
        int last = family[k].make(&n, (int)size);
        if (trains)
            finish(&n, last);
        if (!ls_dag_check(&n.g, why, sizeof why)) {
            fprintf(stderr, "make_graph: %s\n", why);
            return 1;
        }
        ls_dag_write(stdout, &n.g);
        ls_arena_free(n.arena);
        return 0;
    }
    fprintf(stderr,
            "usage: make_graph chain|resnet|unet|dense|transformer|dag|layered SIZE [SEED]\n");
    return 2;
}
