/* codegen/kernels/update.c -- LS_K_UPDATE: one pass over a parameter, its gradient and its moments,
 * in place. compiler/ir/loss.def has the operands, compiler/ops/optimizers.c the formulas of optimizers.
 *
 * All operands but `factor` and `weight` are walked as flat arrays: they have the parameter's shape and layout.
 * LsRun has the numbers that change from step to step. Corrections that do not depend on the element are
 * computed once per part, in double. A joint update of many small tensors has a unit for each tensor. An update
 * that computes its gradient (codegen/fusion/gradient_in_update.h) walks a tile of the product row by row. */
#include "codegen/emit/kernel_emit.h"
#include "codegen/kernels/computed_operand.h"
#include "codegen/kernels/loop_nest.h"
#include "codegen/kernels/product.h"
#include "codegen/kernels/update_text.h"
#include "compiler/passes/fuse.h"

#include <inttypes.h>

typedef struct Update {
    const LsKernelText *k;
    const LsNode *node;
    const LsUpdateAttr *at;
    const LsRule *rule;     /* NULL: no update of a parameter */
    int factor, acc, weight, average, shared, next;  /* operands, -1: absent */
    int each;               /* many tensors: operands of each tensor's update; else 0 */
    bool fours, row;        /* row: updates elements 0 .. end, whose gradient was just computed */
} Update;

/* Whether the update of the first tensor has this operand; factors of the gradient do not count. */
static bool has(const Update *u, int operand)
{
    int own = u->node->computed != NULL ? u->node->computed->first : ls_update_operands(u->node);
    return operand < own && ls_is(ls_in(u->k->g, u->k->n, operand));
}

static const char *number(const Update *u, double v)
{
    return ls_literal(u->k->g->arena, LS_REAL, v, 0, u->k->target->real_bytes);
}

static void declare(const Update *u, const char *word, const char *name, int operand)
{
    if (u->each > 0)
        ls_emit_line(u->k->e, "%s(real, %s, u * " LS_N " + " LS_N ");", word, name, u->each,
                     operand);
    else
        ls_emit_line(u->k->e, "%s(real, %s, " LS_N ");", word, name, operand);
}

/* Declares an operand that is overwritten. */
static void state(const Update *u, const char *name, int operand)
{
    declare(u, "LS_OUT", name, operand);
}

static void operand(const Update *u, const char *name, int k) { declare(u, "LS_IN", name, k); }

static void open_loop(const Update *u)
{
    if (u->each > 0 || u->row)
        ls_emit_line(u->k->e, "%s(i, 0, end) {", ls_lanes_word(u->fours ? 4 : 0));
    else
        ls_emit_line(u->k->e, "%s(i, lo * " LS_INNER64 ", end) {", ls_lanes_word(u->fours ? 4 : 0),
                     ls_unit(u->k));
}

/* Declares the factor of this part's gradient. */
static void declare_weight(const Update *u)
{
    LsEmit *e = u->k->e;
    if (u->weight >= 0) {
        operand(u, "weights", u->weight);
        ls_emit_line(e, "const real part = weights[0] != 0 ? weights[0] : 1;");
    } else if (u->at->by_samples) {
        ls_emit_line(e, "const real part = (real)(run->share * %.17g);", u->at->scale);
    } else {
        ls_emit_line(e, "const real part = %s;", number(u, u->at->scale));
    }
}

/* Declares the variables that `accumulate` reads besides the elements. */
static void declare_part(const Update *u)
{
    if (u->at->levels == 0)
        ls_emit_line(u->k->e, "const bool first = run->first;");
    declare_weight(u);
}

/* Adds the part to the tree of partial sums (runtime/kernels/ls_tree.h); `sums` then has the sum. The element of a part
 * is rounded before it is added, as the sum of a part on another process is. to: where the sum of the last part goes; NULL:
 * its level. */
