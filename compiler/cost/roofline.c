/* compiler/cost/roofline.c -- a node's operations, bytes and time. */
#include "compiler/cost/roofline.h"

#include "compiler/ops/product_shape.h"
#include "compiler/passes/fuse.h"

#include <math.h>
#include <string.h>

/* Whether a call of a transcendental function begins here. */
static bool calls_slow(const char *c)
{
    static const char *const slow[] = {"ls_exp", "ls_log",     "ls_tanh",     "ls_erf",
                                       "ls_pow", "ls_sigmoid", "ls_softplus", "ls_uniform",
                                       "ls_sin", "ls_cos",     "ls_tan",      "ls_asin",
                                       "ls_acos", "ls_atan",   "ls_fmod",     "ls_floor_mod",
                                       "ls_normal", "ls_noise"};
    for (size_t k = 0; k < sizeof slow / sizeof *slow; k++)
        if (strncmp(c, slow[k], strlen(slow[k])) == 0)
            return true;
    return false;
}

/* Operators of a scalar expression; a call of a transcendental function counts as ten. */
static double expr_flops(const char *expr)
{
    double flops = 0;
    for (const char *c = expr; *c != '\0'; c++)
        flops += (strchr("+-*/<>?", *c) != NULL) + (calls_slow(c) ? 10 : 0);
    return flops > 1 ? flops : 1;
}

static bool is_slow(LsOpCode op)
{
    for (const char *c = ls_op[op]->expr; c != NULL && *c != '\0'; c++)
        if (calls_slow(c))
            return true;
    return false;
}

static double pointwise_flops(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    LsShape space = *ls_shape(g, ls_out(g, n, 0));
    for (int k = 0; k < node->nin; k++)
        ls_shape_broadcast(&space, ls_in_shape(g, n, k));
    return (double)ls_count(&space) * expr_flops(ls_op[node->op]->expr);
}

static double body_flops(const LsFused *body)
{
    double flops = body->njoined > 0;               /* to find the joined operand's part */
    for (int k = 0; k < body->ninset; k++)
        flops += (double)ls_inset_terms(&body->inset[k], body->space.rank);
    for (int k = 0; k < body->nstmt; k++)
        flops += expr_flops(ls_op[body->stmt[k].op]->expr);
    return flops * (double)ls_count(&body->space);
}

static double padded(double n, int lanes)
{
    int64_t k = ((int64_t)n + lanes - 1) / lanes;
    return (double)(k * lanes);
}

/* rows x depth times depth x cols. The start of a tile costs as much as `lanes` more steps of
 * depth. */
static double product_flops(double rows, double cols, double depth, int lanes)
{
    return 2 * rows * padded(cols, lanes) * (depth + lanes);
}

double ls_node_flops(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    const LsOp *row = ls_op[node->op];
    double flops = 0;
    if (row->kernel == LS_K_FUSED)
        return body_flops(node->attr.fused.body);
    if (row->kernel == LS_K_SUM_END)
        return (double)ls_count(ls_in_shape(g, n, 0));
    if (row->kernel == LS_K_MAP || row->kernel == LS_K_REDUCE)
        return pointwise_flops(g, n);
    if (row->flops != NULL)
        return row->flops(g, n);
    for (int k = 0; k < node->nin; k++)
        if (ls_is(ls_in(g, n, k)) && (double)ls_count(ls_in_shape(g, n, k)) > flops)
            flops = (double)ls_count(ls_in_shape(g, n, k));
    return flops;
}

/* Slices and gathers read no more than they write. */
static bool reads_part(const LsOp *row)
{
    return row->kernel == LS_K_MOVE || row->kernel == LS_K_GATHER;
}

static bool read_before(const LsGraph *g, LsNodeId n, int k)
{
    for (int j = 0; j < k; j++)
        if (ls_in(g, n, j).i == ls_in(g, n, k).i)
            return true;
    return false;
}

