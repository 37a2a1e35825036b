/* compiler/fold/fold_eval.h -- between fold_constants.c and the files that evaluate. */
#ifndef LS_COMPILER_FOLD_FOLD_EVAL_H
#define LS_COMPILER_FOLD_FOLD_EVAL_H

#include "compiler/ir/graph.h"

typedef struct LsFold {         /* one node, of which all operands have data */
    LsArena *arena;
    const LsGraph *g;
    LsNodeId n;
    LsType type; LsShape shape; /* of the result */
    void *data;                 /* of the result, row-major, as in LsValue.data */
} LsFold;

bool ls_fold_known(const LsFold *f);        /* there is a way to evaluate this operator */
/* Fill f->data; false where it is undefined: division by zero, overflow, no such element. */
bool ls_fold_map(const LsFold *f);
bool ls_fold_reduce(const LsFold *f);
bool ls_fold_move(const LsFold *f);

#endif
