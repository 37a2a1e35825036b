/* dataset/figures.h -- mean and deviation of values that come one after the other. */
#ifndef LS_DATASET_FIGURES_H
#define LS_DATASET_FIGURES_H

#include "dataset/packed_writer.h"

/* Of each index of a field's first axis. */
typedef struct LsFigures {
    int64_t channels, run; /* consecutive values of a channel */
    int64_t n;             /* values of a channel so far */
    double *first;         /* what is subtracted, so that sums of squares stay small */
    double *sum, *squares, *mean, *std;
} LsFigures;

enum { LS_FIGURES_MOST = 1 << 16 }; /* channels */

bool ls_figures_open(LsFigures *g, const LsDataField *f, LsError *e);
/* A sample, of doubles. */
void ls_figures_add(LsFigures *g, const double *v);
/* Gives the field its figures, which live until ls_figures_close: bytes are divided by 255. */
void ls_figures_set(LsFigures *g, LsDataField *f);
void ls_figures_close(LsFigures *g);

#endif
