/* runtime/data/dataset.c -- opens data, and copies samples into batches. */
#include "runtime/base/element.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/data/dataset.h"
#include "runtime/data/label_input.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

void ls_dataset_describe(LsDataset *d)
{
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        const LsTensor *t = &d->p->input[k].t;
        LsSource *s = &d->source[k];
        s->whole = t->rank == 0 || t->dim[0] % d->p->division.samples != 0;
        s->per_sample = ls_tensor_count(t) / (t->members > 0 ? t->members : 1)
                        / (s->whole ? 1 : d->p->division.samples);
        s->stored = s->per_sample;
        s->channel = t->rank >= 2 ? t->dim[1] : 1;
        s->run = 1;
        for (int a = 2; a < t->rank; a++)
            s->run *= t->dim[a];
    }
}

static bool open_synthetic(LsDataset *d, LsError *e)
{
    const char *count = strchr(d->opt.data, ':');
    char *end = NULL;
    const int64_t most = (int64_t)1 << 60;      /* keeps the number of batches from overflowing */
    d->samples = count ? strtoll(count + 1, &end, 10)
                       : 16 * ls_batch_samples(&d->p->division)
                             * (d->p->ensemble.own_batches ? d->p->ensemble.members : 1);
    if (d->samples <= 0 || d->samples > most || (count && *end))
        return ls_fail(e, LS_EXIT_USAGE, "--data %s: synthetic:SAMPLES takes a number from 1 to "
                       "2^60", d->opt.data);
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        d->source[k].synthetic = true;
        d->source[k].path = "synthetic";
    }
    return true;
}

/* Sets the number of samples; all inputs with a sample axis must agree on it. */
static bool count_samples(LsDataset *d, LsError *e)
{
    const LsSource *first = NULL;
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        LsSource *s = &d->source[k];
        if (s->whole || s->one || s->synthetic)
            continue;
        int64_t n = s->array.count / s->stored;
        if (first && n != d->samples && (n == 1 || d->samples == 1) && s->array.count == 1) {
            s->one = true;
            continue;
        }
        if (first && n != d->samples)
            return ls_fail(e, LS_EXIT_DATA,
                           "%s has %" PRId64 " samples for '%s', but %s has %" PRId64 " for '%s'",
                           s->path, n, d->p->input[k].t.name, first->path, d->samples,
                           d->p->input[first - d->source].t.name);
        first = s;
        d->samples = n;
    }
    if (!first)
        d->samples = ls_batch_samples(&d->p->division);
    return d->samples > 0 ? true : ls_fail(e, LS_EXIT_DATA, "%s: no samples", d->opt.data);
}

/* Parses one number for all channels, or one per channel. */
static bool read_list(double *to, int64_t channels, const char *text, const char *option,
                      LsError *e)
{
    int64_t n = 0;
    for (const char *p = text; *p;) {
        char *end;
        double v = strtod(p, &end);
        if (end == p || (*end && *end != ',') || n == channels || !isfinite(v))
            return ls_fail(e, LS_EXIT_USAGE,
                           "--%s=%s: one number, or %" PRId64 " (one per channel) "
                           "with commas between",
                           option, text, channels);
        to[n++] = v;
        p = *end ? end + 1 : end;
    }
    if (n != 1 && n != channels)
        return ls_fail(e, LS_EXIT_USAGE, "--%s=%s: the input has %" PRId64 " channels", option,
                       text, channels);
    for (; n < channels; n++)
        to[n] = to[0];
    return true;
}

static double normal(const LsSource *s, int64_t c, double v)
{
    v = s->scale != 0 ? v * s->scale : v;
    return s->mean ? (v - s->mean[c]) / s->std[c] : v;
}

/* Bytes are converted to reals by a table, as there are only 256 of them. */
static bool make_table(LsSource *s, bool divide, LsError *e)
{
    int64_t rows = s->mean ? s->channel : 1;
    free(s->table);
    s->table = calloc((size_t)rows * 256, sizeof *s->table);
    if (!s->table)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (int64_t c = 0; c < rows; c++)
        for (int v = 0; v < 256; v++)
            s->table[c * 256 + v] = (float)normal(s, c, divide ? v / 255.0 : v);
    return true;
}

