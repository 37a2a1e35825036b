/* runtime/ranks/compare_replicas.c -- whether ranks still have the same state: see
 * rank_exchange.h. */
#include "runtime/base/tensor_copy.h"
#include "runtime/comm/comm_seal.h"
#include "runtime/ranks/rank_exchange.h"

#include <string.h>

/* Of all tensors that this rank has whole. Other bytes have another sum but by a chance of less
 * than one in a billion. */
static uint64_t sum_state(const LsExchange *x)
{
    static const unsigned char place[LS_SHA256] = "replicas";
    const LsSeal by = ls_seal_key(place);
    const LsProgram *p = x->g->p;
    LsSealSum sum = {.nrest = 0};
    for (uint32_t k = 0; k < p->nstate; k++) {
        const LsTensor *t = &p->state[k].t;
        const int64_t bytes = ls_tensor_bytes(t, p->real_bytes);
        if (t->at.space == LS_AT_STATE && p->state[k].kind != LS_STATE_SUM)
            ls_seal_add(&by, &sum, ls_memory_view(x->g->m, t->at, bytes), bytes);
    }
    return ls_seal_bytes(&by, &sum, 0);
}

static uint64_t sum_of(const LsExchange *x, int rank)
{
    uint64_t sum;
    memcpy(&sum, ls_packet_rest(&x->replicas, rank), sizeof sum);
    return sum;
}

bool ls_exchange_compare(LsExchange *x, int64_t after, bool start, LsError *e)
{
    const uint64_t mine = sum_state(x);
    if (!ls_memory_ok(x->g->m, e))
        return false;
    memcpy(ls_packet_rest(&x->replicas, x->rank), &mine, sizeof mine);
    if (!ls_packets_swap(&x->replicas, (uint64_t)after, 0, e))
        return false;
    /* Where two others agree, rank 0 is the odd one. */
    const int right =
        x->size > 2 && sum_of(x, 1) == sum_of(x, 2) && sum_of(x, 0) != sum_of(x, 1) ? 1 : 0;
    for (int q = 0; q < x->size; q++)
        if (sum_of(x, q) != sum_of(x, right) && start)
            return ls_fail(e, LS_EXIT_USAGE,
                           "rank %d begins with other weights than rank %d: their checkpoints or "
                           "initial weights "
                           "are not the same",
                           q, right);
        else if (sum_of(x, q) != sum_of(x, right))
            return ls_fail(e, LS_EXIT_RANK,
                           "after step %lld the parameters of rank %d are not those of rank %d: "
                           "its memory or its "
                           "machine is damaged; go on from a checkpoint of before",
                           (long long)after, q, right);
    return true;
}
