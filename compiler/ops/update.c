/* compiler/ops/update.c -- nodes that change state: optimizer updates, gradient accumulation,
 * running statistics. See loss.def. They have no gradient and run once per step. Optimizers may
 * have two more operands, the factors of the gradient (codegen/fusion/gradient_in_update.h). */
#include "compiler/ir/optimizer.h"
#include "compiler/ops/row.h"

#include <assert.h>

static bool no_result(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    (void)cx, (void)g, (void)n;
    return true;
}

static bool scalar_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    (void)cx;
    assert(ls_in_shape(g, n, 0)->rank == 0);
    ls_set_out(g, n, 0, LS_REAL, &(LsShape){0});
    return true;
}

/* Elements of all updated tensors. */
static double elements(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    double sum = 0;
    for (int k = 0; k < node->nin; k += ls_update_operands(node))
        sum += (double)ls_count(ls_in_shape(g, n, k));
    return sum;
}

static double rule_flops(const LsGraph *g, LsNodeId n)
{
    return ls_rule_of((LsOpCode)g->node[n.i].op)->flops * elements(g, n);
}

static double stat_flops(const LsGraph *g, LsNodeId n) { return elements(g, n); }

/* The update of a parameter with n tensors of state: it writes p, these, the accumulator and the
 * average. */
#define UPDATE(word, n) { \
    .name = word, .min_in = 2, .max_in = 9 + (n), .once = true, \
    .writes = 1 | ((1 << (n)) - 1) << 2 | 1 << (3 + (n)) | 1 << (5 + (n)), \
    .infer = no_result, .flops = rule_flops, .kernel = LS_K_UPDATE, .layout = LS_LAY_SAME, \
}
/* The direction of a step: a result of p's shape; p is only read. */
#define DIRECTION(word, n) { \
    .name = word, .min_in = 2, .max_in = 7 + (n), .nout = 1, .once = true, \
    .writes = ((1 << (n)) - 1) << 2 | 1 << (3 + (n)), \
    .infer = ls_infer_like0, .flops = rule_flops, .kernel = LS_K_UPDATE, .layout = LS_LAY_SAME, \
}
const LsOp ls_op_lamb = DIRECTION("lamb", 2);
const LsOp ls_op_raw_adam = DIRECTION("raw_adam", 2);
const LsOp ls_op_muon = DIRECTION("muon", 1);
const LsOp ls_op_direction = DIRECTION("direction", 0);
const LsOp ls_op_trust_ratio = {
    .name = "trust_ratio",
    .min_in = 2,
    .max_in = 2,
    .nout = 1,
    .infer = scalar_infer,
    .kernel = LS_K_MAP,
    .expr = "(%0 > 0 && %1 > 0 ? $a * ls_sqrt(%0) / (ls_sqrt(%1) + $b) : LS_R(1))",
};
const LsOp ls_op_sgd = UPDATE("sgd", 1);
const LsOp ls_op_adam = UPDATE("adam", 2);
/* The state has four tensors: codes and scales of both moments. */
const LsOp ls_op_adam_codes = UPDATE("adam_codes", 4);
const LsOp ls_op_lion = UPDATE("lion", 1);
const LsOp ls_op_rmsprop = UPDATE("rmsprop", 3);
const LsOp ls_op_adagrad = UPDATE("adagrad", 1);
const LsOp ls_op_nadam = UPDATE("nadam", 2);
const LsOp ls_op_radam = UPDATE("radam", 2);

const LsOp ls_op_step = UPDATE("step", 0);
const LsOp ls_op_free_sgd = UPDATE("free_sgd", 1);
const LsOp ls_op_free_adamw = UPDATE("free_adamw", 2);
const LsOp ls_op_average_share = {
    .name = "average_share", .min_in = 2, .max_in = 3, .nout = 1, .once = true, .writes = 1 | 2,
    .infer = scalar_infer, .kernel = LS_K_UPDATE, .layout = LS_LAY_ROW,
};

/* A state tensor moves towards x; the result is the state as it is then. */
const LsOp ls_op_blend = {
    .name = "blend", .min_in = 2, .max_in = 3, .nout = 1, .once = true, .writes = 1,
    .infer = ls_infer_like0, .flops = stat_flops, .kernel = LS_K_UPDATE, .layout = LS_LAY_ROW,
};
/* The step of Adafactor: RMS of the parameter, at least $a, over that of the direction in units of
 * $b, at least 1. */
