/* tests/support/run_many.h -- compiles the programs of many graphs, and of several plans of each,
 * by one call of the C compiler: they share one text of kernels. */
#ifndef LS_TESTS_SUPPORT_RUN_MANY_H
#define LS_TESTS_SUPPORT_RUN_MANY_H

#include "tests/support/run_graph.h"

typedef struct LsRunMany LsRunMany;

LsRunMany *ls_run_many_new(LsCtx *cx, int real_bytes);
/* Adds two programs: plans of one problem, or of the training graph and of its evaluation form,
 * which has the former's addresses. Returns the number of the first, the other is the next one. -1:
 * after a diagnostic. */
int ls_run_many_add(LsRunMany *m, LsProblem *const problem[2], const LsPlan plan[2]);
/* Compiles and loads. false: after a message on stderr. */
bool ls_run_many_build(LsRunMany *m, const char *flags);
/* Program k with memory of its own; by ls_run_graph_free. */
LsRunGraph *ls_run_many_open(LsRunMany *m, int k);
void ls_run_many_free(LsRunMany *m);

#endif
