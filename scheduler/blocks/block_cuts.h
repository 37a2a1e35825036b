/* scheduler/blocks/block_cuts.h -- cuts the graph into a row of blocks with few bytes between them.
 *
 * The nodes that run before the turn, in list order, are cut where fewer bytes cross than at the
 * neighbouring places, so after each layer of a deep network; or after every node. The nodes before
 * a cut form a lower set. Behind the turn a block holds the backward nodes of its forward nodes,
 * and the blocks run in reverse. */
#ifndef LS_SCHEDULER_BLOCKS_BLOCK_CUTS_H
#define LS_SCHEDULER_BLOCKS_BLOCK_CUTS_H

#include "scheduler/graph/instance.h"

typedef struct LsBlocks {
    const LsProb *p;
    uint32_t n;                 /* blocks; 0: there is no turn */
    LsRows ahead, behind;       /* by block: nodes before the turn; nodes behind it; in list order,
                                 * without updates */
    LsRows made;                /* by block: tensors that its nodes before the turn make */
    LsRows cross;               /* by block, plus one: tensors made behind the turn by it or a later
                                 * block that stay for an earlier block or to the end */
    uint32_t *rank;             /* by node before the turn: its place in ahead.id */
    uint32_t *place;            /* by tensor: its place in made.id; LS_NO_ID: not made before the
                                 * turn */
    uint32_t *block;            /* by node: its block; LS_NO_ID: none */
    uint32_t *reach;            /* by tensor made before the turn: the last block that reads it;
                                 * n: it is an output */
    uint32_t *reads;            /* by tensor made before the turn: number of readers behind the
                                 * turn */
} LsBlocks;

typedef enum { LS_CUT_VALLEYS, LS_CUT_EVERYWHERE } LsBlockCuts;

/* Makes at most `most` blocks; if there would be more, blocks are merged to about equal cost. */
LsBlocks *ls_blocks_new(LsArena *arena, const LsProb *p, uint32_t most, LsBlockCuts cuts);

/* Returns a fingerprint of blocks from .. to - 1: equal for equal structure, sizes and costs. */
uint64_t ls_blocks_print(const LsBlocks *b, uint32_t from, uint32_t to, uint32_t *scratch);

#endif
