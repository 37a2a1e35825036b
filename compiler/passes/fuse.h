/* compiler/passes/fuse.h -- the body of a FUSED node: one loop over one iteration space.
 *
 * For every point of `space`: load the operands (broadcast by strides), run the statements, store
 * some of them, add others to reductions. All reductions of a body keep the same axes. */
#ifndef LS_COMPILER_PASSES_FUSE_H
#define LS_COMPILER_PASSES_FUSE_H

#include "compiler/ir/graph.h"

#include <string.h>

typedef struct LsStmt {
    uint16_t op;                /* a MAP row, or a REDUCE row (its prologue expression) */
    uint16_t narg;
    int16_t arg[6];             /* >= 0: result of that earlier statement; < 0:
                                 * operand ~arg of the node */
    LsType type;                /* of the result */
    LsAttr attr;                /* scalar.a, scalar.b for $a, $b */
    const char *name;           /* of the ONNX node, for the comment */
} LsStmt;

/* Of a statistic of the samples that count, or its gradient; each 0: the statement is none. */
static inline LsCounted ls_stmt_counted(const LsStmt *s)
{
    switch (s->op) {
    case LS_OP_REDUCE_MEAN: case LS_OP_NORM_VAR: return s->attr.reduce.counted;
    case LS_OP_NORM_COEF: case LS_OP_NORM_DX: case LS_OP_AFFINE: case LS_OP_ADD:
    case LS_OP_COUNTED_SHARE: return s->attr.scalar.counted;
    default: return (LsCounted){0};
    }
}

typedef struct LsFusedOut {     /* result k of the node */
    int stmt;
    bool reduce;                /* false: stored at every point of the space */
    LsCombine combine;          /* reduce */
    bool mean;
    bool variance;              /* of a sum of squares: relative to result 0, the mean of the
                                 * squared operand */
    int64_t from, length;       /* length > 0: a part, only these indices along LsFused.split */
} LsFusedOut;

/* The result is the statement's value at every point. */
static inline bool ls_is_stored(const LsFusedOut *o) { return !o->reduce && o->length == 0; }

/* An operand that has elements for some points of the space only and is 0 at the others. Along an
 * axis, index k belongs to points from + k per .. from + k per + span - 1. A point with several
 * indices (span > per) is their sum. Along the axis walked innermost every point has its own
 * index. */
typedef struct LsInset {
    int operand;
    int64_t from[LS_MAX_RANK];  /* by logical axis of the space; negative: starts before the
                                 * space */
    int64_t per[LS_MAX_RANK], span[LS_MAX_RANK];
    int which;                  /* > 0: operand of the same shape, LS_BOOL: for each element, the
                                 * number of the point that has it, among the element's points in
                                 * the order of the logical axes; the other points are 0 */
    int64_t over;               /* > 0: divisor of each element */
} LsInset;

/* The largest number of indices that a point can have. */
static inline int64_t ls_inset_terms(const LsInset *in, int rank)
{
    int64_t terms = 1;
    for (int a = 0; a < rank; a++)
        terms *= (in->span[a] + in->per[a] - 1) / in->per[a];
    return terms;
}

struct LsFused {
    LsShape space;              /* iteration space, logical axes */
    LsLayout layout;            /* order of the walk; stored results have it too */
    uint32_t axes;              /* reduced axes; 0: no reduction in the body */
    int first;                  /* operand of which only the first place along the reduced axes is
                                 * read; results that are means are relative to it; 0: none */
    int split;                  /* axis along which results are parts
                                 * (compiler/passes/split_stores.c) */
    int joined, njoined;        /* operands joined .. joined + njoined - 1 are the parts of one
                                 * operand over the whole space, along the axis walked innermost;
                                 * statements name the first (codegen/fusion/implicit_concat.c).
                                 * njoined 0: none */
    int ninset; const LsInset *inset;   /* codegen/fusion/implicit_pad.c; not together with joined
                                         * operands */
    int states;                 /* > 0: of some samples (LsNode.tile); each reduced result is the
                                 * state of its sum, partial sums [pieces * points] of all samples
                                 * in int64_t or double, which goes on with operand states, states +
                                 * 1, ... (of the same kind; none: with 0) */
    int nstmt; LsStmt *stmt;
    LsFusedOut *out;            /* by result of the node; reduced results
                                 * have the reduced dims as 1 */
};

