/* runtime/data/bind_data_file.c -- binds the fields of a packed data set to inputs: by name, as the
 * members of an NPZ. The only field of labels is the target, whatever it is called; a program with
 * one input takes the only input field, or the first one of pictures or input_ids. */
#include "runtime/data/dataset.h"
#include "runtime/data/label_input.h"
#include "runtime/data/token_inputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t named(const LsDataFile *s, const char *name)
{
    for (int64_t k = 0; k < s->fields; k++)
        if (strcmp(s->field[k].name, name) == 0)
            return k;
    return -1;
}

/* The only field of that role; of several inputs the first one of pictures, or the tokens beside
 * their mask and positions. -1: none. */
static int64_t only_of(const LsDataFile *s, bool labels)
{
    int64_t found = -1, n = 0, first = -1;
    for (int64_t k = 0; k < s->fields; k++) {
        const LsDataField *f = &s->field[k];
        if (f->is_label != labels)
            continue;
        found = k;
        n++;
        if (first < 0 && (f->kind == LS_FIELD_PICTURE || strcmp(f->name, "input_ids") == 0))
            first = k;
    }
    return n == 1 ? found : labels ? -1 : first;
}

static int64_t inputs(const LsProgram *p)
{
    int64_t n = 0;
    for (uint32_t k = 0; k < p->ninput; k++)
        n += !p->input[k].is_label && p->input[k].usual == LS_USUAL_NONE;
    return n;
}

static int64_t field_for(const LsDataset *d, uint32_t k)
{
    const LsInput *in = &d->p->input[k];
    const LsDataFile *s = &d->stored;
    int64_t field = named(s, in->t.name);
    if (field < 0 && d->p->segments == k + 1)
        field = named(s, "segments");
    if (field >= 0)
        return field;
    if (in->is_label)
        return ls_label_inputs(d->p) == 1 ? only_of(s, true) : -1;
    return in->usual == LS_USUAL_NONE && inputs(d->p) == 1 ? only_of(s, false) : -1;
}

/* Names of classes go with labels of integers. */
static bool take_classes(LsDataset *d, uint32_t k, const LsFile *f, LsError *e)
{
    const LsTexts *c = &d->source[k].field->classes;
    const LsInput *in = &d->p->input[k];
    if (!in->is_label || c->n == 0 || in->t.type == LS_DT_REAL)
        return true;
    if (d->p->target.classes > 0 && c->n > d->p->target.classes)
        return ls_fail(e, LS_EXIT_DATA, "%s: %" PRId64 " classes, but the model has %" PRId64,
                       f->path, c->n, d->p->target.classes);
    d->classes = (LsClassNames){c->n, (const char *const *)c->text};
    return true;
}

static bool bind(LsDataset *d, uint32_t k, const LsDataField *field, const LsFile *f, LsError *e)
{
    LsSource *s = &d->source[k];
    s->path = f->path;
    s->field = field;
    s->array = ls_data_file_array(&d->stored, field);
    return ls_dataset_fit(d, k, e) && take_classes(d, k, f, e);
}

static bool bind_stream(LsDataset *d, const LsDataField *field, const LsFile *f, LsError *e)
{
    if (field->kind == LS_FIELD_TOKENS)
        return ls_stream_bind(d, f->path, ls_data_file_array(&d->stored, field), e);
    d->characters = field->alphabet;
    return ls_text_bind(d, f->path, f->data + field->at, (size_t)field->bytes, e);
}

static void names_of(const LsDataFile *s, char *text, size_t n)
{
    size_t fill = 0;
    for (int64_t k = 0; k < s->fields && fill < n; k++)
        fill += (size_t)snprintf(text + fill, n - fill, "%s'%.40s'", k > 0 ? ", " : "",
                                 s->field[k].name);
}

bool ls_data_file_bind(LsDataset *d, const LsFile *f, int only, LsError *e)
{
    char names[200];
    bool any = false;
    if (d->stored.f != NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "%s: a second packed data set; its samples follow the others' with "
                       "--data FILE+FILE",
                       f->path);
    if (!ls_data_file_open(&d->stored, f, e))
        return false;
    const LsFieldKind kind = d->stored.field[0].kind;
    if (only < 0 && (kind == LS_FIELD_TOKENS || kind == LS_FIELD_CHARACTERS))
        return bind_stream(d, &d->stored.field[0], f, e);
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        const bool free = !d->source[k].path && (only < 0 || k == (uint32_t)only)
                          && !(d->p->input[k].is_label && d->label_is_input);
        const int64_t field = free ? field_for(d, k) : -1;
        if (field >= 0 && !bind(d, k, &d->stored.field[field], f, e))
            return false;
        any |= field >= 0;
    }
    names_of(&d->stored, names, sizeof names);
    return any
           || ls_fail(e, LS_EXIT_DATA,
                      "%s: no field is called like an input of the program; it has %s", f->path,
                      names);
}
