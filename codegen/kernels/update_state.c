/* codegen/kernels/update_state.c -- updates of state that is no parameter: partial sums, running
 * statistics, the loss scale and the numbers of schedule-free optimizers. */
#include "codegen/kernels/update_state.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

static void accumulation(const LsUpdateText *u)
{
    ls_update_operand(u, "g", 0);
    ls_update_state(u, "acc", 1);
    if (!u->at->stays)
        ls_emit_result(u->k, "y", 0);
    ls_update_declare_part(u);
    if (u->at->sum.levels > 0)          /* the last part takes level 0, which it joins, or which is
                                         * free */
        ls_update_join_tree(u, u->at->stays ? "acc" : NULL);
    if (u->at->sum.levels > 0 && u->at->stays)
        return;
    ls_update_open_loop(u);
    if (u->at->sum.levels == 0)
        ls_update_accumulate(u);
    if (!u->at->stays)
        ls_emit_line(u->k->e, u->at->sum.levels > 0 ? "y[i] = sums[i];" : "y[i] = sum;");
    ls_emit_line(u->k->e, "}");
}

/* Of a block of one part: the part. */
static void local_sum(const LsUpdateText *u)
{
    ls_update_state(u, "out", 0);
    ls_update_operand(u, "g", 1);
    if (u->acc >= 0)
        ls_update_state(u, "acc", u->acc);
    ls_update_declare_weight(u);
    if (u->acc >= 0) {
        ls_update_join_tree(u, "out");
        return;
    }
    ls_update_open_loop(u);
    ls_emit_line(u->k->e, "out[i] = g[i] * part;");
    ls_emit_line(u->k->e, "}");
}

/* Declares "to", the row of a part: `rows` has rows of as many elements as the statistic. */
static void declare_row(const LsUpdateText *u, const char *to, const char *part)
{
    const int64_t n = ls_count(ls_in_shape(u->k->g, u->k->n, 0));
    if (u->each > 0)            /* of a tensor of `end` elements */
        ls_emit_line(u->k->e, "%s = rows + (%s) * end;", to, part);
    else
        ls_emit_line(u->k->e, "%s = rows + (%s) * " LS_N64 ";", to, part, n);
}

/* GPUs take whole batches (print_short_batches in codegen/program/program_text.c). */
static bool spreads(const LsUpdateText *u)
{
    return u->at->each > 0 && u->k->target->kind == LS_TARGET_CPU;
}

/* Declares "spread", by which the statistic of a part with few samples differs from what `scale`
 * makes of a full one's. */
static void declare_spread(const LsUpdateText *u)
{
    if (spreads(u))
        ls_emit_line(u->k->e,
                     "const real spread = ls_counted_spread(run->valid * " LS_N64 ", " LS_N64 ");",
                     u->at->each, u->k->g->batch * u->at->each);
}

static void part_stat(const LsUpdateText *u)
{
    ls_update_operand(u, "batch", 1);
    ls_update_state(u, "rows", 2);
    declare_spread(u);
    declare_row(u, "real *const row", "run->block + run->part");
    ls_update_open_loop(u);
    ls_emit_line(u->k->e, spreads(u) ? "row[i] = batch[i] * spread;" : "row[i] = batch[i];");
    ls_emit_line(u->k->e, "}");
}

