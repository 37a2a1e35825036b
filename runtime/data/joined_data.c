/* runtime/data/joined_data.c -- several datasets as one: "a.npz+b.npz", or a pattern, 'part-*.lsd'.
 * A '+' or a pattern's character in the name of a file that is there belongs to the name. */
#include "runtime/data/dataset.h"

#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_pattern(const char *s)
{
    return strpbrk(s, "*?[") != NULL;
}

/* Whether the list has a name with one of `set` that is no file's. */
static bool has_other(const char *list, const char *set)
{
    bool other = false;
    char *copy = strdup(list), *rest = copy;
    for (char *item; copy && (item = strsep(&rest, ",")) != NULL;) {
        const char *equal = strchr(item, '=');
        other |= strpbrk(item, set) != NULL && access(item, F_OK) != 0
                 && (equal == NULL || access(equal + 1, F_OK) != 0);
    }
    free(copy);
    return other;
}

bool ls_joined_is(const char *data)
{
    return has_other(data, "+*?[");
}

/* The lists of files, each the --data of a part. */
typedef struct Lists {
    char **item;
    int64_t n;
} Lists;

static bool add(Lists *l, const char *text)
{
    char **more = realloc(l->item, (size_t)(l->n + 1) * sizeof *more);
    if (more == NULL || (l->item = more, more[l->n] = strdup(text)) == NULL)
        return false;
    l->n++;
    return true;
}

static bool add_pattern(Lists *l, const char *text, LsError *e)
{
    glob_t found;
    bool ok = true;
    if (strchr(text, ',') != NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--data %s: a pattern stands alone: files that belong together are "
                       "IMAGES,LABELS+IMAGES,LABELS",
                       text);
    const int code = glob(text, 0, NULL, &found);
    if (code != 0)
        return ls_fail(e, LS_EXIT_DATA, "--data %s: %s", text,
                       code == GLOB_NOMATCH ? "no file has such a name" : "cannot be searched");
    for (size_t k = 0; ok && k < found.gl_pathc; k++) /* sorted */
        ok = add(l, found.gl_pathv[k]);
    globfree(&found);
    return ok || ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

static bool split(Lists *l, const char *data, LsError *e)
{
    char *copy = strdup(data), *rest = copy;
    bool ok = copy != NULL || ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (char *item; ok && (item = strsep(&rest, "+")) != NULL;) {
        if (!*item)
            ok = ls_fail(e, LS_EXIT_USAGE, "--data %s: nothing beside a '+'", data);
        else if (is_pattern(item) && has_other(item, "*?["))
            ok = add_pattern(l, item, e);
        else
            ok = add(l, item) || ls_fail(e, LS_EXIT_FAIL, "out of memory");
    }
    free(copy);
    return ok;
}

/* Samples of both lie alike: pictures are of the same size, and labels stand for the same. */
static bool are_alike(const LsSource *a, const LsSource *b)
{
    return a->stored == b->stored && a->high == b->high && a->wide == b->wide
           && a->labels == b->labels;
}

/* An input without samples would have to be the same in all parts. */
static bool may_join(const LsDataset *d, const LsDataset *part, LsError *e)
{
    for (uint32_t k = 0; k < d->p->ninput; k++)
        if (!are_alike(&part->source[k], &d->part[0].source[k]))
            return ls_fail(e, LS_EXIT_DATA,
                           "%s: the samples of '%s' have another shape than in %s",
                           part->source[k].path, d->p->input[k].t.name,
                           d->part[0].source[k].path);
    for (uint32_t k = 0; k < d->p->ninput; k++)
        if (part->source[k].whole && !part->source[k].synthetic)
            return ls_fail(e, LS_EXIT_USAGE,
                           "--data %s: input '%s' has no axis of samples, so one file has it",
                           d->opt.data, d->p->input[k].t.name);
    return true;
}

static bool open_part(LsDataset *d, const char *data, LsError *e)
{
    LsDataset *part = &d->part[d->parts];
    LsDataOptions opt = d->opt;
    opt.data = data;
    d->parts++;
    if (strncmp(data, "synthetic", 9) == 0 && (!data[9] || data[9] == ':'))
        return ls_fail(e, LS_EXIT_USAGE, "--data %s: synthetic data stand alone", d->opt.data);
    if (!ls_dataset_open(part, d->p, &opt, e) || !may_join(d, part, e))
        return false;
    if (__builtin_add_overflow(d->samples, part->samples, &d->samples))
        return ls_fail(e, LS_EXIT_DATA, "%s: too many samples", d->opt.data);
    d->first[d->parts] = d->samples;
    d->scaled |= part->scaled;
    d->rows.rows += part->rows.rows;
    for (int k = 0; k < 4; k++)
        d->characters.has[k] |= part->characters.has[k];
    return true;
}

static bool open_parts(LsDataset *d, const Lists *l, LsError *e)
{
    d->part = calloc((size_t)l->n + 1, sizeof *d->part);
    d->first = calloc((size_t)l->n + 1, sizeof *d->first);
    /* the names live as long as the parts, which point into them */
    size_t bytes = 1;
    for (int64_t k = 0; k < l->n; k++)
        bytes += strlen(l->item[k]) + 1;
    char *at = d->text = malloc(bytes);
    if (!d->part || !d->first || !d->text)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (int64_t k = 0; k < l->n; k++) {
        const char *data = strcpy(at, l->item[k]);
        at += strlen(at) + 1;
        if (!open_part(d, data, e))
            return false;
    }
    for (uint32_t k = 0; k < d->p->ninput; k++)
        d->source[k] = d->part[0].source[k];
    d->classes = d->part[0].classes;
    return true;
}

bool ls_joined_open(LsDataset *d, LsError *e)
{
    Lists l = {0};
    const bool ok = split(&l, d->opt.data, e) && open_parts(d, &l, e);
    while (l.n > 0)
        free(l.item[--l.n]);
    free(l.item);
    return ok;
}

const LsDataset *ls_dataset_part(const LsDataset *d, int64_t *sample)
{
    int64_t low = 0, high = d->parts; /* the part lies in low..high - 1 */
    if (high == 0)
        return d;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (*sample >= d->first[middle])
            low = middle;
        else
            high = middle;
    }
    *sample -= d->first[low];
    return &d->part[low];
}
