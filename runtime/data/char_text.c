/* runtime/data/char_text.c -- next-character data: sample s is characters s*T .. s*T+T-1, its
 * target the same characters shifted by one. */
#include "runtime/data/dataset.h"
#include "runtime/data/label_input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* "'x' (120)", or "10" for a character that is not printable. */
static char *character(int c, char text[16])
{
    if (c > 32 && c < 127)
        snprintf(text, 16, "'%c' (%d)", c, c);
    else
        snprintf(text, 16, "%d", c);
    return text;
}

static bool number_parts(LsDataset *d, const LsAlphabet *a, LsError *e)
{
    for (int64_t k = 0; k < d->parts && ls_alphabet_count(a) > 0; k++)
        if (!ls_dataset_number(&d->part[k], a, e))
            return false;
    d->alphabet = *a;
    return true;
}

bool ls_dataset_number(LsDataset *d, const LsAlphabet *known, LsError *e)
{
    const LsAlphabet *a = ls_alphabet_count(known) > 0 ? known : &d->characters;
    int count = ls_alphabet_count(a), next = 0;
    char c_text[16];
    if (d->parts > 0)
        return number_parts(d, a, e);
    if (ls_alphabet_count(&d->characters) == 0)
        return true;
    for (int c = 0; c < 256; c++) {
        if (ls_alphabet_has(&d->characters, c) && !ls_alphabet_has(a, c))
            return ls_fail(e, LS_EXIT_DATA, "%s: character %s is not among the %d that the model "
                           "was trained on", d->source[0].path, character(c, c_text), count);
        d->token[c] = (int16_t)(ls_alphabet_has(a, c) ? next++ : -1);
    }
    if (d->p->target.classes && count > d->p->target.classes)
        return ls_fail(e, LS_EXIT_DATA, "%s: %d different characters, but the model has %" PRId64
                       " classes", d->source[0].path, count, d->p->target.classes);
    d->alphabet = *a;
    return true;
}

static void bind(LsDataset *d, uint32_t input, const char *path, const unsigned char *data,
                 int64_t samples)
{
    LsSource *s = &d->source[input];
    int64_t n = s->per_sample;
    s->path = path;
    s->array = (LsArray){data, LS_U8, false, 2, {samples, n}, samples * n};
    s->stride = n;
    s->token = d->token;
}

bool ls_text_bind(LsDataset *d, const char *path, const unsigned char *data, size_t size,
                  LsError *e)
{
    const LsProgram *p = d->p;
    uint32_t label = ls_label_input(p);
    int64_t n = d->source[0].per_sample;
    if (label == p->ninput || d->source[label].per_sample != n || p->input[0].t.type == LS_DT_REAL
        || d->source[0].path || d->source[label].path)
        return ls_fail(e, LS_EXIT_DATA, "%s: text needs a program whose first input and target are "
                       "rows of integers of one length", path);
    int64_t samples = ((int64_t)size - 1) / n;
    if (samples == 0)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: a sample takes %" PRId64 " characters, the text has %zu", path, n + 1,
                       size);
    memset(d->token, 0xff, sizeof d->token);
    bind(d, 0, path, data, samples);
    bind(d, label, path, data + 1, samples);
    return true;
}

bool ls_text_read(LsDataset *d, const LsFile *f, LsError *e)
{
    if (!ls_text_bind(d, f->path, f->data, f->size, e))
        return false;
    for (size_t i = 0; i < f->size; i++)
        ls_alphabet_add(&d->characters, f->data[i]);
    return true;
}
