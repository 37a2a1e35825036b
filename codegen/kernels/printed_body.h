/* codegen/kernels/printed_body.h -- a FUSED node while its statements are printed. */
#ifndef LS_CODEGEN_KERNELS_PRINTED_BODY_H
#define LS_CODEGEN_KERNELS_PRINTED_BODY_H

#include "codegen/kernels/loop_nest.h"
#include "compiler/passes/fuse.h"

typedef enum { LS_AT_TOP, LS_AT_ROW, LS_AT_INNER } LsLoadAt;

typedef struct LsBody {
    const LsKernelText *k;
    const LsNode *node;
    const LsFused *f;
    LsNest *nest;           /* tensors: operands, results, the walk index */
    const char **arg;       /* by operand: the name of its scalar, or its literal */
    LsLoadAt *at;           /* by operand */
    bool *load;             /* by operand: a statement uses it and it is no literal */
    const char *only;       /* rows for which this does not hold are left out: no result needs them;
                             * NULL: all are taken */
    int wide;               /* 4, 8: the innermost loop is LS_LANES4 or LS_ONCE4, or those of eight;
                             * else 0 */
    int group;              /* wide: steps whose operands are prefetched; 0: none */
} LsBody;

/* The number of result `out` among the nest's tensors. */
static inline int ls_body_result(const LsBody *b, int out) { return b->node->nin + out; }

#endif