static bool is_figures(const char *option) { return option && strcmp(option, LS_FIGURES) == 0; }

/* Mean or deviation of the values that `scale` makes. Figures of bytes are of v / 255. A channel
 * whose values are all the same is not divided. */
static void take_figures(const LsSource *s, double *to, const double *from, int64_t n, bool is_std)
{
    const double factor = s->scale == 0 ? 1 : s->array.type == LS_U8 ? 255 * s->scale : s->scale;
    for (int64_t c = 0; c < s->channel; c++) {
        to[c] = from[n > 1 ? c : 0] * (is_std ? fabs(factor) : factor);
        if (is_std && to[c] == 0)
            to[c] = 1;
    }
}

/* Of one input. */
static bool set_figures(LsDataset *d, uint32_t k, const double *mean, const double *std, int64_t n,
                        LsError *e)
{
    LsSource *s = &d->source[k];
    const bool of_mean = is_figures(d->opt.mean), of_std = is_figures(d->opt.std);
    if (s->mean == NULL || (!of_mean && !of_std) || (n != 1 && n != s->channel))
        return true;
    double *to = d->norm;       /* where set_scales put those of this input */
    for (uint32_t j = 0; j < k; j++)
        to += 2 * d->source[j].channel;
    if (of_mean)
        take_figures(s, to, mean, n, false);
    if (of_std)
        take_figures(s, to + s->channel, std, n, true);
    return s->table == NULL || make_table(s, !d->opt.scale, e);
}

/* A target that has an input's values has its figures, too. */
bool ls_dataset_figures(LsDataset *d, uint32_t k, const double *mean, const double *std, int64_t n,
                        LsError *e)
{
    return set_figures(d, k, mean, std, n, e)
           && (!d->label_is_input || k != d->label_input
               || set_figures(d, ls_label_input(d->p), mean, std, n, e));
}

/* --mean=auto, --std=auto. */
static bool has_figures(const LsSource *s, const char *option, LsError *e)
{
    const LsDataField *f = s->field;
    if (f && f->mean && (f->figures == s->channel || f->figures == 1))
        return true;
    return ls_fail(e, LS_EXIT_USAGE,
                   "--%s=" LS_FIGURES ": %s has no mean and deviation %s; lowerset data pack "
                   "computes those of pictures and tables",
                   option, s->path,
                   f && f->mean ? "for each channel of the input" : "of its values");
}

static bool set_norm(LsDataset *d, LsSource *s, double *norm, LsError *e)
{
    const LsDataOptions *o = &d->opt;
    const bool of_mean = is_figures(o->mean), of_std = is_figures(o->std);
    if ((of_mean && !has_figures(s, "mean", e)) || (of_std && !has_figures(s, "std", e))
        || !read_list(norm, s->channel, o->mean && !of_mean ? o->mean : "0", "mean", e)
        || !read_list(norm + s->channel, s->channel, o->std && !of_std ? o->std : "1", "std", e))
        return false;
    for (int64_t c = 0; c < s->channel; c++)
        if (norm[s->channel + c] == 0)
            return ls_fail(e, LS_EXIT_USAGE, "--std=%s: must not be 0", o->std);
    if (of_mean)
        take_figures(s, norm, s->field->mean, s->field->figures, false);
    if (of_std)
        take_figures(s, norm + s->channel, s->field->std, s->field->figures, true);
    s->mean = norm;
    s->std = norm + s->channel;
    return true;
}

/* Scaling applies to real inputs, and to a target that equals an input or comes from bytes. */
static bool set_scale(LsDataset *d, uint32_t k, double *norm, LsError *e)
{
    LsSource *s = &d->source[k];
    const LsDataOptions *o = &d->opt;
    bool as_input = !d->p->input[k].is_label || d->label_is_input;
    bool bytes = s->array.type == LS_U8;
    char *end = NULL;
    if (d->p->input[k].t.type != LS_DT_REAL || s->synthetic || s->labels > 0
        || !(as_input || bytes))
        return true;
    d->scaled = true;
    if (o->scale && ((s->scale = strtod(o->scale, &end)) == 0 || *end || !isfinite(s->scale)))
        return ls_fail(e, LS_EXIT_USAGE, "--scale=%s: must be a number other than 0", o->scale);
    if (as_input && (o->mean || o->std) && !set_norm(d, s, norm, e))
        return false;
    return bytes ? make_table(s, !o->scale, e) : true;
}

