/* compiler/ir/ir.h -- the data of one compilation: compiler/ writes it, the other rooms only read.
 *
 * Dense ids into arrays. Row 0 of every array is a dummy, so zeroed memory means "none". Arrays
 * only grow; nobody holds an LsNode * or LsValue * across an append. A pass keeps its results in
 * its own arrays, indexed by id. */
#ifndef LS_COMPILER_IR_IR_H
#define LS_COMPILER_IR_IR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { LS_MAX_RANK = 8, LS_MAX_SPATIAL = 3 };

typedef struct { uint32_t i; } LsValueId;   /* index into LsGraph.value; 0 = none */
typedef struct { uint32_t i; } LsNodeId;    /* index into LsGraph.node;  0 = none */

/* Logical shape, in ONNX's order of axes (images are N, C, H, W whatever the layout). Rank 0 is a
 * scalar of one element. All dims > 0, except in constants, where 0 is allowed. */
typedef struct { int rank; int64_t dim[LS_MAX_RANK]; } LsShape;

/* LS_REAL is float, or double when the program is built with --precision=f64. LS_BF16 and LS_F16 are reals that are
 * stored in 16 bits: every element is a number of that format. Kernels compute with them as with LS_REAL. Only results
 * of nodes have these types (compiler/passes/mixed_precision.c). */
typedef enum { LS_REAL, LS_I64, LS_I32, LS_BOOL, LS_BF16, LS_F16, LS_NTYPES } LsType;
static inline bool ls_is_16(LsType t) { return t == LS_BF16 || t == LS_F16; }
static inline bool ls_is_float(LsType t) { return t == LS_REAL || ls_is_16(t); }

/* How the elements of a value lie in memory. LS_LAST moves axis 1 behind the others: N,C,H,W is
 * stored as N,H,W,C and a convolution weight M,C,R,S as M,R,S,C. Ranks below 3 are always
 * LS_ROW. */
typedef enum { LS_ROW, LS_LAST } LsLayout;

typedef enum {
    LS_V_NONE,
    LS_V_INPUT,     /* supplied with every batch: model inputs, the target of the loss */
    LS_V_PARAM,     /* trainable state, read by forward and backward, written by its update node */
    LS_V_STATE,     /* other state: running statistics, frozen weights, optimizer moments */
    LS_V_CONST,     /* known at compile time: data is set */
    LS_V_TEMP,      /* result of a node */
} LsValueKind;

typedef struct LsValue {
    const char *name;       /* unique; the ONNX name where there is one */
    LsType type;
    LsValueKind kind;
    LsLayout layout;        /* set by ls_layout; LS_ROW before */
    bool once_written;      /* LS_V_PARAM, LS_V_STATE: some node updates it */
    bool statistic;         /* LS_V_STATE: a running mean or variance, updated or not */
    bool stopped;           /* results of DETACH: the file or --stop-gradient says so (onnx_stops.h); LS_V_PARAM: the loss
                             * depends on it through such a result, so that its gradient is not the loss's derivative */
    bool stacked;           /* inputs and state: every member of an ensemble has its own, of this shape, one
                             * behind the other (LsGraph.ensemble) */
    bool of_optimizer;      /* LS_V_STATE: moments and averages, beside the parameter */
    const char *average_of; /* LS_V_STATE: the parameter's name; evaluation reads this state in its place */
    bool of_update;         /* LS_V_STATE: of no meaning between updates */
    bool rank_sum;          /* LS_V_STATE: ranks add it up (LsGraph.rank) */
    int rank_levels;        /* LS_V_STATE: partial sums of such a sum, so many with the fewest ranks; 0: it is none */
    bool sliced;            /* LS_V_STATE: each rank has a slice */
    LsShape shape;
    int64_t columns;        /* valid columns of its last axis, where the axis was widened
                             * (codegen/cuda/pad_classes.h); 0: all */
    int64_t rows_behind;    /* state: rows of zeros appended behind it (likewise) */
    LsNodeId def;           /* defining node; none for inputs, state and constants */
    const void *data;       /* constants, and initial values of state: row-major in logical order,
                             * real as float, I64, I32, BOOL as uint8_t. NULL: zeros (state), or
                             * weights that were not loaded (LsSource.weightless) */
} LsValue;

