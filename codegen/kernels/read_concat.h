/* codegen/kernels/read_concat.h -- reading the operand of a body that lies in parts along the
 * innermost axis (codegen/fusion/implicit_concat.h).
 *
 * On the CPU a row of all parts is gathered before the innermost loop, in the L1 cache. On a GPU a
 * thread finds its own part: in a run of parts of equal length that is a division. */
#ifndef LS_CODEGEN_KERNELS_READ_CONCAT_H
#define LS_CODEGEN_KERNELS_READ_CONCAT_H

#include "codegen/kernels/printed_body.h"

enum {
    LS_JOINED_RUNS = 4,         /* most runs: an index is compared with each */
    LS_JOINED_ROW = 8192,       /* most elements of a row, which lies on the stack */
    LS_JOINED_PARTS = 192,      /* most parts: a GPU's kernel has LS_CUDA_ARGS arguments */
};

/* Operands first .. first + n - 1 of a node, each `length` indices long; the first begins at
 * `from`. */
typedef struct LsJoinedRun { int first, n; int64_t from, length; } LsJoinedRun;

/* The runs of `count` operands of node n from `first` on, along the axis; at most LS_JOINED_RUNS
 * are written. Returns how many there are. */
int ls_joined_runs(const LsGraph *g, LsNodeId n, int first, int count, int axis,
                   LsJoinedRun run[LS_JOINED_RUNS]);

/* Sets the strides of the parts, and of the row's number as tensor `row`. */
void ls_joined_strides(const LsKernelText *k, LsNest *n, int row);

/* The index of the joined operand's row number among the nest's tensors. */
static inline int ls_joined_row(const LsBody *b) { return b->node->nin + b->node->nout; }

/* On the CPU: print the pointers, and the row before the innermost loop. On a GPU, or if the body
 * reads no joined operand, they print nothing. */
void ls_joined_declare(const LsBody *b);
void ls_joined_fill(const LsBody *b);
/* On a GPU, in the innermost loop: prints the index's part and the part's length. The part is a
 * pointer to which the index itself is added, as only the index is visibly a multiple of four.
 * Otherwise prints nothing. */
void ls_joined_pick(const LsBody *b);
/* The joined operand's array, the index in it, and the stride along an axis, as text. */
const char *ls_joined_array(const LsBody *b);
const char *ls_joined_at(const LsBody *b);
const char *ls_joined_step(const LsBody *b, int axis);

#endif
