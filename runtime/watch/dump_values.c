/* runtime/watch/dump_values.c -- see dump_values.h. */
#include "runtime/base/tensor_copy.h"
#include "runtime/data/npz.h"
#include "runtime/watch/dump_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A watched value as the dump shows it: reals of 16 bits are widened. */
static LsTensor shown(const LsWatch *w)
{
    LsTensor t = w->t;
    t.type = ls_holds_reals(t.type) ? LS_DT_REAL : t.type;
    return t;
}

static int64_t shown_bytes(const LsWatch *w, int real_bytes)
{
    const LsTensor t = shown(w);
    return ls_tensor_bytes(&t, real_bytes);
}

bool ls_dump_open(LsDump *d, const LsEngine *g, const LsPhaseTable *t, LsError *e)
{
    int64_t n = 0;
    *d = (LsDump){.g = g, .t = t};
    d->offset = calloc(t->nwatch + 1, sizeof *d->offset);
    for (uint32_t k = 0; d->offset && k < t->nwatch; k++) {
        d->offset[k] = n;
        n += (shown_bytes(&t->watch[k], g->p->real_bytes) + 63) / 64 * 64;
    }
    d->copy = malloc((size_t)n + 1);
    d->bytes = n;
    return d->offset && d->copy ? true : ls_fail(e, LS_EXIT_FAIL, "no memory for --dump");
}

void ls_dump_close(LsDump *d)
{
    free(d->copy);
    free(d->offset);
    *d = (LsDump){0};
}

/* Widens n elements of 16 bits in place, from the last to the first. */
static void widen(LsDataType type, char *at, int64_t n)
{
    for (int64_t i = n; i-- > 0;) {
        float v = (float)ls_element_at(type, at + 2 * i, 4);
        memcpy(at + 4 * i, &v, sizeof v);
    }
}

/* Gradients are shown as those of the loss itself: divided by the scale, which moves at the end of
 * the step. */
static void unscale(const LsDump *d, const LsWatch *w, char *at)
{
    const LsProgram *p = d->g->p;
    if (!ls_has_scaling(p) || strncmp(w->key, "grad/", 5) != 0)
        return;
    const int bytes = p->real_bytes;
    const double scale = ls_real_at(ls_memory_view(d->g->m, p->scaling.scale, bytes), bytes);
    for (int64_t i = 0, n = ls_tensor_count(&w->t); i < n; i++) {
        ls_real_put(at + i * bytes, ls_real_at(at + i * bytes, bytes) / scale, bytes);
    }
}

static void copy(LsDump *d, uint32_t step, bool before)
{
    for (uint32_t k = 0; k < d->t->nwatch; k++) {
        LsWatch one = d->t->watch[k];
        const LsWatch *w = &one;
        if (w->step != step || w->before != before)
            continue;
        one.t.members = 0;              /* there is one at a time */
        int64_t bytes = ls_watch_bytes(w, d->g->p->real_bytes);
        const void *at = ls_engine_view(d->g, w->t.at, bytes);
        char *to = d->copy + d->offset[k] + d->g->member * shown_bytes(w, d->g->p->real_bytes);
        if (at)
            ls_watch_copy(w, to, at, d->g->p->real_bytes);
        if (at && w->t.type != shown(w).type)
            widen(w->t.type, to, ls_tensor_count(&w->t));
        if (at)
            unscale(d, w, to);
    }
}

static void before(void *self, uint32_t step) { copy(self, step, true); }
static void after(void *self, uint32_t step) { copy(self, step, false); }

LsHook ls_dump_hook(LsDump *d) { return (LsHook){before, after, d, NULL}; }

void ls_dump_add(const LsDump *d, uint32_t watch, double weight, double *to)
{
    const int bytes = d->g->p->real_bytes;
    const char *from = d->copy + d->offset[watch];
    for (int64_t i = 0, n = ls_tensor_count(&d->t->watch[watch].t); i < n; i++)
        to[i] += weight * ls_real_at(from + i * bytes, bytes);
}

static bool write_tensor(LsNpz *z, const char *folder, const char *name, const LsTensor *t,
                         const void *at, int real_bytes, LsError *e)
{
    char part[8192];
    const bool brain = t->type == LS_DT_BF16;   /* a moment: shown as f32 */
    const int64_t each = ls_data_bytes(t->type, real_bytes), shown = brain ? 4 : each;
    int64_t left = ls_tensor_count(t);
    LsWalk w = ls_walk_start(t);
    int64_t dim[LS_TENSOR_RANK + 1];
    const int rank = ls_tensor_dims(t, dim);
    if (!ls_npz_begin_in(z, folder, name, ls_element_of(t->type, brain ? 4 : real_bytes), rank, dim,
                         e))
        return false;
    while (left > 0) {
        int64_t n = (int64_t)sizeof part / shown;
        n = n < left ? n : left;
        ls_walk_read(&w, at, part, n, each);
        if (brain)
            widen(t->type, part, n);
        ls_npz_write(z, part, (size_t)(n * shown));
        left -= n;
    }
    return true;
}

static bool write_losses(const LsDump *d, LsNpz *z, const double *loss, int64_t n, LsError *e)
{
    const int bytes = d->g->p->real_bytes;
    char real[8];
    if (!ls_npz_begin(z, "loss", ls_element_of(LS_DT_REAL, bytes), 1, &n, e))
        return false;
    for (int64_t k = 0; k < n; k++) {
        ls_real_put(real, loss[k], bytes);
        ls_npz_write(z, real, (size_t)bytes);
    }
    return true;
}

/* The value of which a watch of the evaluation form has one for every member: a real output of an
 * ensemble. */