/* ---- attributes, one struct per family; the op says which ---- */
typedef struct {                /* convolutions and pooling; spatial axis d is tensor axis 2 + d */
    int n;                      /* number of spatial axes, 1..3 */
    int64_t kernel[LS_MAX_SPATIAL], stride[LS_MAX_SPATIAL], dilation[LS_MAX_SPATIAL];
    int64_t pad_lo[LS_MAX_SPATIAL], pad_hi[LS_MAX_SPATIAL];
    int64_t group;              /* convolutions */
    bool each;                  /* CONV_DW: a gradient of every image, [images * M,C/group,K..] */
    bool relu;                  /* CONV, on GPUs: stores max(y, 0) (codegen/cuda/conv_fuse.h) */
    bool count_pad;             /* average pooling: padding counts in the divisor */
    int64_t x_dim[LS_MAX_SPATIAL];  /* pooling, gradients, ConvTranspose:
                                     * spatial size of the result */
} LsWindowAttr;
/* Of a node that takes statistics of the samples that count, LsRun.valid of the batch's, or passes their gradients on: the
 * elements of each sample that make one statistic. Samples lie along the outermost axis of what has `rank` axes; behind the
 * last one that counts the gradient is 0. each 0: a node that takes all elements. (compiler/per_sample/batch_mixing.h) */
typedef struct LsCounted { int64_t each; int rank; } LsCounted;
typedef struct { uint32_t axes; bool keep; LsCounted counted; } LsReduceAttr;   /* bit k: axis k is reduced */
typedef struct { int axis; } LsAxisAttr;                    /* softmax, concat, gather, split */
typedef struct { int perm[LS_MAX_RANK]; } LsPermAttr;       /* result axis k is
                                                             * operand axis perm[k] */
typedef struct { LsShape shape; } LsShapeAttr;              /* reshape, expand, tile (as repeats) */
/* slice: result index i of axis k reads start[k] + i * step[k], as long as that lies before stop[k]
 * (in the direction of step). Already clamped: start in 0..dim, stop in -1..dim, step not 0. */
typedef struct {
    int64_t start[LS_MAX_RANK], step[LS_MAX_RANK], stop[LS_MAX_RANK];
    LsShape x;                  /* slice_grad: shape of the operand of the
                                 * slice, hence of the result */
} LsSliceAttr;
/* How a scatter combines an element with the updates that it receives, in their order. */
typedef enum { LS_SCATTER_ADD, LS_SCATTER_SET, LS_SCATTER_MUL, LS_SCATTER_MAX, LS_SCATTER_MIN } LsScatterHow;
/* gather and scatter; axis lies where LsAxisAttr has it. Scatters alone: x, shape of the table, of the
 * result; how. GATHER alone: zero, an index outside the axis gives 0 instead of NaN */
typedef struct { int axis; LsShape x; LsScatterHow how; bool zero; } LsGatherAttr;
typedef struct { int axis; bool exclusive, reverse; } LsScanAttr;
typedef struct { int axis; int64_t k; bool least; } LsTopAttr;
typedef enum { LS_PAD_CONSTANT, LS_PAD_REFLECT, LS_PAD_EDGE } LsPadMode;
/* pad: result index i reads i - lo; where that is outside, the mode decides. Negative: crop. */
typedef struct {
    LsPadMode mode;
    int64_t lo[LS_MAX_RANK], hi[LS_MAX_RANK];
    double value;
} LsPadAttr;
typedef enum { LS_RESIZE_NEAREST, LS_RESIZE_LINEAR } LsResizeMode;
typedef enum { LS_COORD_HALF_PIXEL, LS_COORD_PYTORCH_HALF_PIXEL, LS_COORD_ALIGN_CORNERS,
               LS_COORD_ASYMMETRIC } LsResizeCoord;
typedef enum { LS_ROUND_FLOOR, LS_ROUND_CEIL, LS_ROUND_PREFER_FLOOR, LS_ROUND_PREFER_CEIL } LsRound;
typedef struct { LsResizeMode mode; LsResizeCoord coord; LsRound nearest;
                 double scale[LS_MAX_RANK];     /* output over input, as in the file */
                 LsShape x, y; } LsResizeAttr;  /* shapes before and after
                                                 * (resize_grad: y is dy's) */
/* What images go on with beyond their ends: nothing, the end, the image reflected at the middle of the ends' elements,
 * or at their borders. */
