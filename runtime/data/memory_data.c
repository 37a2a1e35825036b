/* runtime/data/memory_data.c -- a dataset whose samples lie in the caller's memory. */
#include "runtime/data/dataset.h"

#include <stdlib.h>

bool ls_dataset_in_memory(LsDataset *d, const LsProgram *p, LsError *e)
{
    *d = (LsDataset){.p = p, .opt.data = "the batch"};
    d->source = calloc(p->ninput + 1, sizeof *d->source);
    if (!d->source)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    ls_dataset_describe(d);
    return true;
}

void ls_dataset_point(LsDataset *d, uint32_t input, const void *at, int64_t samples)
{
    LsSource *s = &d->source[input];
    s->path = "the batch";
    s->one = s->synthetic = false;
    s->there = NULL;
    s->stride = s->whole ? 0 : s->per_sample;
    int64_t count;
    if (__builtin_mul_overflow(s->per_sample, s->whole ? 1 : samples, &count))
        count = INT64_MAX;      /* no array has as many: the number of samples is refused later */
    s->array = (LsArray){.data = at,
                         .type = ls_element_of(d->p->input[input].t.type, d->p->real_bytes),
                         .count = count};
    if (!s->whole)
        d->samples = samples;
}

void ls_dataset_point_there(LsDataset *d, uint32_t input, const void *there, int64_t samples)
{
    ls_dataset_point(d, input, NULL, samples);
    d->source[input].there = there;
}

bool ls_dataset_copies(const LsDataset *d, uint32_t input)
{
    const LsInput *in = &d->p->input[input];
    const LsSource *s = &d->source[input];
    const bool classes = in->is_label && d->p->target.classes > 0;
    if (in->t.type == LS_DT_REAL)
        return s->scale == 0 && s->mean == NULL;
    return (in->t.type == LS_DT_I64 || in->t.type == LS_DT_I32) && in->low >= in->high && !classes
           && in->usual != LS_USUAL_LENGTH;
}

void ls_dataset_usual(LsDataset *d, uint32_t input)
{
    d->source[input].there = NULL;
    d->source[input].synthetic = true;
    d->source[input].path = "what is usual";
}

void ls_dataset_zero(LsDataset *d, uint32_t input)
{
    static const int64_t zero;
    ls_dataset_point(d, input, &zero, d->samples);
    d->source[input].one = true;
    d->source[input].array.count = 1;
}
