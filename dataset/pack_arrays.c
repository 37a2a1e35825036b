/* dataset/pack_arrays.c -- NPZ archives, each with the same members: their samples follow each
 * other. Or NPY files, each a field of its own. */
#include "dataset/array_file.h"
#include "dataset/figures.h"
#include "dataset/pack_source.h"
#include "runtime/base/tensor_copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 1 << 20 }; /* bytes of samples copied at a time */

typedef struct Arrays {
    const LsPackOptions *o;
    LsPack *p;
    char folder[LS_PATH]; /* of the output */
    LsFile *file;
    int files;
    LsArrayFile (*array)[LS_PACK_COLUMNS]; /* of each source; NPY files are all of source 0 */
    int sources, fields;
    LsFigures figures[LS_PACK_COLUMNS];
    bool counted[LS_PACK_COLUMNS]; /* has figures */
    int64_t samples;
    LsError *e;
} Arrays;

static bool is_npz(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && (path[n - 1] | 32) == 'z';
}

static bool is_label(const LsPackOptions *o, const char *name)
{
    static const char *const word[] = {"label", "labels", "target", "targets", "y"};
    if (o->label_name != NULL)
        return strcmp(name, o->label_name) == 0;
    for (size_t k = 0; k < sizeof word / sizeof *word; k++)
        if (strcmp(name, word[k]) == 0)
            return true;
    return strncmp(name, "label.", 6) == 0;
}

static int find(const LsArrayFile *in, int n, const char *name)
{
    for (int k = 0; k < n; k++)
        if (strcmp(in[k].name, name) == 0)
            return k;
    return -1;
}

/* The arrays of a source have one number of samples, and the types and shapes of the first. */
static bool fits(const Arrays *s, const char *path, const LsArrayFile *x, const LsArrayFile *like,
                 int64_t samples)
{
    char have[96], want[96];
    const LsArray *a = &x->array, *b = &like->array;
    if (a->rank == 0 || a->dim[0] == 0)
        return ls_fail(s->e, LS_EXIT_DATA, "%s: '%s' has no samples: its shape is %s", path,
                       x->name, ls_dims_text(a->rank, a->dim, have));
    if (!ls_is_utf8(x->name))
        return ls_fail(s->e, LS_EXIT_DATA, "%s: the name of an array is no UTF-8", path);
    if (a->dim[0] != samples)
        return ls_fail(s->e, LS_EXIT_DATA,
                       "%s: '%s' has %" PRId64 " samples, and others have "
                       "%" PRId64,
                       path, x->name, a->dim[0], samples);
    if (a->type == b->type && a->rank == b->rank
        && memcmp(a->dim + 1, b->dim + 1, (size_t)(a->rank - 1) * sizeof *a->dim) == 0)
        return true;
    return ls_fail(s->e, LS_EXIT_DATA, "%s: '%s' is %s of %s, but the first file's is %s of %s",
                   path, x->name, ls_dims_text(a->rank, a->dim, have), ls_element_name(a->type),
                   ls_dims_text(b->rank, b->dim, want), ls_element_name(b->type));
}

/* All members, in the order of the first source's. */
static bool open_npz(Arrays *s, const char *path)
{
    LsFile *f = &s->file[s->files];
    LsArrayFile *to = s->array[s->sources++], one;
    bool found = true;
    int n = 0;
    if (!ls_file_map(f, path, s->e))
        return false;
    s->files++;
    for (uint32_t k = 0;; k++) {
        const bool ok = ls_array_file_npz(&one, f, k, s->folder, &found, s->e);
        if (ok && !found)
            break;
        const int at = !ok ? -1 : s->sources == 1 ? n : find(s->array[0], s->fields, one.name);
        if (at < 0 || n == LS_PACK_COLUMNS || to[at].name != NULL) {
            if (ok)
                ls_fail(s->e, LS_EXIT_DATA,
                        n == LS_PACK_COLUMNS ? "%s: '%s' is one array too many"
                                             : "%s: no other file has '%s', or it is "
                                               "there twice",
                        path, one.name);
            ls_array_file_close(&one);
            return false;
        }
        to[at] = one;
        n++;
    }
    if (s->sources == 1)
        s->fields = n;
    if (n == 0 || n != s->fields)
        return ls_fail(s->e, LS_EXIT_DATA,
                       n == 0 ? "%s: no arrays" : "%s: lacks arrays that other files have", path);
    for (int k = 0; k < n; k++)
        if (!fits(s, path, &to[k], &s->array[0][k], to[0].array.rank > 0 ? to[0].array.dim[0] : 0))
            return false;
    s->samples += to[0].array.dim[0];
    return true;
}

static bool open_npy(Arrays *s, const char *path)
{
    LsArrayFile *x = &s->array[0][s->fields];
    LsFile *f = &s->file[s->files];
    if (s->fields == LS_PACK_COLUMNS)
        return ls_fail(s->e, LS_EXIT_DATA, "%s is one array too many", path);
    if (!ls_file_map(f, path, s->e))
        return false;
    s->files++;
    if (!ls_array_file_npy(x, f, s->e)) {
        ls_array_file_close(x);
        return false;
    }
    s->fields++;
    s->sources = 1;
    if (find(s->array[0], s->fields - 1, x->name) >= 0)
        return ls_fail(s->e, LS_EXIT_DATA,
                       "%s: two arrays are called '%s'; each .npy file is a "
                       "field",
                       path, x->name);
    if (s->fields == 1)
        s->samples = x->array.rank > 0 ? x->array.dim[0] : 0;
    return fits(s, path, x, x, s->samples);
}

