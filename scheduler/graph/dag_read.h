/* scheduler/graph/dag_read.h -- the interchange format "lowerset-graph" version 1. */
#ifndef LS_SCHEDULER_GRAPH_DAG_READ_H
#define LS_SCHEDULER_GRAPH_DAG_READ_H

#include <stdio.h>

#include "base/arena.h"
#include "scheduler/graph/dag.h"

/* Returns whether the fields keep the rules of the format: ids are in range and unique, every
 * tensor has one producer and is made before it is read, ... On false, `why` holds a sentence. */
bool ls_dag_check(const LsDag *dag, char *why, size_t size);

/* Both return NULL, with a sentence in `why`, if the text is not a graph. */
LsDag *ls_dag_parse(LsArena *arena, const char *text, char *why, size_t size);
LsDag *ls_dag_read(LsArena *arena, const char *path, char *why, size_t size);

void ls_dag_write(FILE *to, const LsDag *dag);

#endif
