/* scheduler/pipeline/flows.c -- see the header. */
#include "scheduler/pipeline/flows.h"

LsFlows ls_flows(LsArena *arena, const LsStages *s, bool joint)
{
    LsFlows out = {ls_arena_alloc(arena, s->nsend + 1u, sizeof *out.flow), 0};
    int64_t bytes[LS_PHASES][LS_PHASES];
    for (uint32_t k = 0; k < s->nsend;) {
        const uint32_t from = s->send[k].from, to = s->send[k].to;
        for (int a = 0; a < LS_PHASES * LS_PHASES; a++)
            bytes[a / LS_PHASES][a % LS_PHASES] = -1;
        for (; k < s->nsend && s->send[k].from == from && s->send[k].to == to; k++) {
            const LsStageSend *send = &s->send[k];
            const LsPipePhase made = joint && send->made == LS_PHASE_W ? LS_PHASE_B : send->made;
            const LsPipePhase read = joint && send->read == LS_PHASE_W ? LS_PHASE_B : send->read;
            if (!send->once)
                bytes[made][read] = (bytes[made][read] < 0 ? 0 : bytes[made][read]) + send->bytes;
        }
        for (int a = 0; a < LS_PHASES * LS_PHASES; a++)
            if (bytes[a / LS_PHASES][a % LS_PHASES] >= 0)
                out.flow[out.n++] = (LsFlow){from, to, (LsPipePhase)(a / LS_PHASES), (LsPipePhase)(a % LS_PHASES),
                                             bytes[a / LS_PHASES][a % LS_PHASES]};
    }
    return out;
}
