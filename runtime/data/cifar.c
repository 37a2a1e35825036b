/* runtime/data/cifar.c -- the binary files of CIFAR-10 and CIFAR-100: records of a label of one
 * byte, or of two (coarse and fine), and a picture of 3 x 32 x 32 bytes. */
#include "runtime/data/dataset.h"
#include "runtime/data/label_input.h"

enum { PIXELS = 3 * 32 * 32 };

/* The program's only input, for pictures, and its only target, for their labels. */
static bool takes_pictures(const LsDataset *d, uint32_t *picture, uint32_t *label)
{
    const LsProgram *p = d->p;
    *picture = p->ninput;
    *label = ls_label_input(p);
    for (uint32_t k = 0; k < p->ninput; k++) {
        if (p->input[k].is_label ? k != *label : *picture != p->ninput)
            return false;
        if (!p->input[k].is_label)
            *picture = k;
    }
    return *picture < p->ninput && *label < p->ninput && !d->label_is_input && !d->opt.raw
           && p->input[*picture].t.type == LS_DT_REAL && p->input[*label].t.type != LS_DT_REAL
           && d->source[*picture].per_sample == PIXELS && d->source[*label].per_sample == 1
           && !d->source[*picture].path && !d->source[*label].path;
}

/* All labels lie below the model's classes. */
static bool are_labels(const LsDataset *d, const LsFile *f, int64_t record, int at)
{
    const int64_t classes = d->p->target.classes;
    for (size_t i = (size_t)at; i < f->size; i += (size_t)record)
        if (classes > 0 && f->data[i] >= classes)
            return false;
    return true;
}

/* Bytes in front of a picture; 0: other records. */
static int label_bytes(const LsDataset *d, const LsFile *f)
{
    for (int n = 1; n <= 2; n++)
        if (f->size % (PIXELS + (size_t)n) == 0 && are_labels(d, f, PIXELS + n, 0))
            return n;
    return f->size % (PIXELS + 1) == 0 ? 1 : f->size % (PIXELS + 2) == 0 ? 2 : 0;
}

bool ls_cifar_is(const LsDataset *d, const LsFile *f)
{
    uint32_t picture, label;
    return takes_pictures(d, &picture, &label) && label_bytes(d, f) > 0;
}

bool ls_cifar_bind(LsDataset *d, const LsFile *f, LsError *e)
{
    uint32_t picture, label;
    (void)e;
    takes_pictures(d, &picture, &label);
    const int n = label_bytes(d, f);
    const int64_t record = PIXELS + n, samples = (int64_t)f->size / record;
    /* A model of at most 20 classes learns the coarse ones of CIFAR-100. */
    const int64_t classes = d->p->target.classes;
    const int at = n == 2 && !(classes > 0 && classes <= 20) ? 1 : 0;
    LsSource *x = &d->source[picture], *y = &d->source[label];
    x->path = y->path = f->path;
    x->stride = y->stride = record;
    x->array = (LsArray){f->data + n, LS_U8, false, 2, {samples, PIXELS}, samples * PIXELS};
    y->array = (LsArray){f->data + at, LS_U8, false, 1, {samples}, samples};
    return true;
}
