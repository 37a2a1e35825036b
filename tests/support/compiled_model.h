/* tests/support/compiled_model.h -- the training graph of a generated network, after all passes. */
#ifndef LS_TESTS_SUPPORT_COMPILED_MODEL_H
#define LS_TESTS_SUPPORT_COMPILED_MODEL_H

#include "compiler/pipeline.h"
#include "tests/support/model_util.h"

/* line: as for `lowerset model`, without weights. */
static inline LsGraph *compiled_with(LsCtx *cx, const char *line, int64_t batch,
                                     LsOptimizerOptions optimizer, LsPrecision precision)
{
    LsPipelineOptions o = {
        .import = {.batch = batch, .training = true, .weightless = true},
        .loss = {.kind = strncmp(line, "autoencoder", 11) == 0 ? LS_LOSS_MSE : LS_LOSS_CE},
        .optimizer = optimizer, .precision = precision,
    };
    char with[128];
    snprintf(with, sizeof with, "%s --weights=none", line);
    ck_assert_msg(run(with, in_dir("net.onnx")) == 0, "%s: %s", line, complaint());
    cx->model = "net.onnx";
    cx->log = stdout;
    LsGraph *g = ls_pipeline(cx, in_dir("net.onnx"), &o);
    ck_assert_msg(g != NULL && cx->nerror == 0, "%s is not compiled", line);
    return g;
}

static inline LsGraph *compiled(LsCtx *cx, const char *line, int64_t batch)
{
    return compiled_with(cx, line, batch,
                         (LsOptimizerOptions){.kind = LS_SGD, .hyper.momentum = 0.9},
                         (LsPrecision){0});
}

#endif
