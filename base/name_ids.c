/* base/name_ids.c -- a hash table of strings (FNV-1a, linear probing, at most half full). */
#include "base/name_ids.h"

#include <string.h>

#include "base/fnv.h"

static uint64_t hash(const char *s)
{
    uint64_t h = ls_fnv_text(LS_FNV_START, s);
    return h ^ h >> 32;
}

/* Returns the slot that holds the name, or the empty slot where it belongs. */
static uint32_t *probe(const LsNames *t, const char *name)
{
    uint32_t mask = t->nslot - 1;
    for (uint32_t i = (uint32_t)hash(name) & mask;; i = (i + 1) & mask)
        if (t->slot[i] == 0 || strcmp(t->name[t->slot[i]], name) == 0)
            return &t->slot[i];
}

uint32_t ls_names_find(const LsNames *t, const char *name)
{
    return t->nslot == 0 ? 0 : *probe(t, name);
}

static void widen(LsNames *t)
{
    t->nslot = t->nslot == 0 ? 16 : 2 * t->nslot;
    t->slot = ls_arena_alloc(t->arena, t->nslot, sizeof *t->slot);
    for (uint32_t i = 1; i <= t->n; i++)
        *probe(t, t->name[i]) = i;
}

uint32_t ls_names_add(LsNames *t, const char *name)
{
    if (2 * (t->n + 1) >= t->nslot)
        widen(t);
    uint32_t *slot = probe(t, name);
    if (*slot != 0)
        return *slot;
    size_t used = t->n == 0 ? 0 : t->n + 1;
    t->name = ls_arena_regrow(t->arena, t->name, used, t->n + 2, sizeof *t->name, &t->cap);
    t->name[++t->n] = name;
    return *slot = t->n;
}
