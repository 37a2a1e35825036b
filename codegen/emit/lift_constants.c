/* codegen/emit/lift_constants.c -- see lift_constants.h. Reads the texts that emitters print, not all of C. */
#include "codegen/emit/lift_constants.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"

enum { DEPTH = 64 };            /* of parentheses; below that numbers stay constants */
enum { FREE, FIXED, LANES };    /* LANES: in the bounds of LS_LANES, where those of ls_least vary */

static const char part_word[] = "LS_PART(", launch_word[] = "ls_cuda_launch(run, p_";
static const char function_word[] = "static void ";

/* ---- which numbers ---- */
typedef struct Scan {
    const char *text;
    bool one_block;
    int in[DEPTH];              /* by depth of parentheses: what the numbers there are */
    bool bound[DEPTH];          /* a number that is an argument by itself may vary, too */
    int depth;
    int64_t x;                  /* threads of a row of the part */
    int64_t steps[DEPTH];       /* of LS_LANES: that they do in one go */
    bool part;                  /* in a part, and no function that it calls */
    size_t head;                /* of the part: where its number of arguments stands */
} Scan;

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool is_one_of(const char *word, size_t length, const char *const list[])
{
    for (; *list != NULL; list++)
        if (strlen(*list) == length && strncmp(*list, word, length) == 0)
            return true;
    return false;
}

/* The parenthesis at `at` opens: whose arguments are these? */
static void open_call(Scan *s, size_t at)
{
    static const char *const free[] = {"ls_least", "LS_COPY", "LS_PUT4", "LS_GET4", "LS_PUT4B",
                                       "LS_GET4B", "LS_ROWS", "ls_variance", "LS_FETCH4",
                                       "LS_FETCHED4", "LS_GROUPS", "LS_OWN", "LS_OWN4", "LS_IN", "LS_OUT",
                                       "LS_WITHIN", "LS_WITHIN4", "LS_BELOW", "LS_WHOLE4", "ls_taps_at",
                                       "ls_taps_store", NULL};
    static const char *const lanes[] = {"LS_LANES", "LS_LANES4", "LS_ONCE", "LS_ONCE4", NULL};
    size_t end = at, from;
    while (end > 0 && s->text[end - 1] == ' ')
        end--;
    for (from = end; from > 0 && is_word(s->text[from - 1]); from--)
        ;
    if (++s->depth >= DEPTH)
        return;
    const int outer = s->in[s->depth - 1];
    int in = FIXED;
    if (from == end)
        in = outer;
    else if (is_one_of(s->text + from, end - from, lanes))
        in = outer != FREE ? FIXED : s->one_block ? FREE : LANES;
    else if (is_one_of(s->text + from, end - from, free))
        in = outer == FIXED ? FIXED : FREE;
    s->in[s->depth] = in;
    s->bound[s->depth] = from < end;
    s->steps[s->depth] = in != LANES ? 0 : s->text[end - 1] == '4' ? 4 * s->x : s->x;
}

static bool may_vary(const Scan *s, size_t at)
{
    const int64_t value = strtoll(s->text + at, NULL, 10);
    if (at == s->head)
        return true;
    while (at > 0 && (s->text[at - 1] == ' ' || s->text[at - 1] == '\n'))
        at--;
    char before = at > 0 ? s->text[at - 1] : ';';
    if (!s->part || s->depth >= DEPTH || s->in[s->depth] == FIXED)
        return false;
    if (s->in[s->depth] == LANES)
        return strchr("(,", before) != NULL && value <= s->steps[s->depth];
    return strchr("*+-/%", before) != NULL || (s->bound[s->depth] && strchr("(,", before) != NULL);
}

/* Behind the literal or the word that begins at `at`. */
static size_t word_end(const char *text, size_t at)
{
    bool number = isdigit((unsigned char)text[at]);
    while (is_word(text[at]) || (number && text[at] == '.')
           || (number && strchr("+-", text[at]) != NULL && text[at] != '\0'
               && strchr("eE", text[at - 1]) != NULL))
        at++;
    return at;
}

static bool is_whole(const char *text, size_t from, size_t to)
{
    for (; from < to; from++)
        if (!isdigit((unsigned char)text[from]))
            return false;
    return true;
}