/* For a sum that overwrites an operand, only the changed bytes count. */
static double result_bytes(const LsGraph *g, LsNodeId n, int k, int real_bytes)
{
    double all = (double)ls_value_bytes(g, ls_out(g, n, k), real_bytes);
    const LsOpCode op = (LsOpCode)g->node[n.i].op;
    if (op == LS_OP_PLACE || op == LS_OP_CONV_DW_PART)
        return (double)ls_value_bytes(g, ls_in(g, n, 0), real_bytes) < all
                   ? (double)ls_value_bytes(g, ls_in(g, n, 0), real_bytes)
                   : all;
    if ((op != LS_OP_GATHER_GRAD && op != LS_OP_SCATTER && op != LS_OP_SCATTER_EACH)
        || !ls_is(ls_in(g, n, 2)))
        return all;
    double rows = (double)ls_value_bytes(g, ls_in(g, n, 0), real_bytes);
    return rows < all ? rows : all;
}

static double operand_bytes(const LsGraph *g, LsNodeId n, int k, int real_bytes)
{
    const LsValueId v = ls_in(g, n, k);
    return (double)ls_value_bytes(g, v, real_bytes) / ls_update_levels(g, n, v);
}

static double written_bytes(const LsGraph *g, LsNodeId n, int real_bytes)
{
    const LsNode *node = &g->node[n.i];
    double sum = 0;
    for (int k = 0; k < node->nout; k++)
        sum += result_bytes(g, n, k, real_bytes);
    for (int k = 0; k < node->nin; k++)
        if (ls_writes(node, k) && ls_is(ls_in(g, n, k)))
            sum += operand_bytes(g, n, k, real_bytes);
    return sum;
}

static double read_bytes(const LsGraph *g, LsNodeId n, int real_bytes)
{
    const LsNode *node = &g->node[n.i];
    double made = written_bytes(g, n, real_bytes), sum = 0;
    const int nin = node->op == LS_OP_PLACE ? 1 : node->nin;   /* the base is there */
    for (int k = 0; k < nin; k++) {
        if (!ls_is(ls_in(g, n, k)) || !ls_is_read(node, k) || read_before(g, n, k))
            continue;
        double bytes = operand_bytes(g, n, k, real_bytes);
        sum += reads_part(ls_op[node->op]) && node->nout > 0 && bytes > made ? made : bytes;
    }
    return sum;
}

double ls_node_bytes(const LsGraph *g, LsNodeId n, int real_bytes)
{
    return read_bytes(g, n, real_bytes) + written_bytes(g, n, real_bytes);
}

/* ---- classes ---- */
static LsCostClass conv_class(LsOpCode op, LsCostWay way)
{
    static const LsCostClass forward[] = {LS_COST_CONV, LS_COST_CONV_FEW, LS_COST_CONV_WINOGRAD,
                                          LS_COST_CONV_DEPTHWISE};
    static const LsCostClass dx[] = {LS_COST_CONV_DX, LS_COST_CONV_DX_FEW, LS_COST_CONV_DX_WINOGRAD,
                                     LS_COST_CONV_DX_DEPTHWISE};
    static const LsCostClass dw[] = {LS_COST_CONV_DW, LS_COST_CONV_DW, LS_COST_CONV_DW_WINOGRAD,
                                     LS_COST_CONV_DW_DEPTHWISE};
    return (op == LS_OP_CONV ? forward : op == LS_OP_CONV_DX ? dx : dw)[way];
}

static LsCostClass move_class(LsOpCode op)
{
    return op == LS_OP_CONCAT                               ? LS_COST_CONCAT
           : op == LS_OP_SLICE                              ? LS_COST_SLICE
           : op == LS_OP_TRANSPOSE || op == LS_OP_CONVERT   ? LS_COST_TRANSPOSE
                                                            : LS_COST_PAD;
}

