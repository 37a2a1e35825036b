/* compiler/ops/index.h -- arithmetic on indices, as integer rows that fold where the indices are
 * known. */
#ifndef LS_COMPILER_OPS_INDEX_H
#define LS_COMPILER_OPS_INDEX_H

#include "compiler/ops/row.h"

/* An index that is outside every axis: values have at most LS_MOST_ELEMENTS elements. */
#define LS_INDEX_OUTSIDE (INT64_C(1) << 40)

LsValueId ls_index_const(const LsOnnxNode *n, int64_t v);       /* an int64 scalar */
/* 0, step, 2 step, .. (int64) along `axis` of a shape of that rank whose other lengths are 1. */
LsValueId ls_index_count(const LsOnnxNode *n, int64_t length, int64_t step, int axis, int rank);
/* Whether a constant of so many indices may be made; reports otherwise. To be asked before
 * ls_index_count. */
bool ls_index_affords(const LsOnnxNode *n, int64_t length);
/* Operand k as int64; none after an error: it holds no integers. */
LsValueId ls_index_ints(const LsOnnxNode *n, int k);

/* Tuples [.., m] of indices into the axes first .. first + m - 1 of x, negative ones from the back,
 * as one row-major index into these axes, of the tuples' shape without its last axis. Tuples with
 * an index outside its axis give an index outside of everything. An index into one axis remains as
 * it is, so that data can be checked against the axis when they are loaded; `wrapped`: it counts
 * from the front, too. */
LsValueId ls_index_flat(const LsOnnxNode *n, LsValueId tuples, const LsShape *x, int first,
                        bool wrapped);

/* Reports known indices that are outside -low .. high - 1. */
bool ls_index_inside(const LsOnnxNode *n, LsValueId index, int64_t low, int64_t high);

/* The indices, into an axis of length dim, are known and consecutive: lo, lo + 1, ... */
bool ls_index_is_run(const LsGraph *g, LsValueId index, int64_t dim, int64_t *lo);

/* Product of the lengths of axes from .. to - 1. */
int64_t ls_index_span(const LsShape *s, int from, int to);

#endif