static bool set_scales(LsDataset *d, LsError *e)
{
    int64_t channels = 0, at = 0;
    for (uint32_t k = 0; k < d->p->ninput; k++)
        channels += d->source[k].channel;
    d->norm = calloc((size_t)channels * 2 + 1, sizeof *d->norm);
    if (!d->norm)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (uint32_t k = 0; k < d->p->ninput; at += 2 * d->source[k++].channel)
        if (!set_scale(d, k, d->norm + at, e))
            return false;
    return true;
}

bool ls_dataset_scale(LsDataset *d, const LsDataOptions *o, LsError *e)
{
    d->opt.scale = o->scale;
    d->opt.mean = o->mean;
    d->opt.std = o->std;
    return set_scales(d, e);
}

static bool find_label_input(LsDataset *d, LsError *e)
{
    const LsProgram *p = d->p;
    uint32_t label = ls_label_input(p), k = 0;
    if (!d->opt.label_from)
        return true;
    while (k < p->ninput && (k == label || strcmp(p->input[k].t.name, d->opt.label_from) != 0))
        k++;
    if (k == p->ninput && strcmp(d->opt.label_from, "input") == 0)
        k = label == 0 ? 1 : 0;     /* --label-from=input: the only or first input */
    if (ls_label_inputs(p) > 1)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--label-from=%s: the program has several targets, so data name them",
                       d->opt.label_from);
    if (label == p->ninput || k >= p->ninput)
        return ls_fail(e, LS_EXIT_USAGE, "--label-from=%s: the program has no %s",
                       d->opt.label_from, label == p->ninput ? "target" : "such input");
    if (d->source[k].per_sample != d->source[label].per_sample)
        return ls_fail(e, LS_EXIT_USAGE, "--label-from=%s: the target has another shape",
                       d->opt.label_from);
    d->label_is_input = true;
    d->label_input = k;
    return true;
}

bool ls_dataset_open(LsDataset *d, const LsProgram *p, const LsDataOptions *opt, LsError *e)
{
    *d = (LsDataset){.p = p, .opt = *opt};
    d->source = calloc(p->ninput + 1, sizeof *d->source);
    if (!d->source)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    ls_dataset_describe(d);
    if (!find_label_input(d, e))
        return false;
    if (ls_joined_is(opt->data))
        return ls_joined_open(d, e);
    const bool made = strncmp(opt->data, "synthetic", 9) == 0
                      && (opt->data[9] == ':' || !opt->data[9]);
    if (made) {
        if (!open_synthetic(d, e))
            return false;
    } else if (!ls_bind_files(d, e)) {
        return false;
    }
    if (d->label_is_input) {
        LsSource *s = &d->source[ls_label_input(p)], own = *s;
        *s = d->source[d->label_input];
        s->channel = own.channel, s->run = own.run;
    }
    return (made || (count_samples(d, e) && ls_pictures_agree(d, e))) && set_scales(d, e);
}

void ls_dataset_close(LsDataset *d)
{
    if (d->borrowed)
        *d = (LsDataset){0};
    for (uint32_t k = 0; d->source && d->part == NULL && k < d->p->ninput; k++)
        free(d->source[k].table);
    for (int64_t k = 0; k < d->parts; k++)
        ls_dataset_close(&d->part[k]);
    ls_data_file_close(&d->stored);
    free(d->part);
    free(d->first);
    free(d->map);
    free(d->names.text);
    free(d->names_text);
    for (int k = 0; k < d->nfile; k++)
        ls_file_unmap(&d->file[k]);
    free(d->source);
    free(d->file);
    free(d->text);
    free(d->csv);
    free(d->norm);
    ls_token_rows_free(&d->rows);
    *d = (LsDataset){0};
}

