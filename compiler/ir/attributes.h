/* compiler/ir/attributes.h -- attributes of nodes: a struct for each family of operators; the op
 * says which of LsAttr it has. */
#ifndef LS_COMPILER_IR_ATTRIBUTES_H
#define LS_COMPILER_IR_ATTRIBUTES_H

#include "compiler/ir/packed.h"
#include "compiler/ir/types.h"

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
    int64_t parts;              /* CONV_DW_END: of the sum; 0: Winograd's points */
} LsWindowAttr;
/* Of a node that takes statistics of the samples that count, LsRun.valid of the batch's, or passes
 * their gradients on: the elements of each sample that make one statistic. Samples lie along the
 * outermost axis of what has `rank` axes; behind the last one that counts the gradient is 0. each
 * 0: a node that takes all elements. (compiler/per_sample/batch_mixing.h) */
typedef struct LsCounted { int64_t each; int rank; } LsCounted;
/* bit k: axis k is reduced */
typedef struct { uint32_t axes; bool keep; LsCounted counted; } LsReduceAttr;
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
typedef enum {
    LS_SCATTER_ADD,
    LS_SCATTER_SET,
    LS_SCATTER_MUL,
    LS_SCATTER_MAX,
    LS_SCATTER_MIN
} LsScatterHow;
/* gather and scatter; axis lies where LsAxisAttr has it. Scatters alone: x, shape of the table, of
 * the result; how. GATHER alone: zero, an index outside the axis gives 0 instead of NaN.
 * GATHER_GRAD of some rows: rows, those of the table */
typedef struct { int axis; LsShape x; LsScatterHow how; bool zero; int64_t rows; } LsGatherAttr;
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
/* What images go on with beyond their ends: nothing, the end, the image reflected at the middle of
 * the ends' elements, or at their borders. */
typedef enum { LS_BEYOND_NOTHING, LS_BEYOND_CLAMP, LS_BEYOND_MIDDLE, LS_BEYOND_BORDER } LsBeyond;
typedef enum { LS_SAMPLE_NEAREST, LS_SAMPLE_LINEAR, LS_SAMPLE_CUBIC } LsSampleMode;
/* last_first: the coordinates of a place begin with that along the last axis. x: SAMPLE_DX, shape
 * of the result */
typedef struct { LsSampleMode mode; LsBeyond beyond; bool last_first; LsShape x; } LsSampleAttr;
/* bins of a box; x: ROI_MEAN_DX, shape of the result */
typedef struct { int64_t height, width; LsShape x; } LsRoiAttr;
/* The epilogue of a product, where the target's library has one (codegen/cuda/epilogue.h). Its
 * results and operands follow the operator's own. */
typedef enum {
    LS_THEN_NOTHING,
    LS_THEN_RELU,
    LS_THEN_GELU,               /* tanh form; result 1, if any: the value before the GELU */
    LS_THEN_GELU_SLOPE,         /* times the GELU's slope at operand 3 */
    LS_THEN_SUM_A, LS_THEN_SUM_B,   /* result 1: sums of that operand over the inner axis */
    LS_THEN_ADD,                /* plus operand 3, of the result's shape */
} LsThen;
/* part: MATMUL: rows from .. of A of `of` rows, whose other rows are multiplied by other nodes; the
 * gradient of B is the sum of theirs, as MATMUL_PART. MATMUL_PART: terms from .. of a sum of `of`
 * terms. of 0: the parts of the sum do not end at ends of its blocks, and add up by themselves. */
typedef struct {
    bool trans_a, trans_b;
    double alpha, beta;
    LsThen then;
    bool part;
    int64_t of, from;
} LsGemmAttr;
/* alpha, beta, min, max, epsilon, ratio. Random numbers of a batch that is cut into parts: `parts`
 * of them, and the elements of a part that follow each other (LsRun.slice); parts 0: not cut */
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
    LS_REG_SQUARE,
    LS_REG_ABS,
    LS_REG_LOGIT,
    LS_REG_SMOOTH,
    LS_REG_HUBER,
    LS_REG_KL,
    LS_REG_LINEAR,
    LS_NREG
} LsRegression;
typedef struct {                /* losses: compiler/ir/loss.def defines the kernels */
    int axis;                   /* of the classes */
    int64_t nclass;             /* NLL_GRAD: size of that axis in the result */
    int64_t ignore; bool has_ignore;    /* positions with this label do not count */
    double smoothing;
    LsReduction reduction;
    LsRegression regression;
    double edge;                /* beta of LS_REG_SMOOTH, delta of LS_REG_HUBER: above 0 */
    int64_t first, rows;        /* cross-entropy of a chunk: its place along dim 0, and dim 0 of
                                 * all; rows 0: it is all */
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
    bool stays;                 /* ACCUMULATE: the result lies where the accumulator does, and takes
                                 * no memory */
    bool sliced;                /* updates the elements of one rank: run->count of them */
    int many;                   /* > 1: updates that many tensors; the operands of one update follow
                                 * those of the other (codegen/cuda/updates.h); else one tensor */
    LsScaleAttr rule;           /* LOSS_SCALE */
} LsUpdateAttr;
/* UNPACK: its codes (compiler/ir/packed.h), and the shape of what they stand for. */
typedef struct { LsPackedCodes codes; LsShape shape; } LsUnpackAttr;
typedef struct LsFused LsFused;                             /* compiler/passes/fuse.h */
/* SUM_END: result `out` of the body, whose sum lies in `pieces` parts of `points` elements. */
typedef struct { const LsFused *body; int out; int64_t pieces, points; } LsFusedAttr;

typedef union LsAttr {
    LsWindowAttr window; LsReduceAttr reduce; LsAxisAttr axis; LsPermAttr perm; LsShapeAttr shape;
    LsSliceAttr slice;
    LsGatherAttr gather;
    LsScanAttr scan;
    LsTopAttr top;
    LsPadAttr pad;
    LsResizeAttr resize;
    LsSampleAttr sample;
    LsRoiAttr roi; LsGemmAttr gemm;
    LsScalarAttr scalar; LsAttentionAttr attention;
    LsNormAttr norm; LsLossAttr loss; LsUpdateAttr update; LsFusedAttr fused;
    LsUnpackAttr unpack;
    LsType cast;
} LsAttr;

#endif
