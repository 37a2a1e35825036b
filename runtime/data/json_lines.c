/* runtime/data/json_lines.c -- samples as lines of JSON: {"input_ids": [..]}, with "labels" of as
 * many numbers, in which -100 does not count, or "prompt_length", so many first tokens without a
 * label. Labels are those of the tokens themselves: they are moved here, so that each token has the
 * next one's. Other keys are passed over, but for an attention_mask, which must be ones. */
#include "runtime/base/json_read.h"
#include "runtime/data/token_inputs.h"

#include <inttypes.h>
#include <string.h>

enum { NO_LABEL = -100, KEY = 64 };

typedef struct Lines {
    LsTokenRows *rows;
    const char *path;
    int64_t line;
    int64_t most; /* tokens of a sample */
    LsError *e;
    bool ids;             /* of the line */
    int64_t labels, seen; /* numbers in its lists; -1: it has none */
    int64_t prompt;       /* -1: not given */
    LsJson label;         /* the list of labels, once it is found */
} Lines;

static bool wrong(Lines *l, const char *why)
{
    return ls_fail(l->e, LS_EXIT_DATA, "%s:%" PRId64 ": %s", l->path, l->line, why);
}

static bool no_memory(Lines *l)
{
    return ls_fail(l->e, LS_EXIT_FAIL, "out of memory");
}

/* An integer of 32 bits. */
static bool whole(LsJson *j, int64_t *v)
{
    const bool minus = ls_json_char(j, '-');
    if (!ls_json_int(j, v) || (j->p < j->end && *j->p && strchr(".eE", *j->p)))
        return false;
    *v = minus ? -*v : *v;
    return *v == (int32_t)*v;
}

/* Calls `take` with each number of a list. */
static bool list(Lines *l, LsJson *j, const char *what, bool (*take)(Lines *, int64_t v, int64_t k),
                 int64_t *n)
{
    int64_t v;
    *n = 0;
    if (!ls_json_char(j, '['))
        return ls_fail(l->e, LS_EXIT_DATA, "%s:%" PRId64 ": '%s' is no list", l->path, l->line,
                       what);
    if (ls_json_char(j, ']'))
        return true;
    do {
        if (!whole(j, &v))
            return ls_fail(l->e, LS_EXIT_DATA,
                           "%s:%" PRId64 ": number %" PRId64 " of '%s' is no "
                           "integer of 32 bits",
                           l->path, l->line, *n, what);
        if (!take(l, v, (*n)++))
            return false;
    } while (ls_json_char(j, ','));
    return ls_json_char(j, ']')
           || ls_fail(l->e, LS_EXIT_DATA, "%s:%" PRId64 ": '%s' does not end", l->path, l->line,
                      what);
}

static LsTokenSample *sample_of(Lines *l)
{
    return &l->rows->sample[l->rows->nsample - 1];
}

static bool take_token(Lines *l, int64_t v, int64_t k)
{
    (void)k;
    return ls_token_rows_add(l->rows, (int32_t)v, (int32_t)v) || no_memory(l);
}

static bool pass(Lines *l, int64_t v, int64_t k)
{
    (void)l, (void)v, (void)k;
    return true;
}

static bool take_label(Lines *l, int64_t v, int64_t k)
{
    l->rows->label[sample_of(l)->from + k] = (int32_t)(v == NO_LABEL ? l->rows->none : v);
    return true;
}

static bool take_seen(Lines *l, int64_t v, int64_t k)
{
    (void)k;
    return v == 1 || wrong(l, "'attention_mask' has other numbers than 1: leave padding out");
}

static bool take_key(Lines *l, LsJson *j)
{
    char key[KEY];
    int64_t n;
    const LsJson at = *j;
    if (!ls_json_string(j, key, sizeof key)) {
        *j = at; /* a long name, of another key */
        key[0] = '\0';
        if (!ls_json_skip(j))
            return wrong(l, "no JSON object");
    }
    if (!ls_json_char(j, ':'))
        return wrong(l, "no JSON object");
    if (strcmp(key, "input_ids") == 0) {
        if (l->ids)
            return wrong(l, "'input_ids' twice");
        l->ids = true;
        return list(l, j, key, take_token, &n);
    }
    if (strcmp(key, "labels") == 0) {
        l->label = *j;
        return list(l, j, key, pass, &l->labels);
    }
    if (strcmp(key, "attention_mask") == 0)
        return list(l, j, key, take_seen, &l->seen);
    if (strcmp(key, "prompt_length") == 0)
        return (whole(j, &l->prompt) && l->prompt >= 0)
               || wrong(l, "'prompt_length' is no integer from 0 on");
    return ls_json_skip(j) || wrong(l, "no JSON object");
}

