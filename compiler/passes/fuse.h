/* compiler/passes/fuse.h -- the body of a FUSED node: one loop over one iteration space.
 *
 * For every point of `space`: load the operands (broadcast by strides), run the statements, store
 * some of them, add others to reductions. All reductions of a body keep the same axes. */
#ifndef LS_COMPILER_PASSES_FUSE_H
#define LS_COMPILER_PASSES_FUSE_H

#include "compiler/ir/graph.h"

typedef struct LsStmt {
    uint16_t op;                /* a MAP row, or a REDUCE row (its prologue expression) */
    uint16_t narg;
    int16_t arg[6];             /* >= 0: result of that earlier statement; < 0:
                                 * operand ~arg of the node */
    LsType type;                /* of the result */
    LsAttr attr;                /* scalar.a, scalar.b for $a, $b */
    const char *name;           /* of the ONNX node, for the comment */
} LsStmt;

typedef struct LsFusedOut {     /* result k of the node */
    int stmt;
    bool reduce;                /* false: stored at every point (or where the statement's
                                 * own shape is smaller than the space: never; such
                                 * statements are not fused) */
    LsCombine combine;          /* reduce */
    bool mean;
    bool variance;              /* of a sum of squares, by result 0, the mean of what is squared */
    int64_t from, length;       /* length > 0: a part, only these indices along LsFused.split */
} LsFusedOut;

/* The statement's value at every point is the result. */
static inline bool ls_is_stored(const LsFusedOut *o) { return !o->reduce && o->length == 0; }

/* An operand that has elements for a part of the points of the space; for the others it is 0. Along
 * an axis index k is of the points from + k per .. from + k per + span - 1. A point of several
 * indices, where span is more than per, is the sum of them. Along the axis that is walked innermost
 * every point has its own. */
typedef struct LsInset {
    int operand;
    int64_t from[LS_MAX_RANK];  /* by logical axis of the space; negative: before it begins */
    int64_t per[LS_MAX_RANK], span[LS_MAX_RANK];
    int which;                  /* > 0: operand of the same shape, LS_BOOL, that says which of its
                                 * points has an element, counted in the order of the logical axes;
                                 * for the others it is 0 */
    int64_t over;               /* > 0: what each element is divided by */
} LsInset;

/* Of how many indices a point can be. */
static inline int64_t ls_inset_terms(const LsInset *in, int rank)
{
    int64_t terms = 1;
    for (int a = 0; a < rank; a++)
        terms *= (in->span[a] + in->per[a] - 1) / in->per[a];
    return terms;
}

struct LsFused {
    LsShape space;              /* iteration space, logical axes */
    LsLayout layout;            /* order in which it is walked; stored results have it too */
    uint32_t axes;              /* reduced axes; 0: no reduction in the body */
    int first;                  /* operand of which only the first place along the reduced axes is
                                 * read; the results that are means are relative to it; 0: none */
    int split;                  /* axis along which results are parts (compiler/passes/split_stores.c) */
    int joined, njoined;        /* operands joined .. joined + njoined - 1 are the parts of one over
                                 * the whole space, along the axis that is walked innermost;
                                 * statements name the first (codegen/fusion/implicit_concat.c). njoined 0: none */
    int ninset; const LsInset *inset;   /* codegen/fusion/implicit_pad.c; not beside joined ones */
    int nstmt; LsStmt *stmt;
    LsFusedOut *out;            /* by result of the node; reduced results
                                 * have the reduced dims as 1 */
};

/* Some of the node's nout results is a reduction. */
static inline bool ls_reduces(const LsFused *f, int nout)
{
    for (int k = 0; k < nout; k++)
        if (f->out[k].reduce)
            return true;
    return false;
}

/* Operand k is a part of the joined one. */
static inline bool ls_is_joined(const LsFused *f, int k)
{
    return k >= f->joined && k < f->joined + f->njoined;
}

/* How operand k covers the space in part; NULL: it does not. */
static inline const LsInset *ls_inset_of(const LsFused *f, int k)
{
    for (int i = 0; i < f->ninset; i++)
        if (f->inset[i].operand == k)
            return &f->inset[i];
    return NULL;
}

/* The operand that goes with operand k, which says which points have an element; NULL: none. */
static inline const LsInset *ls_inset_with(const LsFused *f, int k)
{
    for (int i = 0; i < f->ninset; i++)
        if (f->inset[i].which > 0 && f->inset[i].which == k)
            return &f->inset[i];
    return NULL;
}

/* An operand that is not read. Of a convolution or a product: the kernel computes its elements where
 * it packs them, by a body without reductions whose result 0 they are. Of an update: the gradient,
 * of which the kernel computes a tile at a time as the product of two operands, and which nobody
 * makes (codegen/fusion/gradient_in_update.h). */
typedef struct LsComputed {
    int operand;                /* the value that is listed there, or one that it is a view of */
    int first;                  /* the body's operands, or the product's, are the node's from this
                                 * one on, behind all that the operator has */
    const LsGemmAttr *product;  /* NULL: what follows says how */
    int axis;                   /* of the body's space: the channels, which lie side by side */
    const LsFused *body;
    double times;               /* each element is computed */
} LsComputed;

/* How many operands the operator itself has, computed or not. */
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
