/* runtime/data/data_file.c -- see the header. */
#include "runtime/base/checksum.h"
#include "runtime/data/data_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const ls_field_kind_name[LS_FIELD_KINDS] = {[LS_FIELD_ARRAY] = "array",
                                                        [LS_FIELD_PICTURE] = "picture",
                                                        [LS_FIELD_TOKENS] = "tokens",
                                                        [LS_FIELD_CHARACTERS] = "characters"};

static uint64_t le(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int k = n; k-- > 0;)
        v = v << 8 | p[k];
    return v;
}

bool ls_data_file_is(const LsFile *f)
{
    return f->size >= 8 && memcmp(f->data, LS_DATA_MAGIC, 8) == 0;
}

/* ---- lists ---- */

static bool room_for(void *list, int64_t n, size_t each)
{
    void **to = list;
    if (n > 0 && (n & (n - 1)) != 0)
        return true; /* grown in powers of two */
    void *p = realloc(*to, (size_t)(n > 0 ? 2 * n : 1) * each);
    if (p != NULL)
        *to = p;
    return p != NULL;
}

static char *string(LsJson *j, char *room, size_t *used)
{
    char *to = room + *used;
    if (!ls_json_string(j, to, (size_t)(j->end - j->p) + 1))
        return NULL;
    *used += strlen(to) + 1;
    return to;
}

bool ls_texts_read(LsTexts *to, LsJson *j, char *room, size_t *used, bool *memory)
{
    free(to->text);
    *to = (LsTexts){0};
    if (!ls_json_char(j, '['))
        return false;
    if (ls_json_char(j, ']'))
        return true;
    do {
        if (!room_for(&to->text, to->n, sizeof *to->text)) {
            *memory = true;
            return false;
        }
        if ((to->text[to->n] = string(j, room, used)) == NULL)
            return false;
        to->n++;
    } while (ls_json_char(j, ','));
    return ls_json_char(j, ']');
}

static bool number(LsJson *j, double *v)
{
    char text[40], *stop;
    size_t n = 0;
    if (ls_json_char(j, ' '))
        return false; /* passes over blanks; there is none behind them */
    while (j->p < j->end && n < sizeof text - 1 && *j->p && strchr("+-.0123456789eE", *j->p))
        text[n++] = *j->p++;
    text[n] = '\0';
    *v = strtod(text, &stop);
    return n > 0 && *stop == '\0' && isfinite(*v);
}

bool ls_numbers_read(double **to, int64_t *n, LsJson *j, bool *memory)
{
    free(*to);
    *to = NULL;
    *n = 0;
    if (!ls_json_char(j, '['))
        return false;
    if (ls_json_char(j, ']'))
        return true;
    do {
        if (!room_for(to, *n, sizeof **to)) {
            *memory = true;
            return false;
        }
        if (!number(j, &(*to)[*n]))
            return false;
        ++*n;
    } while (ls_json_char(j, ','));
    return ls_json_char(j, ']');
}

/* ---- the description ---- */

typedef struct Reader {
    LsDataFile *d;
    LsJson j;
    bool memory;
} Reader;

typedef bool (*Member)(Reader *r, const char *key, void *to);

static bool object(Reader *r, Member member, void *to)
{
    char key[32];
    if (!ls_json_char(&r->j, '{'))
        return false;
    if (ls_json_char(&r->j, '}'))
        return true;
    do {
        if (!ls_json_string(&r->j, key, sizeof key) || !ls_json_char(&r->j, ':')
            || !member(r, key, to))
            return false;
    } while (ls_json_char(&r->j, ','));
    return ls_json_char(&r->j, '}');
}

static bool texts(Reader *r, LsTexts *to)
{
    return ls_texts_read(to, &r->j, r->d->text, &r->d->used, &r->memory);
}

static bool word(Reader *r, char to[16])
{
    return ls_json_string(&r->j, to, 16);
}

static bool is_true(Reader *r, bool *to)
{
    *to = ls_json_char(&r->j, 't');
    r->j.p -= *to;
    return ls_json_skip(&r->j);
}

static bool column_member(Reader *r, const char *key, void *to)
{
    LsDataColumn *c = to;
    if (strcmp(key, "name") == 0)
        return (c->name = string(&r->j, r->d->text, &r->d->used)) != NULL;
    if (strcmp(key, "categories") == 0)
        return texts(r, &c->categories);
    if (strcmp(key, "one_hot") == 0)
        return is_true(r, &c->one_hot);
    return ls_json_skip(&r->j);
}

