/* dataset/csv_rows.c -- see the header. */
#include "dataset/csv_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The one of the three that is most often in the first line, outside of quotes. */
static char find_separator(const char *p, const char *end)
{
    static const char set[] = ",;\t";
    int64_t count[3] = {0};
    bool quoted = false;
    for (; p < end && (quoted || (*p != '\n' && *p != '\r')); p++) {
        quoted ^= *p == '"';
        const char *at = !quoted && *p ? strchr(set, *p) : NULL;
        if (at != NULL)
            count[at - set]++;
    }
    return count[0] >= count[1] && count[0] >= count[2] ? ',' : count[1] >= count[2] ? ';' : '\t';
}

void ls_csv_open(LsCsvRows *r, const LsFile *f)
{
    const char *p = (const char *)f->data, *end = p + f->size;
    if (f->size >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    *r = (LsCsvRows){.path = f->path, .begin = p, .end = end};
    while (p < end && (*p == '\n' || *p == '\r'))
        p++;
    r->separator = find_separator(p, end);
    ls_csv_rewind(r);
}

void ls_csv_rewind(LsCsvRows *r)
{
    r->p = r->begin;
    r->line = r->next_line = 1;
    r->n = 0;
}

void ls_csv_close(LsCsvRows *r)
{
    free(r->field);
    free(r->text);
    *r = (LsCsvRows){0};
}

static bool at_end_of_line(const LsCsvRows *r)
{
    return r->p == r->end || *r->p == '\n' || *r->p == '\r';
}

static void pass_end_of_line(LsCsvRows *r)
{
    if (r->p == r->end)
        return;
    r->p += r->end - r->p >= 2 && r->p[0] == '\r' && r->p[1] == '\n' ? 2 : 1;
    r->next_line++;
}

/* Passes over lines of blanks; false: there is no more. A table of tabs may have empty fields. */
static bool begin_record(LsCsvRows *r)
{
    for (;;) {
        const char *p = r->p;
        while (p < r->end && (*p == ' ' || (*p == '\t' && r->separator != '\t')))
            p++;
        if (p == r->end)
            return false;
        if (*p != '\n' && *p != '\r')
            return true;
        r->p = p;
        pass_end_of_line(r);
    }
}

static bool put(LsCsvRows *r, char c)
{
    if (r->used == r->room) {
        const size_t room = 2 * r->room + 256;
        char *more = realloc(r->text, room);
        if (more == NULL)
            return false;
        r->text = more;
        r->room = room;
    }
    r->text[r->used++] = c;
    return true;
}

static bool no_memory(LsError *e)
{
    return ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

/* Between quotes; a quote in it is doubled. */
static bool quoted(LsCsvRows *r, LsError *e)
{
    for (r->p++; r->p < r->end; r->p++) {
        if (*r->p == '"' && (r->end - r->p < 2 || r->p[1] != '"'))
            return r->p++, true;
        r->p += *r->p == '"';
        if (*r->p == '\n' || (*r->p == '\r' && (r->end - r->p < 2 || r->p[1] != '\n')))
            r->next_line++;
        if (!put(r, *r->p))
            return no_memory(e);
    }
    return ls_fail(e, LS_EXIT_DATA, "%s:%" PRId64 ": a quote opens in this record and never closes",
                   r->path, r->line);
}

static bool plain(LsCsvRows *r, LsError *e)
{
    const size_t from = r->used;
    for (; !at_end_of_line(r) && *r->p != r->separator; r->p++)
        if (!put(r, *r->p))
            return no_memory(e);
    while (r->used > from && (r->text[r->used - 1] == ' ' || r->text[r->used - 1] == '\t'))
        r->used--;
    return true;
}

/* Its place in the text is kept as a number, as the text may move. */
static bool keep_field(LsCsvRows *r, size_t at)
{
    if (r->n == r->cap) {
        const int cap = 2 * r->cap + 16;
        char **more = realloc(r->field, (size_t)cap * sizeof *more);
        if (more == NULL)
            return false;
        r->field = more;
        r->cap = cap;
    }
    r->field[r->n++] = (char *)(uintptr_t)at;
    return true;
}

static bool take_field(LsCsvRows *r, LsError *e)
{
    const size_t at = r->used;
    while (r->p < r->end && (*r->p == ' ' || (*r->p == '\t' && r->separator != '\t')))
        r->p++;
    if (!(r->p < r->end && *r->p == '"' ? quoted(r, e) : plain(r, e)))
        return false;
    while (r->p < r->end && (*r->p == ' ' || (*r->p == '\t' && r->separator != '\t')))
        r->p++;
    if (!at_end_of_line(r) && *r->p != r->separator)
        return ls_fail(e, LS_EXIT_DATA, "%s:%" PRId64 ": text behind a closing quote", r->path,
                       r->next_line);
    if (r->used > at && memchr(r->text + at, '\0', r->used - at) != NULL)
        return ls_fail(e, LS_EXIT_DATA, "%s:%" PRId64 ": a zero byte, which no text has", r->path,
                       r->next_line);
    return (put(r, '\0') && keep_field(r, at)) || no_memory(e);
}

bool ls_csv_next(LsCsvRows *r, bool *end, LsError *e)
{
    *end = !begin_record(r);
    r->line = r->next_line;
    r->n = 0;
    r->used = 0;
    if (*end)
        return true;
    for (;;) {
        if (!take_field(r, e))
            return false;
        if (at_end_of_line(r))
            break;
        r->p++;
    }
    pass_end_of_line(r);
    for (int k = 0; k < r->n; k++)
        r->field[k] = r->text + (uintptr_t)r->field[k];
    return true;
}
