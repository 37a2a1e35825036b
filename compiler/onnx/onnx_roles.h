/* compiler/onnx/onnx_roles.h -- which tensors of reals of a file are trained. Decided here and nowhere
 * else, from what reads a tensor, its shape, its name and the exporter's notes about it. */
#ifndef LS_COMPILER_ONNX_ONNX_ROLES_H
#define LS_COMPILER_ONNX_ONNX_ROLES_H

#include "compiler/ir/op.h"

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
