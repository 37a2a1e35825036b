/* dataset/category_set.c -- see the header. */
#include "dataset/category_set.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h ^ h >> 29;
}

/* The slot of a text: of its number, or a free one. */
static int64_t slot_of(const LsCategories *c, const char *s)
{
    int64_t at = (int64_t)(hash(s) & (uint64_t)(c->slots - 1));
    while (c->slot[at] != 0 && strcmp(c->names.text[c->slot[at] - 1], s) != 0)
        at = (at + 1) & (c->slots - 1);
    return at;
}

static bool fill_slots(LsCategories *c)
{
    int64_t slots = 64;
    while (slots < 4 * c->names.n)
        slots *= 2;
    free(c->slot);
    c->slots = slots;
    if ((c->slot = calloc((size_t)slots, sizeof *c->slot)) == NULL)
        return false;
    for (int64_t k = 0; k < c->names.n; k++)
        c->slot[slot_of(c, c->names.text[k])] = k + 1;
    return true;
}

int64_t ls_category_find(const LsCategories *c, const char *s)
{
    return c->slots > 0 ? c->slot[slot_of(c, s)] - 1 : -1;
}

bool ls_category_add(LsCategories *c, const char *s)
{
    LsTexts *t = &c->names;
    if (ls_category_find(c, s) >= 0)
        return true;
    if ((t->n & (t->n - 1)) == 0) {
        char **more = realloc(t->text, (size_t)(t->n > 0 ? 2 * t->n : 1) * sizeof *more);
        if (more == NULL)
            return false;
        t->text = more;
    }
    if ((t->text[t->n] = strdup(s)) == NULL)
        return false;
    t->n++;
    if (2 * t->n > c->slots)
        return fill_slots(c);
    c->slot[slot_of(c, s)] = t->n;
    return true;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool ls_categories_sort(LsCategories *c)
{
    if (c->names.n > 1)
        qsort(c->names.text, (size_t)c->names.n, sizeof *c->names.text, by_bytes);
    return c->names.n == 0 || fill_slots(c);
}

void ls_categories_free(LsCategories *c)
{
    for (int64_t k = 0; k < c->names.n; k++)
        free(c->names.text[k]);
    free(c->names.text);
    free(c->slot);
    *c = (LsCategories){0};
}
