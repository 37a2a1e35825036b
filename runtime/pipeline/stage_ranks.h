/* runtime/pipeline/stage_ranks.h -- what ranks that are processes, one for each stage of a
 * pipeline, tell each other beside the messages of their stages. */
#ifndef LS_RUNTIME_PIPELINE_STAGE_RANKS_H
#define LS_RUNTIME_PIPELINE_STAGE_RANKS_H

#include "runtime/comm/comm.h"
#include "runtime/engine/program_memory.h"
#include "runtime/ranks/rank_packets.h"

/* Tags of the messages here. LS_STAGE_NEWS: bytes of a packet behind its losses, the state of the
 * loss scale. */
enum { LS_TAG_NEWS = LS_STAGE_TAGS, LS_TAG_STATE, LS_TAG_WATCHED };
enum { LS_STAGE_NEWS = 4 * 8 };

/* All ranks call it after an update (rank_packets.h): loss[0 .. n) are those of the stage that has
 * them, and the state of the loss scale, if there is one, is that of its stage. */
bool ls_ranks_tell(LsPackets *news, const LsMemory *m, uint64_t place, int stop, LsLoss *loss,
                   int64_t n, LsError *e);
/* All ranks call it: rank 0 gets the state that the others change. */
bool ls_ranks_gather(LsComm *c, const LsProgram *p, const LsMemory *m, LsError *e);
/* `from` and rank 0 call it: rank 0 gets the bytes. */
bool ls_ranks_hand_over(LsComm *c, int from, uint32_t tag, void *data, int64_t bytes, LsError *e);

#endif
