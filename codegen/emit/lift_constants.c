/* codegen/emit/lift_constants.c -- see lift_constants.h. */
#include "codegen/emit/lift_constants.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"
#include "base/heap.h"
#include "runtime/cuda/ls_cuda_run.h"

static const char part_word[] = "LS_PART(", launch_word[] = "ls_cuda_launch(run, p_";
static const char function_word[] = "static void ";

/* ---- which numbers ---- */
static bool may_vary(const LsMark *m, int64_t value, bool one_block, int64_t width)
{
    switch (m->kind) {
    case LS_MARK_N: case LS_MARK_HEAD: return true;
    case LS_MARK_BOUND: return one_block || value <= (m->fours ? 4 * width : width);
    case LS_MARK_INNER: return one_block;
    default: return false;
    }
}

static void find(LsArena *a, LsNumbers *n, const LsMarks *marks, bool one_block)
{
    int64_t width = 0;          /* threads of a row of the part */
    uint32_t cap = 0;
    for (uint32_t k = 0; k < marks->n; k++) {
        const LsMark *m = &marks->mark[k];
        char *end = NULL;
        int64_t value = strtoll(n->text + m->at, &end, 10);
        if (m->kind == LS_MARK_HEAD)
            n->narg = (int)value;
        if (m->kind == LS_MARK_WIDTH)
            width = value;
        if (n->text[m->at] == '-' || !may_vary(m, value, one_block, width))
            continue;
        n->number = ls_arena_grow(a, n->number, n->n, n->n + 1, sizeof *n->number, &cap);
        n->number[n->n++] = (LsNumber){m->at, (size_t)(end - (n->text + m->at)), value,
                                       m->kind == LS_MARK_HEAD};
    }
}

/* ---- launches ---- */
/* Reads a launch line and its units. False: the line is no launch. */
static bool read_launch(const char *line, int64_t *units)
{
    line += strspn(line, " ");
    if (strncmp(line, launch_word, sizeof launch_word - 1) != 0)
        return false;
    const char *comma = strchr(line + sizeof launch_word - 1, ',');
    char *end = NULL;
    if (comma == NULL)
        return false;
    *units = strtoll(comma + 1, &end, 10);
    return strncmp(end, ", arg);\n", 8) == 0;
}

/* The text after "static void K(...)\n{\n", launches, "}\n"; NULL: host does not begin like that,
 * or has launches later. */
static const char *behind_launches(const char *host, bool *one_block)
{
    const char *at = strchr(host, '\n');
    *one_block = true;
    if (strncmp(host, function_word, sizeof function_word - 1) != 0 || at == NULL
        || strncmp(at, "\n{\n", 3) != 0)
        return NULL;
    for (at += 3; *at != '}'; at = strchr(at, '\n') + 1) {
        int64_t units = 0;
        if (!read_launch(at, &units))
            return NULL;
        *one_block &= units <= 1;
    }
    return strncmp(at, "}\n", 2) == 0 && strstr(at, launch_word) == NULL ? at + 2 : NULL;
}

LsNumbers *ls_numbers_find(LsArena *a, const char *text, const LsMarks *marks, const char *host)
{
    bool one_block;
    const char *behind = text[0] != '\0' ? behind_launches(host, &one_block) : NULL;
    if (behind == NULL)
        return NULL;
    LsNumbers *n = ls_arena_alloc(a, 1, sizeof *n);
    *n = (LsNumbers){.text = text, .host = host, .behind = behind};
    find(a, n, marks, one_block);
    char *rest = ls_arena_alloc(a, strlen(text) + 1, 1), *to = rest;
    for (uint32_t k = 0; k <= n->n; k++) {
        size_t from = k > 0 ? n->number[k - 1].at + n->number[k - 1].length : 0;
        size_t length = (k < n->n ? n->number[k].at : strlen(text)) - from;
        memcpy(to, text + from, length);
        to += length;
        *to++ = k < n->n ? '#' : '\0';
    }
    n->hash = ls_fnv_text(LS_FNV_START, rest);
    n->rest = rest;
    return n;
}

bool ls_numbers_alike(const LsNumbers *a, const LsNumbers *b)
{
    return a->hash == b->hash && a->n == b->n && strcmp(a->rest, b->rest) == 0;
}

/* ---- arguments ---- */
static bool same_in_all(const LsShared *s, uint32_t x)
{
    for (uint32_t i = 1; i < s->nof; i++)
        if (s->of[i]->number[x].value != s->of[0]->number[x].value)
            return false;
    return true;
}

/* Whether numbers x and y are equal in each text. */
static bool same_number(const LsShared *s, uint32_t x, uint32_t y)
{
    for (uint32_t i = 0; i < s->nof; i++)
        if (s->of[i]->number[x].value != s->of[i]->number[y].value)
            return false;
    return true;
}

/* 8 or 4 if number x is a multiple of that in each text, otherwise 1. */
static int multiple_in_all(const LsShared *s, uint32_t x)
{
    int64_t all = 0;
    for (uint32_t i = 0; i < s->nof; i++)
        all |= s->of[i]->number[x].value;
    return all % 8 == 0 ? 8 : all % 4 == 0 ? 4 : 1;
}

