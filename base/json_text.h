/* base/json_text.h -- strings and numbers for JSON that is printed line by line, so that people can
 * read it. */
#ifndef LS_BASE_JSON_TEXT_H
#define LS_BASE_JSON_TEXT_H

#include <math.h>
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

/* Prints a later field of an object, of nine digits: `, "key": 1.5`; null when the value is not
 * finite. */
static inline void ls_json_number(FILE *to, const char *key, double v)
{
    fprintf(to, ", \"%s\": ", key);
    if (isfinite(v))
        fprintf(to, "%.9g", v);
    else
        fprintf(to, "null");
}

#endif
