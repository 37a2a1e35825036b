/* codegen/kernels/pool_text.h -- one pooling as its kernel walks it, and the text of that walk. */
#ifndef LS_CODEGEN_KERNELS_POOL_TEXT_H
#define LS_CODEGEN_KERNELS_POOL_TEXT_H

#include "codegen/kernels/loop_nest.h"

enum { LS_POOL_UNROLL = 9 };        /* window positions that are printed out, at most */

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
/* The grid of rows of pixels of that size. */
LsGrid ls_pool_grid(const LsPool *p, const int64_t size[]);
/* The loop over units and the indices b, var0, ... of a row; then the loop over the last axis. Two
 * braces. each: prints what goes with an axis, where its index is known. */
void ls_pool_open_rows(const LsPool *p, const int64_t size[], const char *var,
                       void (*each)(const LsPool *, int axis));
/* The beginning of the part forward, of that of the gradient: operands and results. */
void ls_pool_begin(const LsPool *p, const LsGrid *part);
void ls_pool_begin_gradient(const LsPool *p, const LsGrid *part);
/* A row of windows p with what each has: where it lies in both tensors (from, to), and the average's
 * divisor (count). Two braces. */
void ls_pool_open_windows(const LsPool *p, void (*each)(const LsPool *, int axis));
/* The loop over the channels c: one brace. */
void ls_pool_channels(const LsPool *p);
/* Along axis d of the window over pixel p: s, where it starts. */
void ls_pool_window_start(const LsPool *p, int d);
/* The same, and a .. e, its positions that lie inside. */
void ls_pool_window(const LsPool *p, int d);
int64_t ls_pool_positions(const LsPool *p);             /* of a window */
/* Number of a position as text, given by those along the axes: var0, var1, ... */
const char *ls_pool_position(const LsPool *p, const char *var);
/* Elements between the first position of a window and position r. */
int64_t ls_pool_far(const LsPool *p, int64_t r);
const char *ls_pool_index_type(const LsPool *p);
/* Divisor of the average at the window that starts at s0, s1, ... */
void ls_pool_divisor(const LsPool *p, const char *name);

#endif
