/* runtime/ranks/rank_packets.c -- see rank_packets.h. */
#include "runtime/ranks/rank_packets.h"

#include <stdlib.h>
#include <string.h>

enum { PLACE, STOP, WORDS };    /* of 8 bytes, before the losses */

static char *packet(const LsPackets *p, int rank) { return p->of + rank * p->bytes; }

bool ls_packets_open(LsPackets *p, LsComm *comm, uint32_t tag, int64_t losses, int64_t bytes,
                     LsError *e)
{
    *p = (LsPackets){.comm = comm,
                     .size = comm != NULL ? comm->size : 1,
                     .rank = comm != NULL ? comm->rank : 0,
                     .tag = tag,
                     .losses = losses,
                     .bytes = bytes};
    const size_t n = (size_t)p->size;
    p->of = calloc(n, (size_t)bytes);
    p->told = calloc(n, sizeof *p->told);
    p->heard = calloc(n, sizeof *p->heard);
    return (p->of && p->told && p->heard)
           || ls_fail(e, LS_EXIT_FAIL, "no memory for the packets of %d ranks", p->size);
}

void ls_packets_close(LsPackets *p)
{
    free(p->of);
    free(p->told);
    free(p->heard);
    *p = (LsPackets){0};
}

LsLoss *ls_packet_losses(const LsPackets *p, int rank)
{
    return (LsLoss *)(void *)(packet(p, rank) + 8 * WORDS);
}

char *ls_packet_rest(const LsPackets *p, int rank)
{
    return (char *)(ls_packet_losses(p, rank) + p->losses);
}

static uint64_t place_of(const LsPackets *p, int rank)
{
    uint64_t place;
    memcpy(&place, packet(p, rank) + 8 * PLACE, sizeof place);
    return place;
}

static bool swap(LsPackets *p, LsError *e)
{
    const LsCommEngine *by = p->comm->engine;
    for (int q = 0; q < p->size; q++)
        if (q != p->rank
            && (!by->receive(p->comm, q, p->tag, packet(p, q), p->bytes, &p->heard[q], e)
                || !by->send(p->comm, q, p->tag, packet(p, p->rank), p->bytes, &p->told[q], e)))
            return false;
    for (int q = 0; q < p->size; q++)
        if (q != p->rank
            && (!by->wait(p->comm, &p->heard[q], e) || !by->wait(p->comm, &p->told[q], e)))
            return false;
    return true;
}

bool ls_packets_swap(LsPackets *p, uint64_t place, int stop, LsError *e)
{
    const int64_t asked = stop;
    memcpy(packet(p, p->rank) + 8 * PLACE, &place, sizeof place);
    memcpy(packet(p, p->rank) + 8 * STOP, &asked, sizeof asked);
    if (p->comm != NULL && !swap(p, e))
        return false;
    for (int q = 1; q < p->size; q++)
        if (place_of(p, q) != place_of(p, 0))
            return ls_fail(e, LS_EXIT_USAGE,
                           "data or checkpoint of rank %d are not those of rank 0", q);
    return true;
}

int ls_packets_stop(const LsPackets *p)
{
    int64_t most = 0, asked;
    for (int q = 0; q < p->size; q++) {
        memcpy(&asked, packet(p, q) + 8 * STOP, sizeof asked);
        most = asked > most ? asked : most;
    }
    return (int)most;
}
