/* tests/support/run_graph.h -- runs a graph in this process: prints its program, compiles it, loads
 * it. */
#ifndef LS_TESTS_SUPPORT_RUN_GRAPH_H
#define LS_TESTS_SUPPORT_RUN_GRAPH_H

#include "codegen/program/program_text.h"

typedef struct LsRunGraph {
    LsCtx *cx;
    const LsGraph *g;
    LsProblem *problem;
    LsPlan plan;
    LsAddresses *addresses;
    const LsProgram *program;   /* inside the shared object */
    void *handle;
    char *arena, *state, *constant, **input;
    LsRun run;
} LsRunGraph;

/* g: after the passes of the pipeline. Files go to a temporary folder that is removed. NULL after a
 * message on stderr. State starts as the values' data, inputs as zeros. */
LsRunGraph *ls_run_graph_new(LsCtx *cx, const LsGraph *g, int real_bytes);
/* The same with a plan of the caller's, compiled with `flags` (NULL: -O1). problem->g may have
 * alternatives. */
LsRunGraph *ls_run_graph_plan(LsCtx *cx, LsProblem *problem, const LsPlan *plan,
                              const char *flags);
/* ls_run_graph_new up to the program's text, which is removed. */
bool ls_run_graph_prints(LsCtx *cx, const LsGraph *g, int real_bytes);
void ls_run_graph_free(LsRunGraph *r);

/* For other makers of an LsRunGraph, with all fields up to `handle`: allocates memory, sets it
 * up. */
void ls_run_graph_open(LsRunGraph *r);

void ls_run_graph_step(LsRunGraph *r);          /* all steps of the plan, in order */
/* The same; calls seen for each watch k of the program when its value is there. bytes: in the
 * value's layout. */
void ls_run_graph_step_seen(LsRunGraph *r, void (*seen)(void *at, uint32_t k, const char *bytes),
                            void *at);

/* Element i (row-major, logical) of a state or input value. */
double ls_run_graph_get(const LsRunGraph *r, LsValueId v, int64_t i);
void ls_run_graph_set(LsRunGraph *r, LsValueId v, int64_t i, double x);

/* The same for a value that a step makes; the step is run up to where it was made. Call before
 * reading with ls_run_graph_get; v is one of the outputs, gradients or the loss. */
void ls_run_graph_until(LsRunGraph *r, LsValueId v);

#endif