typedef enum { LS_BEYOND_NOTHING, LS_BEYOND_CLAMP, LS_BEYOND_MIDDLE, LS_BEYOND_BORDER } LsBeyond;
typedef enum { LS_SAMPLE_NEAREST, LS_SAMPLE_LINEAR, LS_SAMPLE_CUBIC } LsSampleMode;
/* last_first: the coordinates of a place begin with that along the last axis. x: SAMPLE_DX, shape of the result */
typedef struct { LsSampleMode mode; LsBeyond beyond; bool last_first; LsShape x; } LsSampleAttr;
typedef struct { int64_t height, width; LsShape x; } LsRoiAttr;        /* bins of a box; x: ROI_MEAN_DX, shape of the result */
/* The epilogue of a product, where the target's library has one (codegen/cuda/epilogue.h). Its results and operands
 * follow the operator's own. */
typedef enum {
    LS_THEN_NOTHING,
    LS_THEN_RELU,
    LS_THEN_GELU,               /* tanh form; result 1, if any: the value before the GELU */
    LS_THEN_GELU_SLOPE,         /* times the GELU's slope at operand 3 */
    LS_THEN_SUM_A, LS_THEN_SUM_B,   /* result 1: sums of that operand over the inner axis */
    LS_THEN_ADD,                /* plus operand 3, of the result's shape */
} LsThen;
typedef struct { bool trans_a, trans_b; double alpha, beta; LsThen then; } LsGemmAttr;
/* alpha, beta, min, max, epsilon, ratio. Random numbers of a batch that is cut into parts: `parts` of them, and the
 * elements of a part that follow each other (LsRun.slice); parts 0: not cut */
typedef struct { double a, b; bool tanh; int64_t parts, inner; LsCounted counted; } LsScalarAttr;
/* Attention: compiler/ir/net.def has the definition. Tensors are [N,H,T,D], or [N,T,H,D] where
 * their bit in by_token is set. */
enum { LS_Q_BY_TOKEN = 1, LS_K_BY_TOKEN = 2, LS_V_BY_TOKEN = 4, LS_Y_BY_TOKEN = 8 };
typedef struct {
    double scale;               /* of the scores */
    unsigned by_token;
    bool causal;                /* row i attends to columns 0 .. i + past only */
    int64_t past;               /* at least 0 */
    bool keep;                  /* a mask of bools: scores stay where the mask equals `keep` */
    double fill;                /* ... and become this elsewhere */
    int64_t heads, groups, depth, width;        /* ATTENTION_JOINT and its gradient: H G D E */
} LsAttentionAttr;
typedef struct { int axis; double eps; } LsNormAttr;        /* layer norm: axes axis..rank-1 */
typedef enum { LS_LOSS_MEAN, LS_LOSS_SUM, LS_LOSS_EACH } LsReduction;
/* mse, l1, bce with logits, smooth_l1, huber, kl; a mean of the differences themselves */
typedef enum {
    LS_REG_SQUARE, LS_REG_ABS, LS_REG_LOGIT, LS_REG_SMOOTH, LS_REG_HUBER, LS_REG_KL, LS_REG_LINEAR, LS_NREG
} LsRegression;
typedef struct {                /* losses: compiler/ir/loss.def defines the kernels */
    int axis;                   /* of the classes */
    int64_t nclass;             /* NLL_GRAD: size of that axis in the result */
    int64_t ignore; bool has_ignore;    /* positions with this label do not count */
    double smoothing;
    LsReduction reduction;
    LsRegression regression;
    double edge;                /* beta of LS_REG_SMOOTH, delta of LS_REG_HUBER: above 0 */
} LsLossAttr;
typedef struct {                /* LOSS_SCALE: LsScaleRule of runtime/kernels/ls_scale.h */
    double period, grow, shrink, least;
    bool divides;
} LsScaleAttr;
/* Hyperparameters of optimizers: a field each of compiler/ir/hyper.def. */
typedef struct LsHyper {
#define LS_HYPER(name) double name;
#include "compiler/ir/hyper.def"
#undef LS_HYPER
} LsHyper;
/* How the parts of an update's gradient add up in its accumulator. */
typedef struct LsPartSum {
    double scale;               /* of the gradient that is added */
    bool by_samples;            /* that factor is also multiplied by run->share */
    int levels;                 /* partial sums of the tree over run->part; 0: a running sum */
} LsPartSum;
typedef struct {                /* updates: compiler/ir/loss.def */
    LsHyper hyper;
    double clip;                /* clamps gradient elements to [-clip, clip]; 0: no clipping */
    LsPartSum sum;              /* RUNNING_STAT: sum.scale is the weight of the batch statistic */
    int64_t each;               /* RUNNING_STAT, PART_STAT of an unbiased variance: LsCounted.each;
                                 * else 0 */
    bool skips;                 /* nothing is written if `factor` is negative */
    bool sliced;                /* updates the elements of one rank: run->count of them */
    LsScaleAttr rule;           /* LOSS_SCALE */
    int many;                   /* > 1: updates that many tensors; the operands of one update follow
                                 * those of the other (codegen/cuda/updates.h); else one tensor */
} LsUpdateAttr;
typedef struct LsFused LsFused;                             /* compiler/passes/fuse.h */
typedef struct { const LsFused *body; } LsFusedAttr;

