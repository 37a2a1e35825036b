/* compiler/pipeline.h -- from a file to the graph that is scheduled. */
#ifndef LS_COMPILER_PIPELINE_H
#define LS_COMPILER_PIPELINE_H

#include "compiler/onnx/import_options.h"
#include "compiler/passes/ensemble.h"

typedef struct LsPipelineOptions {
    LsImportOptions import;
    LsLossOptions loss;
    const char *segments;       /* name of the input; NULL: each row is one sample */
    LsHeadChunks head;
    bool drop_bias;             /* in front of batch norms (compiler/passes/drop_bias.h) */
    LsSampleGrads grads;
    LsEnsemble ensemble;
    LsOptimizerOptions optimizer;
    LsPrecision precision;
    LsType eval_compute;        /* what precision.compute is in the evaluation form */
    const LsGraph *like;        /* evaluation form: the training graph, whose layouts it shares */
    const char *dump;           /* -d PASS: print the graph after that
                                 * pass on stdout; "all"; NULL */
} LsPipelineOptions;

/* The training graph (o->import.training) or the evaluation form with the same loss; NULL after
 * diagnostics. Runs ls_verify between passes. */
LsGraph *ls_pipeline(LsCtx *cx, const char *path, const LsPipelineOptions *o);

/* The passes by name, in their order: k from 0; NULL at the end. */
const char *ls_pipeline_pass(size_t k);

#endif