/* Whether a statement uses the walk index %i. */
static inline bool ls_fused_asks_for_index(const LsFused *f)
{
    for (int s = 0; s < f->nstmt; s++)
        if (strstr(ls_op[f->stmt[s].op]->expr, "%i") != NULL)
            return true;
    return false;
}

/* Some of the node's nout results is a reduction. */
static inline bool ls_reduces(const LsFused *f, int nout)
{
    for (int k = 0; k < nout; k++)
        if (f->out[k].reduce)
            return true;
    return false;
}

/* The operand with which the state of reduced result `out` goes on. */
static inline int ls_state_operand(const LsFused *f, int out)
{
    int k = f->states;
    for (int j = 0; j < out; j++)
        k += f->out[j].reduce;
    return k;
}

/* Operand k is a part of the joined operand. */
static inline bool ls_is_joined(const LsFused *f, int k)
{
    return k >= f->joined && k < f->joined + f->njoined;
}

/* How operand k covers part of the space; NULL: it covers all of it. */
static inline const LsInset *ls_inset_of(const LsFused *f, int k)
{
    for (int i = 0; i < f->ninset; i++)
        if (f->inset[i].operand == k)
            return &f->inset[i];
    return NULL;
}

/* The inset whose selecting operand (`which`) is operand k; NULL: none. */
static inline const LsInset *ls_inset_with(const LsFused *f, int k)
{
    for (int i = 0; i < f->ninset; i++)
        if (f->inset[i].which > 0 && f->inset[i].which == k)
            return &f->inset[i];
    return NULL;
}

/* An operand that is not read. Of a convolution or a product: the kernel computes the operand's
 * elements where it packs them, by a body without reductions whose result 0 they are. Of an update:
 * the operand is the gradient; the kernel computes it tile by tile as the product of two operands,
 * and no node stores it (codegen/fusion/gradient_in_update.h). Of a product or a table: the kernel
 * reads the operand's codes (codegen/fusion/read_codes.h). */
/* The gradient of a vocabulary head's weight [classes, columns], which its update computes
 * (codegen/kernels/head_gradient.h). Operands behind those of the update: x [positions, columns];
 * label, dloss, lse: one element for each position; or none: weights, of classes; bias; dy [places,
 * columns] and index, of a table that shares the weight. */
enum {
    LS_HEAD_X, LS_HEAD_LABEL, LS_HEAD_DLOSS, LS_HEAD_LSE, LS_HEAD_WEIGHTS, LS_HEAD_BIAS, LS_HEAD_DY,
    LS_HEAD_INDEX, LS_HEAD_OPERANDS
};
typedef struct LsHeadGradient {
    int64_t part;                           /* classes computed together: the last may be fewer */
    LsGemmAttr scores, sum;
    LsType scores_rounds, sum_rounds;       /* LsNode.rounds of these products */
    LsType scores_type, slope_type, sum_type;
    const LsFused *widens;                  /* the sum, to reals; NULL: it is of reals */
    LsLossAttr loss;                        /* nclass: all classes */
    LsGatherAttr table;
} LsHeadGradient;

typedef struct LsComputed {
    int operand;                /* the value listed there, or a value that it is a view of */
    int first;                  /* first operand of the body, or of the product; these follow all
                                 * operands of the operator */
    const LsPackedCodes *codes; /* of the operand, which are operand `first`; NULL: it has none */
    const LsGemmAttr *product;  /* NULL: the fields below describe it */
    const LsHeadGradient *head; /* of an update: operand `first` is LS_HEAD_X; NULL: none */
    LsType rounds;              /* of the product: as LsNode.rounds */
    int axis;                   /* of the body's space: the channels, which are contiguous */
    const LsFused *body;
    double times;               /* computations of each element */
} LsComputed;

/* The node multiplies matrices of bfloat16 factors, unscaled: on CPUs a product of
 * runtime/kernels/ls_dot16.h. */
static inline bool ls_is_dot16(const LsNode *n)
{
    if (n->computed != NULL && n->computed->product != NULL)
        return n->computed->rounds == LS_BF16 && n->computed->product->alpha == 1;
    return n->rounds == LS_BF16 && (n->op != LS_OP_MATMUL || n->attr.gemm.alpha == 1);
}

/* Number of operands of the operator itself, computed or not. */
static inline int ls_own_operands(const LsNode *n)
{
    return n->computed != NULL ? n->computed->first : n->nin;
}
/* Operand k is a value that the kernel reads. */
static inline bool ls_is_read(const LsNode *n, int k)
{
    return n->computed == NULL || n->computed->operand != k;
}

#endif
