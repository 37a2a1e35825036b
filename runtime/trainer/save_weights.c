/* runtime/trainer/save_weights.c -- see save_weights.h. */
#include "runtime/trainer/save_weights.h"

#include "runtime/base/file.h"
#include "runtime/base/json_read.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/ls_unpack.h"
#include "runtime/trainer/export_values.h"
#include "runtime/trainer/member_view.h"
#include "runtime/checkpoint/safetensors_out.h"

#include <inttypes.h>
#include <string.h>

enum { PART = 1 << 14 };        /* bytes written at a time */

static bool is_weight(const LsStateTensor *s)
{
    return s->packed != NULL || s->kind == LS_STATE_PARAM || s->kind == LS_STATE_STAT
           || s->kind == LS_STATE_FROZEN;
}

/* Codes of packed weights are a state, too; the weights come behind. */
static bool is_written(const LsProgram *p, uint32_t k)
{
    const LsStateTensor *s = ls_exported(p, k);
    return is_weight(s) && (s->t.type != LS_DT_U8 || s->packed != NULL);
}

static const LsStateTensor *shown(const LsProgram *p, uint32_t k, bool trained)
{
    const LsStateTensor *s = ls_exported(p, k);
    for (uint32_t i = 0; i < p->nstate && s->kind == LS_STATE_PARAM && !trained; i++)
        if (p->state[i].kind == LS_STATE_AVERAGE && p->state[i].onnx_offset == s->onnx_offset)
            return &p->state[i];
    return s;
}

static bool is_wide(const LsProgram *p, const LsStateTensor *s)
{
    return p->real_bytes == 8 && s->packed == NULL && s->t.type == LS_DT_REAL;
}

static void put_file(void *to, const void *data, size_t n) { ls_out_write(to, data, n); }

static void put_entry(LsText *t, const LsProgram *p, const LsStateTensor *s, int64_t *offset)
{
    int64_t dim[LS_TENSOR_RANK + 1];
    const int rank = ls_tensor_dims(&s->t, dim);
    const int64_t bytes = ls_tensor_count(&s->t) * (is_wide(p, s) ? 8 : 4);
    ls_text_put(t, ",");
    ls_text_string(t, s->t.name);
    ls_text_put(t, ":{\"dtype\":\"%s\",\"shape\":[", is_wide(p, s) ? "F64" : "F32");
    for (int d = 0; d < rank; d++)
        ls_text_put(t, "%s%" PRId64, d > 0 ? "," : "", dim[d]);
    ls_text_put(t, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", *offset, *offset + bytes);
    *offset += bytes;
}

static void put_header(LsOut *o, const LsProgram *p)
{
    char text[2048];
    LsText t = {text, 0, sizeof text, put_file, o};
    int64_t offset = 0;
    ls_text_put(&t, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (uint32_t k = 0; k < p->nstate + p->npacked; k++)
        if (is_written(p, k))
            put_entry(&t, p, ls_exported(p, k), &offset);
    ls_text_put(&t, "}");
    ls_text_flush(&t);
}

static void put_doubles(LsOut *o, const LsMemory *m, const LsStateTensor *s)
{
    char part[PART];
    LsWalk w = ls_walk_start(&s->t);
    const void *at = ls_memory_view(m, s->t.at, ls_tensor_bytes(&s->t, 8));
    for (int64_t left = ls_tensor_count(&s->t), n; left > 0; left -= n) {
        n = left < PART / 8 ? left : PART / 8;
        ls_walk_read(&w, at, part, n, 8);
        ls_out_write(o, part, (size_t)(8 * n));
    }
}

static bool write_weights(const LsMemory *m, bool trained, const char *path, LsError *e)
{
    LsOut o;
    if (!ls_out_open(&o, path, e))
        return false;
    ls_safetensors_begin(&o);
    put_header(&o, m->p);
    ls_safetensors_end_header(&o);
    for (uint32_t k = 0; k < m->p->nstate + m->p->npacked; k++) {
        const LsStateTensor *s = is_written(m->p, k) ? shown(m->p, k, trained) : NULL;
        if (s != NULL && is_wide(m->p, s))
            put_doubles(&o, m, s);
        else if (s != NULL)
            ls_export_values(&o, m, s, LS_DT_REAL);
    }
    return ls_safetensors_commit(&o, m, e);
}

bool ls_save_weights(const LsMemory *m, int64_t member, bool trained, const char *path, LsError *e)
{
    if (m->p->ensemble.members == 0 || member < 0)
        return write_weights(m, trained, path, e);
    LsMember one;
    const bool ok = ls_member_open(&one, m, member, e)
                    && write_weights(&one.memory, trained, path, e);
    ls_member_close(&one);
    return ok;
}
