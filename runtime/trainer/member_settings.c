/* runtime/trainer/member_settings.c -- see member_settings.h. */
#include "runtime/trainer/member_settings.h"

#include "runtime/base/number.h"
#include "runtime/base/seed_mix.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/data/npz.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- seeds and rates ---- */

/* Calls take with each word of a list of n by commas. */
static bool each_word(const char *option, const char *list, int64_t n,
                      bool (*take)(LsMemberState *, int64_t, const char *), LsMemberState *s,
                      LsError *e)
{
    char word[64];
    int64_t k = 0;
    for (const char *at = list; at != NULL; k++) {
        const char *end = strchr(at, ',');
        const size_t length = end != NULL ? (size_t)(end - at) : strlen(at);
        if (k >= n)
            return ls_fail(e, LS_EXIT_USAGE,
                           "%s=%s: more than %" PRId64 " numbers, one for each member", option,
                           list, n);
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1),
                 at);
        if (length >= sizeof word || !take(s, k, word))
            return ls_fail(e, LS_EXIT_USAGE, "%s: '%s' is not a number of at least 0", option,
                           word);
        at = end != NULL ? end + 1 : NULL;
    }
    return list == NULL || k == n
           || ls_fail(e, LS_EXIT_USAGE, "%s=%s: %" PRId64 " numbers for %" PRId64 " members",
                      option, list, k, n);
}

static bool take_seed(LsMemberState *s, int64_t k, const char *word)
{
    int64_t v;
    const bool ok = ls_number_whole(word, 0, INT64_MAX, &v);
    s->seeds[k] = ok ? (uint64_t)v : 0;
    return ok;
}

static bool take_rate(LsMemberState *s, int64_t k, const char *word)
{
    return ls_number_real(word, 0, FLT_MAX, &s->base[k]);
}

bool ls_member_settings(LsMemberState *s, const LsTrainerOptions *o, LsError *e)
{
    return s->n == 0
           || (each_word("--member-seeds", o->member_seeds, s->n, take_seed, s, e)
               && each_word("--member-rates", o->member_rates, s->n, take_rate, s, e));
}

/* ---- initial weights ---- */

/* Exchanges two elements. */
static void swap(void *of, int64_t a, int64_t b, int64_t size)
{
    char room[sizeof(double)], *x = (char *)of + a * size, *y = (char *)of + b * size;
    memcpy(room, x, (size_t)size);
    memcpy(x, y, (size_t)size);
    memcpy(y, room, (size_t)size);
}

/* Gives all members but the first the file's elements in an order of their own (Fisher and Yates):
 * constants stay, and numbers drawn independently stay so, from the same distribution. */
static void permute(const LsMemory *m, uint32_t k, uint64_t seed)
{
    const LsProgram *p = m->p;
    for (int64_t member = 1; member < p->state[k].t.members; member++) {
        const LsTensor t = ls_tensor_of(&p->state[k].t, member, p->real_bytes);
        const uint64_t key = ls_mix(ls_mix(seed + (uint64_t)member * 0x9e3779b97f4a7c15u) + k);
        const LsWalk w = ls_walk_start(&t);
        void *at = ls_memory_at(m, t.at);
        for (int64_t i = ls_tensor_count(&t) - 1; i > 0; i--) {
            const uint64_t draw = ls_mix(key + (uint64_t)i);
            const int64_t j = (int64_t)((unsigned __int128)draw * (uint64_t)(i + 1) >> 64);
            swap(at, ls_walk_at(&w, i), ls_walk_at(&w, j), p->real_bytes);
        }
    }
}

/* Member NAME or stack/NAME of the archive, [members, shape]. */
static bool find_stack(const LsFile *f, const LsTensor *t, LsArray *a, LsError *e)
{
    int64_t dim[LS_TENSOR_RANK + 1];
    char have[96], want[96];
    bool found = false;
    const int rank = ls_tensor_dims(t, dim);
    if (!ls_npz_find_in(f, "stack/", t->name, a, &found, e)
        || (!found && !ls_npz_find(f, t->name, a, &found, e)))
        return false;
    if (!found)
        return ls_fail(
            e, LS_EXIT_DATA,
            "%s: there is no member '%s' (or 'stack/%s') with the weights of the ensemble", f->path,
            t->name, t->name);
    if (!ls_element_is_float(a->type) || a->rank != rank
        || memcmp(a->dim, dim, (size_t)rank * sizeof *dim) != 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: '%s' is %s %s, it must be reals %s: members first",
                       f->path, t->name, ls_element_name(a->type),
                       ls_dims_text(a->rank, a->dim, have), ls_dims_text(rank, dim, want));
    return true;
}

static bool read_stack(const LsMemory *m, const char *path, LsError *e)
{
    const LsProgram *p = m->p;
    LsFile f;
    bool ok = ls_file_map(&f, path, e);
    if (!ok)
        return false;
    for (uint32_t k = 0; ok && k < p->nstate; k++) {
        const LsTensor *t = &p->state[k].t;
        LsArray a;
        if (p->state[k].kind != LS_STATE_PARAM)
            continue;
        ok = find_stack(&f, t, &a, e);
        LsWalk w = ls_walk_start(t);
        for (int64_t i = 0; ok && i < a.count; i++)
            ls_real_put((char *)ls_memory_at(m, t->at) + ls_walk_next(&w) * p->real_bytes,
                        ls_array_real(&a, i), p->real_bytes);
    }
    ls_file_unmap(&f);
    return ok;
}

bool ls_member_weights(const LsMemory *m, const LsTrainerOptions *o, LsError *e)
{
    if (o->ensemble_weights != NULL)
        return read_stack(m, o->ensemble_weights, e);
    for (uint32_t k = 0; o->ensemble_seed >= 0 && k < m->p->nstate; k++)
        if (m->p->state[k].kind == LS_STATE_PARAM && m->p->state[k].onnx_offset >= 0)
            permute(m, k, (uint64_t)o->ensemble_seed);
    return true;
}