static bool columns(Reader *r, LsDataField *f)
{
    if (f->columns > 0 || !ls_json_char(&r->j, '['))
        return false;
    do {
        if (!room_for(&f->column, f->columns, sizeof *f->column)) {
            r->memory = true;
            return false;
        }
        LsDataColumn *c = &f->column[f->columns++];
        *c = (LsDataColumn){0};
        if (!object(r, column_member, c) || c->name == NULL)
            return false;
    } while (ls_json_char(&r->j, ','));
    return ls_json_char(&r->j, ']');
}

static bool shape(Reader *r, LsDataField *f)
{
    f->rank = 0;
    if (!ls_json_char(&r->j, '['))
        return false;
    if (ls_json_char(&r->j, ']'))
        return true;
    do {
        if (f->rank == LS_TENSOR_RANK - 1 || !ls_json_int(&r->j, &f->dim[f->rank++]))
            return false;
    } while (ls_json_char(&r->j, ','));
    return ls_json_char(&r->j, ']');
}

static bool element_type(Reader *r, LsElement *to)
{
    char name[16];
    if (!word(r, name))
        return false;
    for (int k = LS_F32; k <= LS_B8; k++)
        if (strcmp(name, ls_element_name((LsElement)k)) == 0)
            return *to = (LsElement)k, true;
    return false;
}

static bool kind(Reader *r, LsFieldKind *to)
{
    char name[16];
    if (!word(r, name))
        return false;
    for (int k = 0; k < LS_FIELD_KINDS; k++)
        if (strcmp(name, ls_field_kind_name[k]) == 0)
            return *to = (LsFieldKind)k, true;
    return false;
}

static bool alphabet(Reader *r, LsAlphabet *to)
{
    char text[LS_ALPHABET_TEXT];
    return ls_json_string(&r->j, text, sizeof text) && ls_alphabet_parse(to, text, strlen(text));
}

static bool figures(Reader *r, LsDataField *f, double **to)
{
    int64_t n;
    if (!ls_numbers_read(to, &n, &r->j, &r->memory) || (f->figures > 0 && n != f->figures))
        return false;
    f->figures = n;
    return true;
}

static bool field_member(Reader *r, const char *key, void *to)
{
    LsDataField *f = to;
    char role[16];
    if (strcmp(key, "name") == 0)
        return (f->name = string(&r->j, r->d->text, &r->d->used)) != NULL;
    if (strcmp(key, "role") == 0)
        return word(r, role)
               && ((f->is_label = strcmp(role, "label") == 0) || strcmp(role, "input") == 0);
    if (strcmp(key, "kind") == 0)
        return kind(r, &f->kind);
    if (strcmp(key, "type") == 0)
        return element_type(r, &f->type);
    if (strcmp(key, "shape") == 0)
        return shape(r, f);
    if (strcmp(key, "offset") == 0)
        return ls_json_int(&r->j, &f->at);
    if (strcmp(key, "bytes") == 0)
        return ls_json_int(&r->j, &f->bytes);
    if (strcmp(key, "classes") == 0)
        return texts(r, &f->classes);
    if (strcmp(key, "mean") == 0)
        return figures(r, f, &f->mean);
    if (strcmp(key, "std") == 0)
        return figures(r, f, &f->std);
    if (strcmp(key, "alphabet") == 0)
        return alphabet(r, &f->alphabet);
    if (strcmp(key, "columns") == 0)
        return columns(r, f);
    return ls_json_skip(&r->j);
}

static bool fields(Reader *r)
{
    LsDataFile *d = r->d;
    if (d->fields > 0 || !ls_json_char(&r->j, '['))
        return false;
    do {
        if (!room_for(&d->field, d->fields, sizeof *d->field)) {
            r->memory = true;
            return false;
        }
        LsDataField *f = &d->field[d->fields++];
        *f = (LsDataField){.at = -1, .bytes = -1};
        if (!object(r, field_member, f))
            return false;
    } while (ls_json_char(&r->j, ','));
    return ls_json_char(&r->j, ']');
}

static bool file_member(Reader *r, const char *key, void *to)
{
    LsDataFile *d = to;
    if (strcmp(key, "samples") == 0)
        return ls_json_int(&r->j, &d->samples);
    if (strcmp(key, "fields") == 0)
        return fields(r);
    if (strcmp(key, "sources") == 0)
        return texts(r, &d->sources);
    return ls_json_skip(&r->j);
}

/* ---- what it says fits the file ---- */

/* The bytes of all samples; -1: more than a number holds. */
static int64_t bytes_of(const LsDataFile *d, const LsDataField *f)
{
    int64_t n = ls_element_bytes(f->type);
    for (int k = 0; k < f->rank; k++)
        if (__builtin_mul_overflow(n, f->dim[k], &n))
            return -1;
    return __builtin_mul_overflow(n, d->samples, &n) ? -1 : n;
}

