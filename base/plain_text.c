/* base/plain_text.c -- see the header. */
#include "base/plain_text.h"

#include "base/heap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 400, SHOWN = 150 };       /* bytes of a word; of its beginning and of its end where it
                                         * is longer */

/* Bytes of the character that begins at s, if it is one that prints; 0: control character, or no
 * UTF-8. */
static size_t printable(const char *s)
{
    const unsigned char c = (unsigned char)s[0];
    const size_t n = c < 0x80 ? 1 : c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
    uint32_t code = c & (n == 1 ? 0x7fu : 0x7fu >> n);
    if (n == 0 || c >= 0xf5 || (n == 1 && (c < 0x20 || c == 0x7f)))
        return 0;
    for (size_t k = 1; k < n; k++) {
        if (((unsigned char)s[k] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | ((unsigned char)s[k] & 0x3f);
    }
    /* 0x80 .. 0x9f are control characters, too */
    const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

static void print(FILE *to, const char *s, const char *end)
{
    while (s < end) {
        const size_t n = printable(s);
        if (n == 0)
            fprintf(to, "\\x%02x", (unsigned char)*s);
        else
            fwrite(s, 1, n, to);
        s += n > 0 ? n : 1;
    }
}

void ls_plain_text(FILE *to, const char *s)
{
    while (*s != '\0') {
        const size_t n = strcspn(s, " ");
        print(to, s, n > MOST ? s + SHOWN : s + n);
        if (n > MOST) {
            fprintf(to, "...");
            print(to, s + n - SHOWN, s + n);
        }
        s += n;
        if (*s == ' ')
            fputc(*s++, to);
    }
}

void ls_plain_vprintf(FILE *to, const char *fmt, va_list ap)
{
    char *text = NULL;
    size_t n = 0;
    FILE *whole = ls_text_open(&text, &n);
    vfprintf(whole, fmt, ap);
    ls_text_close(whole, &text);
    ls_plain_text(to, text);
    free(text);
}

void ls_plain_printf(FILE *to, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ls_plain_vprintf(to, fmt, ap);
    va_end(ap);
}

void ls_plain_json(FILE *to, const char *json)
{
    for (size_t n; *json != '\0'; json += n) {
        n = printable(json);
        if (n > 0 || (unsigned char)*json < 0x20)       /* blanks between the strings: within them
                                                         * they are escaped */
            fwrite(json, 1, n > 0 ? n : 1, to);
        else
            fprintf(to, "\\\\x%02x", (unsigned char)*json);
        n = n > 0 ? n : 1;
    }
}
