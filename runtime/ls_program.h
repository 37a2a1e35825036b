/* runtime/ls_program.h -- a generated training program: tables of plain data, and kernels.
 *
 * lowerset writes one C file with the kernels and one LsProgram; runtime/ supplies main. The state
 * and the arena are two allocations made before the first step; every address is an offset into one
 * of a few spaces, fixed by the plan. */
#ifndef LS_PROGRAM_H
#define LS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/ls_division.h"
#include "runtime/ls_run.h"

enum { LS_TENSOR_RANK = 8 };
enum { LS_RING = 4 };   /* batches in the input ring: inputs take LS_RING
                         * times their bytes in the plan */
enum { LS_DEVICE_SLOTS = 2 };   /* batches that a device holds, for a program with a device */

/* Runs one step. arg: addresses of operands, then results, then the workspace (if any). An absent
 * operand is NULL. */
typedef void (*LsKernel)(LsRun *run, void *const arg[]);

/* An address at compile time. */
typedef enum {
    LS_AT_NONE,
    LS_AT_ARENA,
    LS_AT_STATE,
    LS_AT_CONST,
    LS_AT_INPUT,
    LS_AT_SLICE,
    LS_AT_LEVEL,
    LS_AT_FILE
} LsSpace;
/* bytes; LS_AT_INPUT: index of LsProgram.input; LS_AT_SLICE, LS_AT_LEVEL: LsRanks; LS_AT_FILE: in
 * LsModelFile, which steps only read */
typedef struct LsAddress { uint8_t space; int64_t offset; } LsAddress;

/* LS_DT_U8: codes, of state alone */
typedef enum {
    LS_DT_REAL,
    LS_DT_I64,
    LS_DT_I32,
    LS_DT_BOOL,
    LS_DT_BF16,
    LS_DT_F16,
    LS_DT_U8
} LsDataType;
typedef struct LsTensor {       /* names and logical shapes as in the ONNX file */
    const char *name;
    LsDataType type;
    bool channels_last;         /* stored as N, spatial..., C although dim is N, C, spatial... */
    int rank;
    int64_t dim[LS_TENSOR_RANK];
    LsAddress at;
    int64_t members;            /* > 0: every member of an ensemble has its own; of state and inputs
                                 * they lie one behind the other, of watched values there is one at
                                 * a time */
} LsTensor;

/* An average lies beside a parameter, has its initial value and its place in the ONNX file:
 * evaluation and export take it instead. LS_STATE_SUM: of the gradients of an update, of no meaning
 * between updates */
typedef enum {
    LS_STATE_PARAM,
    LS_STATE_FROZEN,
    LS_STATE_STAT,
    LS_STATE_MOMENT,
    LS_STATE_AVERAGE,
    LS_STATE_SUM
} LsStateKind;
typedef struct LsStateTensor {  /* parameters first, in file order; a moment
                                 * is named "PARAM.m" or so */
    LsTensor t;
    LsStateKind kind;
    const struct LsPacked *packed;      /* not NULL: t.at has codes of it (runtime/ls_unpack.h),
                                 * which are a state of their own; for exports */
    int64_t onnx_offset;        /* offset of its float32 data, row-major in logical order, in the
                                 * embedded ONNX file: source of the initial value, and place of the
                                 * trained value. Of codes: of their bytes, behind the model. -1:
                                 * starts as zeros (moments), not exported */
} LsStateTensor;

/* How long a batch takes in training, as predicted for 1, 2, 4, 8, ... threads on the machine whose
 * costs made the plan; n 0: not predicted, 1: whatever threads there are. */
enum { LS_PREDICTED = 5 };
typedef struct LsPredicted { const char *machine; int n; double ns[LS_PREDICTED]; } LsPredicted;

typedef struct LsStep {
    LsKernel run;
    const char *name;           /* ONNX node, and its part: "layer1/conv1 dw" */
    const char *op;
    uint16_t narg, nin, nout;   /* operands, then results, then at most one workspace */
    uint32_t arg;               /* first of LsArguments.address */
    uint32_t count;             /* first of LsArguments.count, one per result (for checks) */
    bool again;                 /* a recomputation */
    uint32_t node;              /* plan's node id (profiles) */
    int64_t workspace;          /* bytes at the last argument when narg > nin + nout */
} LsStep;

/* A temporary value that --dump can copy out: after step `after` ran, or, with before = true, just
 * before it runs. */
typedef struct LsWatch {
    LsTensor t; const char *key; uint32_t step; bool before;
    int64_t row;                /* elements from one row of the last axis to the next; 0: the length
                                 * of that axis */
} LsWatch;

