/* runtime/checkpoint/safetensors_out.c -- see the header. */
#include "runtime/checkpoint/safetensors_out.h"

#include <errno.h>

enum { LENGTH = 8 };

void ls_safetensors_begin(LsOut *o)
{
    static const unsigned char none[LENGTH];
    ls_out_write(o, none, LENGTH);
}

void ls_safetensors_end_header(LsOut *o)
{
    unsigned char length[LENGTH];
    while (o->at % LENGTH != 0)
        ls_out_write(o, " ", 1);
    for (int k = 0; k < LENGTH; k++)
        length[k] = (unsigned char)((uint64_t)(o->at - LENGTH) >> 8 * k);
    ls_out_patch(o, 0, length, LENGTH);
}

bool ls_safetensors_commit(LsOut *o, const LsMemory *m, LsError *e)
{
    if (!ls_memory_ok(m, e))
        o->err = EIO;           /* so that no incomplete file is left */
    return ls_out_commit(o, e);
}
