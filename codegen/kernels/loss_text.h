/* codegen/kernels/loss_text.h -- a loss while its kernel is printed: its loops over positions, and
 * the sum of the units' partial sums. */
#ifndef LS_CODEGEN_KERNELS_LOSS_TEXT_H
#define LS_CODEGEN_KERNELS_LOSS_TEXT_H

#include "codegen/kernels/loop_nest.h"

enum { LS_LOSS_TILE = 128 };        /* positions side by side */
enum { LS_LOSS_CLASS_AT = 6 };      /* operand of XENT_GRAD of some classes: the first of them */
enum {      /* tensors of the nest (LS_LOSS_EACH is a reduction) */
    LS_LOSS_SCORES, LS_LOSS_LABELS, LS_LOSS_LSE, LS_LOSS_AT_EACH, LS_LOSS_TENSORS
};

typedef struct LsLossText {         /* one node of cross-entropy or likelihood */
    const LsKernelText *k;
    LsEmit *e;
    const LsLossAttr *at;
    LsNest *n;              /* positions */
    bool nll, grad;
    bool sums;              /* XENT_SUM, LABEL_WEIGHT: of what is known of each position */
    bool state;             /* XENT_PART: the sums of some positions, which go on */
    int64_t before;         /* state: positions in front of these */
    int64_t label_at;       /* of the first position of a tile, among all labels */
    int64_t first;          /* state: the first of its units */
    int weight;             /* operand; -1: all 1 */
    int64_t width;          /* of the scores' axis: the classes, or more
                             * (codegen/cuda/pad_classes.h) */
    int64_t classes, stride, lanes;
    bool some;              /* these are some of the classes, from class_at[0] on */
    int64_t all;            /* classes, with the others */
    bool runs;              /* the classes of a position are contiguous */
    int64_t points, group;  /* positions; positions per unit */
    int64_t inner;          /* not runs: contiguous positions */
    int64_t units;
    const char *valid;      /* condition on the sample, NULL: none */
    const char *classes_text, *plain, *smooth;      /* C; 1 - smoothing; smoothing / C */
} LsLossText;

/* Whether the positions of XENT or NLL can be added up in parts that go on from one to the next,
 * with the bits of all together. *elements: doubles of the state. (codegen/kernels/loss.c) */
bool ls_loss_may_go_on(const LsGraph *g, LsNodeId n, const LsTarget *t, int64_t *elements);

/* The operand with the labels. */
int ls_loss_label_operand(const LsLossText *l);
/* An element of the scores as a value. */
const char *ls_loss_widened(const LsLossText *l, const char *element);
/* A label as the kernel counts it: where it has some classes only, from the first of them. */
const char *ls_loss_counted(const LsLossText *l, int64_t label);
/* The offset of the position's element in a tensor of the nest. */
const char *ls_loss_offset(const LsLossText *l, int tensor);
/* The grid over positions: their classes as rows (or, without such loops, one position at a time),
 * or positions side by side. */
LsGrid ls_loss_grid(const LsLossText *l);
/* Opens the loop over units u, then over a unit's positions p with their indices: two braces. */
void ls_loss_open_group(const LsLossText *l);
/* Opens the loop over units u, each a tile of positions i0 .. i1: one brace. */
void ls_loss_open_tile(const LsLossText *l);
/* Opens the loop over the positions i of a tile: one brace. */
void ls_loss_open_columns(const LsLossText *l);
/* Opens the loops over the classes c and the positions i of a tile, with the score v: two
 * braces. */
void ls_loss_open_classes(const LsLossText *l);
/* Declares t, the label, and `counts`: whether the position counts (`in`: and the label is a
 * class). */
void ls_loss_label(const LsLossText *l);
/* Declares x, label, weight, and `all`, the sum of the weights, as far as the loss reads them. */
void ls_loss_pointers(const LsLossText *l);

/* Declares total0 ..: the sums over units u of part[n * u + 0], ..., for LS_ONE of a part of one
 * unit and LS_TOTAL_LANES threads. */
enum { LS_TOTAL_LANES = 256 };
void ls_emit_totals(const LsKernelText *k, int n, int64_t units);

#endif
