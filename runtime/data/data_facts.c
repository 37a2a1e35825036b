/* runtime/data/data_facts.c -- see the header. */
#include "runtime/data/data_facts.h"

#include "runtime/data/label_input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

typedef struct Grown {
    char *text;
    size_t n, cap;
    bool failed;
} Grown;

static void put_grown(void *to, const void *data, size_t n)
{
    Grown *g = to;
    if (g->n + n + 1 > g->cap) {
        const size_t cap = 2 * (g->n + n + 1);
        char *more = realloc(g->text, cap);
        g->failed |= more == NULL;
        if (more == NULL)
            return;
        g->text = more;
        g->cap = cap;
    }
    memcpy(g->text + g->n, data, n);
    g->n += n;
    g->text[g->n] = '\0';
}

static void put_texts(LsText *t, int64_t n, const char *const *text)
{
    ls_text_put(t, "[");
    for (int64_t k = 0; k < n; k++) {
        ls_text_put(t, "%s", k > 0 ? ", " : "");
        ls_text_string(t, text[k]);
    }
    ls_text_put(t, "]");
}

static void put_numbers(LsText *t, const char *key, int64_t n, const double *v)
{
    ls_text_put(t, ", \"%s\": [", key);
    for (int64_t k = 0; k < n; k++)
        ls_text_put(t, "%s%.17g", k > 0 ? ", " : "", v[k]);
    ls_text_put(t, "]");
}

static void put_columns(LsText *t, const LsDataField *f)
{
    ls_text_put(t, "[");
    for (int64_t k = 0; k < f->columns; k++) {
        const LsDataColumn *c = &f->column[k];
        ls_text_put(t, "%s{\"name\": ", k > 0 ? ", " : "");
        ls_text_string(t, c->name);
        if (c->categories.n > 0) {
            ls_text_put(t, ", \"categories\": ");
            put_texts(t, c->categories.n, (const char *const *)c->categories.text);
        }
        ls_text_put(t, "%s}", c->one_hot ? ", \"one_hot\": true" : "");
    }
    ls_text_put(t, "]");
}

static bool says(const LsDataField *f)
{
    return f && !f->is_label && (f->mean || f->columns > 0);
}

static bool put_inputs(LsText *t, const LsDataset *d)
{
    int n = 0;
    ls_text_put(t, "\"inputs\": [");
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        const LsDataField *f = d->source[k].field;
        if (!says(f))
            continue;
        ls_text_put(t, "%s{\"name\": ", n++ > 0 ? ", " : "");
        ls_text_string(t, d->p->input[k].t.name);
        if (f->mean) {
            put_numbers(t, "mean", f->figures, f->mean);
            put_numbers(t, "std", f->figures, f->std);
        }
        if (f->columns > 0) {
            ls_text_put(t, ", \"columns\": ");
            put_columns(t, f);
        }
        ls_text_put(t, "}");
    }
    ls_text_put(t, "]");
    return n > 0;
}

