/* runtime/metrics/metric_report.c -- metrics by class as a table, and the table of confusion. */
#include "runtime/base/file.h"
#include "runtime/base/json_read.h"
#include "runtime/metrics/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 100, WIDEST = 32 };

static const struct { LsMetricBit bit; const char *name; } column[] = {
    {LS_METRIC_PRECISION, "precision"}, {LS_METRIC_RECALL, "recall"}, {LS_METRIC_F1, "f1"},
    {LS_METRIC_IOU, "iou"},             {LS_METRIC_DICE, "dice"}};
enum { NCOLUMNS = sizeof column / sizeof *column };

/* The pair that is confused most often. */
static void print_confused(const LsMetrics *m, FILE *to)
{
    int64_t most = 0, at = 0;
    char label[LS_CLASS_NUMBER], said[LS_CLASS_NUMBER];
    for (int64_t k = 0; k < m->columns * m->columns; k++)
        if (k / m->columns != k % m->columns && m->confusion[k] > most) {
            most = m->confusion[k];
            at = k;
        }
    if (most > 0)
        fprintf(to, "most often confused: %s taken for %s, %" PRId64 " of %" PRId64 "\n",
                ls_class_called(&m->classes, at / m->columns, label),
                ls_class_called(&m->classes, at % m->columns, said), most,
                m->count[at / m->columns].labels);
}

static void print_class(const LsMetrics *m, FILE *to, int64_t c, int width)
{
    char text[LS_CLASS_NUMBER];
    fprintf(to, "%-*s", width, ls_class_called(&m->classes, c, text));
    for (int k = 0; k < NCOLUMNS; k++) {
        const double v = ls_class_metric(&m->count[c], column[k].bit);
        if (!(m->chosen & column[k].bit))
            continue;
        if (isnan(v))
            fprintf(to, "  %9s", "-");
        else
            fprintf(to, "  %9.4f", v);
    }
    fprintf(to, "  %9" PRId64 "\n", m->count[c].labels);
}

void ls_metrics_print(const LsMetrics *m, FILE *to)
{
    int width = 5;
    char text[LS_CLASS_NUMBER];
    if (m->count == NULL || m->counted == 0)
        return;
    for (int64_t c = 0; c < m->columns && c < SHOWN; c++) {
        const size_t n = strlen(ls_class_called(&m->classes, c, text));
        width = n > (size_t)width ? (int)(n < WIDEST ? n : WIDEST) : width;
    }
    if (m->chosen & LS_METRIC_PER_CLASS) {
        fprintf(to, "%-*s", width, "class");
        for (int k = 0; k < NCOLUMNS; k++)
            if (m->chosen & column[k].bit)
                fprintf(to, "  %9s", column[k].name);
        fprintf(to, "  %9s\n", "labels");
        for (int64_t c = 0; c < m->columns && c < SHOWN; c++)
            print_class(m, to, c, width);
        if (m->columns > SHOWN)
            fprintf(to, "and %" PRId64 " further classes\n", m->columns - SHOWN);
    }
    if (m->confusion != NULL)
        print_confused(m, to);
}

static void to_file(void *to, const void *data, size_t n) { ls_out_write(to, data, n); }

bool ls_metrics_write_confusion(const LsMetrics *m, const char *path, LsError *e)
{
    LsOut out;
    char part[1024], text[LS_CLASS_NUMBER];
    if (m->confusion == NULL || m->counted == 0)
        return ls_fail(e, LS_EXIT_FAIL, "%s is not written: no evaluation had a prediction", path);
    if (!ls_out_open(&out, path, e))
        return false;
    LsText t = {part, 0, sizeof part, to_file, &out};
    ls_text_put(&t, "label");
    for (int64_t c = 0; c < m->columns; c++) {
        ls_text_put(&t, ",");
        ls_text_csv(&t, ls_class_called(&m->classes, c, text));
    }
    ls_text_put(&t, "\n");
    for (int64_t c = 0; c < m->columns; c++) {
        ls_text_csv(&t, ls_class_called(&m->classes, c, text));
        for (int64_t k = 0; k < m->columns; k++)
            ls_text_put(&t, ",%" PRId64, m->confusion[c * m->columns + k]);
        ls_text_put(&t, "\n");
    }
    ls_text_flush(&t);
    return ls_out_commit(&out, e);
}