/* What every sample has of an input that the data need not have. */
typedef enum LsUsual {
    LS_USUAL_NONE,              /* the data must have it */
    LS_USUAL_ONES,              /* a mask that hides nothing */
    LS_USUAL_LENGTH,            /* the same, of which the model reads the number of ones at most:
                                 * none may follow a zero */
    LS_USUAL_COUNT              /* 0, 1, 2, ... along the last axis: positions of tokens */
} LsUsual;

typedef struct LsInput {        /* one per graph input, the targets last; t.at.offset is its
                                 * index */
    LsTensor t;
    bool is_label;
    int64_t low, high;          /* integers must lie in [low, high), as some node uses them as
                                 * indices, or as they are classes of a target beside that of
                                 * LsLossTarget.classes (LsLossTarget.ignore also passes); low =
                                 * high: not checked, except the classes of a label */
    LsUsual usual;              /* of integers and bools */
} LsInput;

typedef struct LsPhaseTable {   /* train: one step of training; eval: the
                                 * evaluation form, forward + loss */
    const LsStep *step; uint32_t nstep;
    const LsWatch *watch; uint32_t nwatch;      /* outputs "out/NAME", gradients "grad/PARAM"; eval
                                                 * may have "code/NAME" for --image-grid */
    LsAddress loss;             /* scalar real in the arena, live at the end of the phase */
    int64_t arena_bytes, live_peak;
    const uint32_t *wait, *wait_of;     /* step k begins when steps wait[wait_of[k] .. wait_of[k +
                                         * 1]) have ended; NULL: when the step before it has */
    LsAddress weight;           /* scalar real like the loss: the total weight of the mean; none:
                                 * the loss is a mean over the valid samples, or
                                 * LsLossTarget.sums */
} LsPhaseTable;

/* A program for a pipeline has tables of steps for each of its stages, and `train` has none.
 * Micro-batches pass the stages in phases: F forward, B backward (with the updates, unless they are
 * in W), and the late phase, once after all micro-batches of an update. Each rank is a stage and
 * runs the phases in the order of `turn`. */
typedef enum { LS_STAGE_F, LS_STAGE_B, LS_STAGE_W, LS_STAGE_LATE, LS_STAGE_NPHASES } LsStagePhase;
enum { LS_STAGE_START = LS_STAGE_NPHASES };     /* of messages: once before an update, copies of
                                                 * parameters */
enum { LS_NO_STAGE = 255 };
enum { LS_STAGE_TAGS = 1 << 14 };       /* tags of messages are below */
/* What a stage sends or receives, with every micro-batch or, if one of both phases is the late one,
 * with the last. */
typedef struct LsMessage {
    LsAddress at;               /* as in steps */
    int64_t bytes;
    uint32_t peer, tag;         /* the other stage; tags differ between the tensors */
    uint8_t phase, other;       /* LsStagePhase: of this stage, of the peer */
    uint32_t step;              /* sent after this step of the stage; received: it must be there
                                 * before this step, or at the end of the phase */
    uint8_t until;              /* sent: the peer must have the bytes before this phase .. */
    uint32_t lag;               /* .. of the micro-batch so much later. LS_STAGE_TO_THE_END: before
                                 * the update ends. A message from phase F to a phase F waits for
                                 * its own phase B at the latest */
} LsMessage;
#define LS_STAGE_TO_THE_END UINT32_MAX
/* Bytes of the arena, so many times over. Micro-batches use the copies in turn, by their slots. */
typedef struct LsRegion { int64_t at, bytes; uint32_t copies; } LsRegion;
/* The steps of a micro-batch, and of the late phase behind it. */
enum { LS_STAGE_PLANS = 2 };
typedef struct LsStagePlan {
    LsPhaseTable table;         /* addresses in the arena are those of slot 0, from the stage's own
                                 * start on */
    uint32_t first[LS_STAGE_NPHASES + 1];       /* by phase: its first step */
    uint32_t ask[LS_STAGE_NPHASES];     /* by phase: what it receives may arrive from before this
                                         * step on; the end of the phase: behind all steps */
    const LsMessage *send, *receive;    /* those of all plans are alike but for addresses and
                                         * steps */
} LsStagePlan;
typedef struct LsTurn { uint8_t phase, plan; uint16_t slot; uint32_t part; } LsTurn;
typedef struct LsStage {
    LsStagePlan plan[LS_STAGE_PLANS]; uint32_t nplan;   /* with --checkpoint=except-last two: the
                                                         * first part of an update has the second
                                                         * plan, and the tables of both watch the
                                                         * same values */
    uint32_t nsend, nreceive;
    int64_t at;                 /* of the stage in the arena, bytes */
    const LsRegion *region; uint32_t nregion;   /* by offset, one behind the other; addresses are
                                                 * those of the first copies */
    int64_t arena_bytes;
    uint32_t slots;             /* a multiple of all copies, or a slot for each part */
    bool reads_input;
    const LsTurn *turn; uint32_t nturn;         /* turns of parts without samples are left out */
} LsStage;

