/* codegen/emit/text_emit.c */
#include "codegen/emit/text_emit.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

static bool is_mark(char c) { return c > LS_MARK_NONE && c < LS_NMARKS; }

static void put_mark(LsEmit *e, LsMarkKind kind, bool *fours)
{
    LsMarks *m = e->marks;
    *fours |= kind == LS_MARK_FOURS;
    if (m == NULL || kind == LS_MARK_FOURS)
        return;
    m->mark = ls_arena_grow(m->arena, m->mark, m->n, m->n + 1, sizeof *m->mark, &m->cap);
    m->mark[m->n++] = (LsMark){e->length, kind, *fours};
}

static void put_text(LsEmit *e, const char *text)
{
    bool fours = false;
    for (; *text != '\0'; text++) {
        if (is_mark(*text)) {
            put_mark(e, (LsMarkKind)*text, &fours);
            continue;
        }
        fputc(*text, e->to);
        e->length++;
    }
}

/* A line longer than the buffer goes through an arena of its own. */
static void put_line(LsEmit *e, const char *fmt, va_list ap)
{
    char buffer[512];
    va_list more;
    assert(fmt != NULL);        /* else the sanitizers' own null checks trip -Wformat */
    va_copy(more, ap);
    int n = vsnprintf(buffer, sizeof buffer, fmt, ap);
    if (n < (int)sizeof buffer) {
        put_text(e, buffer);
    } else {
        LsArena *a = ls_arena_new();
        put_text(e, ls_arena_vprintf(a, fmt, more));
        ls_arena_free(a);
    }
    va_end(more);
}

void ls_emit_line(LsEmit *e, const char *fmt, ...)
{
    va_list ap;
    e->depth -= fmt[0] == '}';
    if (fmt[0] != '\0' && fmt[0] != '#')
        e->length += (size_t)fprintf(e->to, "%*s", 4 * e->depth, "");
    va_start(ap, fmt);
    put_line(e, fmt, ap);
    va_end(ap);
    put_text(e, "\n");
    e->depth += fmt[0] != '\0' && fmt[strlen(fmt) - 1] == '{';
}

const char *ls_unmarked(LsArena *a, const char *text)
{
    char *rest = ls_arena_alloc(a, strlen(text) + 1, 1), *to = rest;
    for (; *text != '\0'; text++)
        if (!is_mark(*text))
            *to++ = *text;
    *to = '\0';
    return rest;
}

void ls_emit_comment(FILE *to, const char *s)
{
    char before = '\0';
    for (; s != NULL && *s != '\0'; before = *s++) {
        const bool mark = (*s == '/' && before == '*') || (*s == '*' && before == '/');
        /* trigraphs, too */
        const bool odd = (unsigned char)*s < ' ' || *s == 0x7f || *s == '\\' || *s == '?';
        fputc(mark || odd ? '_' : *s, to);
    }
}

void ls_emit_string(FILE *to, const char *s)
{
    fputc('"', to);
    for (; s != NULL && *s != '\0'; s++) {
        if (*s == '"' || *s == '\\')
            fprintf(to, "\\%c", *s);
        else if ((unsigned char)*s < ' ' || *s == '?')
            fprintf(to, "\\%03o", (unsigned char)*s);
        else
            fputc(*s, to);
    }
    fputc('"', to);
}