/* ---- reading ---- */

/* State of one call of ls_dataset_read. */
typedef struct LsRead {
    const LsDataset *d;
    const LsSource *s;
    uint32_t input;
    int64_t sample, from;       /* from: first element in the array */
} LsRead;

/* The input whose synthetic values this input has. */
static uint32_t made_as(const LsRead *r)
{
    return r->d->p->input[r->input].is_label && r->d->label_is_input ? r->d->label_input
                                                                     : r->input;
}

static double value(const LsRead *r, int64_t i, int64_t c)
{
    const LsSource *s = r->s;
    if (s->synthetic)
        return ls_synthetic_value(r->d, made_as(r), r->sample, i);
    return normal(s, c, ls_array_real(&s->array, s->one ? 0 : r->from + i));
}

/* Reads n elements from element i on, all of channel c, stored `step` elements apart. */
static void read_reals(const LsRead *r, int64_t i, int64_t c, int64_t n, void *to, int64_t step)
{
    const LsSource *s = r->s;
    const unsigned char *from = s->synthetic || s->one ? NULL
                                : s->array.data + (r->from + i) * ls_element_bytes(s->array.type);
    bool wide = r->d->p->real_bytes == 8;
    float *f = to;
    if (s->table && from && !wide) {
        const float *table = s->table + (s->mean ? c * 256 : 0);
        for (int64_t k = 0; k < n; k++)
            f[k * step] = table[from[k]];
    } else if (from && !wide && !s->mean && !s->scale) {
        ls_array_floats(&s->array, r->from + i, n, f, step);
    } else if (s->synthetic) {
        ls_synthetic_reals(r->d, made_as(r), r->sample, i, n, to, step);
    } else {
        bool byte = s->table != NULL && !s->scale;      /* a double holds x / 255 to full
                                                         * precision */
        for (int64_t k = 0; k < n; k++) {
            double v =
                byte ? normal(s, c, ls_array_real(&s->array, s->one ? 0 : r->from + i + k) / 255)
                     : value(r, i + k, c);
            ls_real_put((char *)to + k * step * r->d->p->real_bytes, v, r->d->p->real_bytes);
        }
    }
}

/* "x.npy: sample 3", "train.bin: token 77" or "train.jsonl:4": where element i is. */
enum { PLACE = 320 };
static const char *place(const LsRead *r, int64_t i, char text[PLACE])
{
    const LsSource *s = r->s;
    const int64_t line = s->rows ? ls_token_row_line(s->rows, r->sample, i) : 0;
    if (s->rows && line > 0)
        snprintf(text, PLACE, "%.256s:%" PRId64, s->path, line);
    else if (s->stream)
        snprintf(text, PLACE, "%.256s: token %" PRId64, s->path, s->first + r->from + i);
    else
        snprintf(text, PLACE, "%.256s: sample %" PRId64, s->path, r->sample);
    return text;
}

static bool check_range(const LsRead *r, const LsInput *in, int64_t i, int64_t v, LsError *e)
{
    char at[PLACE];
    if (in->t.type == LS_DT_I32 && v != (int32_t)v)
        return ls_fail(e, LS_EXIT_DATA, "%s: %" PRId64 " does not fit 32 bits", place(r, i, at), v);
    if (!in->is_label && in->low < in->high && (v < in->low || v >= in->high))
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: %" PRId64 " for '%s' does not lie in %" PRId64 "..%" PRId64,
                       place(r, i, at), v, in->t.name, in->low, in->high - 1);
    return true;
}

static bool check_label(const LsRead *r, int64_t i, int64_t v, LsError *e)
{
    char at[PLACE];
    const LsProgram *p = r->d->p;
    const LsInput *in = &p->input[r->input];
    const int64_t classes = in->low < in->high ? in->high : p->target.classes;
    if (classes == 0 || (v >= 0 && v < classes) || (p->target.has_ignore && v == p->target.ignore))
        return true;
    return ls_fail(e, LS_EXIT_DATA, "%s: label %" PRId64 " is not one of the model's %" PRId64
                   " classes", place(r, i, at), v, classes);
}

