/* compiler/fold/fold_eval.h -- shared by fold_constants.c and the files that evaluate. */
#ifndef LS_COMPILER_FOLD_FOLD_EVAL_H
#define LS_COMPILER_FOLD_FOLD_EVAL_H

#include "compiler/ir/graph.h"

typedef struct LsFold {         /* one node whose operands all have data */
    LsArena *arena;
    const LsGraph *g;
    LsNodeId n;
    LsType type; LsShape shape; /* of the result */
    void *data;                 /* of the result, row-major, as in LsValue.data */
} LsFold;

bool ls_fold_known(const LsFold *f);        /* this operator can be evaluated */
/* false: v does not fit the type */
bool ls_fold_store_int(const LsFold *f, int64_t i, int64_t v);
/* Fill f->data; false where the result is undefined: division by zero, overflow, index out of
 * range. */
bool ls_fold_map(const LsFold *f);
bool ls_fold_reduce(const LsFold *f);
bool ls_fold_move(const LsFold *f);
bool ls_fold_index(const LsFold *f);        /* scatters, gathers by element, running sums */

#endif
