/* scheduler/blocks/block_cuts.h -- the graph as a row of blocks with little between them.
 *
 * The nodes that run before the turn, in the order of the list, are cut where fewer bytes cross
 * than on both sides, behind each layer of a deep network; or behind every node. Everything before
 * a cut is a lower set. Behind the turn a block has what is the backward pass of its nodes, and the blocks run in
 * reverse. */
#ifndef LS_SCHEDULER_BLOCKS_BLOCK_CUTS_H
#define LS_SCHEDULER_BLOCKS_BLOCK_CUTS_H

#include "scheduler/graph/instance.h"

typedef struct LsBlocks {
    const LsProb *p;
    uint32_t n;                 /* blocks; 0: there is no turn */
    LsRows ahead, behind;       /* by block: nodes before the turn, behind it; in the order of the
                                 * list, without updates */
    LsRows made;                /* by block: tensors that its nodes before the turn make */
    LsRows cross;               /* by block, and one more: tensors made behind the turn by it or a
                                 * later block that stay for an earlier one, or to the end */
    uint32_t *rank;             /* by node before the turn: its place in ahead.id */
    uint32_t *place;            /* by tensor made before the turn: its place in made.id; others:
                                 * LS_NO_ID */
    uint32_t *block;            /* by node; LS_NO_ID: in none */
    uint32_t *reach;            /* by tensor made before the turn: the last block that reads it;
                                 * n: it is an output */
    uint32_t *reads;            /* by tensor made before the turn: readers behind it */
} LsBlocks;

typedef enum { LS_CUT_VALLEYS, LS_CUT_EVERYWHERE } LsBlockCuts;

/* At most `most` blocks, of about the same cost where there would be more. */
LsBlocks *ls_blocks_new(LsArena *arena, const LsProb *p, uint32_t most, LsBlockCuts cuts);

/* A number for what blocks from .. to - 1 look like: equal for equal structure, sizes and costs. */
uint64_t ls_blocks_print(const LsBlocks *b, uint32_t from, uint32_t to, uint32_t *scratch);

#endif
