/* scheduler/pipeline/stage_graph.h -- the part of a training graph that one stage runs, as a graph
 * to be planned.
 *
 * It has the tensors of the whole graph, by the same ids. Nodes that do not exist in the program
 * begin the phases: such a node makes what arrives for its phase, and reads what the phase before
 * sends, so that every plan keeps the order of the phases. Nodes that could run before they should
 * read a tensor without bytes that the node of their phase makes. Nodes that change a state could
 * run after their phase, as nobody waits for them. Micro-batches with other plans would change it
 * in another order then, so the next node that begins a phase reads a tensor without bytes of
 * theirs. */
#ifndef LS_SCHEDULER_PIPELINE_STAGE_GRAPH_H
#define LS_SCHEDULER_PIPELINE_STAGE_GRAPH_H

#include "scheduler/pipeline/phases_and_messages.h"

typedef struct LsPipeGraph {
    LsDag dag;
    uint32_t *node_of;          /* by node: of the whole graph; LS_NO_ID: it begins a phase */
    uint32_t begin[LS_STAGE_PHASES];    /* by phase: the node that begins it; LS_NO_ID: none */
    uint32_t nplanned;          /* nodes of micro-batches; then come those of the late phase, which
                                 * is not planned */
} LsPipeGraph;

/* late: as it is laid out, with the nodes of the late phase, which come last; messages live as long
 * as the stage reads them itself. Without: as it is planned; messages live as long as other stages
 * may not have them, and what the late phase needs, to the end. */
void ls_pipe_graph(LsArena *arena, const LsPipeCut *c, uint32_t stage, bool late, LsPipeGraph *out);

/* The same graph under another name, to be read by itself: tensors that no node of the stage has
 * are there by their ids alone, without bytes. Shares the nodes with `of`. */
LsDag ls_pipe_graph_alone(LsArena *arena, const LsPipeGraph *of, const char *name);

#endif