static LsCostClass fused_class(const LsNode *node)
{
    const LsFused *body = node->attr.fused.body;
    if (ls_reduces(body, node->nout))
        return LS_COST_REDUCE;
    for (int k = 0; k < body->nstmt; k++)
        if (is_slow(body->stmt[k].op))
            return LS_COST_MAP_MATH;
    return LS_COST_MAP;
}

static LsCostClass class_of(const LsNode *node, LsCostWay way)
{
    LsOpCode op = node->op;
    switch (ls_op[op]->kernel) {
    case LS_K_CONV: return conv_class(op, way);
    case LS_K_MATMUL: return LS_COST_MATMUL;
    case LS_K_ATTENTION:
        return op == LS_OP_ATTENTION || op == LS_OP_ATTENTION_JOINT ? LS_COST_ATTENTION
                                                                    : LS_COST_ATTENTION_GRAD;
    case LS_K_MAP: return is_slow(op) ? LS_COST_MAP_MATH : LS_COST_MAP;
    case LS_K_REDUCE: return LS_COST_REDUCE;
    case LS_K_FUSED: return fused_class(node);
    case LS_K_UPDATE: return LS_COST_UPDATE;
    case LS_K_MOVE: return move_class(op);
    case LS_K_GATHER:
        return op == LS_OP_GATHER || op == LS_OP_GATHER_EACH ? LS_COST_GATHER : LS_COST_GATHER_GRAD;
    case LS_K_SCAN: return LS_COST_SCAN;
    case LS_K_RESIZE: return op == LS_OP_RESIZE ? LS_COST_RESIZE : LS_COST_RESIZE_GRAD;
    case LS_K_SAMPLE:
        return op == LS_OP_SAMPLE || op == LS_OP_ROI_MEAN ? LS_COST_SAMPLE : LS_COST_SAMPLE_GRAD;
    case LS_K_POOL:
        return op == LS_OP_MAX_POOL || op == LS_OP_AVERAGE_POOL ? LS_COST_POOL : LS_COST_POOL_GRAD;
    case LS_K_SOFTMAX:
        return op == LS_OP_SOFTMAX || op == LS_OP_LOG_SOFTMAX ? LS_COST_SOFTMAX
                                                              : LS_COST_SOFTMAX_GRAD;
    case LS_K_NORM: return op == LS_OP_LAYER_NORM ? LS_COST_NORM : LS_COST_NORM_GRAD;
    case LS_K_LOSS: return node->phase == LS_FORWARD ? LS_COST_LOSS : LS_COST_LOSS_GRAD;
    default: return LS_COST_OTHER;
    }
}

/* ---- products: operations carried out, padding included ---- */
/* Copies of a direct convolution, counted as operations of equal time. The kernel copies the places
 * that its rows consist of, run by run, unless the source is that matrix itself; and it copies the
 * weights (its weight gradient: dY) into panels. The three costs were measured;
 * runtime/kernels/ls_conv.h and related headers explain the number of copies. */
enum { COPY = 20, RUN = 600, PANEL = 40 };      /* per element, per run, per element of a panel */

static double blocks(double n, double size) { return ceil(n / size); }

/* A product of places by cout over depth, for one group; row: contiguous elements. */
typedef struct Product { double places, cout, depth, row; } Product;

static double copies(const LsNode *node, const Product *p, bool dw, LsCostWay way)
{
    double group = (double)node->attr.window.group, times = blocks(p->cout, dw ? 224 : 512);
    double cols = 128, row = dw && p->row > 32 ? 32 : p->row;
    double few_rows = blocks(p->places, 504), panels = p->depth * p->cout;
    if (way == LS_WAY_FEW) {
        while (group * few_rows * blocks(p->cout, cols) < 8 && cols > 32)
            cols /= 2;
        times = blocks(p->cout, cols);
        panels *= few_rows;
    } else if (dw) {
        panels = p->places * p->cout * blocks(p->depth, 256);
    }
    double rows = row > 0 ? times * p->places * p->depth : 0;
    return group * (PANEL * panels + (row > 0 ? COPY * rows + RUN * rows / row : 0));
}

