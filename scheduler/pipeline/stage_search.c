/* scheduler/pipeline/stage_search.c -- see stages.h. */
#include "scheduler/pipeline/stages.h"

bool ls_stages_find(LsArena *arena, const LsProb *p, const LsStageOptions *o, LsStages *out, char *why, size_t room)
{
    return ls_stages_in_file_order(arena, p, o, out, why, room);
}