/* Where argument k of LS_PART(name, narg, x, y) stands; NULL: it has fewer. */
static const char *head_argument(const char *head, int k)
{
    for (; k > 0 && head != NULL; k--)
        head = strchr(head, ',') != NULL ? strchr(head, ',') + 1 : NULL;
    return head != NULL ? head + strspn(head, " ") : NULL;
}

static int64_t head_number(const char *head, int k)
{
    const char *at = head_argument(head, k);
    return at != NULL ? strtoll(at, NULL, 10) : 0;
}

static void scan(LsArena *a, LsNumbers *n, bool one_block)
{
    Scan s = {.text = n->text, .one_block = one_block};
    uint32_t cap = 0;
    for (size_t at = 0; s.text[at] != '\0';) {
        size_t end = at + 1;
        if (strncmp(s.text + at, part_word, sizeof part_word - 1) == 0) {
            const char *narg = head_argument(s.text + at, 1);
            s.part = true;
            s.x = head_number(s.text + at, 2);
            s.head = narg != NULL ? (size_t)(narg - s.text) : 0;
            n->narg = (int)head_number(s.text + at, 1);
        }
        s.part &= strncmp(s.text + at, "\n}", 2) != 0;
        if (strncmp(s.text + at, "/*", 2) == 0) {
            const char *close = strstr(s.text + at, "*/");
            end = close != NULL ? (size_t)(close - s.text) + 2 : strlen(s.text);
        } else if (is_word(s.text[at])) {
            end = word_end(s.text, at);
            if (is_whole(s.text, at, end) && may_vary(&s, at)) {
                n->number = ls_arena_grow(a, n->number, n->n, n->n + 1, sizeof *n->number, &cap);
                n->number[n->n++] =
                    (LsNumber){at, end - at, (int64_t)strtoll(s.text + at, NULL, 10), at == s.head};
            }
        } else if (s.text[at] == '(') {
            open_call(&s, at);
        } else if (s.text[at] == ')' && s.depth > 0) {
            s.depth--;
        }
        at = end;
    }
}

/* ---- launches ---- */
/* Reads the line of a launch; units of it. False: it is none. */
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

/* What is behind "static void K(...)\n{\n", launches, "}\n"; NULL: it does not begin so, or launches
 * more there. */
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

LsNumbers *ls_numbers_find(LsArena *a, const char *text, const char *host)
{
    bool one_block;
    const char *behind = text[0] != '\0' ? behind_launches(host, &one_block) : NULL;
    if (behind == NULL)
        return NULL;
    LsNumbers *n = ls_arena_alloc(a, 1, sizeof *n);
    *n = (LsNumbers){.text = text, .host = host, .behind = behind};
    scan(a, n, one_block);
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

/* Numbers x and y have the same value in each text. */
static bool same_number(const LsShared *s, uint32_t x, uint32_t y)
{
    for (uint32_t i = 0; i < s->nof; i++)
        if (s->of[i]->number[x].value != s->of[i]->number[y].value)
            return false;
    return true;
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
        if (s->n == LS_NUMBERS_MOST)
            return NULL;
        s->fours[s->n] = true;
        for (uint32_t i = 0; i < nof; i++)
            s->fours[s->n] &= of[i]->number[x].value % 4 == 0;
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
/* Argument k stands between two places of the text. */
static bool stands(const LsShared *s, int k, size_t from, size_t to)
{
    for (uint32_t x = 0; x < s->of[0]->n; x++)
        if (s->argument[x] == k && s->of[0]->number[x].at >= from && s->of[0]->number[x].at < to)
            return true;
    return false;
}

/* The rest of a part's head, from its name on, and the numbers that it uses. `at`: of LS_PART, for
 * the text with the numbers as they are. */
static size_t print_part_head(const LsShared *s, size_t at, FILE *to)
{
    static const char first[] = "LS_UNITS;\n";
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
            fprintf(to, "    LS_NUMBER%s(n%d, %d);\n", s->fours[k] ? "4" : "", k, s->narg + k);
    return (size_t)(end - text);
}

const char *ls_numbers_text(LsArena *a, const LsShared *s)
{
    const LsNumbers *n = s->of[0];
    char *buf = NULL;
    size_t size = 0, at = 0;
    FILE *to = open_memstream(&buf, &size);
    if (to == NULL)
        return n->text;
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
    fclose(to);
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
