/* runtime/trainer/export_values.c -- see export_values.h. */
#include "runtime/trainer/export_values.h"

#include <math.h>

#include "runtime/base/let_go.h"
#include "runtime/ls_half.h"
#include "runtime/trainer/state_floats.h"

enum { PART = 4096 };           /* elements converted at a time */

bool ls_is_exported(const LsProgram *p, uint32_t state)
{
    const LsStateTensor *s = ls_exported(p, state);
    bool averaged = false;
    for (uint32_t k = 0; k < p->nstate && s->kind == LS_STATE_PARAM; k++)
        averaged |=
            p->state[k].kind == LS_STATE_AVERAGE && p->state[k].onnx_offset == s->onnx_offset;
    return s->onnx_offset >= 0 && s->onnx_offset < (int64_t)p->file.bytes && !averaged;
}

void ls_export_copy(LsOut *o, const LsMemory *m, const unsigned char *at, size_t n)
{
    for (size_t k = 0, part; k < n; k += part) {
        part = n - k < LS_LET_GO ? n - k : LS_LET_GO;
        ls_out_write(o, at + k, part);
        ls_memory_let_go(m, at, k + part);
    }
}

typedef struct Walk {           /* through the elements of a state tensor, as float32 */
    LsStateFloats floats;
    int64_t left;
} Walk;

static Walk start(const LsMemory *m, const LsStateTensor *s)
{
    return (Walk){ls_state_floats(m, s), ls_tensor_count(&s->t)};
}

/* The next elements; returns their number, 0 at the end. */
static size_t next(Walk *w, float part[PART])
{
    const int64_t n = w->left < PART ? w->left : PART;
    if (n > 0)
        ls_state_floats_take(&w->floats, part, n);
    w->left -= n;
    return (size_t)n;
}

static uint16_t rounded(LsDataType type, float x)
{
    return type == LS_DT_F16 ? ls_to_f16(ls_nearest_f16(x)).bits
                             : ls_to_bf16(ls_nearest_bf16(x)).bits;
}

void ls_export_values(LsOut *o, const LsMemory *m, const LsStateTensor *s, LsDataType type)
{
    float part[PART];
    uint16_t to[PART];
    Walk w = start(m, s);
    for (size_t n; (n = next(&w, part)) > 0;) {
        for (size_t i = 0; i < n && type != LS_DT_REAL; i++)
            to[i] = rounded(type, part[i]);
        ls_out_write(o, type == LS_DT_REAL ? (const void *)part : to,
                     n * (type == LS_DT_REAL ? sizeof *part : sizeof *to));
    }
}

void ls_export_patch(LsOut *o, const LsMemory *m, const LsStateTensor *s, int64_t at)
{
    float part[PART];
    Walk w = start(m, s);
    for (size_t n; (n = next(&w, part)) > 0; at += (int64_t)(n * sizeof *part))
        ls_out_patch(o, at, part, n * sizeof *part);
}

float ls_export_too_large(const LsMemory *m, const LsStateTensor *s)
{
    float part[PART];
    Walk w = start(m, s);
    for (size_t n; (n = next(&w, part)) > 0;)
        for (size_t i = 0; i < n; i++)
            if (isfinite(part[i]) && (rounded(LS_DT_F16, part[i]) & 0x7fff) == 0x7c00)
                return part[i];
    return 0;
}
