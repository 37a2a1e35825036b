/* codegen/kernels/update.c -- LS_K_UPDATE: one pass over a parameter, its gradient and its moments,
 * in place. compiler/ir/loss.def has the operands, compiler/ops/optimizers.c the formulas of
 * optimizers.
 *
 * All operands but `factor` and `weight` are walked as flat arrays: they have the parameter's shape
 * and layout. LsRun has the numbers that change from step to step. Corrections that do not depend
 * on the element are computed once per part, in double. A joint update of many small tensors has a
 * unit for each tensor. An update that computes its gradient (codegen/fusion/gradient_in_update.h)
 * walks a tile of the product row by row, or is that of a vocabulary head (head_gradient.h). */
#include "codegen/emit/kernel_emit.h"
#include "codegen/kernels/computed_operand.h"
#include "codegen/kernels/head_gradient.h"
#include "codegen/kernels/loop_nest.h"
#include "codegen/kernels/product.h"
#include "codegen/kernels/update_codes.h"
#include "codegen/kernels/update_operands.h"
#include "codegen/kernels/update_state.h"
#include "codegen/kernels/update_text.h"
#include "compiler/passes/fuse.h"

#include <inttypes.h>

/* Declares the update's gradient `d`. alone: it is that of one micro-batch, which stays out of the
 * accumulator. */
static void gradient(const LsUpdateText *u, bool alone)
{
    LsEmit *e = u->k->e;
    const bool tree = u->at->sum.levels > 0;
    if (alone)
        ls_emit_line(e, "const real sum = 0 + g[i] * part;");
    else if (u->acc >= 0 && !tree)
        ls_update_accumulate(u);
    ls_emit_line(e, "real d = %s%s;", u->acc < 0 ? "g[i]" : tree ? "sums[i]" : "sum",
                 u->factor >= 0 ? " * factor" : "");
    if (u->at->clip != 0)
        ls_emit_line(e, "d = ls_min(ls_max(d, -%s), %s);", ls_update_number(u, u->at->clip),
                     ls_update_number(u, u->at->clip));
}

/* Bits of the state that the update has. */
static unsigned states(const LsUpdateText *u)
{
    unsigned bits = 0;
    for (int k = 0; k < u->rule->nstate; k++)
        bits |= (unsigned)ls_update_has(u, 2 + k) << k;
    return bits;
}

static void declare_operands(const LsUpdateText *u)
{
    ls_update_declare(u, u->rule->makes ? "LS_IN" : "LS_OUT", "p", 0);
    ls_update_operand(u, "g", 1);
    if (u->rule->makes) {
        ls_emit_line(u->k->e, "(void)p;");
        ls_emit_result(u->k, "y", 0);
    }
    for (int k = 0; k < u->rule->nstate; k++)
        if (ls_update_has(u, 2 + k))
            ls_update_state(u, u->rule->state[k].var, 2 + k);
    if (u->factor >= 0) {
        ls_update_operand(u, "factors", u->factor);
        ls_emit_line(u->k->e, "const real factor = factors[0];");
    }
    if (u->shared >= 0)
        ls_update_operand(u, "shared", u->shared);
    if (u->average >= 0)
        ls_update_state(u, "average", u->average);
    if (u->acc >= 0) {
        ls_update_state(u, "acc", u->acc);
        ls_update_declare_part(u);
    }
}

/* Moments in bfloat16 are moved in registers: reads those of an element, or writes them. */
static void narrow_moments(const LsUpdateText *u, bool write)
{
    LsEmit *e = u->k->e;
    if (u->at->hyper.bf16 == 0)
        return;
    if (!write)
        ls_emit_line(e, "const uint32_t word = ls_moment_word(run->seed, run->update, %si, d);",
                     u->row ? "at + " : "");
    for (int k = 0; k < u->rule->nstate; k++) {
        const char *name = u->rule->state[k].var;
        if (ls_update_has(u, 2 + k) && write)
            ls_emit_line(e, "%s[i] = ls_randomly_bf16(%s_now, word >> %d);", name, name, 16 * k);
        else if (ls_update_has(u, 2 + k))
            ls_emit_line(e, "real %s_now = ls_from_bf16(%s[i]);", name, name);
    }
}