typedef union LsAttr {
    LsWindowAttr window; LsReduceAttr reduce; LsAxisAttr axis; LsPermAttr perm; LsShapeAttr shape;
    LsSliceAttr slice; LsGatherAttr gather; LsScanAttr scan; LsTopAttr top; LsPadAttr pad; LsResizeAttr resize; LsSampleAttr sample;
    LsRoiAttr roi; LsGemmAttr gemm;
    LsScalarAttr scalar; LsAttentionAttr attention;
    LsNormAttr norm; LsLossAttr loss; LsUpdateAttr update; LsFusedAttr fused;
    LsType cast;
} LsAttr;

typedef enum { LS_FORWARD, LS_BACKWARD, LS_UPDATE } LsPhase;

typedef struct LsNode {
    uint16_t op;            /* row of the op table */
    uint16_t nin, nout;     /* operand[in .. in+nin), 0 = absent; results are
                             * values out .. out+nout-1 */
    uint32_t in, out;
    LsPhase phase;
    LsNodeId fwd;           /* node this differentiates; none in the forward part */
    uint32_t onnx;          /* place in the ONNX file, from 0, for diagnostics */
    const char *name;       /* name in the ONNX file, or of the forward node it belongs to */
    LsAttr attr;
    LsType rounds;          /* products: LS_BF16, LS_F16: the kernel rounds the operands that the table of
                             * compiler/ir/precision.h names and that are not stored so; LS_REAL: none */
    const struct LsComputed *computed;  /* an operand that the kernel computes itself (compiler/passes/fuse.h); NULL:
                                         * none. Only in alternatives */
} LsNode;

/* Results of the backward part that a program can show: the gradient of a parameter; with --grads that of every sample
 * [batch, ...], its Euclidean norms [batch], and those of all parameters together (param: none). */
typedef enum { LS_GRAD, LS_SAMPLE_GRAD, LS_SAMPLE_NORM } LsGradKind;
typedef struct LsGrad { LsValueId param, grad; LsGradKind kind; } LsGrad;

/* How the clipped sum of a weight's gradients is computed. AUTO: the planner's choice. TERMS: adds
 * the stored gradients of samples. AGAIN: recomputes the weight's gradient from weighted operands,
 * so that nothing is stored. */
typedef enum { LS_SUMS_AUTO, LS_SUMS_TERMS, LS_SUMS_AGAIN } LsClippedSums;

/* What --dp says: the gradient of an update is the sum over its samples of their gradients, each
 * scaled down to the norm `clip`, plus normal noise of deviation noise * clip, over `expected`
 * samples. */
typedef struct LsPrivacy { bool on; double clip, noise, delta, expected; LsClippedSums sums; } LsPrivacy;

/* Statistics that batch norms use in training: as in the file, batch statistics, running
 * statistics. */
typedef enum { LS_BN_FILE, LS_BN_TRAIN, LS_BN_FROZEN } LsBnMode;

/* Dropouts that are active in training: as in the file, all, none. */
typedef enum { LS_DROPOUT_FILE, LS_DROPOUT_ON, LS_DROPOUT_OFF } LsDropoutMode;
/* How the losses of several batches are combined: weighted by the samples of each batch, weighted
 * by the labels that count (LsObjective.weight), or summed. LS_OVER_MIXED: the terms of the loss differ in that, so no
 * weight is right for all; samples are taken, and accumulation is refused. */
typedef enum { LS_OVER_SAMPLES, LS_OVER_LABELS, LS_OVER_SUM, LS_OVER_MIXED } LsLossOver;