bool ls_facts_of(const LsDataset *d, char **text, LsError *e)
{
    char room[512];
    Grown g = {0};
    LsText t = {room, 0, sizeof room, put_grown, &g};
    ls_text_put(&t, "{");
    if (d->classes.n > 0) {
        ls_text_put(&t, "\"classes\": ");
        put_texts(&t, d->classes.n, d->classes.name);
        ls_text_put(&t, ", ");
    }
    const bool any = put_inputs(&t, d) || d->classes.n > 0;
    ls_text_put(&t, "}");
    ls_text_flush(&t);
    if (g.failed || !any) {
        free(g.text);
        g.text = NULL;
    }
    *text = g.text;
    return !g.failed || ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

/* ---- reading ---- */

typedef struct Facts {
    LsDataset *d;
    LsJson j;
    size_t used; /* of d->names_text */
    bool memory;
    LsError *e;
} Facts;

static bool damaged(Facts *f)
{
    return f->memory ? ls_fail(f->e, LS_EXIT_FAIL, "out of memory")
                     : ls_fail(f->e, LS_EXIT_DATA,
                               "what the checkpoint says of its data cannot be "
                               "read");
}

static int64_t find(const LsTexts *in, const char *name)
{
    for (int64_t k = 0; k < in->n; k++)
        if (strcmp(in->text[k], name) == 0)
            return k;
    return -1;
}

/* The file's class c is the model's map[c]. */
static bool map_classes(LsDataset *d, LsError *e)
{
    const LsClassNames own = d->classes;
    LsSource *s = &d->source[ls_label_input(d->p)];
    bool same = own.n <= d->names.n;
    d->classes = (LsClassNames){d->names.n, (const char *const *)d->names.text};
    if (own.n == 0)
        return true;
    free(d->map);
    if ((d->map = malloc((size_t)own.n * sizeof *d->map)) == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (int64_t c = 0; c < own.n; c++) {
        d->map[c] = find(&d->names, own.name[c]);
        if (d->map[c] < 0)
            return ls_fail(e, LS_EXIT_DATA,
                           "%s: class '%s' is not one of the %" PRId64
                           " that the model was trained on",
                           s->path, own.name[c], d->names.n);
        same &= d->map[c] == c;
    }
    s->map = same ? NULL : d->map;
    s->nmap = own.n;
    return true;
}

static bool take_classes(Facts *f)
{
    LsDataset *d = f->d;
    if (d->names.text != NULL)          /* which d->classes points into */
        return damaged(f);
    return (ls_texts_read(&d->names, &f->j, d->names_text, &f->used, &f->memory) || damaged(f))
           && (d->names.n == 0 || map_classes(d, f->e));
}

static uint32_t input_named(const LsDataset *d, const char *name)
{
    uint32_t k = 0;
    while (k < d->p->ninput && strcmp(d->p->input[k].t.name, name) != 0)
        k++;
    return k;
}

static bool same_columns(const LsDataset *d, uint32_t k, const char *from, size_t n, LsError *e)
{
    const LsDataField *field = d->source[k].field;
    char room[512];
    Grown g = {0};
    LsText t = {room, 0, sizeof room, put_grown, &g};
    if (field == NULL || field->columns == 0)
        return true;
    put_columns(&t, field);
    ls_text_flush(&t);
    const bool same = !g.failed && g.n == n && memcmp(g.text, from, n) == 0;
    free(g.text);
    return same
           || ls_fail(e, LS_EXIT_DATA,
                      "%s: other columns or categories than the model was trained "
                      "on; lowerset data pack --like=FILE.lsd takes those of the training data",
                      d->source[k].path);
}

typedef struct Input {
    uint32_t k;
    double *mean, *std;
    int64_t means, stds;
} Input;

static bool input_member(Facts *f, Input *in, char *key, size_t room)
{
    if (!ls_json_string(&f->j, key, room) || !ls_json_char(&f->j, ':'))
        return damaged(f);
    if (strcmp(key, "name") == 0) {
        if (!ls_json_string(&f->j, key, room))
            return damaged(f);
        in->k = input_named(f->d, key);
        return true;
    }
    if (strcmp(key, "mean") == 0)
        return ls_numbers_read(&in->mean, &in->means, &f->j, &f->memory) || damaged(f);
    if (strcmp(key, "std") == 0)
        return ls_numbers_read(&in->std, &in->stds, &f->j, &f->memory) || damaged(f);
    while (f->j.p < f->j.end && *f->j.p == ' ')
        f->j.p++;
    const char *from = f->j.p;
    if (!ls_json_skip(&f->j))
        return damaged(f);
    return strcmp(key, "columns") != 0 || in->k >= f->d->p->ninput
           || same_columns(f->d, in->k, from, (size_t)(f->j.p - from), f->e);
}

static bool take_input(Facts *f, char *key, size_t room)
{
    Input in = {.k = f->d->p->ninput};
    bool ok = ls_json_char(&f->j, '{') || damaged(f);
    do
        ok = ok && input_member(f, &in, key, room);
    while (ok && ls_json_char(&f->j, ','));
    ok = ok && (ls_json_char(&f->j, '}') || damaged(f));
    if (ok && in.k < f->d->p->ninput && in.mean && in.std && in.means == in.stds)
        ok = ls_dataset_figures(f->d, in.k, in.mean, in.std, in.means, f->e);
    free(in.mean);
    free(in.std);
    return ok;
}

static bool take_inputs(Facts *f, char *key, size_t room)
{
    if (!ls_json_char(&f->j, '['))
        return damaged(f);
    if (ls_json_char(&f->j, ']'))
        return true;
    do {
        if (!take_input(f, key, room))
            return false;
    } while (ls_json_char(&f->j, ','));
    return ls_json_char(&f->j, ']') || damaged(f);
}

static bool take_facts(Facts *f, char *key, size_t room)
{
    if (!ls_json_char(&f->j, '{'))
        return damaged(f);
    do {
        if (!ls_json_string(&f->j, key, room) || !ls_json_char(&f->j, ':'))
            return damaged(f);
        const bool ok = strcmp(key, "classes") == 0  ? take_classes(f)
                        : strcmp(key, "inputs") == 0 ? take_inputs(f, key, room)
                                                     : ls_json_skip(&f->j) || damaged(f);
        if (!ok)
            return false;
    } while (ls_json_char(&f->j, ','));
    return ls_json_char(&f->j, '}') || damaged(f);
}

/* All parts, whose sources the whole has. */
static bool apply_parts(LsDataset *d, const char *text, LsError *e)
{
    for (int64_t k = 0; k < d->parts; k++)
        if (!ls_facts_apply(&d->part[k], text, e))
            return false;
    for (uint32_t k = 0; k < d->p->ninput; k++)
        d->source[k] = d->part[0].source[k];
    d->classes = d->part[0].classes;
    return true;
}

bool ls_facts_apply(LsDataset *d, const char *text, LsError *e)
{
    if (text == NULL)
        return true;
    if (d->parts > 0)
        return apply_parts(d, text, e);
    const size_t n = strlen(text), room = n + 1;
    char *key = malloc(room);
    d->names_text = malloc(room);
    Facts f = {.d = d, .j = {text, text + n}, .e = e};
    const bool ok = key && d->names_text ? take_facts(&f, key, room)
                                         : ls_fail(e, LS_EXIT_FAIL, "out of memory");
    free(key);
    return ok;
}