static void apply(const LsUpdateText *u, bool alone)
{
    LsEmit *e = u->k->e;
    const bool codes = ls_rule_has_codes(u->rule);
    if (codes)
        ls_update_open_blocks(u);
    else
        ls_update_open_loop(u);
    gradient(u, alone);
    narrow_moments(u, false);
    ls_update_text(u->k, u->rule, &u->at->hyper, states(u), u->rule->each);
    narrow_moments(u, true);
    if (u->average >= 0 && u->at->hyper.ema != 0)
        ls_emit_line(e, "average[i] = %s * average[i] + %s * p[i];",
                     ls_update_number(u, u->at->hyper.ema),
                     ls_update_number(u, 1 - u->at->hyper.ema));
    ls_emit_line(e, "}");
    if (codes)
        ls_update_close_blocks(u);
}

/* The update of a parameter: with an accumulator, micro-batches that do not update only add to it.
 * Private updates mostly have one micro-batch. */
static void optimizer(const LsUpdateText *u)
{
    LsEmit *e = u->k->e;
    declare_operands(u);
    const bool tree = u->at->sum.levels > 0;
    const char *leave = u->each > 0 ? "continue;" : "return;";
    if (tree)
        ls_update_join_tree(u, NULL);
    ls_emit_line(e, u->at->skips ? "if (!run->apply || factor < 0) {" : "if (!run->apply) {");
    if ((u->acc >= 0 && !tree) || u->rule->makes) {
        ls_update_open_loop(u);
        if (u->acc >= 0 && !tree)
            ls_update_accumulate(u);
        if (u->rule->makes)
            ls_emit_line(e, "y[i] = 0;");
        ls_emit_line(e, "}");
    }
    ls_emit_line(e, "%s", leave);
    ls_emit_line(e, "}");
    ls_update_text(u->k, u->rule, &u->at->hyper, states(u), u->rule->part);
    if (u->k->g->privacy.on && u->acc >= 0 && !tree) {
        ls_emit_line(e, "if (run->alone) {");
        apply(u, true);
        ls_emit_line(e, "%s", leave);
        ls_emit_line(e, "}");
    }
    apply(u, false);
}

/* Prints the loops over the elements of one tensor. */
static void update(const LsUpdateText *u)
{
    if (u->rule != NULL)
        optimizer(u);
    else
        ls_update_of_state(u);
}

/* The update of a rank's slice. */
static bool is_sliced(const LsUpdateText *u) { return u->rule != NULL && u->at->sliced; }


static LsGrid one(LsUpdateText *u)
{
    int64_t n = ls_count(ls_in_shape(u->k->g, u->k->n, 0));
    const bool codes = ls_update_block(u) > 0;
    LsGrid part = ls_flat_grid(u->k, "part", n);
    u->fours = n % 4 == 0;
    if (codes) {
        u->unit = ls_update_block_unit(u);
        part.units = ls_ceil_div(n, u->unit);
        ls_emit_line(u->k->e, "LS_EXACT_BEGIN");
    }
    ls_emit_part(u->k, &part);
    if (is_sliced(u))       /* slices end at a multiple of LS_SLICE bytes, or with the tensor */
        ls_emit_line(u->k->e, "const int64_t end = ls_least(hi * " LS_N64 ", run->count);",
                     u->unit);
    else
        ls_emit_line(u->k->e, "const int64_t end = ls_least(hi * " LS_N64 ", " LS_N64 ");",
                     u->unit, n);
    update(u);
    return part;
}

