/* compiler/ir/ir.h -- the data of one compilation: compiler/ writes it, the other rooms only read.
 *
 * Dense ids into arrays. Row 0 of every array is a dummy, so zeroed memory means "none". Arrays
 * only grow; nobody holds an LsNode * or LsValue * across an append. A pass keeps its results in
 * its own arrays, indexed by id. */
#ifndef LS_COMPILER_IR_IR_H
#define LS_COMPILER_IR_IR_H

#include "compiler/ir/attributes.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct { uint32_t i; } LsValueId;   /* index into LsGraph.value; 0 = none */
typedef struct { uint32_t i; } LsNodeId;    /* index into LsGraph.node;  0 = none */

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
    bool stopped;           /* results of DETACH: the file or --stop-gradient says so
                             * (onnx_stops.h); LS_V_PARAM: the loss depends on it through such a
                             * result, so that its gradient is not the loss's derivative */
    bool stacked;           /* inputs and state: every member of an ensemble has its own, of this
                             * shape, one behind the other (LsGraph.ensemble) */
    bool of_optimizer;      /* LS_V_STATE: moments and averages, beside the parameter */
    bool of_update;         /* LS_V_STATE: of no meaning between updates */
    bool rank_sum;          /* LS_V_STATE: ranks add it up (LsGraph.rank) */
    bool sliced;            /* LS_V_STATE: each rank has a slice */
    int rank_levels;        /* LS_V_STATE: partial sums of such a sum, so many with the fewest
                             * ranks; 0: it is none */
    const char *average_of; /* LS_V_STATE: the parameter's name; evaluation reads this state in its
                             * place */
    LsShape shape;
    int64_t columns;        /* valid columns of its last axis, where the axis was widened
                             * (codegen/cuda/pad_classes.h); 0: all */
    int64_t rows_behind;    /* state: rows of zeros appended behind it (likewise) */
    struct LsPackedTensor *packed;      /* state of the file that a program keeps in codes,
                                 * and later those codes (compiler/passes/unpack_weights.c); NULL:
                                 * it is none */
    LsNodeId def;           /* defining node; none for inputs, state and constants */
    const void *data;       /* constants, and initial values of state: row-major in logical order,
                             * real as float, I64, I32, BOOL as uint8_t. NULL: zeros (state), or
                             * weights that were not loaded (LsSource.weightless) */
} LsValue;

typedef enum { LS_FORWARD, LS_BACKWARD, LS_UPDATE } LsPhase;

/* What a node computes that makes a part of its results: those from `first` on along an axis, of
 * `of` that there are: 0, the samples of the batch, or 2, the rows of one picture.
 * (codegen/tiling/) */
typedef struct LsTilePlace {
    int64_t first, of;
    int axis, number;           /* number: of the tile, from 0 */
    int64_t from, to;           /* CONV_DW_PART of some rows: the terms of the sum, positions of the
                                 * picture or Winograd's tiles; RESIZE: rows of the operand */
} LsTilePlace;

typedef struct LsNode {
    uint16_t op;            /* row of the op table */
    uint16_t nin, nout;     /* operand[in .. in+nin), 0 = absent; results are
                             * values out .. out+nout-1 */
    uint32_t in, out;
    LsPhase phase;
    LsNodeId fwd;           /* node this differentiates; none in the forward part */
    uint32_t onnx;          /* place in the ONNX file, from 0, for diagnostics */
    LsType rounds;          /* products: LS_BF16, LS_F16: the kernel rounds the operands that the
                             * table of compiler/ir/precision.h names and that are not stored so;
                             * LS_REAL: none */
    const char *name;       /* name in the ONNX file, or of the forward node it belongs to */
    LsAttr attr;
    const LsTilePlace *tile;    /* NULL: the node makes all of its results */
    uint32_t pass;              /* nodes of a pass run tile by tile, all before those of the next */
    const struct LsComputed *computed;  /* an operand that the kernel computes itself
                                         * (compiler/passes/fuse.h); NULL: none. Only in
                                         * alternatives */
} LsNode;

/* Results of the backward part that a program can show: the gradient of a parameter; with --grads
 * that of every sample [batch, ...], its Euclidean norms [batch], and those of all parameters
 * together (param: none). */
typedef enum { LS_GRAD, LS_SAMPLE_GRAD, LS_SAMPLE_NORM } LsGradKind;
typedef struct LsGrad { LsValueId param, grad; LsGradKind kind; } LsGrad;

/* How the clipped sum of a weight's gradients is computed. AUTO: the planner's choice. TERMS: adds
 * the stored gradients of samples. AGAIN: recomputes the weight's gradient from weighted operands,
 * so that nothing is stored. */
typedef enum { LS_SUMS_AUTO, LS_SUMS_TERMS, LS_SUMS_AGAIN } LsClippedSums;

/* What --dp says: the gradient of an update is the sum over its samples of their gradients, each
 * scaled down to the norm `clip`, plus normal noise of deviation noise * clip, over `expected`
 * samples. */
typedef struct LsPrivacy {
    bool on;
    double clip, noise, delta, expected;
    LsClippedSums sums;
} LsPrivacy;

/* Statistics that batch norms use in training: as in the file, batch statistics, running
 * statistics. */
typedef enum { LS_BN_FILE, LS_BN_TRAIN, LS_BN_FROZEN } LsBnMode;

/* Dropouts that are active in training: as in the file, all, none. */
typedef enum { LS_DROPOUT_FILE, LS_DROPOUT_ON, LS_DROPOUT_OFF } LsDropoutMode;
/* How the losses of several batches are combined: weighted by the samples of each batch, weighted
 * by the labels that count (LsObjective.weight), or summed. LS_OVER_MIXED: the terms of the loss
 * differ in that, so no weight is right for all; samples are taken, and accumulation is refused. */
typedef enum { LS_OVER_SAMPLES, LS_OVER_LABELS, LS_OVER_SUM, LS_OVER_MIXED } LsLossOver;

/* How the samples of a batch depend on each other, set by ls_batch_mixing
 * (compiler/per_sample/batch_mixing.h). */
typedef struct LsMixing {
    const char *by;             /* the first node that combines them otherwise than a batch norm:
                                 * "node 'x' (MatMul) ..."; NULL: there is none */
    const char *norm;           /* the batch norm with statistics of the batch that has the fewest
                                 * elements of a channel in a sample; NULL: there is none */
    int64_t each;               /* so many elements */
    bool loss;                  /* the file's loss is no plain mean over the samples: it counts all
                                 * that are there */
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

/* --drop-bias: biases that training does not add (compiler/passes/drop_bias.h). */
typedef struct LsInert { uint32_t biases; int64_t elements; } LsInert;

/* --ranks: the graph is that of a micro-batch on one of several processes, each of which runs a
 * block of an update's micro-batches. Sums of gradients are added up over the ranks, and then the
 * graph `updates` runs: on slices of the parameters, or on whole ones.
 * (compiler/updates/rank_sums.h) */
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
    LsValueId segments;         /* --segments: the input that says which tokens of a row are one
                                 * sample; none: each row is one */
    LsScalingState scaling;
    LsPrivacy privacy;          /* the gradients of an update's micro-batches then add up as they
                                 * are */
    LsMixing mixing;
    LsEnsembleForm ensemble;
    LsInert inert;
    LsRankForm rank;
    LsSource source;
    int64_t folded;             /* elements of constants made so far
                                 * (compiler/fold/fold_constants.h) */
    struct LsArena *arena;
} LsGraph;

#endif
