/* dataset/pack_tokens.c -- streams: tokens of .bin files, and texts by bytes or characters. Those
 * of several files follow each other. */
#include "dataset/pack_source.h"

#include "runtime/data/dataset.h"

#include <stdlib.h>
#include <string.h>

/* One value after the other, a MiB at a time. */
static bool append_all(const LsPackOptions *o, LsPack *p, LsColumn *c, const LsArray *a,
                       int64_t all, LsError *e)
{
    const int64_t part = LS_DATA_BLOCK / c->each;
    for (int64_t at = 0; at < a->count; at += part) {
        const int64_t n = a->count - at < part ? a->count - at : part;
        if (!ls_pack_append(p, c, a->data + at * c->each, n, e))
            return false;
        p->samples += n;
        if (o->progress != NULL)
            o->progress(o->progress_to, p->samples, all);
    }
    return true;
}

typedef struct Streams {
    LsFile *file;
    LsArray *array;
    int n;
    int64_t tokens;
} Streams;

static void close_all(Streams *s)
{
    while (s->n > 0)
        ls_file_unmap(&s->file[--s->n]);
    free(s->file);
    free(s->array);
}

static bool open_all(const LsPackOptions *o, Streams *s, bool text, LsError *e)
{
    s->file = calloc((size_t)o->sources, sizeof *s->file);
    s->array = calloc((size_t)o->sources, sizeof *s->array);
    if (s->file == NULL || s->array == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (int k = 0; k < o->sources; k++) {
        LsFile *f = &s->file[k];
        LsArray *a = &s->array[k];
        if (!ls_file_map(f, o->source[k], e))
            return false;
        s->n++;
        if (text)
            *a = (LsArray){f->data, LS_U8, false, 1, {(int64_t)f->size}, (int64_t)f->size};
        else if (!ls_tokens_read(a, f, o->raw, e))
            return false;
        if (a->type != s->array[0].type)
            return ls_fail(e, LS_EXIT_DATA, "%s has tokens of %s, and %s of %s", o->source[0],
                           ls_element_name(s->array[0].type), o->source[k],
                           ls_element_name(a->type));
        s->tokens += a->count;
    }
    return s->tokens > 0 || ls_fail(e, LS_EXIT_DATA, "%s: no tokens", o->source[0]);
}

static bool pack_stream(const LsPackOptions *o, LsPack *p, bool text, LsError *e)
{
    Streams s = {0};
    LsDataField field = {.name = (char *)(o->input_name ? o->input_name : "tokens"),
                         .kind = o->characters ? LS_FIELD_CHARACTERS : LS_FIELD_TOKENS};
    bool ok = open_all(o, &s, text, e);
    field.type = ok ? s.array[0].type : LS_U8;
    for (int k = 0; ok && o->characters && k < s.n; k++)
        for (int64_t i = 0; i < s.array[k].count; i++)
            ls_alphabet_add(&field.alphabet, s.array[k].data[i]);
    LsColumn *c = ok ? ls_pack_column(p, &field, e) : NULL;
    ok = c != NULL && ls_pack_begin(p, s.tokens, e);
    for (int k = 0; ok && k < s.n; k++)
        ok = append_all(o, p, c, &s.array[k], s.tokens, e);
    close_all(&s);
    return ls_pack_end(p, ok, e);
}

bool ls_pack_tokens(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e)
{
    (void)r;
    return pack_stream(o, p, false, e);
}

bool ls_pack_text(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e)
{
    (void)r;
    return pack_stream(o, p, true, e);
}
