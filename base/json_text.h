/* base/json_text.h -- strings in JSON written by hand, where the lines should be readable. */
#ifndef LS_BASE_JSON_TEXT_H
#define LS_BASE_JSON_TEXT_H

#include <stdio.h>

/* Quoted and escaped; NULL is "". */
static inline void ls_json_text(FILE *to, const char *s)
{
    fputc('"', to);
    for (; s != NULL && *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20)
            fprintf(to, "\\u%04x", c);
        else
            fputc(c, to);
    }
    fputc('"', to);
}

#endif
