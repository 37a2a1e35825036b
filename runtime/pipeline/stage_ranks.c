/* runtime/pipeline/stage_ranks.c -- see stage_ranks.h. */
#include "runtime/pipeline/stage_ranks.h"

#include "runtime/base/tensor_copy.h"

#include <string.h>

/* The stage that has the loss. */
static int teller(const LsProgram *p)
{
    int k = 0;
    while (k + 1 < (int)p->pipeline.nstage
           && p->pipeline.stage[k].plan[0].table.loss.space == LS_AT_NONE)
        k++;
    return k;
}

/* The stage that moves the loss scale; any, if none does. */
static int scaler(const LsProgram *p)
{
    for (uint32_t k = 0; k < p->nstate; k++)
        if (p->state[k].t.at.offset == p->scaling.scale.offset
            && p->pipeline.state_stage[k] != LS_NO_STAGE)
            return p->pipeline.state_stage[k];
    return 0;
}

/* Copies the state of the loss scale to a packet, or back. */
static void move_scaling(const LsMemory *m, char *at, bool back)
{
    const LsProgram *p = m->p;
    const LsAddress of[] = {p->scaling.scale, p->scaling.counter, p->scaling.skips};
    for (int k = 0; k < 3; k++) {
        const size_t bytes = (size_t)p->real_bytes * (k == 2 ? 2 : 1);
        memcpy(back ? ls_memory_at(m, of[k]) : at, back ? at : ls_memory_at(m, of[k]), bytes);
        at += bytes;
    }
}

bool ls_ranks_tell(LsPackets *news, const LsMemory *m, uint64_t place, int stop, LsLoss *loss,
                   int64_t n, LsError *e)
{
    const LsProgram *p = m->p;
    memcpy(ls_packet_losses(news, news->rank), loss, (size_t)n * sizeof *loss);
    if (ls_has_scaling(p))
        move_scaling(m, ls_packet_rest(news, news->rank), false);
    if (!ls_packets_swap(news, place, stop, e))
        return false;
    memcpy(loss, ls_packet_losses(news, teller(p)), (size_t)n * sizeof *loss);
    if (ls_has_scaling(p))
        move_scaling(m, ls_packet_rest(news, scaler(p)), true);
    return true;
}

bool ls_ranks_hand_over(LsComm *c, int from, uint32_t tag, void *data, int64_t bytes, LsError *e)
{
    return c->rank == 0 ? ls_comm_receive_now(c, from, tag, data, bytes, e)
                        : ls_comm_send_now(c, 0, tag, data, bytes, e);
}

bool ls_ranks_gather(LsComm *c, const LsProgram *p, const LsMemory *m, LsError *e)
{
    for (uint32_t k = 0; k < p->nstate; k++) {
        const int owner = p->pipeline.state_stage[k];
        const LsTensor *t = &p->state[k].t;
        const int64_t bytes = ls_tensor_bytes(t, p->real_bytes);
        if (owner == 0 || owner == LS_NO_STAGE || (c->rank != 0 && c->rank != owner))
            continue;
        void *at = ls_memory_at(m, t->at);
        if (!ls_ranks_hand_over(c, owner, LS_TAG_STATE, at, bytes, e))
            return false;
    }
    return true;
}
