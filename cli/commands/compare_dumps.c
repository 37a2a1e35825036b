/* cli/commands/compare_dumps.c -- see compare_dumps.h. */
#include "cli/commands/compare_dumps.h"

#include "runtime/data/npz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Pair { LsFile a, b; LsError error; } Pair;

static bool open_pair(Pair *p, const char *path, const char *other)
{
    *p = (Pair){0};
    return ls_file_map(&p->a, path, &p->error) && ls_file_map(&p->b, other, &p->error);
}

/* Passes `ok` on; else writes the reason to why. */
static bool close_pair(Pair *p, bool ok, char *why, size_t size)
{
    if (!ok)
        snprintf(why, size, "%s", p->error.text);
    if (p->a.data != NULL)
        ls_file_unmap(&p->a);
    if (p->b.data != NULL)
        ls_file_unmap(&p->b);
    return ok;
}

/* ---- distances ---- */

enum { OUT, GRAD, NGROUPS };
static const char *const prefix[NGROUPS] = {"out/", "grad/"};

typedef struct Distance { double off, norm, count; int group; const char *name; } Distance;
typedef struct Distances { Distance *of; uint32_t n; double largest[NGROUPS]; } Distances;

static void measure(Distances *d, int group, const char *name, const LsArray *a, const LsArray *b)
{
    Distance *to = &d->of[d->n++];
    *to = (Distance){.group = group, .count = (double)b->count, .name = name};
    for (int64_t i = 0; i < b->count && a->count == b->count; i++) {
        double x = ls_array_real(a, i), y = ls_array_real(b, i);
        to->off += (x - y) * (x - y);
        to->norm += y * y;
    }
    to->off = a->count == b->count && isfinite(to->off) ? sqrt(to->off) : INFINITY;
    to->norm = sqrt(to->norm);
    if (b->count > 0 && isfinite(to->norm))
        d->largest[group] = fmax(d->largest[group], to->norm / sqrt(to->count));
}

/* Records the next member of the reference, if it takes part in the comparison. */
static bool take(Pair *p, Distances *d, const char *name, const LsArray *ref, bool outputs,
                 LsApart *to)
{
    LsArray here;
    bool found;
    int group = outputs ? OUT : GRAD;
    while (group < NGROUPS && strncmp(name, prefix[group], strlen(prefix[group])) != 0)
        group++;
    bool loss = strcmp(name, "loss") == 0;
    if (group == NGROUPS && !loss)
        return true;
    if (!ls_npz_find(&p->a, name, &here, &found, &p->error))
        return false;
    if (!found) {
        to->nlacking++;
        return true;
    }
    if (loss && here.count > 0 && ref->count > 0) {
        double x = ls_array_real(&here, 0), y = ls_array_real(ref, 0);
        to->loss = fabs(x - y) / fmax(fabs(y), 1e-30);
        to->loss = isfinite(to->loss) ? to->loss : INFINITY;
    } else if (!loss) {
        measure(d, group, name, &here, ref);
    }
    return true;
}

static int by_size(const void *a, const void *b)
{
    double x = ((const Distance *)a)->off, y = ((const Distance *)b)->off;
    return (x > y) - (x < y);
}

static void conclude(Distances *d, LsApart *to)
{
    enum { FAR = 1000 };
    for (uint32_t k = 0; k < d->n; k++) {
        Distance *of = &d->of[k];
        double least = d->largest[of->group] / FAR * sqrt(of->count);
        if (of->off > 0)
            of->off /= fmax(fmax(of->norm, least), 1e-300);
    }
    to->ntensor = d->n;
    if (d->n == 0)
        return;
    qsort(d->of, d->n, sizeof *d->of, by_size);
    to->median = d->of[d->n / 2].off;
    to->worst = d->of[d->n - 1].off;
    to->name = d->of[d->n - 1].name;
}

/* Member k of a file, its name in the arena. */
static bool member(LsArena *arena, Pair *p, const LsFile *f, uint32_t k, const char **name,
                   LsArray *a, bool *more)
{
    const char *at;
    size_t len;
    if (!ls_npz_at(f, k, &at, &len, a, more, &p->error))
        return false;
    *name = *more ? ls_arena_printf(arena, "%.*s", (int)len, at) : "";
    return true;
}

bool ls_archive_apart(LsArena *arena, const char *path, const char *reference, bool outputs,
                      LsApart *to, char *why, size_t size)
{
    Pair p;
    LsArray ref;
    Distances d = {0};
    const char *name;
    bool ok = open_pair(&p, path, reference), more = ok;
    uint32_t n = ok ? ls_npz_count(&p.b) : 0;
    *to = (LsApart){.loss = -1, .name = ""};
    d.of = calloc(n + 1u, sizeof *d.of);
    ok = ok && (d.of != NULL || ls_fail(&p.error, LS_EXIT_FAIL, "out of memory"));
    for (uint32_t k = 0; ok && more; k++) {
        ok = member(arena, &p, &p.b, k, &name, &ref, &more)
             && (!more || take(&p, &d, name, &ref, outputs, to));
    }
    if (ok)
        conclude(&d, to);
    free(d.of);
    return close_pair(&p, ok, why, size);
}

/* ---- bits ---- */

static bool same_bytes(const LsArray *a, const LsArray *b)
{
    return a->type == b->type && a->count == b->count
           && memcmp(a->data, b->data, (size_t)(a->count * ls_element_bytes(a->type))) == 0;
}

bool ls_archive_same(LsArena *arena, const char *path, const char *other, uint32_t *n,
                     const char **name, char *why, size_t size)
{
    Pair p;
    LsArray a, b;
    bool ok = open_pair(&p, path, other), more = ok, same = true, found;
    const char *at = "";
    *n = 0;
    *name = "";
    while (ok && more && same) {
        ok = member(arena, &p, &p.a, *n, &at, &a, &more)
             && (!more || ls_npz_find(&p.b, at, &b, &found, &p.error));
        same = !ok || !more || (found && same_bytes(&a, &b));
        *n += ok && more;
    }
    if (!same)
        *name = at;
    else if (ok && ls_npz_count(&p.b) != *n)
        *name = "a member that only one archive has";
    return close_pair(&p, ok, why, size);
}
