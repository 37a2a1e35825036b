/* runtime/metrics/auroc.h -- scores that are kept, to be sorted at the end of an evaluation. */
#ifndef LS_RUNTIME_METRICS_AUROC_H
#define LS_RUNTIME_METRICS_AUROC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct LsCurve {
    int64_t columns, most, n;   /* rows: room for, and kept */
    double *score;              /* [columns][most] */
    int32_t *truth;             /* [most]: the class; of bits [columns][most] of 0 and 1 */
    bool bits;
} LsCurve;

int64_t ls_curve_bytes(int64_t columns, int64_t most, bool bits);
LsCurve *ls_curve_new(int64_t columns, int64_t most, bool bits);        /* NULL: no memory */
void ls_curve_free(LsCurve *c);
/* The area of a column, whose scores it sorts; NaN: its labels are all of one kind. */
double ls_curve_area(LsCurve *c, int64_t column);

#endif
