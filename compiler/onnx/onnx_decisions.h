/* compiler/onnx/onnx_decisions.h -- the roles of a file's tensors and the statistics of its batch
 * norms, with reasons. */
#ifndef LS_COMPILER_ONNX_ONNX_DECISIONS_H
#define LS_COMPILER_ONNX_ONNX_DECISIONS_H

#include "compiler/ir/ir.h"

typedef enum {
    LS_ROLE_NONE,               /* not a tensor of reals */
    LS_ROLE_TRAINED,
    LS_ROLE_FROZEN,             /* stored like a parameter, but not updated */
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

/* The rule that decides the statistics of a batch norm in training. */
typedef enum { LS_BN_BY_TRAIN, LS_BN_BY_FROZEN, LS_BN_BY_FORM, LS_BN_BY_TRACE, LS_BN_BY_NODES,
               LS_BN_BY_RUNNING, LS_NBN_BY } LsBnBy;

/* The decision about one batch norm, and the name of its node. */
typedef struct LsBnDecision { const char *node; LsBnBy by; } LsBnDecision;

/* A value whose gradient is stopped: by --stop-gradient, else by the exporter's notes. */
typedef struct LsStopDecision { const char *value; bool asked; } LsStopDecision;

/* The data that `lowerset inspect` prints. */
typedef struct LsDecisions {
    LsDecision *tensor; uint32_t ntensor;
    LsBnDecision *bn; uint32_t nbn, cap_bn;
    LsStopDecision *stop; uint32_t nstop, cap_stop;
    /* inputs of past keys and values without tokens, and outputs that would extend them; the name
     * of their length, or "" (onnx_caches.h) */
    uint32_t nempty, nextended; const char *past;
} LsDecisions;

extern const char *const ls_role_name[LS_NROLES];
extern const char *const ls_bn_by_text[LS_NBN_BY];     /* in words */
/* "the gradients of 2 values are stopped by the exporter's notes ('a', 'b')"; NULL: none is, in
 * that way. */
const char *ls_stops_text(struct LsArena *a, const LsDecisions *d, bool asked);

#endif
