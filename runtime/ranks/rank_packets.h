/* runtime/ranks/rank_packets.h -- what every rank tells all others at the end of an update: its
 * place in the run, whether it was asked to end, losses of parts, and what else the others need.
 * Packets of all ranks have the same size. */
#ifndef LS_RUNTIME_RANKS_RANK_PACKETS_H
#define LS_RUNTIME_RANKS_RANK_PACKETS_H

#include "runtime/comm/comm.h"
#include "runtime/engine/mean.h"

typedef struct LsPackets {
    LsComm *comm;               /* NULL: one rank alone, which tells nobody */
    int rank, size;
    uint32_t tag;
    int64_t losses, bytes;      /* losses of a packet; bytes of it */
    char *of;                   /* packets, by rank */
    LsTransfer *told, *heard;   /* by rank */
} LsPackets;

/* tag: of their messages; losses: how many a packet has; bytes: of a packet, at least 16 + 16
 * losses, a multiple of 8. The caller closes comm. Close the packets in any case. */
bool ls_packets_open(LsPackets *p, LsComm *comm, uint32_t tag, int64_t losses, int64_t bytes,
                     LsError *e);
void ls_packets_close(LsPackets *p);
/* Of that rank's packet; this rank fills its own before a swap, and reads the others'
 * afterwards. */
LsLoss *ls_packet_losses(const LsPackets *p, int rank);
char *ls_packet_rest(const LsPackets *p, int rank);     /* the bytes behind the losses */
/* Sends this rank's packet to all others, and takes theirs. place: where this rank is in the run;
 * where some rank is elsewhere, all ranks get the same error. stop: a signal's number, 0: this rank
 * was not asked to end. */
bool ls_packets_swap(LsPackets *p, uint64_t place, int stop, LsError *e);
/* The largest `stop` of all ranks. */
int ls_packets_stop(const LsPackets *p);

#endif
