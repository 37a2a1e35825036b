/* dataset/packed_writer.c -- see the header. */
#include "dataset/packed_writer.h"

#include "runtime/base/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of the character at p; 0: it is none. */
static int character(const unsigned char *p)
{
    const int n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
    for (int k = 1; k < n; k++)
        if ((p[k] & 0xc0) != 0x80)
            return 0;
    const bool other = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)
                       || (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f);
    return other ? 0 : n;
}

bool ls_is_utf8(const char *s)
{
    for (const unsigned char *p = (const unsigned char *)s; *p;) {
        const int n = character(p);
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

/* Locks the temporary file, which must still have its name then. */
static bool hold(LsPack *p, LsError *e)
{
    struct stat own, named;
    for (int try = 0; try < 100; try++) {
        p->lock = open(p->out.tmp, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (p->lock < 0)
            return ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", p->out.tmp, strerror(errno));
        if (!ls_file_hold(p->lock))
            break;
        if (fstat(p->lock, &own) == 0 && stat(p->out.tmp, &named) == 0
            && own.st_ino == named.st_ino)
            return true;
        close(p->lock);         /* another writer has just given it the last name */
    }
    close(p->lock);
    p->lock = -1;
    return ls_fail(e, LS_EXIT_FAIL, "%s: another process writes it now", p->out.path);
}

bool ls_pack_open(LsPack *p, const char *path, LsError *e)
{
    p->columns = 0;
    p->samples = 0;
    p->source = NULL;
    p->sources = 0;
    p->lock = -1;
    if (!ls_out_place(&p->out, path, e))
        return false;
    if (p->out.through)
        return ls_fail(e, LS_EXIT_FAIL,
                       "%s: a packed data set needs a regular file, which is mapped", path);
    if (!hold(p, e))
        return false;
    if (ls_out_open(&p->out, path, e))
        return true;
    close(p->lock);
    return false;
}

LsColumn *ls_pack_column(LsPack *p, const LsDataField *field, LsError *e)
{
    if (p->columns == LS_PACK_COLUMNS) {
        ls_fail(e, LS_EXIT_DATA, "%s: more than %d fields", p->out.path, LS_PACK_COLUMNS);
        return NULL;
    }
    LsColumn *c = &p->column[p->columns++];
    *c = (LsColumn){.field = *field, .each = ls_element_bytes(field->type)};
    c->field.bytes = 0;
    for (int k = 0; k < field->rank; k++)
        if (__builtin_mul_overflow(c->each, field->dim[k], &c->each) || c->each <= 0) {
            ls_fail(e, LS_EXIT_DATA, "%s: '%s' has impossible samples", p->out.path, field->name);
            return NULL;
        }
    return c;
}

static int64_t aligned(int64_t n)
{
    return (n + LS_DATA_ALIGN - 1) / LS_DATA_ALIGN * LS_DATA_ALIGN;
}

bool ls_pack_begin(LsPack *p, int64_t samples, LsError *e)
{
    const int64_t most = INT64_C(1) << 60;
    int64_t at = LS_DATA_ALIGN, bytes;
    for (int k = 0; k < p->columns; k++) {
        LsColumn *c = &p->column[k];
        if (__builtin_mul_overflow(c->each, samples, &bytes) || bytes > most - at)
            return ls_fail(e, LS_EXIT_DATA, "%s: '%s' is too large", p->out.path, c->field.name);
        c->field.at = at;
        at = aligned(at + bytes);
    }
    return true;
}

static void put_at(LsOut *o, int64_t at, const unsigned char *data, int64_t n)
{
    while (n > 0 && !o->err) {
        const ssize_t done = pwrite(o->fd, data, (size_t)n, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            o->err = done < 0 ? errno : EIO;
            return;
        }
        data += done;
        at += done;
        n -= done;
    }
}

/* Keeps the checksum of a block that is complete. */
static bool keep_sum(LsColumn *c)
{
    if (c->sums == c->room) {
        const int64_t room = c->room > 0 ? 2 * c->room : 64;
        uint32_t *more = realloc(c->sum, (size_t)room * sizeof *more);
        if (more == NULL)
            return false;
        c->sum = more;
        c->room = room;
    }
    c->sum[c->sums++] = c->open;
    c->open = 0;
    return true;
}

bool ls_pack_append(LsPack *p, LsColumn *c, const void *data, int64_t samples, LsError *e)
{
    const unsigned char *from = data;
    int64_t left = samples * c->each;
    if (*ls_interrupt_asked() != 0)
        return ls_fail(e, LS_EXIT_INTERRUPTED, "interrupted; %s is as it was", p->out.path);
    put_at(&p->out, c->field.at + c->field.bytes, from, left);
    if (p->out.err)
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", p->out.tmp, strerror(p->out.err));
    while (left > 0) {
        const int64_t room = LS_DATA_BLOCK - c->field.bytes % LS_DATA_BLOCK,
                      n = left < room ? left : room;
        c->open = ls_block_sum(c->open, from, (size_t)n);
        c->field.bytes += n;
        from += n;
        left -= n;
        if (n == room && !keep_sum(c))
            return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    }
    return true;
}

/* ---- the description ---- */

static void put_texts(LsText *t, const char *key, const LsTexts *list)
{
    ls_text_put(t, ", \"%s\": [", key);
    for (int64_t k = 0; k < list->n; k++) {
        ls_text_put(t, "%s", k > 0 ? ", " : "");
        ls_text_string(t, list->text[k]);
    }
    ls_text_put(t, "]");
}

static void put_figures(LsText *t, const char *key, const double *v, int64_t n)
{
    ls_text_put(t, ", \"%s\": [", key);
    for (int64_t k = 0; k < n; k++)
        ls_text_put(t, "%s%.17g", k > 0 ? ", " : "", v[k]);
    ls_text_put(t, "]");
}

static void put_columns(LsText *t, const LsDataField *f)
{
    ls_text_put(t, ", \"columns\": [");
    for (int64_t k = 0; k < f->columns; k++) {
        ls_text_put(t, "%s{\"name\": ", k > 0 ? ", " : "");
        ls_text_string(t, f->column[k].name);
        if (f->column[k].categories.n > 0)
            put_texts(t, "categories", &f->column[k].categories);
        ls_text_put(t, "%s}", f->column[k].one_hot ? ", \"one_hot\": true" : "");
    }
    ls_text_put(t, "]");
}

/* A path may have any bytes, a description only UTF-8. */
static void put_path(LsText *t, const char *path)
{
    char text[LS_PATH];
    snprintf(text, sizeof text, "%s", path);
    for (char *c = text; *c && !ls_is_utf8(text); c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    ls_text_string(t, text);
}

static void put_field(LsText *t, const LsDataField *f)
{
    char text[LS_ALPHABET_TEXT];
    ls_text_put(t, "{\"name\": ");
    ls_text_string(t, f->name);
    ls_text_put(t, ", \"role\": \"%s\", \"kind\": \"%s\", \"type\": \"%s\", \"shape\": [",
                f->is_label ? "label" : "input", ls_field_kind_name[f->kind],
                ls_element_name(f->type));
    for (int k = 0; k < f->rank; k++)
        ls_text_put(t, "%s%" PRId64, k > 0 ? ", " : "", f->dim[k]);
    ls_text_put(t, "], \"offset\": %" PRId64 ", \"bytes\": %" PRId64, f->at, f->bytes);
    if (f->mean != NULL) {
        put_figures(t, "mean", f->mean, f->figures);
        put_figures(t, "std", f->std, f->figures);
    }
    if (f->classes.n > 0)
        put_texts(t, "classes", &f->classes);
    if (ls_alphabet_count(&f->alphabet) > 0)
        ls_text_put(t, ", \"alphabet\": \"%s\"", ls_alphabet_text(&f->alphabet, text));
    if (f->columns > 0)
        put_columns(t, f);
    ls_text_put(t, "}");
}

/* ---- the end of the file ---- */

static void le(unsigned char *p, int n, uint64_t v)
{
    for (int k = 0; k < n; k++)
        p[k] = (unsigned char)(v >> 8 * k);
}

/* Bytes that are written one after the other, with their checksum. */
typedef struct Summed {
    LsOut *out;
    uint32_t sum;
} Summed;

static void put_summed(void *to, const void *data, size_t n)
{
    Summed *s = to;
    ls_out_write(s->out, data, n);
    s->sum = ls_block_sum(s->sum, data, n);
}

static void put_description(LsPack *p, Summed *to)
{
    char room[2048];
    LsText t = {room, 0, sizeof room, put_summed, to};
    ls_text_put(&t, "{\"samples\": %" PRId64 ", \"fields\": [", p->samples);
    for (int k = 0; k < p->columns; k++) {
        ls_text_put(&t, "%s", k > 0 ? ",\n " : "\n ");
        put_field(&t, &p->column[k].field);
    }
    ls_text_put(&t, "]");
    if (p->sources > 0) {
        ls_text_put(&t, ",\n \"sources\": [");
        for (int k = 0; k < p->sources; k++) {
            ls_text_put(&t, "%s", k > 0 ? ", " : "");
            put_path(&t, p->source[k]);
        }
        ls_text_put(&t, "]");
    }
    ls_text_put(&t, "}\n");
    ls_text_flush(&t);
}

static bool put_sums(LsPack *p, Summed *to)
{
    for (int k = 0; k < p->columns; k++) {
        LsColumn *c = &p->column[k];
        if (c->field.bytes % LS_DATA_BLOCK != 0 && !keep_sum(c))
            return false;
        for (int64_t i = 0; i < c->sums; i++) {
            unsigned char sum[4];
            le(sum, 4, c->sum[i]);
            put_summed(to, sum, 4);
        }
    }
    return true;
}

static bool put_end(LsPack *p)
{
    LsOut *o = &p->out;
    unsigned char head[LS_DATA_HEAD] = LS_DATA_MAGIC;
    Summed sums = {o, 0}, text = {o, 0};
    const LsColumn *last = &p->column[p->columns - 1];
    o->at = aligned(last->field.at + last->field.bytes);
    if (lseek(o->fd, o->at, SEEK_SET) < 0)
        o->err = errno;
    const int64_t at_sums = o->at;
    if (!put_sums(p, &sums))
        return false;
    const int64_t at_text = o->at;
    put_description(p, &text);
    le(head + 8, 4, LS_DATA_VERSION);
    le(head + 12, 4, text.sum);
    le(head + 16, 8, (uint64_t)at_text);
    le(head + 24, 8, (uint64_t)(o->at - at_text));
    le(head + 32, 8, (uint64_t)o->at);
    le(head + 40, 8, (uint64_t)at_sums);
    le(head + 48, 4, sums.sum);
    le(head + LS_DATA_HEAD - 4, 4, ls_block_sum(0, head, LS_DATA_HEAD - 4));
    ls_out_patch(o, 0, head, sizeof head);
    return true;
}

bool ls_pack_end(LsPack *p, bool ok, LsError *e)
{
    ok = ok && (put_end(p) || ls_fail(e, LS_EXIT_FAIL, "out of memory"));
    if (!ok && !p->out.err)
        p->out.err = ECANCELED; /* so that nothing is left of it */
    LsError of_file = {0};
    const bool done = ls_out_commit(&p->out, &of_file);
    if (ok && !done)
        *e = of_file;
    close(p->lock);
    for (int k = 0; k < p->columns; k++)
        free(p->column[k].sum);
    return ok && done;
}