/* The state of the loss scale, reals; without an address there is none. skips [2]: skipped updates
 * in all, and the last ones in a row. Gradients of parameters (watches "grad/") are those of the
 * loss times the scale. */
typedef struct LsScaling {
    LsAddress scale, counter, skips;
    double start;               /* of scale; the others start as zeros */
} LsScaling;

/* Private training (--dp). An update takes every sample of the data with probability expected /
 * samples, in as many micro-batches as these fill. Its gradient is the sum of the samples'
 * gradients, each scaled down to the norm `clip`, plus normal noise of deviation noise * clip, over
 * `expected`. delta: of the guarantee. */
typedef struct LsPrivacyTerms { double clip, noise, delta, expected; } LsPrivacyTerms;

/* Training over ranks. Each rank runs a block of an update's parts. The sums of the block lie one
 * behind the other at the end of the state, `sum_bytes` from `sums` on, in the order in which they
 * become complete. Partial sums are at LS_AT_LEVEL: level k of the sum at `at` has the address k *
 * sum_bytes + at. Ranks add the sums up, and run the phase `update`.
 *
 * Whole updates: on each rank, after all sums. Sliced ones: each rank updates a slice of the
 * parameters, and sends it to the others. Then moments exist once: at LS_AT_SLICE, kind k of the
 * parameter with the sum at `at` has the address k * sum_bytes + at, of which a rank has its slices
 * alone, `kinds` * slice_bytes / ranks bytes beside `state_bytes`. */
typedef struct LsRankSum {
    int64_t at, bytes;          /* in the sums, with padding: a multiple of 64 times the largest
                                 * number of ranks */
    int64_t count;              /* elements */
    LsAddress param;            /* that the step updates, or none */
    uint32_t after;             /* the step of an update's last micro-batch that completes it */
    uint32_t step;              /* sliced: of `update`, which reads the sum */
} LsRankSum;
/* a row for each part of an update */
typedef struct LsRankRows { LsAddress at; int64_t bytes; } LsRankRows;
/* levels: of partial sums that a rank needs */
typedef struct LsRankChoice { int ranks, levels; } LsRankChoice;
typedef struct LsRanks {
    const LsRankChoice *choice; int nchoice;    /* how many ranks a run may have, ascending; one
                                                 * number: it was compiled in */
    int64_t parts;              /* of an update: a multiple of these numbers */
    LsAddress sums;
    int64_t sum_bytes;
    int64_t slice_bytes;        /* of the sums whose updates are sliced */
    int kinds;
    bool sliced;
    const LsRankSum *sum; uint32_t nsum;
    const LsRankRows *rows; uint32_t nrows;     /* statistics of the parts */
} LsRanks;

/* Bytes of a rank's packet at the end of an update (runtime/ranks/rank_packets.h), with the loss
 * and the rows of statistics of each part of its block. */
static inline int64_t ls_rank_packet_bytes(int64_t block, int64_t row_bytes)
{
    return (16 + block * (16 + row_bytes) + 7) / 8 * 8;
}
/* Buffers for what other ranks send, and for the sum of as many bytes as are updated at a time.
 * Ranks of one machine need less (runtime/ranks/rank_exchange.h). */
enum { LS_RANK_CHUNK = 1 << 17 };
static inline int64_t ls_rank_exchange_bytes(int n, int64_t parts, int64_t sum_bytes,
                                             int64_t row_bytes)
{
    return sum_bytes / n * (n - 1) + n * ls_rank_packet_bytes(parts / n, row_bytes) + LS_RANK_CHUNK;
}
/* Bytes of a rank's slices of the optimizer's state. */
static inline int64_t ls_rank_slice_bytes(const LsRanks *r, int n)
{
    return r->kinds * (r->slice_bytes / n);
}
/* With n ranks; NULL: the program does not take so many. */
static inline const LsRankChoice *ls_rank_choice(const LsRanks *r, int64_t n)
{
    const LsRankChoice *found = NULL;
    for (int k = 0; k < r->nchoice; k++)
        found = r->choice[k].ranks == n ? &r->choice[k] : found;
    return found;
}
/* Bytes of a rank's partial sums. */
static inline int64_t ls_rank_level_bytes(const LsRanks *r, int n)
{
    const LsRankChoice *c = ls_rank_choice(r, n);
    return c != NULL ? c->levels * r->sum_bytes : 0;
}

