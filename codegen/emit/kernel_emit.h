/* codegen/emit/kernel_emit.h -- printing the kernel of one node.
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
 * comes from runtime/kernels/ls_kernel.h. The text depends on the node's shapes, layouts and attributes
 * only, never on its name: equal nodes share one kernel (kernel_set.c compares texts). Result `out`
 * never overlaps an operand unless codegen/emit/kernel_emit.h says so (ls_kernel_inplace). */
#ifndef LS_CODEGEN_EMIT_KERNEL_EMIT_H
#define LS_CODEGEN_EMIT_KERNEL_EMIT_H

#include "codegen/emit/target.h"
#include "codegen/emit/text_emit.h"
#include "compiler/cost/roofline.h"
#include "compiler/ir/graph.h"

/* One grid of a kernel: `units` independent pieces of work. On a GPU a block of x times y threads
 * does one: x share LS_LANES and the sums of a row, y share LS_ROWS (runtime/kernels/ls_kernel.h). x is a
 * power of two; above 32 y is 1. */
typedef struct LsGrid { const char *suffix; int64_t units; int x, y; } LsGrid;

typedef struct LsKernelText {   /* what an emitter is given */
    LsEmit *e;                  /* the parts */
    LsEmit *host;               /* the function that launches them; on the CPU the same as e */
    LsEmit *table;              /* LS_ROW(name, narg, x, y) for each part; NULL on the CPU */
    const LsGraph *g;
    LsNodeId n;
    const char *name;           /* of the kernel function, e.g. "k17" */
    const LsTarget *target;
    int together;               /* blocks that a multiprocessor is to have registers for; 0: any */
    bool whole;                 /* FUSED: it has no workspace, so no sum is cut into pieces */
} LsKernelText;

typedef struct LsEmitter {
    void (*emit)(const LsKernelText *k);
    /* Bytes of scratch while the node runs; NULL: none. */
    int64_t (*workspace)(const LsGraph *g, LsNodeId n, const LsTarget *t);
    /* Which algorithm the kernel follows, for its price; NULL: there is one. */
    LsCostWay (*way)(const LsGraph *g, LsNodeId n, const LsTarget *t);
} LsEmitter;

/* NULL: the target has none. codegen/emit/kernel_emit.c */
const LsEmitter *ls_emitter_of(LsTargetKind target, LsKernelId id);

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
/* The head of a part, its brace and first line. */
void ls_emit_part(const LsKernelText *k, const LsGrid *part);
/* The kernel function, which runs the parts one behind the other. */
void ls_emit_launch(const LsKernelText *k, const LsGrid part[], int npart);

#endif
