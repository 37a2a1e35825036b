/* runtime/predict/predict_csv.c -- predictions as a table, a line for each sample.
 *
 * Class scores: the class, its probability, then the probability of each class. Scores of yes or
 * no: the probability of yes. Other outputs: their values. */
#include "runtime/base/json_read.h"
#include "runtime/predict/predict_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 65536, PART = 1024, NAME = 4096 };

typedef struct Table {
    LsOut out;
    bool open;
    char part[PART];
    LsText text;
} Table;

static void to_file(void *to, const void *data, size_t n) { ls_out_write(to, data, n); }

/* One class of a sample, not of each of several positions. */
static bool is_class(const LsPredictFile *f, int k)
{
    return f->outputs->output[k].scores && ls_output_scores(f->outputs, k).positions == 1;
}

/* One name made of two. */
static void put_name(LsText *t, const char *a, const char *b)
{
    char name[NAME];
    snprintf(name, sizeof name, "%.3000s%.1000s", a, b);
    ls_text_csv(t, name);
}

static void put_values_head(const LsPredictFile *f, LsText *t, int k)
{
    const LsOutput *out = &f->outputs->output[k];
    int64_t dim[LS_TENSOR_RANK];
    const int rank = ls_output_dims(out, dim);
    for (int64_t i = 0; i < out->count; i++) {
        char index[LS_TENSOR_RANK * 24] = "", text[24];
        int64_t each = out->count, at = i;
        size_t n = 0;
        for (int d = 0; d < rank && out->count > 1; d++) {
            each /= dim[d];
            n += (size_t)snprintf(index + n, sizeof index - n, "%s%" PRId64, d ? "_" : "[",
                                  at / each);
            at %= each;
        }
        if (n > 0)
            snprintf(index + n, sizeof index - n, "]");
        ls_text_put(t, i > 0 ? "," : "");
        if (f->bits && rank == 1 && f->classes.n == out->count)
            ls_text_csv(t, ls_class_called(&f->classes, i, text));
        else
            put_name(t, out->name, index);
    }
}

static void put_head(const LsPredictFile *f, LsText *t)
{
    char text[LS_CLASS_NUMBER];
    for (int k = 0; k < f->outputs->n; k++) {
        const LsOutput *out = &f->outputs->output[k];
        char prefix[NAME] = "", p[NAME];
        if (f->outputs->n > 1)  /* several may be classes */
            snprintf(prefix, sizeof prefix, "%.1000s.", out->name);
        snprintf(p, sizeof p, "%.1010sp_", prefix);
        ls_text_put(t, k > 0 ? "," : "");
        if (!is_class(f, k)) {
            put_values_head(f, t, k);
            continue;
        }
        put_name(t, prefix, "class");
        ls_text_put(t, ",");
        put_name(t, prefix, "probability");
        for (int64_t c = 0; c < out->count; c++) {
            ls_text_put(t, ",");
            put_name(t, p, ls_class_called(&f->classes, c, text));
        }
    }
    ls_text_put(t, "\n");
}

static bool csv_open(LsPredictFile *f, LsError *e)
{
    int64_t columns = 0;
    for (int k = 0; k < f->outputs->n; k++) {
        const LsOutput *out = &f->outputs->output[k];
        if (f->outputs->output[k].count > COLUMNS - columns)
            return ls_fail(e, LS_EXIT_USAGE,
                           "%s: a sample of '%s' has %" PRId64
                           " values, more than the %d columns of a table: write FILE.npz, or name "
                           "other outputs with --predict-outputs",
                           f->path, out->name, out->count, COLUMNS);
        columns += out->count;
    }
    Table *a = f->own = calloc(1, sizeof *a);
    if (a == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --predict");
    if (!ls_out_open(&a->out, f->path, e))
        return false;
    a->open = true;
    a->text = (LsText){a->part, 0, sizeof a->part, to_file, &a->out};
    put_head(f, &a->text);
    return true;
}

static int digits(const LsPredictFile *f)
{
    return f->outputs->seen.g->p->real_bytes == 8 ? 17 : 9;
}

/* As Python and pandas write and read such values. */
static void put_number(LsText *t, double v, int precision)
{
    if (isnan(v))
        ls_text_put(t, "nan");
    else if (isinf(v))
        ls_text_put(t, v < 0 ? "-inf" : "inf");
    else
        ls_text_put(t, "%.*g", precision, v);
}

static void put_class(LsPredictFile *f, LsText *t, int k, int64_t in_batch)
{
    const int64_t n = f->outputs->output[k].count;
    char text[LS_CLASS_NUMBER];
    int64_t best = 0;
    ls_output_probabilities(f->outputs, k, in_batch, f->reals);
    for (int64_t c = 1; c < n; c++)
        best = f->reals[c] > f->reals[best] ? c : best;
    ls_text_csv(t, ls_class_called(&f->classes, best, text));
    ls_text_put(t, ",");
    put_number(t, f->reals[best], digits(f));
    for (int64_t c = 0; c < n; c++) {
        ls_text_put(t, ",");
        put_number(t, f->reals[c], digits(f));
    }
}

static bool csv_put(LsPredictFile *f, int64_t in_batch, LsError *e)
{
    Table *a = f->own;
    LsText *t = &a->text;
    for (int k = 0; k < f->outputs->n; k++) {
        const LsOutput *out = &f->outputs->output[k];
        ls_text_put(t, k > 0 ? "," : "");
        if (is_class(f, k)) {
            put_class(f, t, k, in_batch);
            continue;
        }
        ls_output_reals(f->outputs, k, in_batch, f->reals);
        for (int64_t i = 0; i < out->count; i++) {
            const double v = f->bits ? 1 / (1 + exp(-f->reals[i])) : f->reals[i];
            ls_text_put(t, i > 0 ? "," : "");
            put_number(t, v, out->t.type == LS_DT_REAL ? digits(f) : 19);
        }
    }
    ls_text_put(t, "\n");
    return a->out.err == 0
           || ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", f->path, strerror(a->out.err));
}

static bool csv_close(LsPredictFile *f, bool whole, LsError *e)
{
    Table *a = f->own;
    bool ok = false;
    if (a->open) {
        ls_text_flush(&a->text);
        a->out.err = whole || a->out.err != 0 ? a->out.err : EIO;
        ok = ls_out_commit(&a->out, e) && whole;
    }
    free(a);
    return ok;
}

const LsPredictKind ls_predict_csv = {"csv", csv_open, csv_put, csv_close};
