/* runtime/trainer/state_floats.c -- see the header. */
#include "runtime/trainer/state_floats.h"

#include <string.h>

#include "runtime/ls_unpack.h"

LsStateFloats ls_state_floats(const LsMemory *m, const LsStateTensor *s)
{
    const int bytes = m->p->real_bytes;
    const int64_t n =
        s->packed != NULL ? ls_packed_bytes(s->packed) : ls_tensor_bytes(&s->t, bytes);
    return (LsStateFloats){.s = s, .real_bytes = bytes, .from = ls_memory_view(m, s->t.at, n),
                           .walk = ls_walk_start(&s->t)};
}

void ls_state_floats_take(LsStateFloats *f, float *to, int64_t n)
{
    if (f->s->packed == NULL) {
        ls_walk_floats(&f->walk, f->from, to, n, f->real_bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = ls_packed_at(f->s->packed, f->from, f->next + i);
    f->next += n;
}
