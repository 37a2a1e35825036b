/* compiler/onnx/onnx_decisions.h -- what became of the tensors and batch norms of a file, and why.
 * */
#ifndef LS_COMPILER_ONNX_ONNX_DECISIONS_H
#define LS_COMPILER_ONNX_ONNX_DECISIONS_H

#include "compiler/ir/ir.h"

typedef enum {
    LS_ROLE_NONE,               /* no tensor of reals */
    LS_ROLE_TRAINED,
    LS_ROLE_FROZEN,             /* lies in memory as parameters do, and is not updated */
    LS_ROLE_STATISTIC,          /* running mean or variance */
    LS_ROLE_CONSTANT,           /* known to the compiler: literals, masks, bounds */
    LS_NROLES
} LsRole;

typedef struct LsDecision {
    const char *name;
    LsRole role;
    const char *why;
    LsShape shape;
    uint32_t readers;           /* operands of nodes */
} LsDecision;

/* Which statistics a batch norm uses when training, and what decides it. */
typedef enum { LS_BN_BY_TRAIN, LS_BN_BY_FROZEN, LS_BN_BY_FORM, LS_BN_BY_TRACE, LS_BN_BY_NODES,
               LS_BN_BY_RUNNING, LS_NBN_BY } LsBnBy;

/* What decides the statistics of one batch norm, and the name of its node. */
typedef struct LsBnDecision { const char *node; LsBnBy by; } LsBnDecision;

/* What `lowerset inspect` prints. */
typedef struct LsDecisions {
    LsDecision *tensor; uint32_t ntensor;
    LsBnDecision *bn; uint32_t nbn, cap_bn;
} LsDecisions;

extern const char *const ls_role_name[LS_NROLES];
extern const char *const ls_bn_by_text[LS_NBN_BY];     /* in words */

#endif
