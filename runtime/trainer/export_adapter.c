/* runtime/trainer/export_adapter.c -- see the header. */
#include "runtime/trainer/export_adapter.h"

#include "runtime/base/json_read.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/trainer/export_values.h"
#include "runtime/trainer/member_view.h"
#include "runtime/checkpoint/safetensors_out.h"
#include "runtime/trainer/state_floats.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PART = 4096 };           /* floats converted at a time */

/* ---- peft's files ---- */

/* State tensor k as evaluation reads it: an average takes the place of a parameter. */
static const LsStateTensor *shown(const LsProgram *p, uint32_t k)
{
    const LsStateTensor *s = &p->state[k];
    for (uint32_t i = 0; i < p->nstate && s->kind == LS_STATE_PARAM; i++)
        if (p->state[i].kind == LS_STATE_AVERAGE && p->state[i].onnx_offset == s->onnx_offset)
            return &p->state[i];
    return s;
}

static void put_file(void *to, const void *data, size_t n) { ls_out_write(to, data, n); }

static void put_header(LsOut *o, const LsProgram *p)
{
    char text[2048];
    LsText t = {text, 0, sizeof text, put_file, o};
    int64_t offset = 0;
    ls_text_put(&t, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (uint32_t k = 0; k < p->adapters.nentry; k++) {
        const LsAdapterEntry *of = &p->adapters.entry[k];
        const LsTensor *tensor = &p->state[of->state].t;
        const int64_t bytes = 4 * ls_tensor_count(tensor);
        ls_text_put(&t, ",");
        ls_text_string(&t, of->key);
        ls_text_put(&t, ":{\"dtype\":\"F32\",\"shape\":[");
        for (int d = 0; d < tensor->rank; d++)
            ls_text_put(&t, "%s%" PRId64, d > 0 ? "," : "", tensor->dim[d]);
        ls_text_put(&t, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", offset, offset + bytes);
        offset += bytes;
    }
    ls_text_put(&t, "}");
    ls_text_flush(&t);
}

static bool write_tensors(const LsMemory *m, const char *path, LsError *e)
{
    LsOut o;
    if (!ls_out_open(&o, path, e))
        return false;
    ls_safetensors_begin(&o);
    put_header(&o, m->p);
    ls_safetensors_end_header(&o);
    for (uint32_t k = 0; k < m->p->adapters.nentry; k++)
        ls_export_values(&o, m, shown(m->p, m->p->adapters.entry[k].state), LS_DT_REAL);
    return ls_safetensors_commit(&o, m, e);
}

static bool write_config(const LsProgram *p, const char *path, LsError *e)
{
    LsOut o;
    if (!ls_out_open(&o, path, e))
        return false;
    ls_out_write(&o, p->adapters.config, strlen(p->adapters.config));
    ls_out_write(&o, "\n", 1);
    return ls_out_commit(&o, e);
}

static bool path_in(char path[LS_PATH], const char *dir, const char *file, LsError *e)
{
    return snprintf(path, LS_PATH, "%s/%s", dir, file) < LS_PATH
           || ls_fail(e, LS_EXIT_FAIL, "%s: the path is too long", dir);
}

static bool check_folder(const char *dir, LsError *e)
{
    char path[LS_PATH];
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return ls_fail(e, LS_EXIT_FAIL, "cannot make folder '%s': %s", dir, strerror(errno));
    return path_in(path, dir, "adapter_model.safetensors", e) && ls_out_check(path, e);
}

static bool write_folder(const LsMemory *m, const char *dir, LsError *e)
{
    char path[LS_PATH];
    return check_folder(dir, e) && path_in(path, dir, "adapter_model.safetensors", e)
           && write_tensors(m, path, e) && path_in(path, dir, "adapter_config.json", e)
           && write_config(m->p, path, e);
}

static bool member_folder(char path[LS_PATH], const char *dir, int64_t member, LsError *e)
{
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, member);
    return path_in(path, dir, number, e);
}

bool ls_export_adapter_check(const LsProgram *p, int64_t member, const char *dir, LsError *e)
{
    char path[LS_PATH];
    if (p->ensemble.members == 0 || member >= 0)
        return check_folder(dir, e);
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return ls_fail(e, LS_EXIT_FAIL, "cannot make folder '%s': %s", dir, strerror(errno));
    for (int64_t k = 0; k < p->ensemble.members; k++)
        if (!member_folder(path, dir, k, e) || !check_folder(path, e))
            return false;
    return true;
}

bool ls_export_adapter(const LsMemory *m, int64_t member, const char *dir, LsError *e)
{
    const int64_t members = m->p->ensemble.members;
    char path[LS_PATH];
    LsMember one;
    bool ok = ls_export_adapter_check(m->p, member, dir, e);
    if (members == 0)
        return ok && write_folder(m, dir, e);
    for (int64_t k = 0; ok && k < members; k++) {
        if (member >= 0 && k != member)
            continue;
        ok = ls_member_open(&one, m, k, e);
        ok = ok && (member >= 0 ? write_folder(&one.memory, dir, e)
                                : member_folder(path, dir, k, e)
                                      && write_folder(&one.memory, path, e));
        ls_member_close(&one);
    }
    return ok;
}

/* ---- merged weights ---- */

/* All values of a state tensor, row-major; NULL: no memory. */
static double *values_of(const LsMemory *m, const LsStateTensor *s)
{
    const int64_t n = ls_tensor_count(&s->t);
    float part[PART];
    double *to = malloc((size_t)n * sizeof *to + 1);
    LsStateFloats f = ls_state_floats(m, s);
    for (int64_t i = 0, some; to != NULL && f.from != NULL && i < n; i += some) {
        some = n - i < PART ? n - i : PART;
        ls_state_floats_take(&f, part, some);
        for (int64_t k = 0; k < some; k++)
            to[i + k] = part[k];
    }
    return to;
}

/* W + s B A, with rows of `in` elements, in W's place. */
static void add_low(double *w, const double *a, const double *b, int64_t out, int64_t in,
                    int64_t rank, const LsMergedWeight *of)
{
    for (int64_t i = 0; i < out; i++)
        for (int64_t r = 0; r < rank; r++)
            for (int64_t k = 0; k < in; k++)
                w[of->turned ? k * out + i : i * in + k] +=
                    of->scale * b[i * rank + r] * a[r * in + k];
}

/* Gives each row the norm of its magnitude. */
static void scale_rows(double *w, const double *magnitude, int64_t out, int64_t in, bool turned)
{
    for (int64_t i = 0; i < out; i++) {
        double sum = 0;
        for (int64_t k = 0; k < in; k++) {
            const double v = w[turned ? k * out + i : i * in + k];
            sum += v * v;
        }
        for (int64_t k = 0; k < in && sum > 0; k++)
            w[turned ? k * out + i : i * in + k] *= magnitude[i] / sqrt(sum);
    }
}

static void patch(LsOut *o, int64_t at, const double *v, int64_t n)
{
    float part[PART];
    for (int64_t i = 0; i < n; i += PART) {
        const int64_t some = n - i < PART ? n - i : PART;
        for (int64_t k = 0; k < some; k++)
            part[k] = (float)v[i + k];
        ls_out_patch(o, at + 4 * i, part, (size_t)some * sizeof part[0]);
    }
}

void ls_export_merged(LsOut *o, const LsMemory *m, const LsMergedWeight *of, int64_t at)
{
    const LsProgram *p = m->p;
    const LsStateTensor *weight = ls_exported(p, of->weight);
    const int64_t n = ls_tensor_count(&weight->t), rank = p->state[of->b].t.dim[1];
    const int64_t out = p->state[of->b].t.dim[0], in = n / out;
    double *w = values_of(m, weight), *a = values_of(m, shown(p, of->a)),
           *b = values_of(m, shown(p, of->b)),
           *magnitude = of->magnitude >= 0
                            ? values_of(m, shown(p, (uint32_t)of->magnitude)) : NULL;
    if (w == NULL || a == NULL || b == NULL || (of->magnitude >= 0 && magnitude == NULL)) {
        o->err = ENOMEM;
    } else {
        add_low(w, a, b, out, in, rank, of);
        if (magnitude != NULL)
            scale_rows(w, magnitude, out, in, of->turned);
        patch(o, at, w, n);
    }
    free(w);
    free(a);
    free(b);
    free(magnitude);
}