static bool read_int(const LsRead *r, int64_t i, int64_t *v, LsError *e)
{
    const LsSource *s = r->s;
    const LsInput *in = &r->d->p->input[r->input];
    int64_t at = s->one ? 0 : r->from + i;
    if (s->synthetic) {
        *v = (int64_t)value(r, i, 0);
    } else if (s->token) {
        /* ls_dataset_number has checked the characters of a text, and those that a packed one says
         * that it has */
        *v = s->token[s->array.data[at]];
        if (*v < 0)
            return ls_fail(e, LS_EXIT_DATA, "%s: damaged: sample %" PRId64 " has byte %d, which "
                           "is not in its alphabet", s->path, r->sample, s->array.data[at]);
    } else if (s->rows) {
        *v = ls_token_row_value(s->rows, s->part, r->sample, i);
    } else if (s->counts) {
        *v = i;
    } else {
        *v = ls_array_int(&s->array, at);
        if (s->map && *v >= 0 && *v < s->nmap)
            *v = s->map[*v];
        else if (ls_element_is_float(s->array.type) && ls_array_real(&s->array, at) != (double)*v)
            return ls_fail(e, LS_EXIT_DATA,
                           "%s: sample %" PRId64 ": %g is not an integer, but '%s' takes integers",
                           s->path, r->sample, ls_array_real(&s->array, at), in->t.name);
    }
    return check_range(r, in, i, *v, e) && (!in->is_label || check_label(r, i, *v, e));
}

static bool read_ints(const LsRead *r, int64_t i, int64_t n, char *to, int64_t step, LsError *e)
{
    LsDataType type = r->d->p->input[r->input].t.type;
    int64_t v;
    for (int64_t k = 0; k < n; k++) {
        if (!read_int(r, i + k, &v, e))
            return false;
        if (type == LS_DT_I64)
            ((int64_t *)(void *)to)[k * step] = v;
        else if (type == LS_DT_I32)
            ((int32_t *)(void *)to)[k * step] = (int32_t)v;
        else
            ((uint8_t *)to)[k * step] = v != 0;
    }
    return true;
}

/* No token follows one that the mask hides. */
static bool is_padded_behind(const LsRead *r, LsError *e)
{
    const LsSource *s = r->s;
    bool ended = false;
    int64_t v;
    for (int64_t i = 0; i < s->per_sample && !s->synthetic && !s->one; i++) {
        if (!read_int(r, i, &v, e))
            return false;
        if (v != 0 && ended)
            return ls_fail(e, LS_EXIT_DATA,
                           "%s: sample %" PRId64
                           ": '%s' hides tokens before element %" PRId64
                           ": this model reads no more than its number of ones, so that samples "
                           "are padded behind their tokens",
                           s->path, r->sample, r->d->p->input[r->input].t.name, i);
        ended |= v == 0;
    }
    return true;
}

/* Where a sample of this part of the data lies: in which file, and in which place of it. */
static LsRead begin_read(const LsDataset *d, uint32_t input, int64_t sample)
{
    sample = ls_hold_out_sample(&d->held_out, sample);
    d = ls_dataset_part(d, &sample);
    const LsSource *s = &d->source[input];
    return (LsRead){d, s, input, s->whole ? 0 : sample, s->whole ? 0 : sample * s->stride};
}

bool ls_dataset_read_run(const LsDataset *d, uint32_t input, int64_t sample, int64_t from,
                         int64_t c, int64_t n, void *to, int64_t step, LsError *e)
{
    const LsRead r = begin_read(d, input, sample);
    if (d->p->input[input].t.type != LS_DT_REAL)
        return read_ints(&r, from, n, to, step, e);
    read_reals(&r, from, c, n, to, step);
    return true;
}

bool ls_dataset_read_labels(const LsDataset *d, uint32_t input, int64_t sample, int64_t from,
                            int64_t n, int64_t *to, LsError *e)
{
    const LsRead r = begin_read(d, input, sample);
    for (int64_t k = 0; k < n; k++)
        if (!read_int(&r, from + k, &to[k], e))
            return false;
    return true;
}

