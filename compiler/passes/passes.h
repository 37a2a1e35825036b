/* compiler/passes/passes.h -- the passes of one compilation, in the order of pipeline.c. Each is
 * one file whose head says what it requires, keeps and breaks, and returns false after
 * diagnostics. */
#ifndef LS_COMPILER_PASSES_PASSES_H
#define LS_COMPILER_PASSES_PASSES_H

#include "compiler/ir/graph.h"
#include "compiler/per_sample/sample_gradients.h"
#include "compiler/updates/update_options.h"

/* ---- on the forward graph ---- */
bool ls_heads(LsCtx *, LsGraph *);          /* attention reads q, k, v from one tensor */

typedef enum {
    LS_LOSS_GRAPH,
    LS_LOSS_CE,
    LS_LOSS_MSE,
    LS_LOSS_L1,
    LS_LOSS_BCE,
    LS_LOSS_NLL,
    LS_LOSS_KL,
    LS_LOSS_SMOOTH_L1,
    LS_LOSS_HUBER,
    LS_LOSS_COSINE,
    LS_LOSS_TRIPLET,
    LS_LOSS_SOFT_CE,
    LS_NLOSSES
} LsLossKind;
/* One term of the loss: `weight` times the loss of an output. (compiler/passes/loss_term.c) */
typedef struct LsLossPart {
    LsLossKind kind;
    const char *output[3];      /* the model output (or the loss itself); NULL: the first output
                                 * (the loss itself: the only scalar). LS_LOSS_TRIPLET: anchor,
                                 * positive, negative */
    double weight;
    double setting;             /* beta of smooth_l1 (0: l1), delta of huber, margin of triplet */
} LsLossPart;
typedef struct LsLossOptions {
    LsLossKind kind;            /* of the only term, which has weight 1 and the usual setting 1
                                 * ... */
    const char *output;
    LsLossPart *part; uint32_t npart;         /* ... unless terms are listed */
    const char *label;          /* name of the target input, NULL: "label"; with targets of several
                                 * outputs, what precedes ".OUTPUT" in their names */
    double smoothing;
    int64_t ignore; bool has_ignore;
    const float *class_weight; int64_t nclass;      /* NULL: all 1 */
    int axis;                   /* of the classes (ce), negative from the end; 0: by the label's
                                 * shape, or ls_class_axis */
    LsShape label_shape;        /* of the target of a cross-entropy; rank 0: not known */
} LsLossOptions;
/* The class axis of output y for a cross-entropy: the axis that a weight makes. Where no weight
 * shows it: axis 1 (N,C and N,C,H,W), with a warning above rank 2; at rank 3 (N,T,V or N,C,L?) an
 * error that names both. Warns of an axis that is not the usual one: the last at rank 3, else axis
 * 1. 0 after an error. (compiler/passes/class_axis.c) */
int ls_class_axis(LsCtx *, const LsGraph *, LsValueId y);
/* The axis without which y's shape is the label's. 0 after an error: there is none, or several. */
int ls_class_axis_of_label(LsCtx *, const LsGraph *, LsValueId y, const LsShape *label);
bool ls_loss(LsCtx *, LsGraph *, const LsLossOptions *);    /* sets g->loss, g->label,
                                                             * g->loss_over */

/* --segments: samples share rows of tokens, and the input `name` says which token is of which;
 * NULL: none. After ls_loss. (compiler/passes/segment_rows.c) */
bool ls_segments(LsCtx *, LsGraph *, const char *name);

/* --head-chunks: as many chunks; 0: none. ends: whether a block of a product's sum over k terms
 * ends before the term `at`, so that parts of the sum can end there without other bits; NULL: the
 * kernels cannot go on with a sum. */
typedef struct LsHeadChunks {
    int64_t chunks;
    bool strict;                /* refuse chunks with other bits than those of the whole head */
    bool in_update;             /* no chunk adds to the weight's gradient in the end
                                 * (codegen/fusion/head_in_update.h): chunks may end anywhere */
    bool (*ends)(int real_bytes, bool dot16, int64_t k, int64_t at);
    int real_bytes;
    bool dot16;
} LsHeadChunks;
/* After ls_loss. (compiler/passes/head_chunks.c) */
bool ls_head_chunks(LsCtx *, LsGraph *, const LsHeadChunks *);

/* ---- training; updates are in compiler/updates/update_options.h ---- */
bool ls_autodiff(LsCtx *, LsGraph *);       /* appends the backward part, sets g->grad */
/* The same with what --grads and --dp ask for. */
bool ls_autodiff_samples(LsCtx *, LsGraph *, const LsSampleGrads *);

/* Weights that are kept in few bits are read from their codes. asked: --quantize-frozen was given,
 * so that there must be some. (compiler/passes/unpack_weights.c) */
bool ls_unpack_weights(LsCtx *, LsGraph *, bool asked);

/* ---- before scheduling; ls_layout is in channels_last.h ---- */
bool ls_dce(LsCtx *, LsGraph *);
/* What --precision says. (compiler/passes/mixed_precision.c) */
typedef struct LsPrecision {
    LsType compute;             /* LS_BF16, LS_F16; LS_REAL: nothing is rounded */
    const char *const *wide; int nwide;     /* globs over names of nodes and values that stay f32 */
    bool gpu;                   /* for the kernels and libraries of GPUs
                                 * (compiler/passes/kernels_16.h) */
    bool copies;                /* for tests: only pointwise kernels and views read and write 16
                                 * bits; all others get copies in f32 */
} LsPrecision;
bool ls_precision(LsCtx *, LsGraph *, const LsPrecision *);     /* before ls_fuse */
bool ls_residual(LsCtx *, LsGraph *);       /* fuses sums of gradients into a norm's kernel */
bool ls_fuse(LsCtx *, LsGraph *);           /* MAP and REDUCE nodes -> FUSED nodes */
bool ls_split(LsCtx *, LsGraph *);          /* FUSED nodes store slices of their results
                                             * themselves */
bool ls_verify(LsCtx *, const LsGraph *);   /* the invariants of ir.h */

#endif
