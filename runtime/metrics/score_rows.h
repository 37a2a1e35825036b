/* runtime/metrics/score_rows.h -- class scores where they lie, position by position. */
#ifndef LS_RUNTIME_METRICS_SCORE_ROWS_H
#define LS_RUNTIME_METRICS_SCORE_ROWS_H

#include "runtime/ls_program.h"

/* A watched value of one member. Positions are all other axes than that of the classes, row-major,
 * as the labels are. */
typedef struct LsScoreRows {
    LsTensor t;
    int64_t stride[LS_TENSOR_RANK];     /* elements */
    int axis;
    int64_t classes, positions;
    int64_t bytes;              /* of all, gaps included */
    int64_t step;               /* bytes from one class of a position to the next */
    int real_bytes;
} LsScoreRows;

/* The watched value of the evaluation form that has the class scores; NULL: there is none. */
const LsWatch *ls_scores_watched(const LsProgram *p);
LsScoreRows ls_score_rows(const LsWatch *w, int axis, int real_bytes);
/* Bytes from the first score of all to the first one of position i. */
int64_t ls_score_at(const LsScoreRows *r, int64_t i);
double ls_score(const LsScoreRows *r, const char *row, int64_t c);
/* The class of the largest score; of equal ones the first. */
int64_t ls_score_largest(const LsScoreRows *r, const char *row);
/* Adds the softmax of a row to `to`. */
void ls_score_add_softmax(const LsScoreRows *r, const char *row, double *to);

/* Label i of a batch, of integers. */
int64_t ls_label_at(const LsTensor *label, const char *at, int64_t i);

#endif
