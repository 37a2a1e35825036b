/* scheduler/schedule.c -- the fingerprint of a plan. */
#include "scheduler/schedule.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t mix(uint64_t hash, int64_t value)
{
    for (int byte = 0; byte < 8; byte++) {
        hash ^= (uint64_t)value >> (8 * byte) & 0xff;
        hash *= UINT64_C(0x100000001b3);
    }
    return hash;
}

void ls_plan_hash(const LsPlan *plan, char text[17])
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t s = 0; s < plan->nstep; s++) {
        hash = mix(hash, plan->step[s].free);
        hash = mix(hash, plan->step[s].id);
        hash = mix(hash, plan->step[s].workspace_offset);
    }
    for (uint32_t k = 0; k < plan->noffset; k++)
        hash = mix(hash, plan->offset[k]);
    for (uint32_t k = 0; k < plan->nreuse; k++)
        hash = mix(mix(hash, plan->reuse[k].out), plan->reuse[k].in);
    snprintf(text, 17, "%016" PRIx64, hash);
}

double ls_plan_overhead(const LsPlan *plan)
{
    /* sums in another order differ in their last digits */
    double over = plan->base_cost > 0 ? plan->cost / plan->base_cost - 1 : 0;
    return over > 1e-12 ? over : 0;
}
