/* tests/differential/results.h -- runs a compiled program, and keeps what its steps leave. */
#ifndef LS_TESTS_DIFFERENTIAL_RESULTS_H
#define LS_TESTS_DIFFERENTIAL_RESULTS_H

#include "tests/differential/random_net.h"
#include "tests/support/run_graph.h"

typedef struct Results { /* of one step, by the names of Expected */
    uint32_t n, cap;
    const char **name;
    LsShape *shape;
    double **value;
} Results;

/* Runs steps 0, 1, .. with the net's inputs by so many threads; to[s]: the results of step s. */
void results_run(LsRunGraph *r, const Net *net, int threads, int steps, Results to[]);
/* The place of a name; -1: there is none. */
int results_find(const Results *in, const char *name);
void results_free(Results *r);

#endif
