/* runtime/trainer/member_view.h -- a member of an ensemble as the program of one model would see
 * it, for what writes models. */
#ifndef LS_RUNTIME_TRAINER_MEMBER_VIEW_H
#define LS_RUNTIME_TRAINER_MEMBER_VIEW_H

#include "runtime/engine/program_memory.h"

typedef struct LsMember {
    LsProgram program;          /* whose state tensors are the member's */
    LsMemory memory;            /* the same bytes */
    LsStateTensor *state;
} LsMember;

/* Must not move while its memory is in use. */
bool ls_member_open(LsMember *one, const LsMemory *m, int64_t member, LsError *e);
void ls_member_close(LsMember *one);

#endif
