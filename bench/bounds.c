/* bench/bounds.c -- bounds GRAPH.json INPLACE EFFORT BUDGET...: the lower bound at each budget of
 * live bytes, prints a line of budget, cost, 1 if infeasible, CPU seconds. EFFORT: 0, or prove. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scheduler/bounds/lower_bound.h"
#include "scheduler/graph/dag_read.h"

int main(int argc, char **argv)
{
    char why[512];
    LsArena *arena = ls_arena_new();
    const LsDag *g = argc > 3 ? ls_dag_read(arena, argv[1], why, sizeof why) : NULL;
    if (g == NULL) {
        fprintf(stderr, "bounds: %s\n", argc > 3 ? why : "GRAPH.json INPLACE EFFORT BUDGET...");
        return 2;
    }
    LsProb *p = ls_prob_new(arena, g, atoi(argv[2]) != 0);
    LsBoundOptions o = {.prove = strcmp(argv[3], "prove") == 0};
    for (int k = 4; k < argc; k++) {
        clock_t began = clock();
        LsBound b = ls_bound(p, atoll(argv[k]), &o);
        printf("%s %.17g %d %.4f\n", argv[k], b.cost, b.infeasible,
               (double)(clock() - began) / CLOCKS_PER_SEC);
    }
    ls_arena_free(arena);
    return 0;
}