/* The source is read in place: one tap, and rows that do not collide in few cache sets. */
static bool is_matrix(const LsNode *node, double taps, double channels)
{
    const LsWindowAttr *at = &node->attr.window;
    bool plain = taps == 1 && node->computed == NULL && fmod(channels, 1024) != 0;
    for (int i = 0; i < at->n; i++)
        plain &= at->stride[i] == 1 && at->pad_lo[i] == 0 && at->pad_hi[i] == 0;
    return plain;
}

static void direct_work(const LsGraph *g, LsNodeId n, const LsMachine *m, int lanes, LsCostWay way,
                        LsWork *w)
{
    const LsNode *node = &g->node[n.i];
    bool back = node->op == LS_OP_CONV_DX, dw = !back && node->op != LS_OP_CONV;
    const LsShape *y = dw ? ls_in_shape(g, n, 0) : ls_shape(g, ls_out(g, n, 0));
    double group = (double)node->attr.window.group;
    double cols = (double)y->dim[1] / group, places = (double)ls_count(y) / (double)y->dim[1];
    double depth = w->flops / (2 * places * cols * group);
    double sums = dw && ls_conv_weights_each(node) ? (double)y->dim[0] : 1;
    w->flops = group * (dw ? sums * product_flops(cols, depth, places / sums, lanes)
                           : product_flops(places, cols, depth, lanes));
    if (m->gpu)
        return;
    w->dots = ls_is_dot16(node) ? w->flops : 0;
    const LsShape weight = dw ? ls_conv_weight_shape(g, n) : *ls_in_shape(g, n, 1);
    double cin = (double)(back ? weight.dim[0] / node->attr.window.group : weight.dim[1]);
    double taps = (double)ls_count(&weight) / (double)(weight.dim[0] * weight.dim[1]);
    double line = (double)weight.dim[weight.rank - 1];
    bool touch = group == 1 && node->computed == NULL;
    Product p = {.places = places, .cout = cols, .depth = depth, .row = touch ? cin * line : cin};
    if (!dw && is_matrix(node, taps, group * cin))
        p.row = 0;
    w->flops += copies(node, &p, dw, way);
}

/* Winograd's algorithm on tiles of 4 x 4 (runtime/kernels/ls_wino.h): 36 products of tiles by
 * channels, and the transforms to and from them. A tile of 16 channels takes as long again for its
 * places and for short products; TILE was measured with 16 to 64 channels. */
static void winograd_work(const LsGraph *g, LsNodeId n, int real_bytes, LsWork *w)
{
    enum { TILE = 25000 };
    bool dw = g->node[n.i].op == LS_OP_CONV_DW || g->node[n.i].op == LS_OP_CONV_DW_PART;
    const LsShape *y = dw ? ls_in_shape(g, n, 0) : ls_shape(g, ls_out(g, n, 0));
    const LsShape *x = ls_in_shape(g, n, dw ? 1 : 0);
    double cin = (double)x->dim[1], cout = (double)y->dim[1], points = 36;
    double tiles = (double)(y->dim[0] * ((y->dim[2] + 3) / 4) * ((y->dim[3] + 3) / 4));
    w->flops = 2 * points * tiles * cin * cout;
    w->by_tile = dw ? 0 : TILE * tiles;
    w->read = points * tiles * (cin + cout) * real_bytes;
    w->written = points * cin * cout * real_bytes;
}

/* An update that computes the gradient of a vocabulary head: the product of the scores and the one
 * of the gradient, and for each part of the classes all of x, once for each product. */