/* What people read about the program. */
typedef struct LsAbout {
    const char *model;          /* file name of the ONNX model */
    const char *plan_hash;      /* the same in the output of plan, compile and trainer */
    const char *strategy, *loss, *optimizer;
    const char *precision;      /* in which most of a step computes: "bf16", "f16"; NULL: in
                                 * reals */
    const char *bf16_sums;      /* order in which products of bfloat16 add up, "pairs" or "tiles";
                                 * NULL: there are none */
    const char *version;        /* of lowerset; NULL: not known */
    const char *trains;         /* e.g. "trains 28 of 49 tensors, 16,384 of 123,200 elements"; NULL:
                                 * not known */
    double overhead;            /* predicted overhead of recomputation, relative to a step without
                                 * it, e.g. 0.12 */
    LsPredicted predicted;
} LsAbout;

/* Bytes that the plan counts. */
typedef struct LsPlannedBytes {
    int64_t budget;             /* as asked for, in all; 0: none */
    int64_t state, constants;
    int64_t mapped;             /* of the state, beside `state`: weights that are read in the
                                 * attached file */
    int64_t arena;              /* the larger of both phases, for each lane of an ensemble */
    int ring;                   /* batches in the input ring; 0: LS_RING */
} LsPlannedBytes;

/* Addresses of arguments, by LsStep.arg, and what the results are, by LsStep.count. */
typedef struct LsArguments {
    const LsAddress *address;
    const int64_t *count;       /* elements of each result */
    const uint8_t *type;        /* LsDataType of each result */
} LsArguments;

typedef struct LsPhases {
    LsPhaseTable once;          /* of an ensemble: what is the same for all members runs before
                                 * `train` and `last`, with its results behind the state; nstep may
                                 * be 0 */
    LsPhaseTable train;         /* empty in a program for a pipeline */
    LsPhaseTable last;          /* the last micro-batch of an update, if it has other steps than
                                 * `train`; else nstep is 0 */
    LsPhaseTable update;        /* of ranks: what follows the sum over all ranks */
    LsPhaseTable eval;          /* nstep may be 0: no evaluation form */
} LsPhases;

typedef struct LsPipelineTable {
    const LsStage *stage; uint32_t nstage;      /* nstage 0: no pipeline */
    const uint8_t *state_stage; /* by state: the stage that changes it; LS_NO_STAGE: none does, and
                                 * all may read it */
} LsPipelineTable;

/* The target of the loss. */
typedef struct LsLossTarget {
    int64_t classes;            /* size of the class axis when the loss is a cross-entropy, else 0;
                                 * the watch "logits" of eval has its input */
    int class_axis;             /* of the logits */
    bool has_ignore; int64_t ignore;    /* cross-entropy: the label that is ignored */
    bool soft;                  /* the target has probabilities of `classes`, on class_axis; data
                                 * may have labels for it */
    bool sums;                  /* the loss is a sum over the batch, not a mean */
    uint32_t compared;          /* 1 + the watch of eval, an output, that the loss compares with the
                                 * target element by element; 0: there is none */
    bool plain;                 /* the loss is the mean of -log of the labels' probabilities, and
                                 * nothing besides */
    bool bits;                  /* `compared` has scores of yes or no (bce) */
} LsLossTarget;

/* What is wrong in a batch that is not full: samples that repeat others count in what the model
 * combines of all samples, "node 'x' (MatMul) combines ...". NULL: nothing is. */
typedef struct LsMixes {
    const char *train, *eval;   /* by form */
    const char *norm;           /* the batch norm whose statistics in training are of the fewest
                                 * elements of each sample, `each`; NULL: there is none */
    int64_t each;
} LsMixes;

/* Models that are trained together, each with its own loss. A step runs a phase for every one. */
typedef struct LsEnsembleTable {
    int64_t members;            /* 0: one model */
    int64_t lanes;              /* members that run at the same time; each lane has its part of the
                                 * arena */
    bool own_batches;           /* in training every member has a batch of its own: the stacked
                                 * inputs */
    bool same_draws;            /* random numbers of the model do not depend on the member */
} LsEnsembleTable;

