/* codegen/emit/text_emit.c */
#include "codegen/emit/text_emit.h"

#include <stdarg.h>
#include <string.h>

void ls_emit_line(LsEmit *e, const char *fmt, ...)
{
    va_list ap;
    e->depth -= fmt[0] == '}';
    if (fmt[0] != '\0' && fmt[0] != '#')
        fprintf(e->to, "%*s", 4 * e->depth, "");
    va_start(ap, fmt);
    vfprintf(e->to, fmt, ap);
    va_end(ap);
    fputc('\n', e->to);
    e->depth += fmt[0] != '\0' && fmt[strlen(fmt) - 1] == '{';
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