static void head_work(const LsGraph *g, LsNodeId n, int lanes, int real_bytes, LsWork *w)
{
    enum { SLOPE = 10 };        /* operations for a score */
    const LsNode *node = &g->node[n.i];
    const LsShape *p = ls_in_shape(g, n, 0);
    const LsValueId x = ls_in(g, n, node->computed->first + LS_HEAD_X);
    const double rows = (double)ls_shape(g, x)->dim[0], classes = (double)p->dim[0],
                 columns = (double)p->dim[1],
                 parts = ceil(classes / (double)node->computed->head->part);
    const double scores = product_flops(rows, classes, columns, lanes),
                 sum = product_flops(classes, columns, rows, lanes);
    w->kind = LS_COST_MATMUL;
    w->dots = ls_is_dot16(node) ? scores + sum : 0;
    w->flops += scores + sum + SLOPE * rows * classes;
    w->read += (2 * parts - 1) * (double)ls_value_bytes(g, x, real_bytes);
}

/* y = a * b: the gradient y that update n computes, or all of node n. */
static void matmul_work(const LsGraph *g, LsNodeId n, int lanes, LsWork *w)
{
    enum { THIN = 32 };
    const LsNode *node = &g->node[n.i];
    const LsComputed *c = ls_op[node->op]->kernel == LS_K_UPDATE ? node->computed : NULL;
    const LsShape *a = ls_in_shape(g, n, c ? c->first : 0);
    const LsShape *b = ls_in_shape(g, n, c ? c->first + 1 : 1);
    const LsShape y = c ? *ls_in_shape(g, n, 0) : ls_matmul_shape(g, n);
    const LsGemmAttr *at = c ? c->product : &node->attr.gemm;
    double cols = (double)y.dim[y.rank - 1], rows = (double)ls_count(&y) / cols;
    double depth = (double)a->dim[a->rank - (at->trans_a ? 2 : 1)];
    bool shared = (double)ls_count(b) == cols * depth;  /* one B: the batch adds rows */
    w->kind = c != NULL                      ? LS_COST_APPLY
              : !shared                      ? LS_COST_MATMUL_BATCH
              : depth <= THIN                ? LS_COST_MATMUL_OUTER
              : rows <= THIN || cols <= THIN ? LS_COST_MATMUL_THIN
              : at->trans_a                  ? LS_COST_MATMUL_TURNED
                                             : LS_COST_MATMUL;
    w->dots = ls_is_dot16(node) ? product_flops(rows, cols, depth, lanes) : 0;
    w->flops = product_flops(rows, cols, depth, lanes) + (c ? w->flops : 0);
}

/* Half of the f32 peak for f64 on a machine without that figure. */
static double peak_of(const LsMachine *m, int real_bytes)
{
    if (real_bytes != 8)
        return m->peak[LS_PEAK_F32];
    return m->peak[LS_PEAK_F64] > 0 ? m->peak[LS_PEAK_F64] : m->peak[LS_PEAK_F32] / 2;
}

/* GPUs compare each index with every other (ls_rank): a subtraction and an addition of integers per
 * pair, whatever the element type. */
static double rank_flops(const LsGraph *g, LsNodeId n, const LsMachine *m, int real_bytes)
{
    double count = (double)ls_count(ls_in_shape(g, n, 1));
    return 2 * count * count * peak_of(m, real_bytes) / peak_of(m, 4);
}

/* What is added to the class of a kernel that stores, reads or rounds to 16 bits. */
static int narrow_class(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    LsType narrow = node->rounds;
    for (int k = 0; k < node->nout && !ls_is_16(narrow); k++)
        narrow = ls_type(g, ls_out(g, n, k));
    for (int k = 0; k < node->nin && !ls_is_16(narrow); k++)
        narrow = ls_is(ls_in(g, n, k)) ? ls_type(g, ls_in(g, n, k)) : LS_REAL;
    return narrow == LS_BF16 ? LS_COST_BF16 : narrow == LS_F16 ? LS_COST_F16 : 0;
}

