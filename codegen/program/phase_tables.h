/* codegen/program/phase_tables.h -- one phase of a program while it is printed: the plan as tables,
 * with a line per step that has its addresses. */
#ifndef LS_CODEGEN_PROGRAM_PHASE_TABLES_H
#define LS_CODEGEN_PROGRAM_PHASE_TABLES_H

#include "codegen/emit/text_emit.h"
#include "codegen/program/kernel_set.h"
#include "codegen/program/program_contents.h"

typedef struct LsPhaseText {          /* one phase while it is printed */
    const LsGraph *g;
    const LsProblem *p;
    const LsPlan *plan;
    const char *name;           /* "train", "last", "eval", "stage0" */
    bool overlap;               /* LsCodePhase.overlap */
    bool stage;                 /* of a pipeline or an ensemble: other phases make some of the
                                 * values */
    LsAddress *shared;          /* by dag tensor: results of a step of all members; else none */
    LsAddress *at;              /* by dag tensor: its address now */
    LsAddress *first;           /* by dag tensor: its address after its first run */
    const char **kernel;        /* by dag node: name of its kernel */
    uint32_t *made;             /* by dag tensor: 1 + index of the step that first made it */
    uint32_t nstep, nwatch;
} LsPhaseText;

/* Sets up a phase. name: of its field of LsProgram; a phase without a problem is empty. This and
 * the next two return false after diagnostics. */
bool ls_phase_init(LsCtx *cx, LsPhaseText *ph, const LsCode *c, const LsCodePhase *from,
                   const char *name);
/* Name the kernels of all nodes, and those of the alternatives that the plan runs. All phases name
 * the former before any names the latter. */
bool ls_phase_name_kernels(LsCtx *cx, LsKernelSet *set, LsPhaseText *ph);
bool ls_phase_name_alternatives(LsCtx *cx, LsKernelSet *set, LsPhaseText *ph);

/* Prints the address macros and addresses, sizes and types of results, steps, and the tensors that
 * can be watched. */
void ls_phase_print_tables(LsPhaseText *const phase[], int n, LsEmit *e);
/* Prints ".FIELD = {...}," of the LsProgram or LsStage; after the tables. */
void ls_phase_print_entry(const LsPhaseText *ph, const char *field, LsEmit *e);
/* Whether that step of the plan is a step of the program: not a free step, nor a node of the
 * problem that the graph does not have (scheduler/pipeline/stage_graph.h). */
bool ls_phase_runs(const LsPhaseText *ph, uint32_t s);

/* Prints the LsTensor as a C initializer. */
void ls_tensor_print(FILE *to, const LsTensor *t);
/* The first cross-entropy or likelihood that reads these labels (none: any labels); none: g has no
 * such node. */
LsNodeId ls_find_cross_entropy_of(const LsGraph *g, LsValueId label);
/* That of the target LsGraph.label: the evaluation form compares its scores with the labels. */
LsNodeId ls_find_cross_entropy(const LsGraph *g);
/* Else, if the target has probabilities: the log-softmax of their scores; none: it has not. */
LsNodeId ls_find_soft_scores(const LsGraph *g);
/* The classes that such a node chooses from. */
int64_t ls_classes_of(const LsGraph *g, LsNodeId loss);

#endif
