/* codegen/emit/kernel_emit.h -- printing the kernel of one node.
 *
 * One emitter per LsKernelId, in codegen/kernels/. Below the kernel's head comment an emitter
 * prints one or more *part* functions
 *
 *     static void NAME_part(LsRun *run, void *const arg[], int64_t lo, int64_t hi)
 *
 * each of which computes units lo..hi of its phase, and at the end the kernel itself
 *
 *     static void NAME(LsRun *run, void *const arg[])
 *     {
 *         ls_parallel(run, NAME_part, UNITS, arg);
 *     }
 *
 * arg: operands, results, workspace, as in LsKernel. Shapes, strides and sizes are printed as
 * constants. Element types are `real`, int64_t, int32_t, uint8_t; every function and macro used
 * comes from runtime/kernels/ls_kernel.h. The text depends on the node's shapes, layouts and
 * attributes only, never on its name: equal nodes share one kernel (kernel_set.c compares texts). A
 * result never overlaps an operand unless ls_kernel_inplace allows it. */
#ifndef LS_CODEGEN_EMIT_KERNEL_EMIT_H
#define LS_CODEGEN_EMIT_KERNEL_EMIT_H

#include "codegen/emit/target.h"
#include "codegen/emit/text_emit.h"
#include "compiler/cost/roofline.h"
#include "compiler/ir/graph.h"

/* The grid of a part: `units` independent pieces of work. On a GPU a block of x times y threads
 * computes one unit: x threads share LS_LANES and the sums of a row, y share LS_ROWS
 * (runtime/kernels/ls_kernel.h). x is a power of two; y is 1 if x exceeds 32. */
typedef struct LsGrid { const char *suffix; int64_t units; int x, y; } LsGrid;

typedef struct LsKernelText {   /* an emitter's argument */
    LsEmit *e;                  /* takes the parts */
    LsEmit *host;               /* takes the function that launches them; on the CPU the same as
                                 * e */
    LsEmit *table;              /* takes LS_ROW(name, narg, x, y) for each part; NULL on the CPU */
    const LsGraph *g;
    LsNodeId n;
    const char *name;           /* of the kernel function, e.g. "k17" */
    const LsTarget *target;
    bool whole;                 /* FUSED: the node has no workspace, so no sum is cut into pieces */
} LsKernelText;

typedef struct LsEmitter {
    void (*emit)(const LsKernelText *k);
    /* Bytes of workspace while the node runs; NULL: none. */
    int64_t (*workspace)(const LsGraph *g, LsNodeId n, const LsTarget *t);
    /* The algorithm that the kernel uses, for its cost; NULL: there is only one. */
    LsCostWay (*way)(const LsGraph *g, LsNodeId n, const LsTarget *t);
} LsEmitter;

/* The emitter of a kernel; NULL: the target has none. codegen/emit/kernel_emit.c */
const LsEmitter *ls_emitter_of(LsTargetKind target, LsKernelId id);

/* Result `out` of node n may take the place of operand `in` (the kernel reads each element of it
 * before or as it writes the same element). */
bool ls_kernel_inplace(const LsGraph *g, LsNodeId n, int out, int in);

/* ---- helpers for emitters ---- */
static inline LsType ls_operand_type(const LsKernelText *k, int in)
{
    return ls_type(k->g, ls_in(k->g, k->n, in));
}
static inline LsType ls_result_type(const LsKernelText *k, int out)
{
    return ls_type(k->g, ls_out(k->g, k->n, out));
}
const char *ls_ctype(LsType t);                             /* "real", "int64_t", … */
/* The same for a variable with an element's value: "real" for all reals. */
const char *ls_register_type(LsType t);
/* An element x of that type as a value: "ls_from_bf16(x)", x itself unless it is stored in 16
 * bits. */
const char *ls_widened(struct LsArena *a, LsType t, const char *x);
/* A value as an element of that type, which stores it exactly: "ls_to_bf16(v)", v itself unless it
 * is stored in 16 bits. */
const char *ls_narrowed(struct LsArena *a, LsType t, const char *v);
/* A value rounded to the numbers of that type: "ls_round_brain(v)". */
const char *ls_rounded(struct LsArena *a, LsType t, const char *v);
/* A value as an element of that type, rounded. */
const char *ls_stored(struct LsArena *a, LsType t, const char *v);
/* A number as a literal of that type: "LS_R(0.1)", "INT64_C(3)". Takes v for reals, else i. Of a
 * type of 16 bits: an element. */
const char *ls_literal(struct LsArena *a, LsType t, double v, int64_t i, int real_bytes);
/* Print "const real *x = arg[0];" for an operand, a result or the workspace of the node. */
void ls_emit_operand(const LsKernelText *k, const char *var, int in);
void ls_emit_result(const LsKernelText *k, const char *var, int out);
void ls_emit_workspace(const LsKernelText *k, const char *type, const char *var);
/* Prints the head of a part, its opening brace and its first line. */
void ls_emit_part(const LsKernelText *k, const LsGrid *part);
/* The same; so many blocks of it must have registers on a multiprocessor (0: any number). */
void ls_emit_part_together(const LsKernelText *k, const LsGrid *part, int blocks);
/* Prints the kernel function, which launches the parts in order. */
void ls_emit_launch(const LsKernelText *k, const LsGrid part[], int npart);
/* The same for one part of a sum on a CPU, whose result is a state: doubles, which go on with those
 * of operand `state`; negative: with 0. */
void ls_emit_launch_state(const LsKernelText *k, const LsGrid *part, int state);
/* The same for one part with so many units, an expression of the numbers in *run. */
void ls_emit_launch_units(const LsKernelText *k, const LsGrid *part, const char *units);

#endif
