/* runtime/text.c -- next-character data: sample s is characters s*T .. s*T+T-1, its target the same
 * moved on by one. A character's number is its place among the different characters of the text,
 * sorted. */
#include "runtime/dataset.h"

#include <inttypes.h>
#include <string.h>

static void number_characters(LsDataset *d, const LsFile *f)
{
    memset(d->token, 0xff, sizeof d->token);
    if (d->opt.like && d->opt.like->ntoken) {
        memcpy(d->token, d->opt.like->token, sizeof d->token);
        d->ntoken = d->opt.like->ntoken;
        return;
    }
    for (size_t i = 0; i < f->size; i++)
        d->token[f->data[i]] = 0;
    for (int c = 0; c < 256; c++)
        if (d->token[c] == 0)
            d->token[c] = (int16_t)d->ntoken++;
}

static void bind(LsDataset *d, uint32_t input, const LsFile *f, int64_t from, int64_t samples)
{
    LsSource *s = &d->source[input];
    int64_t n = s->per_sample;
    s->path = f->path;
    s->array = (LsArray){f->data + from, LS_U8, false, 2, {samples, n}, samples * n};
    s->stride = n;
    s->token = d->token;
}

bool ls_text_read(LsDataset *d, const LsFile *f, LsError *e)
{
    const LsProgram *p = d->p;
    uint32_t label = ls_label_input(p);
    int64_t n = d->source[0].per_sample;
    if (label == p->ninput || d->source[label].per_sample != n || p->input[0].t.type == LS_DT_REAL
        || d->source[0].path || d->source[label].path)
        return ls_fail(e, LS_EXIT_DATA, "%s: text needs a program whose first input and target are "
                       "rows of integers of one length", f->path);
    int64_t samples = ((int64_t)f->size - 1) / n;
    if (samples == 0)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: a sample takes %" PRId64 " characters, the text has %zu", f->path,
                       n + 1, f->size);
    number_characters(d, f);
    if (p->classes && d->ntoken > p->classes)
        return ls_fail(e, LS_EXIT_DATA, "%s: %d different characters, but the model has %" PRId64
                       " classes", f->path, d->ntoken, p->classes);
    bind(d, 0, f, 0, samples);
    bind(d, label, f, 1, samples);
    return true;
}
