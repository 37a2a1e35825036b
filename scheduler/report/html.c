/* scheduler/report/html.c -- escaping, sizes and the style sheet of the reports. */
#include "scheduler/report/html.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "scheduler/report/page_texts.h"
#include "scheduler/strategies/strategy_names.h"

static const char replacement[] = "\xef\xbf\xbd";       /* U+FFFD */

/* Returns the bytes of the valid UTF-8 character at s; 0: invalid. Surrogates, overlong forms and
 * code points above U+10FFFF are invalid. */
static int utf8(const unsigned char *s)
{
    int n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3
            : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    for (int k = 1; k < n; k++)
        if ((s[k] & 0xc0) != 0x80)
            return 0;
    bool wrong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0)
                 || (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90);
    return wrong ? 0 : n;
}

static void put_html(FILE *to, unsigned char c)
{
    switch (c) {
    case '&': fputs("&amp;", to); break;
    case '<': fputs("&lt;", to); break;
    case '>': fputs("&gt;", to); break;
    case '"': fputs("&quot;", to); break;
    case '\'': fputs("&#39;", to); break;
    default: c < 0x20 || c == 0x7f ? fputs(replacement, to) : fputc(c, to);
    }
}

/* Without < the text can neither end the script element nor open a comment in it. */
static void put_json(FILE *to, unsigned char c)
{
    if (c < 0x20 || c == 0x7f || c == '<' || c == '>' || c == '&')
        fprintf(to, "\\u%04x", c);
    else if (c == '"' || c == '\\')
        fprintf(to, "\\%c", c);
    else
        fputc(c, to);
}

static void put(FILE *to, const char *s, void (*ascii)(FILE *, unsigned char))
{
    const unsigned char *at = (const unsigned char *)(s != NULL ? s : "");
    while (*at != '\0') {
        int n = utf8(at);
        if (n == 1)
            ascii(to, *at);
        else if (n == 0)
            fputs(replacement, to);
        else
            fwrite(at, 1, (size_t)n, to);
        at += n > 0 ? n : 1;
    }
}

void ls_page_text(FILE *to, const char *s) { put(to, s, put_html); }

void ls_page_json(FILE *to, const char *s)
{
    fputc('"', to);
    put(to, s, put_json);
    fputc('"', to);
}

const char *ls_page_bytes(char text[24], int64_t bytes)
{
    return ls_page_bytes_like(text, bytes, bytes);
}

const char *ls_page_bytes_like(char text[24], int64_t bytes, int64_t like)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double x = (double)bytes, size = (double)like;
    int u = 0;
    for (; fabs(size) >= 1024 && u < 5; u++, size /= 1024)
        x /= 1024;
    snprintf(text, 24, u == 0 ? "%.0f %s" : "%.2f %s", x, unit[u]);
    return text;
}

#define STRATEGY(name, light, dark) {name, light, dark},
static const struct { const char *name, *light, *dark; } colour[] = {
    {"page", "#ffffff", "#14171a"}, {"ink", "#1c2024", "#e6e8ea"}, {"soft", "#646b73", "#9aa2ab"},
    {"line", "#dfe3e8", "#30363d"}, {"card", "#f6f7f9", "#1d2125"}, {"kept", "#3b6fb6", "#5b8fd6"},
    {"passing", "#9fc0e8", "#2f4f78"}, {"again", "#e08a2c", "#e59a4a"},
    {"gradient", "#58a55c", "#5fae6a"}, {"workspace", "#a7a9ac", "#7c8087"},
    LS_STRATEGIES(STRATEGY, STRATEGY) {"bound", "#b3261e", "#ff7b72"},
};

/* Prints the colours as variables, for pages, and as classes f-NAME (fill) and s-NAME (stroke), for
 * pictures: not every SVG viewer knows variables. */
static void put_scheme(FILE *to, bool dark)
{
    for (size_t k = 0; k < sizeof colour / sizeof *colour; k++) {
        const char *value = dark ? colour[k].dark : colour[k].light, *name = colour[k].name;
        fprintf(to, ":root{--%s:%s}.f-%s{fill:%s}.s-%s{stroke:%s}\n", name, value, name, value,
                name, value);
    }
}

void ls_page_colours(FILE *to)
{
    fputs(":root{color-scheme:light dark}\n", to);
    put_scheme(to, false);
    fputs("@media(prefers-color-scheme:dark){\n", to);
    put_scheme(to, true);
    fputs("}\n", to);
    fputs(ls_text_picture_css, to);
}

void ls_page_head(FILE *to, const char *title)
{
    fputs(ls_text_page_head_html, to);
    fputs("<title>", to);
    ls_page_text(to, title);
    fputs("</title>\n<style>\n", to);
    ls_page_colours(to);
    fputs(ls_text_page_css, to);
    fputs("</style>\n</head>\n<body>\n", to);
}