static void join_tree(const Update *u, const char *to)
{
    LsEmit *e = u->k->e;
    const int64_t n = ls_count(ls_in_shape(u->k->g, u->k->n, 0));
    if (u->each > 0)
        ls_emit_line(e, "const int64_t apart = end;");
    else
        ls_emit_line(e, "const int64_t apart = " LS_N64 ";", n);
    ls_emit_line(e, "const int64_t joined = ls_tree_joined(run->part, run->apply);");
    const char *level = "acc + ls_tree_level(run->part, run->apply) * apart";
    if (to != NULL)
        ls_emit_line(e, "real *const sums = run->apply ? %s : %s;", to, level);
    else
        ls_emit_line(e, "real *const sums = %s;", level);
    ls_emit_line(e, "if (joined == 0) {");
    open_loop(u);
    ls_emit_line(e, "sums[i] = g[i] * part;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "} else {");
    ls_emit_line(e, "const real *const before = acc + ls_tree_lowest(joined) * apart;");
    ls_emit_line(e, "const LsBits none = ls_no_bits();");
    open_loop(u);
    ls_emit_line(e, "sums[i] = before[i] + ls_as_stored(g[i] * part, none);");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "for (int64_t rest = joined & (joined - 1); rest != 0; rest &= rest - 1) {");
    ls_emit_line(e, "const real *const before = acc + ls_tree_lowest(rest) * apart;");
    open_loop(u);
    ls_emit_line(e, "sums[i] = before[i] + sums[i];");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

/* Adds to the accumulator. */
static void accumulate(const Update *u)
{
    ls_emit_line(u->k->e, "const real sum = (first ? 0 : acc[i]) + g[i] * part;");
    ls_emit_line(u->k->e, "acc[i] = sum;");
}

/* Declares the update's gradient `d`. alone: it is that of one micro-step, which stays out of the accumulator. */
static void gradient(const Update *u, bool alone)
{
    LsEmit *e = u->k->e;
    const bool tree = u->at->levels > 0;
    if (alone)
        ls_emit_line(e, "const real sum = 0 + g[i] * part;");
    else if (u->acc >= 0 && !tree)
        accumulate(u);
    ls_emit_line(e, "real d = %s%s;", u->acc < 0 ? "g[i]" : tree ? "sums[i]" : "sum",
                 u->factor >= 0 ? " * factor" : "");
    if (u->at->clip != 0)
        ls_emit_line(e, "d = ls_min(ls_max(d, -%s), %s);", number(u, u->at->clip),
                     number(u, u->at->clip));
}

/* Bits of the state that the update has. */
static unsigned states(const Update *u)
{
    unsigned bits = 0;
    for (int k = 0; k < u->rule->nstate; k++)
        bits |= (unsigned)has(u, 2 + k) << k;
    return bits;
}

static void declare_operands(const Update *u)
{
    declare(u, u->rule->makes ? "LS_IN" : "LS_OUT", "p", 0);
    operand(u, "g", 1);
    if (u->rule->makes) {
        ls_emit_line(u->k->e, "(void)p;");
        ls_emit_result(u->k, "y", 0);
    }
    for (int k = 0; k < u->rule->nstate; k++)
        if (has(u, 2 + k))
            state(u, u->rule->state[k].var, 2 + k);
    if (u->factor >= 0) {
        operand(u, "factors", u->factor);
        ls_emit_line(u->k->e, "const real factor = factors[0];");
    }
    if (u->shared >= 0)
        operand(u, "shared", u->shared);
    if (u->average >= 0)
        state(u, "average", u->average);
    if (u->acc >= 0) {
        state(u, "acc", u->acc);
        declare_part(u);
    }
}

static void apply(const Update *u, bool alone)
{
    LsEmit *e = u->k->e;
    open_loop(u);
    gradient(u, alone);
    ls_update_text(u->k, u->rule, &u->at->hyper, states(u), u->rule->each);
    if (u->average >= 0 && u->at->ema != 0)
        ls_emit_line(e, "average[i] = %s * average[i] + %s * p[i];", number(u, u->at->ema), number(u, 1 - u->at->ema));
    ls_emit_line(e, "}");
}

/* The update of a parameter: with an accumulator, micro-steps that do not update only add to it. Private updates mostly have
 * one micro-step. */
static void optimizer(const Update *u)
{
    LsEmit *e = u->k->e;
    declare_operands(u);
    const bool tree = u->at->levels > 0;
    const char *leave = u->each > 0 ? "continue;" : "return;";
    if (tree)
        join_tree(u, NULL);
    ls_emit_line(e, u->at->skips ? "if (!run->apply || factor < 0) {" : "if (!run->apply) {");
    if ((u->acc >= 0 && !tree) || u->rule->makes) {
        open_loop(u);
        if (u->acc >= 0 && !tree)
            accumulate(u);
        if (u->rule->makes)
            ls_emit_line(e, "y[i] = 0;");
        ls_emit_line(e, "}");
    }
    ls_emit_line(e, leave);
    ls_emit_line(e, "}");
    ls_update_text(u->k, u->rule, &u->at->hyper, states(u), u->rule->part);
    if (u->k->g->privacy.on && u->acc >= 0 && !tree) {
        ls_emit_line(e, "if (run->alone) {");
        apply(u, true);
        ls_emit_line(e, leave);
        ls_emit_line(e, "}");
    }
    apply(u, false);
}

static void accumulation(const Update *u)
{
    operand(u, "g", 0);
    state(u, "acc", 1);
    ls_emit_result(u->k, "y", 0);
    declare_part(u);
    if (u->at->levels > 0)
        join_tree(u, NULL);
    open_loop(u);
    if (u->at->levels == 0)
        accumulate(u);
    ls_emit_line(u->k->e, u->at->levels > 0 ? "y[i] = sums[i];" : "y[i] = sum;");
    ls_emit_line(u->k->e, "}");
}

/* Of a block of one part: the part. */
static void local_sum(const Update *u)
{
    state(u, "out", 0);
    operand(u, "g", 1);
    if (u->acc >= 0)
        state(u, "acc", u->acc);
    declare_weight(u);
    if (u->acc >= 0) {
        join_tree(u, "out");
        return;
    }
    open_loop(u);
    ls_emit_line(u->k->e, "out[i] = g[i] * part;");
    ls_emit_line(u->k->e, "}");
}

static void part_stat(const Update *u)
{
    const int64_t n = ls_count(ls_in_shape(u->k->g, u->k->n, 0));
    operand(u, "batch", 1);
    state(u, "rows", 2);
    ls_emit_line(u->k->e, "real *const row = rows + (run->block + run->part) * " LS_N64 ";", n);
    open_loop(u);
    ls_emit_line(u->k->e, "row[i] = batch[i];");
    ls_emit_line(u->k->e, "}");
}

/* Moves by the statistics of all parts, in their order. */
static void running_stats(const Update *u)
{
    LsEmit *e = u->k->e;
    const int64_t n = ls_count(ls_in_shape(u->k->g, u->k->n, 0));
    state(u, "stat", 0);
    operand(u, "rows", 1);
    if (u->factor >= 0) {
        operand(u, "factors", u->factor);
        ls_emit_line(e, "if (factors[0] < 0) return;");
    }
    ls_emit_line(e, "for (int64_t k = 0; k < run->parts; k++) {");
    ls_emit_line(e, "const real *const batch = rows + k * " LS_N64 ";", n);
    open_loop(u);
    ls_emit_line(e, "stat[i] = stat[i] * %s + batch[i] * %s;", number(u, u->at->momentum), number(u, u->at->scale));
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void running_stat(const Update *u)
{
    LsEmit *e = u->k->e;
    const char *momentum = number(u, u->at->momentum), *scale = number(u, u->at->scale);
    state(u, "stat", 0);
    operand(u, "batch", 1);
    if (u->factor >= 0)
        operand(u, "factors", u->factor);
    if (u->next >= 0) {
        state(u, "next", u->next);
        ls_emit_line(e, "const bool first = run->first, keep = run->apply && factors[0] >= 0;");
    } else if (u->factor >= 0) {
        ls_emit_line(e, u->each > 0 ? "if (factors[0] < 0) continue;" : "if (factors[0] < 0) return;");
    }
    open_loop(u);
    if (u->next >= 0) {
        ls_emit_line(e, "const real moved = (first ? stat[i] : next[i]) * %s + batch[i] * %s;", momentum, scale);
        ls_emit_line(e, "next[i] = moved;");
        ls_emit_line(e, "stat[i] = keep ? moved : stat[i];");
    } else {
        ls_emit_line(e, "stat[i] = stat[i] * %s + batch[i] * %s;", momentum, scale);
    }
    ls_emit_line(e, "}");
}

/* One element: the machine of runtime/kernels/ls_scale.h. */
static void loss_scale(const Update *u)
{
    LsEmit *e = u->k->e;
    const LsScaleAttr *r = &u->at->rule;
    operand(u, "factors", 0);
    state(u, "scale", 1);
    state(u, "counter", 2);
    state(u, "skips", 3);
    ls_emit_line(e, "if (!run->apply) return;");
    ls_emit_line(e, "const LsScaleRule rule = {%.17g, %.17g, %.17g, %s, (float)%.9g};", r->period, r->grow, r->shrink,
                 r->divides ? "true" : "false", r->least);
    open_loop(u);
    ls_emit_line(e, "const bool finite = factors[i] >= 0;");
    ls_emit_line(e, "float now = (float)scale[i], good = (float)counter[i];");
    ls_emit_line(e, "ls_scale_step(&rule, finite, &now, &good);");
    ls_emit_line(e, "scale[i] = now;");
    ls_emit_line(e, "counter[i] = good;");
    ls_emit_line(e, "skips[i] += finite ? 0 : 1;");
    ls_emit_line(e, "skips[i + 1] = finite ? 0 : skips[i + 1] + 1;");
    ls_emit_line(e, "}");
}

/* Declares "moves": whether this step is an update that is not skipped. */
static void declare_moves(const Update *u)
{
    if (u->factor >= 0)
        operand(u, "factors", u->factor);
    ls_emit_line(u->k->e, "const bool moves = run->apply%s;", u->factor >= 0 && u->at->skips ? " && factors[0] >= 0" : "");
}

static void blend(const Update *u)
{
    LsEmit *e = u->k->e;
    state(u, "state", 0);
    operand(u, "x", 1);
    ls_emit_result(u->k, "y", 0);
    declare_moves(u);
    ls_emit_line(e, "const real b = (real)pow((double)run->update, -%.17g);", u->at->power);
    open_loop(u);
    ls_emit_line(e, "const real is = moves ? (1 - b) * state[i] + b * x[i] : state[i];");
    ls_emit_line(e, "state[i] = is;");
    ls_emit_line(e, "y[i] = is;");
    ls_emit_line(e, "}");
}

/* One element. The mean of the weights stays exact while the rate does, as their sum would not. */
static void average_share(const Update *u)
{
    LsEmit *e = u->k->e;
    state(u, "largest", 0);
    state(u, "mean", 1);
    ls_emit_result(u->k, "y", 0);
    declare_moves(u);
    ls_emit_line(e, "const double t = (double)run->update;");
    open_loop(u);
    ls_emit_line(e, "const double most = run->update > 1 && (double)largest[i] > run->lr ? (double)largest[i] : run->lr;");
    ls_emit_line(e, "const double w = pow(t, %.17g) * pow(most, %.17g);", u->at->by_time, u->at->by_rate);
    ls_emit_line(e, "const double of = run->update > 1 ? (double)mean[i] + (w - (double)mean[i]) / t : w;");
    ls_emit_line(e, "y[i] = (real)(moves && of > 0 ? w / (t * of) : 0);");
    ls_emit_line(e, "largest[i] = moves ? (real)most : largest[i];");
    ls_emit_line(e, "mean[i] = moves ? (real)of : mean[i];");
    ls_emit_line(e, "}");
}

/* One element. */
static void momentum_product(const Update *u)
{
    LsEmit *e = u->k->e;
    state(u, "product", 0);
    ls_emit_result(u->k, "y", 0);
    declare_moves(u);
    ls_emit_line(e, "const double now = %.17g * (1 - 0.5 * pow(0.96, (double)run->update * %.17g));", u->at->beta1,
                 u->at->momentum_decay);
    open_loop(u);
    ls_emit_line(e, "const real is = moves ? (real)((run->update > 1 ? (double)product[i] : 1) * now) : product[i];");
    ls_emit_line(e, "product[i] = is;");
    ls_emit_line(e, "y[i] = is;");
    ls_emit_line(e, "}");
}

/* Prints the loops over the elements of one tensor. */
static void update(const Update *u)
{
    switch (u->node->op) {
    case LS_OP_ACCUMULATE:   accumulation(u); break;
    case LS_OP_LOCAL_SUM:    local_sum(u); break;
    case LS_OP_PART_STAT:    part_stat(u); break;
    case LS_OP_RUNNING_STAT: running_stat(u); break;
    case LS_OP_RUNNING_STATS: running_stats(u); break;
    case LS_OP_LOSS_SCALE:   loss_scale(u); break;
    case LS_OP_BLEND:        blend(u); break;
    case LS_OP_AVERAGE_SHARE: average_share(u); break;
    case LS_OP_MOMENTUM_PRODUCT: momentum_product(u); break;
    default:                 optimizer(u); break;
    }
}

/* The update of a rank's slice. */
static bool is_sliced(const Update *u) { return u->rule != NULL && u->at->sliced; }

static void launch_slice(const Update *u)
{
    const LsKernelText *k = u->k;
    ls_emit_line(k->e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(k->e, "{");
    ls_emit_line(k->e, "ls_parallel(run, %s_part, (run->count + %" PRId64 ") / %" PRId64 ", arg);", k->name, ls_unit(k) - 1,
                 ls_unit(k));
    ls_emit_line(k->e, "}");
}

static LsGrid one(Update *u)
{
    int64_t n = ls_count(ls_in_shape(u->k->g, u->k->n, 0));
    const LsGrid part = ls_flat_grid(u->k, "part", n);
    u->fours = n % 4 == 0;
    ls_emit_part(u->k, &part);
    if (is_sliced(u))       /* slices end at a multiple of LS_SLICE bytes, or with the tensor */
        ls_emit_line(u->k->e, "const int64_t end = ls_least(hi * " LS_N64 ", run->count);", ls_unit(u->k));
    else
        ls_emit_line(u->k->e, "const int64_t end = ls_least(hi * " LS_N64 ", " LS_N64 ");", ls_unit(u->k), n);
    update(u);
    return part;
}

/* Prints the shape of the product whose tiles are the gradient. */
static void emit_shape(const Update *u)
{
    const LsComputed *c = u->node->computed;
    const LsShape *p = ls_in_shape(u->k->g, u->k->n, 0);
    const LsShape *a = ls_in_shape(u->k->g, u->k->n, c->first);
    const LsGemmAttr *at = c->product;
    const LsProduct product = {.m = p->dim[0], .n = p->dim[1], .batch = 1,
                               .depth = a->dim[at->trans_a ? 0 : 1]};
    ls_product_emit_shape(u->k, &product, at);
}

/* Prints NAME_row, for LsTaken of runtime/kernels/ls_matmul.h: it applies a row of a tile. */
static void emit_row(Update *u)
{
    const LsKernelText *k = u->k;
    ls_emit_line(k->e, "static void %s_row(LsRun *run, void *const all[], int64_t at, int64_t end, "
                 "real *tile)", k->name);
    ls_emit_line(k->e, "{");
    ls_emit_line(k->e, "void *const arg[] = {");
    for (int i = 0; i < u->node->computed->first; i++) {
        bool flat = i != 1 && i != u->factor && i != u->weight && i != u->shared && has(u, i);
        ls_emit_line(k->e, i == 1 ? "tile," : flat ? "(real *)all[%d] + at," : "all[%d],", i);
    }
    ls_emit_line(k->e, "};");
    ls_emit_line(k->e, "end -= at;");
    u->row = true;
    update(u);
    ls_emit_line(k->e, "}");
}

static const char *arg_of(const LsKernelText *k, int operand)
{
    return ls_arena_printf(k->g->arena, "arg[%d]", operand);
}

/* Prints an update that computes its gradient tile by tile, on the stack of each thread. */
static void emit_product(Update *u)
{
    const LsKernelText *k = u->k;
    LsEmit *e = k->e;
    int first = u->node->computed->first;
    emit_shape(u);
    emit_row(u);
    ls_emit_line(e, "static void %s_part(LsRun *run, void *const arg[], int64_t lo, int64_t hi)",
                 k->name);
    ls_emit_line(e, "{");
    if (u->acc < 0)
        ls_emit_line(e, "if (!run->apply) return;");
    ls_emit_line(e, "const LsMatmulArgs of = {.a = %s, .b = %s};", ls_stored_source(k, arg_of(k, first), first),
                 ls_stored_source(k, arg_of(k, first + 1), first + 1));
    ls_emit_line(e, "const LsTaken by = {%s_row, run, arg, {arg[0]%s}};", k->name,
                 has(u, 2) ? ", arg[2]" : "");
    ls_emit_line(e, "ls_matmul_taken(&%s_shape, &of, lo, hi, &by);", k->name);
    ls_emit_line(e, "}");
    ls_emit_line(e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(e, "{");
    ls_emit_line(e, "ls_parallel(run, %s_part, ls_matmul_units(&%s_shape), arg);", k->name,
                 k->name);
    ls_emit_line(e, "}");
}

/* One unit per tensor. */
static LsGrid many(Update *u)
{
    LsEmit *e = u->k->e;
    LsGrid part = ls_flat_grid(u->k, "part", 1);
    const char *counts = "";
    u->each = ls_update_operands(u->node);
    u->fours = true;
    part.units = ls_updated(u->node);
    for (int k = 0; k < u->node->nin; k += u->each) {
        int64_t n = ls_count(ls_in_shape(u->k->g, u->k->n, k));
        counts = ls_arena_printf(u->k->g->arena, "%s%s%" PRId64, counts, k > 0 ? ", " : "", n);
        u->fours &= n % 4 == 0;
    }
    ls_emit_part(u->k, &part);
    ls_emit_line(e, "static const int32_t count[] = {%s};", counts);
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(e, "const int64_t end = count[u];");
    update(u);
    ls_emit_line(e, "}");
    return part;
}

static int present(const Update *u, int operand) { return has(u, operand) ? operand : -1; }

static void update_emit(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    Update u = {.k = k, .node = node, .at = &node->attr.update, .rule = ls_rule_of((LsOpCode)node->op),
                .factor = -1, .acc = -1, .weight = -1, .average = -1, .shared = -1, .next = -1};
    if (u.rule != NULL) {
        u.factor = present(&u, ls_rule_factor(u.rule));
        u.acc = present(&u, ls_rule_acc(u.rule));
        u.weight = present(&u, ls_rule_weight(u.rule));
        u.average = present(&u, ls_rule_average(u.rule));
        u.shared = present(&u, ls_rule_shared(u.rule));
    } else if (node->op == LS_OP_ACCUMULATE) {
        u.weight = present(&u, 2);
    } else if (node->op == LS_OP_LOCAL_SUM) {
        u.acc = present(&u, 2);
        u.weight = present(&u, 3);
    } else if (node->op == LS_OP_RUNNING_STATS) {
        u.factor = present(&u, 2);
    } else if (node->op == LS_OP_RUNNING_STAT) {
        u.next = present(&u, 2);
        u.factor = present(&u, 3);
    } else if (node->op == LS_OP_MOMENTUM_PRODUCT) {
        u.factor = present(&u, 1);
    } else if (node->op == LS_OP_BLEND || node->op == LS_OP_AVERAGE_SHARE) {
        u.factor = present(&u, 2);
    }
    if (node->computed != NULL) {
        emit_product(&u);
        return;
    }
    const LsGrid part = ls_updated(node) > 1 ? many(&u) : one(&u);
    ls_emit_line(k->e, "}");
    if (is_sliced(&u))
        launch_slice(&u);
    else
        ls_emit_launch(k, &part, 1);
}

const LsEmitter ls_emitter_update = {.emit = update_emit};
