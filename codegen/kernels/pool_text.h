/* codegen/kernels/pool_text.h -- the loops of a pooling's kernel, as text. */
#ifndef LS_CODEGEN_KERNELS_POOL_TEXT_H
#define LS_CODEGEN_KERNELS_POOL_TEXT_H

#include "codegen/kernels/loop_nest.h"

enum { LS_POOL_UNROLL = 9 };        /* most window positions that are unrolled in the text */

typedef struct LsPool {
    const LsKernelText *k;
    LsEmit *e;
    const LsWindowAttr *w;
    bool max;
    int n;                          /* spatial axes */
    int64_t batch, channels;
    int64_t x[LS_MAX_SPATIAL], y[LS_MAX_SPATIAL];   /* spatial sizes of the large and small side */
} LsPool;

/* "((b * 56 + p0) * 56 + p1) * 64": the pixel's first channel. */
const char *ls_pool_pixel(const LsPool *p, const int64_t size[], const char *var);
/* The grid over rows of pixels of that size. */
LsGrid ls_pool_grid(const LsPool *p, const int64_t size[]);
/* Opens the loop over units, with the indices b, var0, ... of a row, then the loop over the last
 * axis: two braces. each: prints what belongs to an axis once its index is known. */
void ls_pool_open_rows(const LsPool *p, const int64_t size[], const char *var,
                       void (*each)(const LsPool *, int axis));
/* Begin the forward part, and the gradient's: operands and results. */
void ls_pool_begin(const LsPool *p, const LsGrid *part);
void ls_pool_begin_gradient(const LsPool *p, const LsGrid *part);
/* Opens a row of windows p with each window's places in both tensors (from, to) and the average's
 * divisor (count): two braces. */
void ls_pool_open_windows(const LsPool *p, void (*each)(const LsPool *, int axis));
/* Opens the loop over the channels c: one brace. */
void ls_pool_channels(const LsPool *p);
/* Declares s along axis d: where the window of pixel p starts. */
void ls_pool_window_start(const LsPool *p, int d);
/* The same, and a .. e: the window's positions that lie inside. */
void ls_pool_window(const LsPool *p, int d);
int64_t ls_pool_positions(const LsPool *p);             /* of a window */
/* The number of a window position as text, from its indices along the axes: var0, var1, ... */
const char *ls_pool_position(const LsPool *p, const char *var);
/* Elements from a window's first position to position r. */
int64_t ls_pool_far(const LsPool *p, int64_t r);
const char *ls_pool_index_type(const LsPool *p);
/* Declares the average's divisor for the window that starts at s0, s1, ... */
void ls_pool_divisor(const LsPool *p, const char *name);
bool ls_pool_is_16(const LsPool *p);                    /* what is pooled or made is stored in 16
                                                         * bits */
int ls_pool_wide(const LsPool *p);                      /* neighbours of the result stored
                                                         * together */
/* an element of operand 0 as a value */
const char *ls_pool_get(const LsPool *p, const char *element);
/* a value as an element of the result */
const char *ls_pool_put(const LsPool *p, const char *v);

#endif