/* The evaluation form of the model, as an ONNX file with the initial weights; --export patches a
 * copy. */
typedef struct LsModelFile {
    const unsigned char *onnx;  /* NULL: it is attached (runtime/base/attached_file.h) */
    size_t bytes;
    size_t tail;                /* bytes behind them, of initial values that are no part of the
                                 * model: adapters that --export merges, further members, codes of
                                 * weights */
    size_t shift;               /* bytes of the section before them, where it is attached */
} LsModelFile;

/* Low-rank adapters, in the form of peft. Weights of the program lie row-major in logical order. */
typedef struct LsAdapterEntry { uint32_t state; const char *key; } LsAdapterEntry;
typedef struct LsMergedWeight { /* becomes W + scale * B A; times magnitude / norm of its rows */
    uint32_t weight, a, b;      /* numbers of ls_exported; b [out, rank], a [rank, in ...] */
    int64_t magnitude;          /* state; -1: none */
    double scale;
    bool turned;                /* the weight is [in, out] */
} LsMergedWeight;
typedef struct LsAdapterTable {
    const char *config;         /* adapter_config.json; NULL: there are none */
    const LsAdapterEntry *entry; uint32_t nentry;       /* of adapter_model.safetensors */
    const LsMergedWeight *merged; uint32_t nmerged;     /* by --export; 0: it writes adapters as
                                                         * nodes of their own */
} LsAdapterTable;

/* What the trainer's options have where they are not given. */
typedef struct LsDefaults {
    double lr;
    const char *schedule;       /* of --schedule, e.g. "cosine:warmup=500"; NULL: constant */
} LsDefaults;

/* What runs the steps in place of the host's pool of threads. */
typedef struct LsAccelerator {
    const struct LsDeviceKind *kind;    /* NULL: the host runs them */
    const void *program;        /* data for that kind of device: LsCudaProgram */
    const struct LsDeviceRanks *ranks;  /* NULL: a program for one process */
    bool silent;                /* the program is a library: the device prints no notes */
} LsAccelerator;

typedef struct LsProgram {
    LsAbout about;
    int real_bytes;             /* 4, or 8 for --precision=f64 */
    LsDivision division;
    LsPlannedBytes bytes;
    const LsStateTensor *state; uint32_t nstate;
    const LsStateTensor *packed; uint32_t npacked;      /* weights that are kept in few bits: their
                                 * codes are a state, and they have a place in the ONNX file; see
                                 * ls_exported */
    const uint8_t *stopped;     /* by state: not 0 where a stopped gradient lies between the
                                 * parameter and the loss, so that its gradient is not the loss's
                                 * derivative. NULL: nowhere */
    const int64_t *further;     /* by state: where the initial values of an ensemble's members 1, 2,
                                 * ... lie in the ONNX file, one behind the other; 0: they begin as
                                 * member 0. NULL: all do */
    const LsInput *input; uint32_t ninput;
    uint32_t segments;          /* 1 + the input of --segments; 0: each row is one sample */
    const unsigned char *constant;      /* bytes.constants of constant tensors */
    LsArguments argument;
    LsPhases phase;
    uint32_t napplied;          /* gradients without a watch: no step stores them, as their update
                                 * computes them */
    LsPipelineTable pipeline;
    const LsRanks *ranks;       /* NULL: one process trains */
    const struct LsCommKind *comm;      /* MPI, for ranks that something else starts; NULL: not
                                         * linked with it */
    LsLossTarget target;
    LsMixes mixing;
    LsScaling scaling;
    LsPrivacyTerms privacy;     /* expected = 0: not private */
    LsEnsembleTable ensemble;
    LsModelFile file;
    LsAdapterTable adapters;
    LsDefaults defaults;
    LsAccelerator accelerator;
} LsProgram;

/* What the ONNX file has a place for: the states, and from number nstate on the packed weights. */
static inline const LsStateTensor *ls_exported(const LsProgram *p, uint32_t k)
{
    return k < p->nstate ? &p->state[k] : &p->packed[k - p->nstate];
}

/* Calls fn(run, arg, lo, hi) on pieces that cover [0, units), on all threads, and waits. The result
 * of a unit must not depend on the partition of the range: results are the same for any number of
 * threads. */
typedef void (*LsPart)(LsRun *run, void *const arg[], int64_t lo, int64_t hi);
void ls_parallel(LsRun *run, LsPart fn, int64_t units, void *const arg[]);

/* main of every generated program. Exit codes: README, "Exit codes". */
int ls_trainer_main(const LsProgram *p, int argc, char **argv);

#endif