static bool field_is_sound(const LsDataFile *d, const LsDataField *f)
{
    const bool stream = f->kind == LS_FIELD_TOKENS || f->kind == LS_FIELD_CHARACTERS;
    if (f->name == NULL || f->bytes <= 0 || f->bytes != bytes_of(d, f) || f->at < LS_DATA_HEAD
        || f->at % LS_DATA_ALIGN != 0 || f->at > d->sums || f->bytes > d->sums - f->at)
        return false;
    if ((f->mean != NULL) != (f->std != NULL) || (f->mean != NULL && f->rank == 0))
        return false;
    for (int64_t k = 0; k < f->figures && f->std != NULL; k++)
        if (f->std[k] < 0)
            return false;
    return (f->kind != LS_FIELD_PICTURE || (f->rank == 3 && f->type == LS_U8))
           && (f->mean == NULL || f->figures == f->dim[0]) && (!stream || f->rank == 0)
           && (f->kind != LS_FIELD_CHARACTERS
               || (f->type == LS_U8 && ls_alphabet_count(&f->alphabet) > 0));
}

static bool is_sound(LsDataFile *d)
{
    bool ok = d->samples > 0 && d->fields > 0;
    for (int64_t k = 0; ok && k < d->fields; k++) {
        ok = field_is_sound(d, &d->field[k]);
        d->blocks += ok ? (d->field[k].bytes - 1) / LS_DATA_BLOCK + 1 : 0;
    }
    return ok;
}

static bool damaged(const LsFile *f, const char *what, LsError *e)
{
    return ls_fail(e, LS_EXIT_DATA, "%s: damaged: %s", f->path, what);
}

static bool head_fits(const LsFile *f, LsError *e)
{
    if (!ls_data_file_is(f))
        return ls_fail(e, LS_EXIT_DATA, "%s: no packed data set (lowerset data pack makes them)",
                       f->path);
    if (f->size < LS_DATA_ALIGN)
        return ls_fail(e, LS_EXIT_DATA, "%s: truncated: %zu bytes are fewer than the head's",
                       f->path, f->size);
    if (le(f->data + 8, 4) != LS_DATA_VERSION)
        return ls_fail(e, LS_EXIT_DATA, "%s: a packed data set of version %u; version %d is read",
                       f->path, (unsigned)le(f->data + 8, 4), LS_DATA_VERSION);
    if (ls_crc32(0, f->data, LS_DATA_HEAD - 4) != le(f->data + LS_DATA_HEAD - 4, 4))
        return damaged(f, "the checksum of its head is wrong", e);
    const uint64_t size = le(f->data + 32, 8);
    if (size != f->size)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: %s: it was written with %" PRIu64 " bytes, and has %zu", f->path,
                       f->size < size ? "truncated" : "damaged", size, f->size);
    return true;
}

bool ls_data_file_open(LsDataFile *d, const LsFile *f, LsError *e)
{
    *d = (LsDataFile){.f = f};
    if (!head_fits(f, e))
        return false;
    const uint64_t at = le(f->data + 16, 8), n = le(f->data + 24, 8), sums = le(f->data + 40, 8);
    if (at > f->size || n > f->size - at || sums > at)
        return damaged(f, "its description lies outside", e);
    if (ls_crc32(0, f->data + at, n) != le(f->data + 12, 4))
        return damaged(f, "the checksum of its description is wrong", e);
    if (ls_crc32(0, f->data + sums, at - sums) != le(f->data + 48, 4))
        return damaged(f, "the checksum of its checksums is wrong", e);
    d->sums = (int64_t)sums;
    if ((d->text = malloc(n + 1)) == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    Reader r = {.d = d, .j = {(const char *)f->data + at, (const char *)f->data + at + n}};
    const bool read = object(&r, file_member, d);
    if (r.memory)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    if (!read || !is_sound(d) || d->blocks > (int64_t)(at - sums) / 4)
        return damaged(f, "its description does not fit it", e);
    return true;
}

void ls_data_file_close(LsDataFile *d)
{
    for (int64_t k = 0; k < d->fields; k++) {
        LsDataField *f = &d->field[k];
        for (int64_t c = 0; c < f->columns; c++)
            free(f->column[c].categories.text);
        free(f->column);
        free(f->classes.text);
        free(f->mean);
        free(f->std);
    }
    free(d->field);
    free(d->sources.text);
    free(d->text);
    *d = (LsDataFile){0};
}

LsArray ls_data_file_array(const LsDataFile *d, const LsDataField *f)
{
    LsArray a = {.data = d->f->data + f->at,
                 .type = f->type,
                 .rank = f->rank + 1,
                 .dim = {d->samples},
                 .count = f->bytes / ls_element_bytes(f->type)};
    memcpy(a.dim + 1, f->dim, (size_t)f->rank * sizeof *f->dim);
    return a;
}