/* How the samples of a batch depend on each other, set by ls_batch_mixing (compiler/per_sample/batch_mixing.h). */
typedef struct LsMixing {
    const char *by;             /* the first node that combines them otherwise than a batch norm: "node 'x' (MatMul) ..."; NULL:
                                 * there is none */
    const char *norm;           /* the batch norm with statistics of the batch that has the fewest elements of a channel in a
                                 * sample; NULL: there is none */
    int64_t each;               /* so many elements */
    bool loss;                  /* the file's loss is no plain mean over the samples: it counts all that are there */
} LsMixing;

/* The loss, which ls_loss attaches. */
typedef struct LsObjective {
    LsValueId loss;             /* scalar; none before ls_loss */
    LsLossOver over;
    LsValueId weight;           /* LS_OVER_LABELS: scalar result of the loss node; else none */
    bool of_file;               /* nodes of the file compute it: over all samples of a batch, valid
                                 * or not */
    LsValueId label;            /* target input: that of the first cross-entropy, else the first;
                                 * none: no loss has one (--loss=graph, triplet) */
    uint32_t nlabel;            /* all targets: the last inputs */
} LsObjective;

/* --loss-scale: state; none: the gradients are those of the loss itself. The loss is differentiated
 * times `scale`. (ls_loss_scale) */
typedef struct LsScalingState {
    LsValueId scale;
    LsValueId counter;          /* of good steps */
    LsValueId skips;            /* [2]: bad steps in all, and the last ones in a row */
} LsScalingState;

/* --ensemble: models of this architecture that are trained together. The graph is that of one
 * member, and a step runs it for each; LsValue.stacked says what each has of its own.
 * (compiler/passes/ensemble.h) */
typedef struct LsEnsembleForm {
    int64_t members;            /* 0: the graph is one model */
    int64_t lanes;              /* members that run at the same time, each in an arena of its own */
    bool own_batches;           /* each member has its own inputs, too */
    bool same_draws;            /* random numbers are those of the run, not of the member */
} LsEnsembleForm;

/* --ranks: the graph is that of a micro-batch on one of several processes, each of which runs a
 * block of an update's micro-batches. Sums of gradients are added up over the ranks, and then the
 * graph `updates` runs: on slices of the parameters, or on whole ones. (compiler/updates/rank_sums.h) */
typedef struct LsRankForm {
    const int *choice;          /* how many ranks a run may have, ascending; all divide the last */
    int nchoice;
    int count;                  /* the one of them whose bytes are counted */
    int64_t micro_batches;      /* of an update */
    bool sliced;
    struct LsGraph *updates;    /* NULL: one process runs all micro-batches */
} LsRankForm;

/* What the importer was told, and what it decided. */
typedef struct LsSource {
    LsBnMode bn;                /* set before the first node */
    bool bn_var_torch;          /* running variances follow the unbiased batch variance */
    LsDropoutMode dropout;      /* set before the first node */
    bool weightless;            /* initial values were not loaded (plan only) */
    const struct LsDecisions *decisions;    /* the roles of the file's tensors, and the reasons
                                 * (compiler/onnx/onnx_decisions.h); NULL: not imported */
} LsSource;

/* Invariants, checked by ls_verify after every pass: operands come from smaller node ids, so array
 * order is a run order. One node writes a state value: the value is an operand of the node, and the
 * op's row says so. Every reader of the old value comes before the write. */
typedef struct LsGraph {
    LsValue *value;     uint32_t nvalue, cap_value;
    LsNode *node;       uint32_t nnode, cap_node;
    LsValueId *operand; uint32_t noperand, cap_operand;
    LsValueId *input;   uint32_t ninput;    /* model inputs in file order, then the targets */
    LsValueId *output;  uint32_t noutput;   /* model outputs in file order */
    LsGrad *grad;       uint32_t ngrad;     /* per trained parameter, set by ls_autodiff; then the
                                             * other kinds */
    int64_t batch;              /* dim 0 of the first model input; 1: the inputs are one sample */
    bool training;              /* false: evaluation form */
    LsObjective objective;
    LsScalingState scaling;
    LsPrivacy privacy;          /* the gradients of an update's micro-batches then add up as they are */
    LsMixing mixing;
    LsEnsembleForm ensemble;
    LsRankForm rank;
    LsSource source;
    int64_t folded;             /* elements of constants made so far (compiler/fold/fold_constants.h) */
    struct LsArena *arena;
} LsGraph;

#endif
