/* scheduler/pipeline/stage_packing.h -- packs blocks into regions whose bytes have several
 * copies. */
#ifndef LS_SCHEDULER_PIPELINE_STAGE_PACKING_H
#define LS_SCHEDULER_PIPELINE_STAGE_PACKING_H

#include "scheduler/packing/packing_block.h"
#include "scheduler/pipeline/stage_arena.h"

/* Chooses regions for n blocks of these kinds (of `w`), and the offset of each block; out->placed
 * has room for n. False, with offsets of no use, if they would take more than `most` bytes (<= 0:
 * any). */
bool ls_pipe_pack(const LsPipeWindows *w, const LsBlock *block, const uint32_t *kind, uint32_t n,
                  int64_t alignment, int64_t most, int64_t *offset, LsPipeLayout *out);

/* Likewise for the blocks of the first micro-batch alone, among those that the others have in the
 * layout's regions. */
void ls_pipe_pack_kept(const LsPipeWindows *w, const LsBlock *block, const uint32_t *kind,
                       uint32_t n, int64_t alignment, int64_t *offset, LsPipeLayout *io);

#endif