/* Prints the shape of the product whose tiles are the gradient. */
static void emit_shape(const LsUpdateText *u)
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
static void emit_row(LsUpdateText *u)
{
    const LsKernelText *k = u->k;
    const bool codes = ls_update_block(u) > 0;
    if (codes)
        ls_emit_line(k->e, "LS_EXACT_BEGIN");
    ls_emit_line(k->e, "static void %s_row(LsRun *run, void *const all[], int64_t at, int64_t end, "
                 "real *tile)", k->name);
    ls_emit_line(k->e, "{");
    ls_emit_line(k->e, "void *const arg[] = {");
    for (int i = 0; i < u->node->computed->first; i++) {
        bool flat =
            i != 1 && i != u->factor && i != u->weight && i != u->shared && ls_update_has(u, i);
        if (codes && flat)
            ls_emit_line(k->e, "%s", ls_update_block_operand(u, i));
        else
            ls_emit_line(k->e, "%s",
                         i == 1 ? "tile,"
                         : flat ? ls_arena_printf(k->g->arena, "(%s *)all[%d] + at,",
                                                  ls_ctype(ls_type(k->g, ls_in(k->g, k->n, i))), i)
                                : ls_arena_printf(k->g->arena, "all[%d],", i));
    }
    ls_emit_line(k->e, "};");
    ls_emit_line(k->e, "end -= at;");
    u->row = true;
    update(u);
    ls_emit_line(k->e, "}");
    if (codes)
        ls_emit_line(k->e, "LS_EXACT_END");
}

static const char *arg_of(const LsKernelText *k, int operand)
{
    return ls_arena_printf(k->g->arena, "arg[%d]", operand);
}

/* Prints an update that computes its gradient tile by tile, on the stack of each thread. */
static void emit_product(LsUpdateText *u)
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
    ls_emit_line(e, "const LsMatmulArgs of = {.a = %s, .b = %s};",
                 ls_stored_source(k, arg_of(k, first), first),
                 ls_stored_source(k, arg_of(k, first + 1), first + 1));
    const int64_t block = ls_update_block(u);
    ls_emit_line(e, "const LsTaken by = {%s_row, run, arg, {arg[0]%s}, %" PRId64 "};", k->name,
                 block == 0 && ls_update_has(u, 2) ? ", arg[2]" : "", block);
    ls_emit_line(e, "ls_matmul_taken(&%s_shape, &of, lo, hi, &by);", k->name);
    ls_emit_line(e, "}");
    ls_emit_line(e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(e, "{");
    ls_emit_line(e, "ls_parallel(run, %s_part, ls_taken_units(&%s_shape, %" PRId64 "), arg);",
                 k->name, k->name, block);
    ls_emit_line(e, "}");
}

/* One unit per tensor. */
static LsGrid many(LsUpdateText *u)
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

static int present(const LsUpdateText *u, int operand)
{
    return ls_update_has(u, operand) ? operand : -1;
}

static void update_emit(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    if (node->computed != NULL && node->computed->head != NULL) {
        ls_head_gradient_emit(k);
        return;
    }
    LsUpdateText u = {.k = k,
                      .node = node,
                      .at = &node->attr.update,
                      .rule = ls_rule_of((LsOpCode)node->op),
                      .factor = -1,
                      .acc = -1,
                      .weight = -1,
                      .average = -1,
                      .shared = -1,
                      .next = -1,
                      .unit = ls_unit(k)};
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
    } else if (node->op == LS_OP_BLEND || node->op == LS_OP_AVERAGE_SHARE
               || node->op == LS_OP_GROWTH_LIMIT) {
        u.factor = present(&u, 2);
    }
    if (node->computed != NULL) {
        emit_product(&u);
        return;
    }
    const LsGrid part = ls_updated(node) > 1 ? many(&u) : one(&u);
    ls_emit_line(k->e, "}");
    if (ls_update_block(&u) > 0)
        ls_emit_line(k->e, "LS_EXACT_END");
    if (is_sliced(&u))
        ls_emit_launch_units(k, &part,
                             ls_arena_printf(k->g->arena, "(run->count + %" PRId64 ") / %" PRId64,
                                             ls_unit(k) - 1, ls_unit(k)));
    else
        ls_emit_launch(k, &part, 1);
}

static int64_t update_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    const LsComputed *c = g->node[n.i].computed;
    return c != NULL && c->head != NULL ? ls_head_gradient_workspace(g, n, t) : 0;
}

const LsEmitter ls_emitter_update = {.emit = update_emit, .workspace = update_workspace};