/* Labels, once the tokens are there. */
static bool end_sample(Lines *l)
{
    const LsTokenSample *s = sample_of(l);
    int64_t n;
    if (!l->ids || s->count == 0)
        return wrong(l, l->ids ? "'input_ids' is empty" : "no 'input_ids'");
    if (s->count > l->most)
        return ls_fail(l->e, LS_EXIT_DATA,
                       "%s:%" PRId64 ": %" PRId64 " tokens, but a row of the "
                       "program has %" PRId64,
                       l->path, l->line, s->count, l->most);
    if ((l->labels >= 0 && l->labels != s->count) || (l->seen >= 0 && l->seen != s->count))
        return ls_fail(l->e, LS_EXIT_DATA, "%s:%" PRId64 ": %" PRId64 " tokens and %" PRId64 " %s",
                       l->path, l->line, s->count, l->labels >= 0 ? l->labels : l->seen,
                       l->labels >= 0 ? "labels" : "numbers in 'attention_mask'");
    if (l->labels >= 0 && l->prompt >= 0)
        return wrong(l, "'labels' and 'prompt_length': one says which tokens have labels");
    if (l->prompt > s->count)
        return wrong(l, "'prompt_length' is more than the tokens");
    for (int64_t k = 0; k < l->prompt; k++)
        l->rows->label[s->from + k] = (int32_t)l->rows->none;
    return l->labels < 0 || list(l, &l->label, "labels", take_label, &n);
}

static bool take_line(Lines *l, const char *from, const char *end)
{
    LsJson j = {from, end};
    if (!ls_token_rows_begin(l->rows, l->line))
        return no_memory(l);
    l->ids = false;
    l->labels = l->seen = l->prompt = -1;
    if (!ls_json_char(&j, '{'))
        return wrong(l, "no JSON object");
    do {
        if (!take_key(l, &j))
            return false;
    } while (ls_json_char(&j, ','));
    if (!ls_json_char(&j, '}'))
        return wrong(l, "the JSON object does not end");
    if (ls_json_char(&j, '\0') || j.p < end)
        return wrong(l, "more than one JSON object");
    return end_sample(l);
}

bool ls_json_line_read(LsTokenRows *rows, const char *path, int64_t line, const char *from,
                       const char *end, int64_t most, LsError *e)
{
    Lines l = {.rows = rows, .path = path, .line = line, .most = most, .e = e};
    return take_line(&l, from, end);
}

static bool is_blank(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p == end;
}

static bool take_lines(Lines *l, const LsFile *f)
{
    const char *p = (const char *)f->data, *const end = p + f->size;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop != NULL ? stop : end;
        l->line++;
        if (!is_blank(p, stop) && !take_line(l, p, stop))
            return false;
        p = stop < end ? stop + 1 : end;
    }
    return l->rows->nsample > 0 || ls_fail(l->e, LS_EXIT_DATA, "%s: no samples", l->path);
}

static bool may_pack(const LsDataset *d, LsError *e)
{
    if (d->opt.pack && d->p->segments == 0)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--pack: the program does not keep the samples of a row "
                       "apart; compile it with --segments");
    if (d->opt.pack && d->p->privacy.expected > 0)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--pack: private training counts rows as samples, so each "
                       "sample needs a row of its own");
    return true;
}

static void bind(LsDataset *d, uint32_t k, const LsFile *f, LsRowPart part)
{
    LsSource *s = &d->source[k];
    s->path = f->path;
    s->rows = &d->rows;
    s->part = part;
    s->stride = s->per_sample;
    s->array = (LsArray){.type = LS_I32,
                         .rank = 2,
                         .dim = {d->rows.rows, s->per_sample},
                         .count = d->rows.rows * s->per_sample};
}

bool ls_json_lines_read(LsDataset *d, const LsFile *f, LsError *e)
{
    LsTokenInputs in;
    if (!ls_token_inputs(d, &in))
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: JSON lines need a program whose first input and target "
                       "are rows of integers of one length",
                       f->path);
    if (!may_pack(d, e))
        return false;
    if (!d->p->target.has_ignore)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: a sample's last token and what fills its row up have "
                       "no label; compile the program with --ignore-index -100",
                       f->path);
    Lines l = {.rows = &d->rows, .path = f->path, .most = in.tokens, .e = e};
    d->rows.none = d->p->target.ignore;
    if (!take_lines(&l, f))
        return false;
    if (!ls_token_rows_place(&d->rows, in.tokens, d->opt.pack))
        return no_memory(&l);
    bind(d, in.ids, f, LS_ROW_TOKEN);
    bind(d, in.label, f, LS_ROW_LABEL);
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        const LsRowPart part = ls_token_part(d, k);
        if (part != LS_ROW_TOKEN && d->source[k].per_sample == in.tokens)
            bind(d, k, f, part);
    }
    return true;
}
