/* runtime/data/bind_files.c -- binds files to the inputs of the program. */
#include "runtime/base/tensor_copy.h"
#include "runtime/data/dataset.h"
#include "runtime/data/label_input.h"
#include "runtime/data/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

static int find_input(const LsProgram *p, const char *name, size_t len)
{
    for (uint32_t k = 0; k < p->ninput; k++)
        if (strlen(p->input[k].t.name) == len && memcmp(p->input[k].t.name, name, len) == 0)
            return (int)k;
    uint32_t label = ls_label_input(p);
    return ls_label_inputs(p) == 1 && len == 5 && memcmp(name, "label", 5) == 0 ? (int)label : -1;
}

static bool raw_type(LsElement *type, const char *name, LsError *e)
{
    for (int k = LS_F32; k <= LS_B8; k++)
        if (strcmp(name, ls_element_name((LsElement)k)) == 0) {
            *type = (LsElement)k;
            return true;
        }
    return ls_fail(
        e, LS_EXIT_USAGE,
        "--raw=%s: element types are float32, float64, float16, bfloat16, int8, uint8, int16, "
        "uint16, int32, uint32, int64, bool",
        name);
}

/* Reads a file without header: its size gives the number of samples. */
static bool read_raw(LsDataset *d, uint32_t input, const LsFile *f, LsArray *a, LsError *e)
{
    static const LsElement usual[] = {[LS_DT_REAL] = LS_F32, [LS_DT_I64] = LS_I64,
                                      [LS_DT_I32] = LS_I32, [LS_DT_BOOL] = LS_B8};
    const LsSource *s = &d->source[input];
    LsElement type = usual[d->p->input[input].t.type];
    if (d->opt.raw && !raw_type(&type, d->opt.raw, e))
        return false;
    int64_t each = s->per_sample * ls_element_bytes(type), n = (int64_t)f->size / each;
    if (n == 0 || (int64_t)f->size % each != 0)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: %zu bytes are not a multiple of the %lld that a sample of "
                       "'%s' takes as %s",
                       f->path, f->size, (long long)each, d->p->input[input].t.name,
                       ls_element_name(type));
    *a = (LsArray){f->data, type, false, 2, {n, s->per_sample}, n * s->per_sample};
    return true;
}

/* Drops axes of length 1. */
static int squeeze(int rank, const int64_t *dim, int64_t *to)
{
    int n = 0;
    for (int k = 0; k < rank; k++)
        if (dim[k] != 1)
            to[n++] = dim[k];
    return n;
}

/* False: the product is too large. A file may announce 0 samples of any size. */
static bool product(int rank, const int64_t *dim, int64_t *n)
{
    *n = 1;
    for (int k = 0; k < rank; k++)
        if (__builtin_mul_overflow(*n, dim[k], n))
            return false;
    return true;
}

/* Equal except for axes of length 1; or one is flat and both have the same number of elements. */
static bool same_dims(int ra, const int64_t *a, int rb, const int64_t *b)
{
    int64_t sa[LS_TENSOR_RANK], sb[LS_TENSOR_RANK], na, nb;
    ra = squeeze(ra, a, sa);
    rb = squeeze(rb, b, sb);
    if (ra <= 1 || rb <= 1)
        return product(ra, sa, &na) && product(rb, sb, &nb) && na == nb;
    return ra == rb && memcmp(sa, sb, (size_t)ra * sizeof *sa) == 0;
}

/* Whether an array fits an input. Its first axis counts samples, or rows where a sample of the
 * input has several rows. */
static bool fits(const LsArray *a, const LsTensor *t, const LsSource *s, int64_t batch)
{
    int64_t sample[LS_TENSOR_RANK];
    if (s->whole)
        return same_dims(a->rank, a->dim, t->rank, t->dim);
    if (a->rank == 0)
        return false;
    memcpy(sample, t->dim, sizeof sample);
    sample[0] = t->dim[0] / batch;
    return same_dims(a->rank - 1, a->dim + 1, t->rank, sample)
           || (same_dims(a->rank - 1, a->dim + 1, t->rank - 1, t->dim + 1)
               && a->dim[0] % sample[0] == 0);
}

/* Likewise, where pictures or maps have other sizes than those of the input: their last two
 * axes. */
static bool fits_picture(const LsDataset *d, uint32_t input, const LsTensor *t, LsSource *s)
{
    const LsArray *a = &s->array;
    const int64_t batch = d->p->division.samples;
    LsTensor of = *t;
    int64_t each;
    if (!ls_moves_with_pictures(d, input) || a->rank < 3)
        return false;
    const int64_t high = a->dim[a->rank - 2], wide = a->dim[a->rank - 1];
    of.dim[t->rank - 2] = high;
    of.dim[t->rank - 1] = wide;
    if (high <= 1 || wide <= 1 || !fits(a, &of, s, batch)
        || !product(t->rank - 1, of.dim + 1, &each))
        return false;
    s->stored = of.dim[0] / batch * each;
    s->high = high;
    s->wide = wide;
    return true;
}

