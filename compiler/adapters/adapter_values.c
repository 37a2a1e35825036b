/* compiler/adapters/adapter_values.c -- see the header. */
#include "compiler/adapters/adapter_values.h"

#include "base/fnv.h"
#include "compiler/ir/shape.h"

#include <math.h>
#include <string.h>

bool ls_adapter_values_open(LsAdapterValues *v, LsCtx *cx, const LsAdapterSpec *spec)
{
    *v = (LsAdapterValues){cx, spec, NULL};
    if (spec->dir == NULL)
        return true;
    v->file = ls_safetensors_read(
        cx, ls_arena_printf(cx->arena, "%s/adapter_model.safetensors", spec->dir));
    return v->file != NULL;
}

/* ---- drawn values: functions of seed, key and place ---- */

static uint64_t mix(uint64_t x)         /* the finisher of splitmix64 */
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* In 0 to below 1. */
static double uniform(uint64_t of, uint64_t k)
{
    return (double)(mix(of + (k + 1) * 0x9e3779b97f4a7c15u) >> 11) * 0x1p-53;
}

static double normal(uint64_t of, uint64_t k)
{
    const double pi = 3.14159265358979323846;
    return sqrt(-2 * log(1 - uniform(of, 2 * k))) * cos(2 * pi * uniform(of, 2 * k + 1));
}

static const float *draw(LsAdapterValues *v, const char *key, const LsShape *shape, bool table,
                         bool b)
{
    const int64_t n = ls_count(shape), fan_in = n / shape->dim[0];
    const double bound = 1 / sqrt((double)fan_in);
    const uint64_t of = mix(v->spec->seed ^ ls_fnv_text(LS_FNV_START, key));
    float *to = ls_arena_alloc(v->cx->arena, (size_t)n + 1, sizeof *to);
    for (int64_t k = 0; b == table && k < n; k++)
        to[k] = (float)(table ? normal(of, (uint64_t)k)
                              : (2 * uniform(of, (uint64_t)k) - 1) * bound);
    return to;
}

/* ---- values of a file ---- */

/* The keys of a file begin with its own wrapper's name for the module: the end of a key decides. */
static LsSafeTensor *find(LsAdapterValues *v, const char *key)
{
    static const char before[] = "base_model.model.";
    LsSafeTensor *t = ls_safetensors_find(v->file, key), *ended = NULL;
    const char *own = key + strlen(before);
    for (uint32_t k = 0; t == NULL && k < v->file->n; k++) {
        LsSafeTensor *one = &v->file->item[k];
        const char *theirs = one->name;
        if (strncmp(theirs, before, strlen(before)) == 0)
            theirs += strlen(before);
        const size_t n = strlen(own), m = strlen(theirs);
        if (n > m && own[n - m - 1] == '.' && strcmp(own + n - m, theirs) == 0)
            ended = one;
    }
    return t != NULL ? t : ended;
}

static bool has_shape(const LsSafeTensor *t, const LsShape *s)
{
    bool same = t->rank == s->rank;
    for (int k = 0; same && k < s->rank; k++)
        same = t->dim[k] == s->dim[k];
    return same;
}

const float *ls_adapter_value(LsAdapterValues *v, const char *key, const LsShape *shape, bool table,
                              bool b)
{
    if (v->file == NULL)
        return draw(v, key, shape, table, b);
    LsSafeTensor *t = find(v, key);
    if (t == NULL) {
        ls_error(v->cx, LS_NOWHERE, LS_E_DATA, NULL, "%s: there is no '%s'", v->file->path, key);
        return NULL;
    }
    const LsShape theirs = {.rank = t->rank};
    memcpy((void *)theirs.dim, t->dim, (size_t)t->rank * sizeof *t->dim);
    t->used = true;
    if (has_shape(t, shape))
        return t->data;
    ls_error(v->cx, LS_NOWHERE, LS_E_SHAPE, NULL, "%s: '%s' is %s, and the model's module takes %s",
             v->file->path, t->name, ls_shape_text(v->cx->arena, &theirs),
             ls_shape_text(v->cx->arena, shape));
    return NULL;
}

const float *ls_adapter_saved(LsAdapterValues *v, const char *key, int64_t count, bool *bad)
{
    LsSafeTensor *t = v->file != NULL ? find(v, key) : NULL;
    int64_t n = 1;
    *bad = false;
    if (t == NULL)
        return NULL;
    for (int k = 0; k < t->rank; k++)
        n *= t->dim[k];
    t->used = true;
    if (n == count)
        return t->data;
    *bad = true;
    ls_error(v->cx, LS_NOWHERE, LS_E_SHAPE, NULL,
             "%s: '%s' has %lld elements, and the model's %lld", v->file->path, t->name,
             (long long)n, (long long)count);
    return NULL;
}

bool ls_adapter_values_end(LsAdapterValues *v)
{
    for (uint32_t k = 0; v->file != NULL && k < v->file->n; k++)
        if (!v->file->item[k].used)
            return ls_error(v->cx, LS_NOWHERE, LS_E_DATA,
                            "lowerset inspect names the modules of the file",
                            "%s: the model has no module for '%s'", v->file->path,
                            v->file->item[k].name);
    return true;
}
