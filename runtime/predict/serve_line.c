/* runtime/predict/serve_line.c -- see serve_line.h. */
#include "runtime/predict/serve_line.h"

#include "runtime/base/tensor_copy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER = 64, KEY = 256 };        /* most characters */

typedef struct Reading {
    LsJson j;
    const char *line;
    LsError *e;
} Reading;

static void skip_blanks(Reading *r)
{
    while (r->j.p < r->j.end && (*r->j.p == ' ' || *r->j.p == '\t' || *r->j.p == '\r'))
        r->j.p++;
}

static bool wrong(Reading *r, const char *want)
{
    skip_blanks(r);
    return ls_fail(r->e, LS_EXIT_DATA, "%s at character %zu", want,
                   (size_t)(r->j.p - r->line) + 1);
}

static bool next_is(Reading *r, char c)
{
    skip_blanks(r);
    return r->j.p < r->j.end && *r->j.p == c;
}

/* A finite number, as JSON has them. */
static bool number(Reading *r, double *v)
{
    char text[NUMBER], *stop;
    size_t n = 0;
    skip_blanks(r);
    for (const char *p = r->j.p; p < r->j.end && *p && strchr("0123456789+-.eE", *p); p++)
        if (n < NUMBER)
            text[n++] = *p;
    if (n == 0 || n == NUMBER)
        return wrong(r, "a number is expected");
    text[n] = '\0';
    *v = strtod(text, &stop);
    if (*stop != '\0' || (text[0] != '-' && (text[0] < '0' || text[0] > '9')))
        return wrong(r, "a number is expected");
    if (!isfinite(*v))
        return wrong(r, "a number is too large");
    r->j.p += n;
    return true;
}

static bool has_other_shape(Reading *r, const LsLineInput *in)
{
    char dims[96];
    return ls_fail(r->e, LS_EXIT_DATA,
                   "'%s' has another shape: it takes %" PRId64
                   " number%s, %s; seen at character %zu",
                   in->name, in->count, in->count == 1 ? "" : "s",
                   ls_dims_text(in->rank, in->dim, dims), (size_t)(r->j.p - r->line) + 1);
}

/* An array at depth `d` of the input's axes, or all numbers in one array. *n: numbers so far */
static bool array(Reading *r, const LsLineInput *in, int d, double *to, int64_t *n)
{
    int64_t entries = 0;
    bool flat = false;
    if (!ls_json_char(&r->j, '['))
        return wrong(r, "an array is expected");
    if (next_is(r, ']'))
        return has_other_shape(r, in);
    do {
        if (next_is(r, '[')) {
            if (flat || d + 1 >= in->rank)
                return has_other_shape(r, in);
            if (!array(r, in, d + 1, to, n))
                return false;
        } else {
            if (entries > 0 && !flat)
                return has_other_shape(r, in);
            flat = true;
            if (*n == in->count)
                return has_other_shape(r, in);
            if (!number(r, &to[*n]))
                return false;
            ++*n;
        }
        entries++;
    } while (ls_json_char(&r->j, ','));
    if (!ls_json_char(&r->j, ']'))
        return wrong(r, "',' or ']' is expected");
    const bool whole = d == 0 && flat && entries == in->count;
    return whole || (flat == (d + 1 == in->rank) && d < in->rank && entries == in->dim[d])
           || has_other_shape(r, in);
}

static bool values(Reading *r, LsLine *to, uint32_t k)
{
    const LsLineInput *in = &to->input[k];
    int64_t n = 0;
    if (to->given[k])
        return ls_fail(r->e, LS_EXIT_DATA, "'%s' is there twice", in->name);
    to->given[k] = true;
    if (!next_is(r, '[') && in->count == 1)
        return number(r, to->value[k]);
    return array(r, in, 0, to->value[k], &n)
           && (n == in->count || has_other_shape(r, in));
}

/* What the sender calls the line: a number or a text, which the answer repeats. */
static bool take_id(Reading *r, char id[LS_LINE_ID])
{
    char text[LS_LINE_ID / 2];
    double v;
    size_t n = 0;
    const char *from;
    if (next_is(r, '"')) {
        from = r->j.p;
        if (!ls_json_string(&r->j, text, sizeof text) || r->j.p - from >= LS_LINE_ID)
            return wrong(r, "\"id\" is a number or a short text, which is expected");
        for (const char *p = from; p < r->j.p; p++)
            if ((unsigned char)*p < 0x20)
                return wrong(r, "\"id\" is a number or a short text, which is expected");
        n = (size_t)(r->j.p - from);
    } else {
        skip_blanks(r);
        from = r->j.p;
        if (!number(r, &v))
            return false;
        n = (size_t)(r->j.p - from);
    }
    memcpy(id, from, n);
    id[n] = '\0';
    return true;
}

static bool member(Reading *r, LsLine *to)
{
    char key[KEY], names[200] = "";
    size_t n = 0;
    if (!next_is(r, '"') || !ls_json_string(&r->j, key, sizeof key))
        return wrong(r, "the name of an input, in quotes, is expected");
    if (!ls_json_char(&r->j, ':'))
        return wrong(r, "':' is expected");
    for (uint32_t k = 0; k < to->ninput; k++)
        if (strcmp(to->input[k].name, key) == 0)
            return values(r, to, k);
    if (strcmp(key, "id") == 0)
        return take_id(r, to->id);
    for (uint32_t k = 0; k < to->ninput && n < sizeof names; k++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", k > 0 ? ", " : "",
                              to->input[k].name);
    ls_make_printable(key);
    return ls_fail(r->e, LS_EXIT_DATA, "no input is called '%s'; there are %s", key, names);
}