LsWork ls_node_work(const LsGraph *g, LsNodeId n, const LsMachine *m, LsCostWay way, int real_bytes)
{
    const LsNode *node = &g->node[n.i];
    LsKernelId kernel = ls_op[node->op]->kernel;
    int lanes = m->gpu ? m->lanes : m->lanes * 4 / real_bytes;
    way = m->gpu && way != LS_WAY_DEPTHWISE ? LS_WAY_DIRECT : way;
    if (kernel == LS_K_VIEW || kernel == LS_K_NONE)
        return (LsWork){.none = true};
    LsWork w = {.kind = class_of(node, way),
                .flops = ls_node_flops(g, n),
                .read = read_bytes(g, n, real_bytes),
                .written = written_bytes(g, n, real_bytes)};
    if (node->computed != NULL && node->computed->codes != NULL)
        w.packing = node->computed->times * (double)node->computed->codes->count;
    else if (node->computed != NULL && node->computed->body != NULL)
        w.packing = node->computed->times * body_flops(node->computed->body);
    if (kernel == LS_K_CONV && way == LS_WAY_WINOGRAD)
        winograd_work(g, n, real_bytes, &w);
    else if (kernel == LS_K_CONV && way != LS_WAY_DEPTHWISE)
        direct_work(g, n, m, lanes, way, &w);
    else if ((node->op == LS_OP_GATHER_GRAD || node->op == LS_OP_SCATTER) && m->gpu)
        w.flops += rank_flops(g, n, m, real_bytes);
    else if (node->computed != NULL && node->computed->head != NULL)
        head_work(g, n, lanes, real_bytes, &w);
    else if (kernel == LS_K_MATMUL || (kernel == LS_K_UPDATE && node->computed != NULL))
        matmul_work(g, n, lanes, &w);
    w.kind = (LsCostClass)((int)w.kind + narrow_class(g, n));
    return w;
}

static double over(double amount, double speed) { return speed > 0 ? amount / speed : 0; }

double ls_work_slow(const LsWork *w, bool write, double cache, double near)
{
    double far = 0, bytes = 0;
    for (uint32_t k = 0; k < w->ntouch; k++)
        if (w->touch[k].write == write) {
            bytes += w->touch[k].bytes;
            far += w->touch[k].bytes * w->touch[k].age / (w->touch[k].age + cache);
        }
    double touched = w->read + w->written;
    if (bytes > 0 && cache > 0)
        far /= bytes;
    else
        far = cache > 0 && touched > 0 ? touched / (touched + cache) : 1;
    return far + (1 - far) / near;
}

double ls_work_flops(const LsWork *w) { return w->flops + (w->ntouch > 0 ? w->by_tile : 0); }

double ls_work_ns(const LsMachine *m, const LsWork *w, int real_bytes)
{
    if (w->none)
        return 0;
    const LsClassCost *c = &m->cost[w->kind];
    const LsClassCost *packing = &m->cost[LS_COST_PACKING + w->kind / LS_COST_BF16 * LS_COST_BF16];
    /* A class of 16 bits with figures of its own has been measured with its dot products. */
    const bool measured = c->compute != m->cost[w->kind % LS_COST_BF16].compute;
    double dots = m->gpu || measured || m->peak[LS_PEAK_BF16] <= 0 ? 0 : w->dots;
    double compute = over(ls_work_flops(w) - dots, c->compute * peak_of(m, real_bytes))
        + over(dots, c->compute * m->peak[LS_PEAK_BF16])
        + over(w->packing, packing->compute * peak_of(m, real_bytes));
    double read = over(w->read, c->read * m->memory);
    double written = over(w->written, c->write * m->memory);
    double slow = ls_work_slow(w, false, m->cache, m->near);
    double move = w->ntouch == 0 ? slow * (read + written)      /* one age for all bytes */
                                 : slow * read + ls_work_slow(w, true, m->cache, m->near) * written;
    double more = compute > move ? compute : move, less = compute + move - more;
    return c->launch + more + (1 - m->overlap) * less;
}

double ls_node_cost(const LsGraph *g, LsNodeId n, const LsMachine *m)
{
    LsWork w = ls_node_work(g, n, m, LS_WAY_DIRECT, 4);
    return ls_work_ns(m, &w, 4);
}