/* Likewise, of labels for a target of probabilities, whose axis of classes they lack. */
static bool fits_labels(const LsDataset *d, uint32_t input, LsSource *s)
{
    LsTensor of = d->p->input[input].t;
    const int64_t batch = d->p->division.samples;
    if (!ls_takes_labels(d->p, input) || s->whole || ls_element_is_float(s->array.type))
        return false;
    const int axis = d->p->target.class_axis;
    const int64_t labels = s->per_sample / of.dim[axis], stored = s->stored;
    of.rank--;
    memmove(of.dim + axis, of.dim + axis + 1, (size_t)(of.rank - axis) * sizeof *of.dim);
    s->stored = labels;
    if (fits(&s->array, &of, s, batch) || fits_picture(d, input, &of, s)) {
        s->labels = labels;
        return true;
    }
    s->stored = stored;
    return false;
}

static bool other_pictures(const LsDataset *d, uint32_t input, LsError *e)
{
    const LsTensor *t = &d->p->input[input].t;
    const LsSource *s = &d->source[input];
    char have[96], want[96], hint[96] = "";
    if (t->dim[1] == 1 || t->dim[1] == 3)
        snprintf(hint, sizeof hint, ": pack them again with --channels %lld --size %lldx%lld",
                 (long long)t->dim[1], (long long)t->dim[2], (long long)t->dim[3]);
    return ls_fail(e, LS_EXIT_DATA,
                   "%s: its pictures are %s, but input '%s' takes %s (channels, height, width)%s",
                   s->path, ls_dims_text(3, s->array.dim + 1, have), t->name,
                   ls_dims_text(3, t->dim + 1, want), hint);
}

bool ls_dataset_fit(LsDataset *d, uint32_t input, LsError *e)
{
    const LsTensor *t = &d->p->input[input].t;
    LsSource *s = &d->source[input];
    char have[96], want[96], axis[160] = "";
    s->stride = s->per_sample;
    s->one = s->array.count == 1 && (s->array.rank == 0 || s->per_sample > 1);
    if (s->one || fits(&s->array, t, s, d->p->division.samples))
        return true;
    if (fits_labels(d, input, s) || fits_picture(d, input, t, s)) {
        s->stride = s->stored;
        return true;
    }
    if (s->field && s->field->kind == LS_FIELD_PICTURE && t->rank == 4)
        return other_pictures(d, input, e);
    bool classes = d->p->input[input].is_label && d->p->target.classes > 0 && t->rank > 1;
    if (classes)                /* of scores with several positions per sample */
        snprintf(axis, sizeof axis,
                 ", because axis %d of the scores has the classes; lowerset compile "
                 "--class-axis chooses another axis",
                 d->p->target.class_axis);
    return ls_fail(e, LS_EXIT_DATA, "%s: shape %s does not fit input '%s', %s %s%s", s->path,
                   ls_dims_text(s->array.rank, s->array.dim, have), t->name,
                   s->whole ? "which is" : "which for one batch is",
                   ls_dims_text(t->rank, t->dim, want), axis);
}

static bool bind_npz(LsDataset *d, const LsFile *f, int only, LsError *e)
{
    static const struct { const char *folder, *name; } place[] = {
        {"", NULL}, {"in/", NULL}, {"", "label"}};      /* NULL: the input's name */
    const bool alone = ls_label_inputs(d->p) == 1;
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        const LsInput *in = &d->p->input[k];
        LsSource *s = &d->source[k];
        bool found = false;
        if (s->path || (only >= 0 && k != (uint32_t)only) || (in->is_label && d->label_is_input))
            continue;
        for (int j = 0; j < (in->is_label && alone ? 3 : 2) && !found; j++) {
            const char *name = place[j].name ? place[j].name : in->t.name;
            if (!ls_npz_find_in(f, place[j].folder, name, &s->array, &found, e))
                return false;
        }
        if (found)
            s->path = f->path;
        if (found && !ls_dataset_fit(d, k, e))
            return false;
    }
    return true;
}

/* Binds an array file to one input. */
static bool bind_one(LsDataset *d, const LsFile *f, uint32_t input, LsError *e)
{
    LsSource *s = &d->source[input];
    bool raw = d->opt.raw || ends_with(f->path, ".raw") || ends_with(f->path, ".bin"), ok;
    if (f->size >= 6 && memcmp(f->data, "\x93NUMPY", 6) == 0)
        ok = ls_npy_read(&s->array, f->data, f->size, f->path, e);
    else if (!raw && ls_idx_is(f))
        ok = ls_idx_read(&s->array, f, e);
    else if (raw)
        ok = read_raw(d, input, f, &s->array, e);
    else
        ok = ls_fail(e, LS_EXIT_DATA,
                     "%s: format not recognised (IDX, NPY, NPZ, .csv, .txt, .jsonl; for raw "
                     "numbers give --raw=TYPE)",
                     f->path);
    s->path = f->path;
    return ok && ls_dataset_fit(d, input, e);
}

