/* codegen/kernels/loss_text.h -- a loss while its kernel is printed: its loops over positions, and the
 * sum of what units left. */
#ifndef LS_CODEGEN_KERNELS_LOSS_TEXT_H
#define LS_CODEGEN_KERNELS_LOSS_TEXT_H

#include "codegen/kernels/loop_nest.h"

enum { LS_LOSS_TILE = 128 };        /* positions side by side */
enum {      /* tensors of the nest; LS_LOSS_EACH is a reduction */
    LS_LOSS_SCORES, LS_LOSS_LABELS, LS_LOSS_LSE, LS_LOSS_AT_EACH, LS_LOSS_TENSORS
};

typedef struct LsLossText {         /* one node of cross-entropy or likelihood */
    const LsKernelText *k;
    LsEmit *e;
    const LsLossAttr *at;
    LsNest *n;              /* positions */
    bool nll, grad;
    int weight;             /* operand; -1: all 1 */
    int64_t width;          /* of the scores' axis: classes, or more (codegen/cuda/widen.h) */
    int64_t classes, stride, lanes;
    bool runs;              /* the classes of a position are one run */
    int64_t points, group;  /* positions; positions of a unit */
    int64_t inner;          /* not runs: positions side by side */
    int64_t units;
    const char *valid;      /* condition on the sample, NULL: none */
    const char *classes_text, *plain, *smooth;      /* C; 1 - smoothing; smoothing / C */
} LsLossText;

/* Where a tensor of the nest has the element of the position. */
const char *ls_loss_offset(const LsLossText *l, int tensor);
/* Positions that the loops over classes go by rows (or, where there are none, one by one), or side
 * by side. */
LsGrid ls_loss_grid(const LsLossText *l);
/* Unit u, then its positions p with their indices. Two braces. */
void ls_loss_open_group(const LsLossText *l);
/* Unit u, a tile of positions i0 .. i1. One brace. */
void ls_loss_open_tile(const LsLossText *l);
/* The positions i of a tile. One brace. */
void ls_loss_open_columns(const LsLossText *l);
/* The classes c of a tile, its positions i, the score v. Two braces. */
void ls_loss_open_classes(const LsLossText *l);
/* t is the label; the condition that the position `counts` (`in`: and is a class). */
void ls_loss_label(const LsLossText *l);
/* Declares x, label, weight, and `all`, the sum of the weights: those that the loss reads. */
void ls_loss_pointers(const LsLossText *l);

/* total0 .. are the sums over units u of part[n * u + 0], ..., in a part of one unit and
 * LS_TOTAL_LANES threads, for its LS_ONE. */
enum { LS_TOTAL_LANES = 256 };
void ls_emit_totals(const LsKernelText *k, int n, int64_t units);

#endif