void ls_dataset_raw(const LsDataset *d, uint32_t input, int64_t sample, int64_t from, int64_t n,
                    float *to)
{
    const LsRead r = begin_read(d, input, sample);
    if (!r.s->synthetic && !r.s->one)
        ls_array_floats(&r.s->array, r.from + from, n, to, 1);
    else
        for (int64_t k = 0; k < n; k++)
            to[k] = (float)(r.s->one ? ls_array_real(&r.s->array, 0)
                                     : ls_synthetic_value(d, made_as(&r), r.sample, from + k));
}

const unsigned char *ls_dataset_bytes(const LsDataset *d, uint32_t input, int64_t sample)
{
    const LsRead r = begin_read(d, input, sample);
    return r.s->array.data + r.from;
}

double ls_dataset_zero_value(const LsDataset *d, uint32_t input, int64_t c)
{
    return d->p->input[input].t.type == LS_DT_REAL ? normal(&d->source[input], c, 0) : 0;
}

bool ls_dataset_read(const LsDataset *d, uint32_t input, int64_t sample, int64_t place, void *batch,
                     LsError *e)
{
    return ls_dataset_read_moved(d, input, sample, 0, place, batch, e);
}

bool ls_dataset_read_moved(const LsDataset *d, uint32_t input, int64_t sample, int64_t moved,
                           int64_t place, void *batch, LsError *e)
{
    const LsTensor *t = &d->p->input[input].t;
    LsRead r = begin_read(d, input, sample);
    const LsSource *s = r.s;
    r.from += s->stream ? moved : 0;
    bool last = t->channels_last && t->rank >= 3, by_channel = last || s->mean;
    int64_t run = by_channel ? s->run : s->per_sample, step = last ? s->channel : 1;
    int64_t size = ls_data_bytes(t->type, d->p->real_bytes);
    if (d->p->input[input].usual == LS_USUAL_LENGTH && !is_padded_behind(&r, e))
        return false;
    char *to = (char *)batch + (s->whole ? 0 : place) * s->per_sample * size;
    if (s->labels > 0 || s->high > 0)
        return ls_picture_sample(d, input, sample, to, e);
    for (int64_t i = 0; i < s->per_sample; i += run) {
        int64_t c = by_channel ? i / run % s->channel : 0;
        int64_t row = i / (run * s->channel) * run * s->channel;
        char *at = to + (last ? row + c : i) * size;
        if (t->type == LS_DT_REAL)
            read_reals(&r, i, c, run, at, step);
        else if (!read_ints(&r, i, run, at, step, e))
            return false;
    }
    return true;
}

/* ---- search for values that are not finite ---- */

/* Element i of a real input, as converted for a batch. */
static double delivered(const LsRead *r, int64_t i)
{
    const LsSource *s = r->s;
    bool divided = s->table && !s->scale;
    int64_t c = s->mean ? i / (s->stored * s->run / s->per_sample) % s->channel : 0;
    double v = ls_array_real(&s->array, s->one ? 0 : r->from + i);
    v = normal(s, c, divided ? v / 255 : v);
    return r->d->p->real_bytes == 8 ? v : (float)v;
}

bool ls_dataset_is_finite(const LsDataset *d, uint32_t input, int64_t sample, LsError *e)
{
    const LsTensor *t = &d->p->input[input].t;
    const LsRead r = begin_read(d, input, sample);
    const LsSource *s = r.s;
    const bool reads =
        t->type == LS_DT_REAL && s->labels == 0 && !s->synthetic && s->there == NULL;
    for (int64_t i = 0; i < s->stored && reads; i++) {
        double v = delivered(&r, i), there = ls_array_real(&s->array, s->one ? 0 : r.from + i);
        if (!isfinite(there))
            return ls_fail(e, LS_EXIT_DATA,
                           "%s: sample %" PRId64 ": '%s' has %g at element %" PRId64, s->path,
                           r.sample, t->name, there, i);
        if (!isfinite(v))
            return ls_fail(e, LS_EXIT_DATA,
                           "%s: sample %" PRId64 ": '%s' has %g at element %" PRId64
                           ", which becomes %g", s->path, r.sample, t->name, there, i, v);
    }
    return true;
}
