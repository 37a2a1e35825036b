/* codegen/kernel.h -- printing the kernel of one node.
 *
 * One emitter per LsKernelId, in codegen/kernels/. An emitter prints what the head comment of the
 * kernel cannot be without: one or more *part* functions
 *
 *     static void NAME_part(LsRun *run, void *const arg[], int64_t lo, int64_t hi)
 *
 * each computing units lo..hi of its phase, and at the end the kernel itself
 *
 *     static void NAME(LsRun *run, void *const arg[])
 *     {
 *         ls_parallel(run, NAME_part, UNITS, arg);
 *     }
 *
 * arg: operands, results, workspace, as in LsKernel. Shapes, strides and sizes are printed as
 * constants. Element types are `real`, int64_t, int32_t, uint8_t; every function and macro used
 * comes from runtime/ls_kernel.h. The text depends on the node's shapes, layouts and attributes
 * only, never on its name: equal nodes share one kernel (kernel_set.c compares texts). Result `out`
 * never overlaps an operand unless codegen/kernel.h says so (ls_kernel_inplace). */
#ifndef LS_CODEGEN_KERNEL_H
#define LS_CODEGEN_KERNEL_H

#include "codegen/emit.h"
#include "compiler/cost.h"
#include "compiler/graph.h"

typedef struct LsKernelText {   /* what an emitter is given */
    LsEmit *e;
    const LsGraph *g;
    LsNodeId n;
    const char *name;           /* of the kernel function, e.g. "k17" */
    int real_bytes;             /* 4 or 8 */
    bool direct;                /* convolutions: sums term by term, never Winograd's algorithm
                                 * (which is for float only in any case) */
} LsKernelText;

typedef struct LsEmitter {
    void (*emit)(const LsKernelText *k);
    /* Bytes of scratch while the node runs; NULL: none. */
    int64_t (*workspace)(const LsGraph *g, LsNodeId n, int real_bytes);
    /* Which algorithm the kernel follows, for its price; NULL: there is one. */
    LsCostWay (*way)(const LsGraph *g, LsNodeId n, int real_bytes);
} LsEmitter;

extern const LsEmitter *const ls_emitter[LS_NKERNELS];      /* codegen/kernel.c */

/* Result `out` of node n may take the place of operand `in` (the kernel reads each element of it
 * before or as it writes the same element). */
bool ls_kernel_inplace(const LsGraph *g, LsNodeId n, int out, int in);

/* ---- helpers for emitters ---- */
const char *ls_ctype(LsType t);                             /* "real", "int64_t", … */
/* A number as the text of a literal of that type: "LS_R(0.1)", "INT64_C(3)". v for LS_REAL, i
 * else. */
const char *ls_literal(struct LsArena *a, LsType t, double v, int64_t i, int real_bytes);
/* "const real *x = arg[0];" for operand or result k of the node, in declaration order. */
void ls_emit_operand(const LsKernelText *k, const char *var, int in);
void ls_emit_result(const LsKernelText *k, const char *var, int out);
void ls_emit_workspace(const LsKernelText *k, const char *type, const char *var);
/* The kernel function with one ls_parallel over `part` ("" = "_part") and `units`. */
void ls_emit_launch(const LsKernelText *k, int64_t units);

#endif
