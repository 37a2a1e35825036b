/* runtime/trainer/member_view.c -- see the header. */
#include "runtime/trainer/member_view.h"

#include "runtime/base/tensor_copy.h"

#include <stdlib.h>

bool ls_member_open(LsMember *one, const LsMemory *m, int64_t member, LsError *e)
{
    *one = (LsMember){.program = *m->p, .memory = *m};
    one->state = calloc(m->p->nstate + 1u, sizeof *one->state);
    if (one->state == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (uint32_t k = 0; k < m->p->nstate; k++) {
        one->state[k] = m->p->state[k];
        one->state[k].t = ls_tensor_of(&m->p->state[k].t, member, m->p->real_bytes);
    }
    one->program.state = one->state;
    one->memory.p = &one->program;
    return true;
}

void ls_member_close(LsMember *one)
{
    free(one->state);
    *one = (LsMember){.state = NULL};
}