LsShared *ls_numbers_share(LsArena *a, const LsNumbers *const of[], uint32_t nof, bool all)
{
    LsShared *s = ls_arena_alloc(a, 1, sizeof *s);
    *s = (LsShared){.of = of, .nof = nof};
    for (uint32_t i = 0; i < nof; i++)
        s->narg = of[i]->narg > s->narg ? of[i]->narg : s->narg;
    s->argument = ls_arena_alloc(a, of[0]->n + 1u, sizeof *s->argument);
    for (uint32_t x = 0; x < of[0]->n; x++) {
        s->argument[x] = -1;
        if (of[0]->number[x].head)
            continue;
        for (uint32_t y = 0; y < x && s->argument[x] < 0; y++)
            if (s->argument[y] >= 0 && same_number(s, x, y))
                s->argument[x] = s->argument[y];
        if (s->argument[x] >= 0 || (!all && same_in_all(s, x)))
            continue;
        if (s->n == LS_NUMBERS_MOST || s->narg + s->n == LS_CUDA_ARGS)
            return NULL;
        s->multiple[s->n] = multiple_in_all(s, x);
        s->argument[x] = s->n++;
    }
    return s;
}

int64_t ls_numbers_value(const LsShared *s, uint32_t i, int k)
{
    uint32_t x = 0;
    while (s->argument[x] != k)
        x++;
    return s->of[i]->number[x].value;
}

/* ---- texts ---- */
/* Whether argument k occurs in [from, to) of the text. */
static bool stands(const LsShared *s, int k, size_t from, size_t to)
{
    for (uint32_t x = 0; x < s->of[0]->n; x++)
        if (s->argument[x] == k && s->of[0]->number[x].at >= from && s->of[0]->number[x].at < to)
            return true;
    return false;
}

/* Prints the head of the part whose LS_PART is at `at` of the original text, and declares the
 * numbers that the part uses. Returns the end of the head, or `at`. */
static size_t print_part_head(const LsShared *s, size_t at, FILE *to)
{
    static const char first[] = "LS_UNITS;\n", *const suffix[] = {"", "4", "8"};
    const char *text = s->of[0]->text, *comma = strchr(text + at, ',');
    const char *units = comma != NULL ? strstr(comma, first) : NULL;
    if (units == NULL)
        return at;
    const char *next = strstr(units, part_word), *end = units + sizeof first - 1;
    size_t until = next != NULL ? (size_t)(next - text) : strlen(text);
    int digits = (int)strspn(comma + 2, "0123456789");
    fprintf(to, "%.*s, %d", (int)(comma - (text + at)), text + at, s->narg);
    if (s->n > 0)
        fprintf(to, " + %d", s->n);
    fwrite(comma + 2 + digits, 1, (size_t)(end - (comma + 2 + digits)), to);
    for (int k = 0; k < s->n; k++)
        if (stands(s, k, (size_t)(end - text), until))
            fprintf(to, "    LS_NUMBER%s(n%d, %d);\n", suffix[s->multiple[k] / 4], k, s->narg + k);
    return (size_t)(end - text);
}

const char *ls_numbers_text(LsArena *a, const LsShared *s)
{
    const LsNumbers *n = s->of[0];
    char *buf = NULL;
    size_t size = 0, at = 0;
    FILE *to = ls_text_open(&buf, &size);
    for (uint32_t x = 0; n->text[at] != '\0';) {
        if (strncmp(n->text + at, part_word, sizeof part_word - 1) == 0) {
            size_t end = print_part_head(s, at, to);
            if (end > at) {
                at = end;
                continue;
            }
        }
        while (x < n->n && n->number[x].at < at)
            x++;
        if (x < n->n && n->number[x].at == at && s->argument[x] >= 0) {
            fprintf(to, "n%d", s->argument[x]);
            at += n->number[x].length;
        } else {
            fputc(n->text[at++], to);
        }
    }
    ls_text_close(to, &buf);
    const char *text = ls_arena_strdup(a, buf);
    free(buf);
    return text;
}

static const char *values(LsArena *a, const LsShared *s, uint32_t i)
{
    const char *text = "";
    for (int k = 0; k < s->n; k++)
        text = ls_arena_printf(a, "%s%s%" PRId64, text, k > 0 ? ", " : "",
                               ls_numbers_value(s, i, k));
    return text;
}

const char *ls_numbers_host(LsArena *a, const LsShared *s, uint32_t i, const char *own,
                            const char *parts)
{
    const char *host = s->of[i]->host, *at = strstr(host, launch_word);
    const char *text = ls_arena_printf(a, "%.*s\n{\n", (int)strcspn(host, "\n"), host);
    if (s->n > 0)
        text = ls_arena_printf(a, "%s    static const int64_t number[] = {%s};\n", text,
                               values(a, s, i));
    for (; at != NULL; at = strstr(at + 1, launch_word)) {
        const char *name = at + sizeof launch_word - 1;
        name += strncmp(name, own, strlen(own)) == 0 ? strlen(own) : 0;
        const char *comma = strstr(name, ", arg);\n");
        const char *with =
            s->n > 0 ? ls_arena_printf(a, ", %d, number, %d", s->of[i]->narg, s->n) : "";
        text = ls_arena_printf(a, "%s    ls_cuda_launch%s(run, p_%s%.*s, arg%s);\n", text,
                               s->n > 0 ? "_with" : "", parts, (int)(comma - name), name, with);
    }
    return ls_arena_printf(a, "%s}\n%s", text, s->of[i]->behind);
}

const char *ls_numbers_table(LsArena *a, const LsShared *s, const char *table)
{
    const char *text = "";
    if (s->n == 0)
        return table;
    for (const char *at = table; *at != '\0';) {
        const char *end = strchr(at, '\n'), *comma = strchr(at, ',');
        const char *after = comma != NULL ? strchr(comma + 1, ',') : NULL;
        if (end == NULL || after == NULL)
            break;
        text = ls_arena_printf(a, "%s%.*s, %d + %d%.*s", text, (int)(comma - at), at, s->narg, s->n,
                               (int)(end + 1 - after), after);
        at = end + 1;
    }
    return text;
}
