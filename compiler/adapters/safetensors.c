/* compiler/adapters/safetensors.c -- see the header. The format: a 64-bit length, a JSON header of
 * that length with dtype, shape and data_offsets of every tensor, the data. */
#include "compiler/adapters/safetensors.h"

#include "base/read_file.h"

#include <cjson/cJSON.h>
#include <string.h>

enum { LENGTH = 8 };            /* bytes before the header */
static const size_t MOST_HEADER = 100 << 20, MOST_FILE = (size_t)1 << 34;

typedef struct Reading {
    LsCtx *cx;
    const char *path;
    const unsigned char *data; size_t bytes;    /* behind the header */
} Reading;

static bool damaged(const Reading *r, const char *name, const char *why)
{
    return ls_error(r->cx, LS_NOWHERE, LS_E_DATA, NULL, "%s: damaged safetensors file: %s%s%s",
                    r->path, name != NULL ? name : "", name != NULL ? ": " : "", why);
}

static float from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, low = h & 1023;
    uint32_t bits = sign | (exponent + 112) << 23 | low << 13;
    float f;
    if (exponent == 31)
        bits = sign | 255u << 23 | low << 13;
    memcpy(&f, &bits, sizeof f);
    if (exponent == 0) {                /* subnormal: low * 2^-24 */
        f = (float)low * 0x1p-24f;
        f = sign != 0 ? -f : f;
    }
    return f;
}

static float element(const char *type, const unsigned char *at)
{
    uint32_t bits = (uint32_t)at[0] | (uint32_t)at[1] << 8;
    if (strcmp(type, "F16") == 0)
        return from_f16((uint16_t)bits);
    bits = strcmp(type, "BF16") == 0 ? bits << 16
                                     : bits | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Bytes of an element; 0: no type that is read. */
static size_t width(const char *type)
{
    return strcmp(type, "F32") == 0 ? 4 : strcmp(type, "F16") == 0 || strcmp(type, "BF16") == 0
               ? 2 : 0;
}

static bool read_shape(const Reading *r, const cJSON *shape, LsSafeTensor *t, size_t *count)
{
    const cJSON *d;
    *count = 1;
    cJSON_ArrayForEach(d, shape) {
        if (t->rank == 8 || !cJSON_IsNumber(d) || d->valuedouble < 0
            || __builtin_mul_overflow(*count, (size_t)d->valuedouble, count))
            return damaged(r, t->name, "its shape");
        t->dim[t->rank++] = (int64_t)d->valuedouble;
    }
    return cJSON_IsArray(shape) || damaged(r, t->name, "it has no shape");
}

static bool read_tensor(const Reading *r, const cJSON *j, LsSafeTensor *t)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(j, "dtype"),
                *span = cJSON_GetObjectItemCaseSensitive(j, "data_offsets");
    const cJSON *from = cJSON_GetArrayItem(span, 0), *to = cJSON_GetArrayItem(span, 1);
    size_t count;
    *t = (LsSafeTensor){.name = ls_arena_strdup(r->cx->arena, j->string)};
    if (!cJSON_IsString(type) || !cJSON_IsNumber(from) || !cJSON_IsNumber(to))
        return damaged(r, t->name, "it has no type or no place");
    const size_t each = width(type->valuestring);
    if (each == 0)
        return ls_error(r->cx, LS_NOWHERE, LS_E_TYPE, "F32, F16 and BF16 are read",
                        "%s: '%s' is of type %s", r->path, t->name, type->valuestring);
    if (!read_shape(r, cJSON_GetObjectItemCaseSensitive(j, "shape"), t, &count))
        return false;
    if (from->valuedouble < 0 || to->valuedouble > (double)r->bytes
        || to->valuedouble - from->valuedouble != (double)count * (double)each)
        return damaged(r, t->name, "it lies outside the file");
    const unsigned char *at = r->data + (size_t)from->valuedouble;
    float *data = ls_arena_alloc(r->cx->arena, count + 1, sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = element(type->valuestring, at + i * each);
    t->data = data;
    return true;
}

static bool read_all(const Reading *r, const cJSON *json, LsSafeTensors *s)
{
    const cJSON *j;
    s->item = ls_arena_alloc(r->cx->arena, (size_t)cJSON_GetArraySize(json) + 1, sizeof *s->item);
    cJSON_ArrayForEach(j, json)
        if (strcmp(j->string, "__metadata__") != 0 && !read_tensor(r, j, &s->item[s->n++]))
            return false;
    return true;
}

LsSafeTensors *ls_safetensors_read(LsCtx *cx, const char *path)
{
    size_t size = 0, length = 0;
    const unsigned char *file =
        (const unsigned char *)ls_read_file_into(cx->arena, path, MOST_FILE, &size);
    LsSafeTensors *s = ls_arena_alloc(cx->arena, 1, sizeof *s);
    s->path = path;
    if (file == NULL) {
        ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot read '%s'", path);
        return NULL;
    }
    Reading r = {.cx = cx, .path = path};
    for (int k = LENGTH; k-- > 0 && size >= LENGTH;)
        length = length << 8 | file[k];
    if (size < LENGTH || length > MOST_HEADER || length > size - LENGTH) {
        damaged(&r, NULL, "its header is longer than the file");
        return NULL;
    }
    r.data = file + LENGTH + length;
    r.bytes = size - LENGTH - length;
    cJSON *json = cJSON_ParseWithLength((const char *)file + LENGTH, length);
    const bool ok = cJSON_IsObject(json) ? read_all(&r, json, s)
                                         : damaged(&r, NULL, "its header is not JSON");
    cJSON_Delete(json);
    return ok ? s : NULL;
}

LsSafeTensor *ls_safetensors_find(const LsSafeTensors *s, const char *name)
{
    for (uint32_t k = 0; k < s->n; k++)
        if (strcmp(s->item[k].name, name) == 0)
            return &s->item[k];
    return NULL;
}
