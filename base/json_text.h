/* base/json_text.h -- strings for JSON that is printed line by line, so that people can read it. */
#ifndef LS_BASE_JSON_TEXT_H
#define LS_BASE_JSON_TEXT_H

#include <stdio.h>

/* Prints s quoted and escaped; NULL prints "". */
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