/* Moves by the statistics of all parts, in their order. */
static void running_stats(const LsUpdateText *u)
{
    LsEmit *e = u->k->e;
    ls_update_state(u, "stat", 0);
    ls_update_operand(u, "rows", 1);
    if (u->factor >= 0) {
        ls_update_operand(u, "factors", u->factor);
        ls_emit_line(e,
                     u->each > 0 ? "if (factors[0] < 0) continue;" : "if (factors[0] < 0) return;");
    }
    ls_emit_line(e, "for (int64_t k = 0; k < run->parts; k++) {");
    declare_row(u, "const real *const batch", "k");
    ls_update_open_loop(u);
    ls_emit_line(e, "stat[i] = stat[i] * %s + batch[i] * %s;",
                 ls_update_number(u, u->at->hyper.momentum), ls_update_number(u, u->at->sum.scale));
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void running_stat(const LsUpdateText *u)
{
    LsEmit *e = u->k->e;
    const char *momentum = ls_update_number(u, u->at->hyper.momentum),
               *scale = ls_update_number(u, u->at->sum.scale);
    const char *moves_by = spreads(u) ? "batch[i] * spread" : "batch[i]";
    ls_update_state(u, "stat", 0);
    ls_update_operand(u, "batch", 1);
    if (u->factor >= 0)
        ls_update_operand(u, "factors", u->factor);
    if (u->next >= 0) {
        ls_update_state(u, "next", u->next);
        ls_emit_line(e, "const bool first = run->first, keep = run->apply && factors[0] >= 0;");
    } else if (u->factor >= 0) {
        ls_emit_line(e,
                     u->each > 0 ? "if (factors[0] < 0) continue;" : "if (factors[0] < 0) return;");
    }
    declare_spread(u);
    ls_update_open_loop(u);
    if (u->next >= 0) {
        ls_emit_line(e, "const real moved = (first ? stat[i] : next[i]) * %s + %s * %s;", momentum,
                     moves_by, scale);
        ls_emit_line(e, "next[i] = moved;");
        ls_emit_line(e, "stat[i] = keep ? moved : stat[i];");
    } else {
        ls_emit_line(e, "stat[i] = stat[i] * %s + %s * %s;", momentum, moves_by, scale);
    }
    ls_emit_line(e, "}");
}

/* One element: the machine of runtime/kernels/ls_scale.h. */
static void loss_scale(const LsUpdateText *u)
{
    LsEmit *e = u->k->e;
    const LsScaleAttr *r = &u->at->rule;
    ls_update_operand(u, "factors", 0);
    ls_update_state(u, "scale", 1);
    ls_update_state(u, "counter", 2);
    ls_update_state(u, "skips", 3);
    ls_emit_line(e, "if (!run->apply) return;");
    ls_emit_line(e, "const LsScaleRule rule = {%.17g, %.17g, %.17g, %s, (float)%.9g};", r->period,
                 r->grow, r->shrink, r->divides ? "true" : "false", r->least);
    ls_update_open_loop(u);
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
static void declare_moves(const LsUpdateText *u)
{
    if (u->factor >= 0)
        ls_update_operand(u, "factors", u->factor);
    ls_emit_line(u->k->e, "const bool moves = run->apply%s;",
                 u->factor >= 0 && u->at->skips ? " && factors[0] >= 0" : "");
}

static void blend(const LsUpdateText *u)
{
    LsEmit *e = u->k->e;
    ls_update_state(u, "state", 0);
    ls_update_operand(u, "x", 1);
    ls_emit_result(u->k, "y", 0);
    declare_moves(u);
    ls_emit_line(e, "const real b = (real)pow((double)run->update, -%.17g);", u->at->hyper.power);
    ls_update_open_loop(u);
    ls_emit_line(e, "const real is = moves ? (1 - b) * state[i] + b * x[i] : state[i];");
    ls_emit_line(e, "state[i] = is;");
    ls_emit_line(e, "y[i] = is;");
    ls_emit_line(e, "}");
}

/* One element. The mean of the weights stays exact while the rate does, as their sum would not. */
static void average_share(const LsUpdateText *u)
{
    LsEmit *e = u->k->e;
    ls_update_state(u, "largest", 0);
    ls_update_state(u, "mean", 1);
    ls_emit_result(u->k, "y", 0);
    declare_moves(u);
    ls_emit_line(e, "const double t = (double)run->update;");
    ls_update_open_loop(u);
    ls_emit_line(e, "const double most = run->update > 1 && (double)largest[i] > run->lr ? "
                    "(double)largest[i] : run->lr;");
    ls_emit_line(e, "const double w = pow(t, %.17g) * pow(most, %.17g);", u->at->hyper.by_time,
                 u->at->hyper.by_rate);
    ls_emit_line(
        e, "const double of = run->update > 1 ? (double)mean[i] + (w - (double)mean[i]) / t : w;");
    ls_emit_line(e, "y[i] = (real)(moves && of > 0 ? w / (t * of) : 0);");
    ls_emit_line(e, "largest[i] = moves ? (real)most : largest[i];");
    ls_emit_line(e, "mean[i] = moves ? (real)of : mean[i];");
    ls_emit_line(e, "}");
}

/* One element. */
static void momentum_product(const LsUpdateText *u)
{
    LsEmit *e = u->k->e;
    ls_update_state(u, "product", 0);
    ls_emit_result(u->k, "y", 0);
    declare_moves(u);
    ls_emit_line(e,
                 "const double now = %.17g * (1 - 0.5 * pow(0.96, (double)run->update * %.17g));",
                 u->at->hyper.beta1, u->at->hyper.momentum_decay);
    ls_update_open_loop(u);
    ls_emit_line(e, "const real is = moves ? (real)((run->update > 1 ? (double)product[i] : 1) * "
                    "now) : product[i];");
    ls_emit_line(e, "product[i] = is;");
    ls_emit_line(e, "y[i] = is;");
    ls_emit_line(e, "}");
}

/* One element. */
static void growth_limit(const LsUpdateText *u)
{
    LsEmit *e = u->k->e;
    const LsHyper *h = &u->at->hyper;
    ls_update_state(u, "norm", 0);
    ls_update_operand(u, "squares", 1);
    ls_emit_result(u->k, "y", 0);
    declare_moves(u);
    ls_update_open_loop(u);
    ls_emit_line(e, "const real now = ls_sqrt(squares[i]);");
    if (h->growth > 0)
        ls_emit_line(e, "const real over = run->update > 1 ? "
                        "ls_max(now / (norm[i] + LS_R(1e-8)), %s) / %s : 1;",
                     ls_update_number(u, h->growth), ls_update_number(u, h->growth));
    else
        ls_emit_line(e, "const real over = 1;");
    ls_emit_line(e, "y[i] = moves ? %s / over : 1;",
                 ls_update_number(u, h->front != 0 ? 1 : sqrt(h->scale)));
    ls_emit_line(e, "norm[i] = moves ? now / over : norm[i];");
    ls_emit_line(e, "}");
}

void ls_update_of_state(const LsUpdateText *u)
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
    case LS_OP_GROWTH_LIMIT: growth_limit(u); break;
    default:                 assert(0);
    }
}
