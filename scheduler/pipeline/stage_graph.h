/* scheduler/pipeline/stage_graph.h -- the training graph of one stage, for the planner. */
#ifndef LS_SCHEDULER_PIPELINE_STAGE_GRAPH_H
#define LS_SCHEDULER_PIPELINE_STAGE_GRAPH_H

#include "scheduler/pipeline/stages.h"

typedef struct LsStageGraph {
    LsDag dag;                  /* tensor ids are those of the whole graph, and behind them some without bytes */
    uint32_t *node_of;          /* by node: the whole graph's; LS_NO_ID: a receive, or a gate */
    uint32_t turn, gate;        /* gates: between F and B, between B and W; LS_NO_ID: there is none */
} LsStageGraph;

/* Makes the graph of the stage's nodes, with a node without cost for every tensor that it receives. A gate, which waits for
 * all of F, keeps the others behind it; apart: a second one, which waits for all of B, keeps W behind it. */
LsStageGraph *ls_stage_graph(LsArena *arena, const LsProb *p, const LsStages *s, uint32_t stage, bool apart);

#endif