static bool object(Reading *r, LsLine *to)
{
    ls_json_char(&r->j, '{');
    if (!ls_json_char(&r->j, '}')) {
        do
            if (!member(r, to))
                return false;
        while (ls_json_char(&r->j, ','));
        if (!ls_json_char(&r->j, '}'))
            return wrong(r, "',' or '}' is expected");
    }
    return true;
}

/* The numbers of all inputs that a sample needs, one after the other. */
static bool row(Reading *r, LsLine *to)
{
    bool first = true;
    for (uint32_t k = 0; k < to->ninput; k++) {
        to->given[k] = to->input[k].needed;
        for (int64_t i = 0; to->given[k] && i < to->input[k].count; i++, first = false) {
            if (!first && !ls_json_char(&r->j, ','))
                return wrong(r, next_is(r, '\0') || r->j.p == r->j.end
                                    ? "the row ends too early: more numbers are expected"
                                    : "',' is expected");
            if (!number(r, &to->value[k][i]))
                return false;
        }
    }
    return true;
}

bool ls_line_sample(LsLine *to, const char *line, size_t n, LsError *e)
{
    Reading r = {{line, line + n}, line, e};
    uint32_t only = to->ninput;
    int needed = 0;
    to->id[0] = '\0';
    for (uint32_t k = 0; k < to->ninput; k++) {
        to->given[k] = false;
        needed += to->input[k].needed;
        only = to->input[k].needed ? k : only;
    }
    const bool ok = next_is(&r, '{')                  ? object(&r, to)
                    : next_is(&r, '[') && needed == 1 ? values(&r, to, only)
                                                      : row(&r, to);
    if (!ok)
        return false;
    skip_blanks(&r);
    if (r.j.p < r.j.end)
        return wrong(&r, "more than one sample: the end of the line is expected");
    for (uint32_t k = 0; k < to->ninput; k++)
        if (to->input[k].needed && !to->given[k])
            return ls_fail(e, LS_EXIT_DATA, "there is no '%s'", to->input[k].name);
    return true;
}

/* ---- prompts ---- */

static bool prompt_member(Reading *r, char *room, size_t n, bool *given, char id[LS_LINE_ID])
{
    char key[KEY];
    if (!next_is(r, '"') || !ls_json_string(&r->j, key, sizeof key) || !ls_json_char(&r->j, ':'))
        return wrong(r, "\"prompt\": is expected");
    if (strcmp(key, "id") == 0)
        return take_id(r, id);
    if (strcmp(key, "prompt") != 0)
        return ls_fail(r->e, LS_EXIT_DATA, "an object has \"prompt\" and \"id\", no other names");
    if (*given || !next_is(r, '"') || !ls_json_string(&r->j, room, n + 1))
        return wrong(r, "one text in quotes is expected");
    return *given = true;
}

bool ls_line_prompt(const char *line, size_t n, char *room, const char **text, size_t *bytes,
                    char id[LS_LINE_ID], LsError *e)
{
    Reading r = {{line, line + n}, line, e};
    bool given = false;
    id[0] = '\0';
    *text = line;
    *bytes = n;
    if (next_is(&r, '"')) {
        if (!ls_json_string(&r.j, room, n + 1))
            return wrong(&r, "the text has no end, or an escape that JSON does not have: a quote "
                             "is expected");
    } else if (ls_json_char(&r.j, '{')) {
        do
            if (!prompt_member(&r, room, n, &given, id))
                return false;
        while (ls_json_char(&r.j, ','));
        if (!ls_json_char(&r.j, '}') || !given)
            return wrong(&r, "\"prompt\" and '}' are expected");
    } else {
        return true;
    }
    skip_blanks(&r);
    *text = room;
    *bytes = strlen(room);
    return r.j.p == r.j.end || wrong(&r, "the end of the line is expected");
}

/* ---- answers ---- */

/* Bytes of the UTF-8 character at p; 0: it is none. */
static size_t utf8(const unsigned char *p, size_t n)
{
    const size_t m = p[0] < 0x80                    ? 1
                     : p[0] >= 0xc2 && p[0] <= 0xdf ? 2
                     : p[0] >= 0xe0 && p[0] <= 0xef ? 3
                     : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                                    : 0;
    if (m == 0 || m > n)
        return 0;
    for (size_t k = 1; k < m; k++)
        if ((p[k] & 0xc0) != 0x80)
            return 0;
    const bool too_long = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90),
               no_character = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return too_long || no_character ? 0 : m;
}

void ls_line_put_text(LsText *t, const char *text, size_t n)
{
    ls_text_put(t, "\"");
    for (size_t at = 0, m; at < n; at += m > 0 ? m : 1) {
        char one[5] = "";
        m = utf8((const unsigned char *)text + at, n - at);
        memcpy(one, text + at, m);
        if (m == 0)
            ls_text_put(t, "\\ufffd");
        else if (one[0] == '\0')
            ls_text_put(t, "\\u0000");
        else
            ls_text_escaped(t, one);
    }
    ls_text_put(t, "\"");
}
