/* compiler/passes/passes.h -- the passes of one compilation, in the order of pipeline.c. Each is one file
 * whose head says what it requires, keeps and breaks, and returns false after diagnostics. */
#ifndef LS_COMPILER_PASSES_PASSES_H
#define LS_COMPILER_PASSES_PASSES_H

#include "compiler/ir/graph.h"
#include "compiler/ir/optimizer.h"

/* ---- on the forward graph ---- */
bool ls_heads(LsCtx *, LsGraph *);          /* attention reads q, k, v from one tensor */

typedef enum {
    LS_LOSS_GRAPH, LS_LOSS_CE, LS_LOSS_MSE, LS_LOSS_L1, LS_LOSS_BCE, LS_LOSS_NLL, LS_LOSS_KL, LS_LOSS_SMOOTH_L1,
    LS_LOSS_HUBER, LS_LOSS_COSINE, LS_LOSS_TRIPLET, LS_NLOSSES
} LsLossKind;
/* One term of the loss: `weight` times the loss of an output. (compiler/passes/loss_term.c) */
typedef struct LsLossPart {
    LsLossKind kind;
    const char *output[3];      /* the model output (or the loss itself); NULL: the first output (the loss itself: the
                                 * only scalar). LS_LOSS_TRIPLET: anchor, positive, negative */
    double weight;
    double setting;             /* beta of smooth_l1 (0: l1), delta of huber, margin of triplet */
} LsLossPart;
typedef struct LsLossOptions {
    LsLossKind kind;            /* of the only term, which has weight 1 and the usual setting 1 ... */
    const char *output;
    LsLossPart *part; uint32_t npart;         /* ... unless terms are listed */
    const char *label;          /* name of the target input, NULL: "label"; with targets of several outputs, what precedes
                                 * ".OUTPUT" in their names */
    double smoothing;
    int64_t ignore; bool has_ignore;
    const float *class_weight; int64_t nclass;      /* NULL: all 1 */
    int axis;                   /* of the classes (ce), negative from the end; 0: by the label's shape, or ls_class_axis */
    LsShape label_shape;        /* of the target of a cross-entropy; rank 0: not known */
} LsLossOptions;
/* The class axis of output y for a cross-entropy: the axis that a weight makes. Where no weight shows it: axis 1 (N,C and
 * N,C,H,W), with a warning above rank 2; at rank 3 (N,T,V or N,C,L?) an error that names both. Warns of an axis that is
 * not the usual one: the last at rank 3, else axis 1. 0 after an error. (compiler/passes/class_axis.c) */
int ls_class_axis(LsCtx *, const LsGraph *, LsValueId y);
/* The axis without which y's shape is the label's. 0 after an error: there is none, or several. */
int ls_class_axis_of_label(LsCtx *, const LsGraph *, LsValueId y, const LsShape *label);
bool ls_loss(LsCtx *, LsGraph *, const LsLossOptions *);    /* sets g->loss, g->label, g->loss_over */

/* ---- training ---- */
/* What --loss-scale says: the scale at the start, and how it moves. */
typedef struct LsLossScale { bool on; double start; LsScaleAttr rule; } LsLossScale;
/* Sets g->scaling, if it is on: before ls_autodiff. (compiler/passes/loss_scale.c) */
void ls_loss_scale(LsCtx *, LsGraph *, const LsLossScale *);
/* What --grads asks for beside the gradients of the parameters: those of every sample with their norms, or the norms
 * alone. */
typedef enum { LS_GRADS_MEAN, LS_GRADS_PER_SAMPLE, LS_GRADS_NORMS } LsGradsMode;
/* What --randomness says of random numbers in the model: refused, other ones for every sample, the same for all. */
typedef enum { LS_RANDOM_ERROR, LS_RANDOM_DIFFERENT, LS_RANDOM_SAME } LsRandomness;
/* What norms of samples are made of (--sample-norms): what is cheapest for each weight; where these ways are known, pairs of
 * rows, or tiles of the gradients of samples, which are not stored; these gradients themselves. */