static bool open_all(Arrays *s)
{
    const LsPackOptions *o = s->o;
    char *slash;
    snprintf(s->folder, sizeof s->folder, "%s", s->p->out.path);
    if ((slash = strrchr(s->folder, '/')) != NULL)
        slash[slash == s->folder] = '\0';
    else
        strcpy(s->folder, ".");
    s->file = calloc((size_t)o->sources, sizeof *s->file);
    s->array = calloc((size_t)o->sources, sizeof *s->array);
    if (s->file == NULL || s->array == NULL)
        return ls_fail(s->e, LS_EXIT_FAIL, "out of memory");
    for (int k = 0; k < o->sources; k++) {
        if (is_npz(o->source[k]) != is_npz(o->source[0]))
            return ls_fail(s->e, LS_EXIT_USAGE, "%s: archives and single arrays do not mix",
                           o->source[k]);
        if (!(is_npz(o->source[k]) ? open_npz : open_npy)(s, o->source[k]))
            return false;
    }
    return true;
}

static bool columns(Arrays *s)
{
    for (int k = 0; k < s->fields; k++) {
        const LsArrayFile *x = &s->array[0][k];
        const LsArray *a = &x->array;
        LsDataField f = {.name = x->name,
                         .is_label = is_label(s->o, x->name),
                         .type = a->type,
                         .rank = a->rank - 1};
        memcpy(f.dim, a->dim + 1, (size_t)f.rank * sizeof *f.dim);
        if (!f.is_label && f.type == LS_U8 && f.rank == 3 && (f.dim[0] == 1 || f.dim[0] == 3))
            f.kind = LS_FIELD_PICTURE;
        s->counted[k] =
            !f.is_label && f.rank > 0 && (ls_element_is_float(f.type) || f.type == LS_U8);
        if (ls_pack_column(s->p, &f, s->e) == NULL
            || (s->counted[k] && !ls_figures_open(&s->figures[k], &f, s->e)))
            return false;
    }
    return ls_pack_begin(s->p, s->samples, s->e);
}

/* Values of a sample for its field's figures. */
static void count_in(LsFigures *g, const LsDataField *f, const unsigned char *data, int64_t samples,
                     double *room)
{
    const LsArray a = {.data = data, .type = f->type};
    const int64_t per = g->channels * g->run;
    for (int64_t s = 0; s < samples && g->channels > 0; s++) {
        for (int64_t i = 0; i < per; i++)
            room[i] = ls_array_real(&a, s * per + i);
        ls_figures_add(g, room);
    }
}

static bool copy_one(Arrays *s, const LsArrayFile *x, int k)
{
    LsColumn *c = &s->p->column[k];
    const int64_t n = x->array.dim[0], part = c->each < PART ? PART / c->each : 1,
                  per = c->each / ls_element_bytes(c->field.type);
    unsigned char *room = malloc((size_t)(part * c->each));
    double *values = s->counted[k] ? malloc((size_t)per * sizeof *values) : NULL;
    bool ok = (room && (values || !s->counted[k])) || ls_fail(s->e, LS_EXIT_FAIL, "out of memory");
    for (int64_t at = 0; ok && at < n; at += part) {
        const int64_t now = n - at < part ? n - at : part;
        ls_array_file_rows(x, at, now, room);
        if (s->counted[k])
            count_in(&s->figures[k], &c->field, room, now, values);
        ok = ls_pack_append(s->p, c, room, now, s->e);
        if (s->o->progress != NULL)
            s->o->progress(s->o->progress_to, s->p->samples + (k == s->fields - 1 ? at : 0),
                           s->samples);
    }
    free(room);
    free(values);
    return ok;
}

static bool copy_all(Arrays *s)
{
    for (int i = 0; i < s->sources; i++) {
        for (int k = 0; k < s->fields; k++)
            if (!copy_one(s, &s->array[i][k], k))
                return false;
        s->p->samples += s->array[i][0].array.dim[0];
    }
    for (int k = 0; k < s->fields; k++)
        if (s->counted[k])
            ls_figures_set(&s->figures[k], &s->p->column[k].field);
    return true;
}

static void close_all(Arrays *s)
{
    for (int i = 0; s->array && i < s->sources; i++)
        for (int k = 0; k < LS_PACK_COLUMNS; k++)
            if (s->array[i][k].name != NULL)
                ls_array_file_close(&s->array[i][k]);
    for (int k = 0; k < LS_PACK_COLUMNS; k++)
        ls_figures_close(&s->figures[k]);
    while (s->files > 0)
        ls_file_unmap(&s->file[--s->files]);
    free(s->array);
    free(s->file);
}

bool ls_pack_arrays(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e)
{
    Arrays s = {.o = o, .p = p, .e = e};
    (void)r;
    const bool ok = ls_pack_end(p, open_all(&s) && columns(&s) && copy_all(&s), e);
    close_all(&s);
    return ok;
}