const LsOp ls_op_rms_ratio = {
    .name = "rms_ratio", .min_in = 2, .max_in = 2, .nout = 1, .infer = scalar_infer,
    .kernel = LS_K_MAP, .expr = "ls_max($a, ls_sqrt(%0)) / ls_max(LS_R(1), ls_sqrt(%1) / $b)",
};
const LsOp ls_op_growth_limit = {
    .name = "growth_limit", .min_in = 2, .max_in = 3, .nout = 1, .once = true, .writes = 1,
    .infer = scalar_infer, .kernel = LS_K_UPDATE, .layout = LS_LAY_ROW,
};
const LsOp ls_op_momentum_product = {
    .name = "momentum_product", .min_in = 1, .max_in = 2, .nout = 1, .once = true, .writes = 1,
    .infer = scalar_infer, .kernel = LS_K_UPDATE, .layout = LS_LAY_ROW,
};
const LsOp ls_op_accumulate = {
    .name = "accumulate", .min_in = 2, .max_in = 3, .nout = 1, .once = true, .writes = 2,
    .infer = ls_infer_like0, .kernel = LS_K_UPDATE, .layout = LS_LAY_SAME,
};
/* Of a block of parts; no result: ranks add up what it writes. */
const LsOp ls_op_local_sum = {
    .name = "local_sum",
    .min_in = 2,
    .max_in = 5,
    .once = true,
    .writes = 1 | 4,
    .infer = no_result,
    .flops = stat_flops,
    .kernel = LS_K_UPDATE,
    .layout = LS_LAY_SAME,
};
const LsOp ls_op_part_stat = {
    .name = "part_stat", .min_in = 3, .max_in = 3, .once = true, .writes = 4, .infer = no_result,
    .kernel = LS_K_UPDATE, .layout = LS_LAY_SAME,
};
const LsOp ls_op_running_stats = {
    .name = "running_stats",
    .min_in = 2,
    .max_in = 3,
    .once = true,
    .writes = 1,
    .infer = no_result,
    .flops = stat_flops,
    .kernel = LS_K_UPDATE,
    .layout = LS_LAY_SAME,
};
const LsOp ls_op_running_stat = {
    .name = "running_stat",
    .min_in = 2,
    .max_in = 4,
    .once = true,
    .writes = 1 | 4,
    .infer = no_result,
    .flops = stat_flops,
    .kernel = LS_K_UPDATE,
    .layout = LS_LAY_SAME,
};
const LsOp ls_op_clip_factor = {
    .name = "clip_factor", .min_in = 1, .max_in = 1, .nout = 1, .infer = scalar_infer,
    .kernel = LS_K_MAP, .expr = "ls_min(LS_R(1), $a / (ls_sqrt(%0) + $b))",
};
const LsOp ls_op_mean_factor = {
    .name = "mean_factor", .min_in = 1, .max_in = 1, .nout = 1, .infer = scalar_infer,
    .kernel = LS_K_MAP, .expr = "(%0 != 0 ? 1 / %0 : LS_R(1))",
};
const LsOp ls_op_loss_scale = {
    .name = "loss_scale",
    .min_in = 4,
    .max_in = 4,
    .once = true,
    .writes = 2 | 4 | 8,
    .infer = no_result,
    .flops = stat_flops,
    .kernel = LS_K_UPDATE,
    .layout = LS_LAY_ROW,
};
const LsOp ls_op_step_factor = {
    .name = "step_factor", .min_in = 2, .max_in = 2, .nout = 1, .infer = scalar_infer,
    .kernel = LS_K_MAP, .expr = "(%0 == 0 ? %1 : LS_R(-1))",
};

const LsOp ls_op_times_samples = {
    .name = "times_samples", .min_in = 1, .max_in = 1, .nout = 1, .infer = scalar_infer,
    .kernel = LS_K_MAP, .expr = "%0 * (real)run->valid",
};
const LsOp ls_op_over_samples = {
    .name = "over_samples", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_like0,
    .kernel = LS_K_MAP, .expr = "%0 / (real)(run->valid > 0 ? run->valid : 1)",
};
const LsOp ls_op_sample_factor = {
    .name = "sample_factor",
    .min_in = 1,
    .max_in = 1,
    .nout = 1,
    .infer = ls_infer_like0,
    .kernel = LS_K_MAP,
    .expr = "(%0 >= 0 && %0 < INFINITY && (run->only == 0 || run->only == %i + 1)"
            " ? $b * ls_min(LS_R(1), $a / ls_sqrt(%0)) : 0)",
};
const LsOp ls_op_add_noise = {
    .name = "add_noise",
    .min_in = 1,
    .max_in = 1,
    .nout = 1,
    .infer = ls_infer_like0,
    .kernel = LS_K_MAP,
    .expr = "%0 + (run->apply ? $a : 0) * ls_noise(run->noise, run->update, $b, %i)",
};
