/* codegen/kernels/read_concat.h -- the operand of a body that lies in parts: which part has an index of
 * the innermost axis (codegen/fusion/implicit_concat.h).
 *
 * On the CPU a row of all parts is put together in front of the innermost loop, in its nearest
 * cache. On a GPU a thread finds its own part: runs of parts of equal length make that a
 * division. */
#ifndef LS_CODEGEN_KERNELS_READ_CONCAT_H
#define LS_CODEGEN_KERNELS_READ_CONCAT_H

#include "codegen/kernels/printed_body.h"

enum {
    LS_JOINED_RUNS = 4,         /* that an index is compared with, at most */
    LS_JOINED_ROW = 8192,       /* elements, at most: a row has room on the stack */
    LS_JOINED_PARTS = 192,      /* at most: a GPU's kernels have LS_CUDA_ARGS arguments */
};

/* Operands first .. first + n - 1 of a node, each of `length` indices, the first from `from` on. */
typedef struct LsJoinedRun { int first, n; int64_t from, length; } LsJoinedRun;

/* The runs of `count` operands of node n from `first` on, along the axis; at most LS_JOINED_RUNS
 * are written. Returns how many there are. */
int ls_joined_runs(const LsGraph *g, LsNodeId n, int first, int count, int axis,
                   LsJoinedRun run[LS_JOINED_RUNS]);

/* Strides of the parts, and of the number of the row as tensor `row`. */
void ls_joined_strides(const LsKernelText *k, LsNest *n, int row);

/* Where the joined operand stands among the kernel's tensors, as the number of its row. */
static inline int ls_joined_row(const LsBody *b) { return b->node->nin + b->node->nout; }

/* On the CPU pointers, and the row in front of the innermost loop; nothing on a GPU, or where the
 * body reads no joined operand. */
void ls_joined_declare(const LsBody *b);
void ls_joined_fill(const LsBody *b);
/* On a GPU, in the innermost loop: the part of the index, as the pointer to which that index is
 * added as it is (that it is a multiple of four shows nowhere else), and the part's length; nothing
 * likewise. */
void ls_joined_pick(const LsBody *b);
/* The joined operand's array, the place in it, and what lies between two rows, as text. */
const char *ls_joined_array(const LsBody *b);
const char *ls_joined_at(const LsBody *b);
const char *ls_joined_step(const LsBody *b, int axis);

#endif