static bool has_mean(const LsDump *d, const LsWatch *w)
{
    return d->t == &d->g->p->phase.eval && w->t.members > 0 && ls_holds_reals(w->t.type)
           && strncmp(w->key, "out/", 4) == 0;
}

/* Writes the members' mean of watch k. */
static bool write_mean(const LsDump *d, LsNpz *z, uint32_t k, LsError *e)
{
    const LsWatch *w = &d->t->watch[k];
    const int bytes = d->g->p->real_bytes;
    const LsTensor all = shown(w), one = ls_tensor_of(&all, 0, bytes);
    const int64_t n = ls_tensor_count(&one);
    LsWalk walk = ls_walk_start(&one);
    if (!ls_npz_begin_in(z, "mean/", w->key + 4, ls_element_of(one.type, bytes), one.rank, one.dim,
                         e))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const char *at = d->copy + d->offset[k] + ls_walk_next(&walk) * bytes;
        char mean[8];
        double sum = 0;
        for (int64_t m = 0; m < all.members; m++)
            sum += ls_real_at(at + m * n * bytes, bytes);
        ls_real_put(mean, sum / (double)all.members, bytes);
        ls_npz_write(z, mean, (size_t)bytes);
    }
    return true;
}

static bool write_watches(const LsDump *d, LsNpz *z, LsError *e)
{
    for (uint32_t k = 0; k < d->t->nwatch; k++) {
        const LsWatch *w = &d->t->watch[k];
        const LsTensor t = shown(w);
        if (!write_tensor(z, "", w->key, &t, d->copy + d->offset[k], d->g->p->real_bytes, e)
            || (has_mean(d, w) && !write_mean(d, z, k, e)))
            return false;
    }
    return true;
}

static bool write_members(const LsDump *d, uint32_t n, LsNpz *z, const double *loss, int64_t nloss,
                          LsError *e)
{
    static const char *const group[] = {
        [LS_STATE_PARAM] = "param/",   [LS_STATE_FROZEN] = "param/",    [LS_STATE_STAT] = "stat/",
        [LS_STATE_MOMENT] = "moment/", [LS_STATE_AVERAGE] = "average/", [LS_STATE_SUM] = "moment/"};
    const LsProgram *p = d->g->p;
    if (!write_losses(d, z, loss, nloss, e))
        return false;
    for (uint32_t k = 0; k < n; k++)
        if (!write_watches(&d[k], z, e))
            return false;
    for (uint32_t k = 0; k < p->nstate; k++) {
        const LsStateTensor *s = &p->state[k];
        int64_t bytes = ls_tensor_bytes(&s->t, p->real_bytes);
        /* Sums have no meaning between updates, except those of clipped gradients; levels lie
         * apart, and not all are there. */
        if ((s->kind == LS_STATE_SUM && p->privacy.clip == 0) || s->t.at.space == LS_AT_LEVEL)
            continue;
        if (!write_tensor(z, group[s->kind], s->t.name, &s->t,
                          ls_memory_view(d->g->m, s->t.at, bytes), p->real_bytes, e))
            return false;
    }
    return ls_memory_ok(d->g->m, e);
}

/* A watched output of an ensemble may have a second one. */
static uint32_t members(const LsDump *d, uint32_t n)
{
    const LsProgram *p = d->g->p;
    uint32_t sum = 1 + p->nstate;
    for (uint32_t k = 0; k < n; k++)
        sum += (p->ensemble.members > 0 ? 2 : 1) * d[k].t->nwatch;
    return sum;
}

static int64_t watched_bytes(const LsDump *d)
{
    const LsProgram *p = d->g->p;
    int64_t bytes = 0;
    for (uint32_t k = 0; k < d->t->nwatch; k++)
        bytes += (p->ensemble.members > 0 ? 2 : 1) * shown_bytes(&d->t->watch[k], p->real_bytes)
                 + 4 * (int64_t)strlen(d->t->watch[k].key);
    return bytes;
}

bool ls_dump_fits(const LsDump *d, uint32_t n, const char *path, LsError *e)
{
    enum { HEADERS = 1024 };    /* headers of a member, without its name, which appears twice */
    const LsProgram *p = d->g->p;
    int64_t bytes = (int64_t)members(d, n) * HEADERS;
    for (uint32_t k = 0; k < n; k++)
        bytes += watched_bytes(&d[k]);
    for (uint32_t k = 0; k < p->nstate; k++)
        bytes += ls_tensor_bytes(&p->state[k].t, p->real_bytes)
                 + 2 * (int64_t)strlen(p->state[k].t.name);
    return (bytes <= UINT32_MAX && members(d, n) <= UINT16_MAX)
           || ls_fail(e, LS_EXIT_FAIL, "%s: %u values of %.1f GiB in all are more than an archive "
                      "holds, 65535 of 4 GiB", path, members(d, n), (double)bytes * 0x1p-30);
}

bool ls_dump_write(const LsDump *d, uint32_t n, const char *path, const double *loss, int64_t nloss,
                   LsError *e)
{
    const uint32_t room = members(d, n);
    LsNpz *z = calloc(1, sizeof *z);
    LsNpzMember *member = calloc(room, sizeof *member);
    bool ok = z && member ? ls_npz_open(z, path, member, room, e)
                        : ls_fail(e, LS_EXIT_FAIL, "no memory for --dump");
    if (ok) {
        bool whole = write_members(d, n, z, loss, nloss, e);
        z->out.err = whole ? z->out.err : EIO;  /* so that no incomplete file is left */
        ok = ls_npz_close(z, e) && whole;
    }
    free(member);
    free(z);
    return ok;
}