/* The next input without a source, the targets last. */
static int next_free(const LsDataset *d)
{
    for (int targets = 0; targets < 2; targets++)
        for (uint32_t k = 0; k < d->p->ninput; k++)
            if (!d->source[k].path && d->p->input[k].is_label == (targets == 1)
                && !(targets == 1 && d->label_is_input))
                return (int)k;
    return -1;
}

static bool bind_item(LsDataset *d, char *item, LsError *e)
{
    char *equal = strchr(item, '=');
    int input = equal ? find_input(d->p, item, (size_t)(equal - item)) : -1;
    LsFile *f = &d->file[d->nfile];
    if (!ls_file_map(f, input >= 0 ? equal + 1 : item, e))
        return false;
    d->nfile++;
    if (f->size >= 2 && f->data[0] == 0x1f && f->data[1] == 0x8b && !d->opt.raw)
        return ls_fail(e, LS_EXIT_DATA, "%s: compressed with gzip; unpack it first: gunzip -k %s",
                       f->path, f->path);
    if (f->size >= 4 && memcmp(f->data, "PK", 2) == 0 && (f->data[2] == 3 || f->data[2] == 5))
        return bind_npz(d, f, input, e);
    if (ls_data_file_is(f) && !d->opt.raw)
        return ls_data_file_bind(d, f, input, e);
    if (input < 0 && ends_with(f->path, ".lsd"))
        return ls_fail(e, LS_EXIT_DATA, "%s: no packed data set (lowerset data pack makes them)",
                       f->path);
    if (input < 0 && ends_with(f->path, ".npz"))
        return ls_fail(e, LS_EXIT_DATA, "%s: not a ZIP archive (truncated?)", f->path);
    if (input < 0 && ends_with(f->path, ".csv"))
        return ls_csv_read(d, f, e);
    if (input < 0 && ends_with(f->path, ".txt"))
        return ls_text_read(d, f, e);
    if (input < 0 && ends_with(f->path, ".jsonl"))
        return ls_json_lines_read(d, f, e);
    if (input < 0 && ends_with(f->path, ".bin") && ls_cifar_is(d, f))
        return ls_cifar_bind(d, f, e);
    if (input < 0 && ls_stream_is(d, f, ends_with(f->path, ".bin")))
        return ls_stream_read(d, f, e);
    if (input < 0 && (input = next_free(d)) < 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: no input is left for it", f->path);
    if (d->source[input].path)
        return ls_fail(e, LS_EXIT_DATA, "%s: input '%s' has data already", f->path,
                       d->p->input[input].t.name);
    return bind_one(d, f, (uint32_t)input, e);
}

static bool all_bound(LsDataset *d, LsError *e)
{
    char dims[96], names[256] = "", too[160];
    for (uint32_t j = 0; j < d->p->ninput; j++)
        if (d->source[j].path == NULL && d->p->input[j].usual != LS_USUAL_NONE)
            ls_dataset_usual(d, j);
    for (uint32_t j = 0; j < d->p->ninput && d->opt.unlabelled; j++)
        if (d->source[j].path == NULL && d->p->input[j].is_label && !d->label_is_input)
            ls_dataset_zero(d, j);
    int k = next_free(d);
    if (k < 0)
        return true;
    const LsInput *in = &d->p->input[k];
    for (int j = 0; j < d->nfile && !names[0]; j++)
        if (ends_with(d->file[j].path, ".npz"))
            ls_npz_names(&d->file[j], names, sizeof names);
    if (in->is_label)
        snprintf(too, sizeof too,
                 "--data IMAGES,LABELS gives both; for an autoencoder there is --label-from INPUT");
    else
        snprintf(too, sizeof too, "--data FILE,%.64s=FILE gives it too", in->t.name);
    return ls_fail(e, LS_EXIT_DATA, "%s: nothing for %s '%s' (%s)%s%s; %s", d->opt.data,
                   in->is_label ? "the target" : "input", in->t.name,
                   ls_dims_text(in->t.rank, in->t.dim, dims), names[0] ? "; members: " : "", names,
                   too);
}

bool ls_bind_files(LsDataset *d, LsError *e)
{
    int items = 1;
    for (const char *p = d->opt.data; *p; p++)
        items += *p == ',';
    d->text = strdup(d->opt.data);
    d->file = calloc((size_t)items, sizeof *d->file);
    if (!d->text || !d->file)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    char *rest = d->text;
    for (char *item; (item = strsep(&rest, ",")) != NULL;)
        if (*item && !bind_item(d, item, e))
            return false;
    return all_bound(d, e);
}
