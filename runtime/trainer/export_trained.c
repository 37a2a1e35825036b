/* runtime/trainer/export_trained.c -- the embedded ONNX file, with the float32 data of every state tensor
 * replaced. */
#include "runtime/base/file.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/trainer/export_trained.h"

#include <errno.h>

enum { PART = 4096 };           /* elements converted at a time */

static void patch(LsOut *o, const LsMemory *m, const LsStateTensor *s)
{
    float out[PART];
    double in[PART];
    int64_t size = m->p->real_bytes, at = s->onnx_offset;
    LsWalk w = ls_walk_start(&s->t);
    const void *from = ls_memory_view(m, s->t.at, ls_tensor_count(&s->t) * size);
    for (int64_t left = ls_tensor_count(&s->t), n; left > 0; left -= n, at += 4 * n) {
        n = left < PART ? left : PART;
        ls_walk_read(&w, from, size == 8 ? (void *)in : (void *)out, n, size);
        for (int64_t i = 0; size == 8 && i < n; i++)
            out[i] = (float)in[i];
        ls_out_patch(o, at, out, (size_t)n * sizeof out[0]);
    }
}

/* Writes the alphabet, unless the model contains one: it is then the alphabet of the training. */
static void put_alphabet(LsOut *o, const LsProgram *p, const LsAlphabet *a)
{
    LsAlphabet there;
    unsigned char text[LS_ALPHABET_TEXT + 64];
    ls_alphabet_of_onnx(&there, p->onnx, p->onnx_bytes);
    if (ls_alphabet_count(a) > 0 && !ls_alphabet_same(a, &there))
        ls_out_write(o, text, ls_alphabet_metadata(a, text));
}

bool ls_export(const LsMemory *m, const LsAlphabet *alphabet, const char *path, LsError *e)
{
    LsOut o;
    if (!ls_out_open(&o, path, e))
        return false;
    ls_out_write(&o, m->p->onnx, m->p->onnx_bytes);
    put_alphabet(&o, m->p, alphabet);
    for (uint32_t k = 0; k < m->p->nstate; k++)
        if (m->p->state[k].onnx_offset >= 0)
            patch(&o, m, &m->p->state[k]);
    if (!ls_device_ok(m->device, e))
        o.err = EIO;            /* so that no incomplete file is left */
    return ls_out_commit(&o, e);
}
