/* scheduler/graph/recompute_policy.c -- see the header. */
#include "scheduler/graph/recompute_policy.h"

#include <string.h>

#define ROW(id, name, scope, again) [LS_RECOMPUTE_##id] = {name, LS_POLICY_OF_##scope},
const LsRecomputePolicy ls_recompute_policy[LS_NRECOMPUTE] = {LS_RECOMPUTE_POLICIES(ROW, ROW)};

bool ls_recompute_parse(const char *text, LsRecompute *to)
{
    for (int k = 0; k < LS_NRECOMPUTE; k++)
        if (strcmp(text, ls_recompute_policy[k].name) == 0) {
            *to = (LsRecompute)k;
            return true;
        }
    return false;
}