typedef enum { LS_NORMS_CHEAPEST, LS_NORMS_PAIRS, LS_NORMS_TILES, LS_NORMS_TERMS } LsSampleNorms;
/* The predicted time of a node on a machine, ns. */
typedef struct LsNodePrice { double (*ns)(const void *machine, const LsGraph *, LsNodeId); const void *machine; } LsNodePrice;
/* price: decides between ways before there is a plan; not used without samples. */
typedef struct LsSampleGrads {
    LsGradsMode mode;
    LsPrivacy privacy;
    LsRandomness randomness;
    LsSampleNorms norms;
    LsNodePrice price;
} LsSampleGrads;
static inline bool ls_wants_samples(const LsSampleGrads *o) { return o->mode != LS_GRADS_MEAN || o->privacy.on; }
bool ls_autodiff(LsCtx *, LsGraph *);       /* appends the backward part, sets g->grad */
/* The same with what --grads and --dp ask for. */
bool ls_autodiff_samples(LsCtx *, LsGraph *, const LsSampleGrads *);

/* Lets random numbers depend on a sample's place in the whole batch, of which the graph has one of `parts` parts. */
bool ls_part_randomness(LsCtx *, LsGraph *, int64_t parts);

/* More ranks than that are refused. */
enum { LS_RANKS_ANY = -1, LS_MOST_RANKS = 1024 };

typedef struct LsOptimizerOptions {
    LsOptimizerKind kind;
    union { struct { LS_HYPER }; LsHyper hyper; };
    double clip_norm, clip_value;   /* 0: none */
    int accumulate;                 /* batches per update; 0, 1: one */
    bool spares_vectors;            /* no weight decay of biases and norms (compiler/passes/decay_groups.h), nor */
    const char *const *no_decay; int nno_decay;     /* of parameters of these names: globs */
    int parts;                      /* micro-batches of a batch; 0, 1: it is not cut */
    int ranks;                      /* that share the parts of an update; 0, 1: one; LS_RANKS_ANY: as many as a run says */
    LsLossScale scale;
} LsOptimizerOptions;
/* The updates are a graph of their own, behind sums over ranks. */
static inline bool ls_over_ranks(const LsOptimizerOptions *o) { return o->ranks > 1 || o->ranks == LS_RANKS_ANY; }
/* Appends the update of every parameter right behind its gradient's last reader. Learning rate and
 * step number are run-time scalars (runtime/ls_program.h), not values of the graph. With g->scaling all updates wait
 * for all gradients. With ranks the updates are a graph of their own, LsGraph.updates. */
bool ls_optimizer(LsCtx *, LsGraph *, const LsOptimizerOptions *);

/* ---- before scheduling; ls_layout is in channels_last.h ---- */
bool ls_dce(LsCtx *, LsGraph *);
/* What --precision says. (compiler/passes/mixed_precision.c) */
typedef struct LsPrecision {
    LsType compute;             /* LS_BF16, LS_F16; LS_REAL: nothing is rounded */
    const char *const *wide; int nwide;     /* globs over names of nodes and values that stay f32 */
    bool gpu;                   /* for the kernels and libraries of GPUs (compiler/passes/kernels_16.h) */
    bool copies;                /* for tests: only pointwise kernels and views read and write 16 bits; all others get
                                 * copies in f32 */
} LsPrecision;
bool ls_precision(LsCtx *, LsGraph *, const LsPrecision *);     /* before ls_fuse */
bool ls_residual(LsCtx *, LsGraph *);       /* fuses sums of gradients into a norm's kernel */
bool ls_fuse(LsCtx *, LsGraph *);           /* MAP and REDUCE nodes -> FUSED nodes */
bool ls_split(LsCtx *, LsGraph *);          /* FUSED nodes store slices of their results
                                             * themselves */
bool ls_verify(LsCtx *, const LsGraph *);   /* the invariants of ir.h */

#endif
