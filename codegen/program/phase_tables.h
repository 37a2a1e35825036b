/* codegen/program/phase_tables.h -- one phase of a program while it is printed: the plan as tables, one line per
 * step with its addresses. */
#ifndef LS_CODEGEN_PROGRAM_PHASE_TABLES_H
#define LS_CODEGEN_PROGRAM_PHASE_TABLES_H

#include "codegen/emit/text_emit.h"
#include "codegen/program/kernel_set.h"
#include "codegen/program/program_contents.h"

typedef struct LsPhaseText {          /* one phase while it is printed */
    const LsGraph *g;
    const LsProblem *p;
    const LsPlan *plan;
    const char *name;           /* "train", "eval" */
    bool overlap;               /* LsCodePhase.overlap */
    LsAddress *at;              /* by dag tensor: where it lies now */
    LsAddress *first;           /* by dag tensor: where it lay after its first run */
    const char **kernel;        /* by dag node: name of its kernel */
    uint32_t *made;             /* by dag tensor: 1 + index of the step that first made it */
    uint32_t nstep, nwatch;
} LsPhaseText;

/* name: "train" or "eval"; a phase without a problem is empty. False after diagnostics, as are the
 * next two. */
bool ls_phase_init(LsCtx *cx, LsPhaseText *ph, const LsCode *c, const LsCodePhase *from,
                   const char *name);
/* The kernels of all nodes, then those of the alternatives that the plan runs; of all phases the
 * former come first. */
bool ls_phase_name_kernels(LsCtx *cx, LsKernelSet *set, LsPhaseText *ph);
bool ls_phase_name_alternatives(LsCtx *cx, LsKernelSet *set, LsPhaseText *ph);

/* Addresses with the macros that they are written in, sizes and types of results, steps, and the
 * tensors that can be watched. */
void ls_phase_print_tables(LsPhaseText *train, LsPhaseText *eval, LsEmit *e);
/* ".train = {...}," of the LsProgram; after the tables. */
void ls_phase_print_entry(const LsPhaseText *ph, LsEmit *e);

/* The LsTensor as the initializer of one. */
void ls_tensor_print(FILE *to, const LsTensor *t);
/* What the evaluation form compares with the labels: the node whose scores a cross-entropy reads;
 * none: there is no such. */
LsNodeId ls_find_cross_entropy(const LsGraph *g);

#endif
