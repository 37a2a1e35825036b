/* runtime/base/tensor_copy.h -- sizes of tensors, and conversion between their memory order and the
 * ONNX order. */
#ifndef LS_RUNTIME_BASE_TENSOR_COPY_H
#define LS_RUNTIME_BASE_TENSOR_COPY_H

#include "runtime/ls_program.h"

int64_t ls_tensor_count(const LsTensor *t);     /* elements, of all members of an ensemble */
/* The shape of a tensor in files: with an axis of members, if it has some, before its own. Returns
 * the rank. */
int ls_tensor_dims(const LsTensor *t, int64_t dim[LS_TENSOR_RANK + 1]);
/* The part of one member; the tensor itself if it is not of an ensemble, or of all members. */
LsTensor ls_tensor_of(const LsTensor *t, int64_t member, int real_bytes);
int64_t ls_data_bytes(LsDataType type, int real_bytes);     /* of one element */
int64_t ls_tensor_bytes(const LsTensor *t, int real_bytes);
/* Bytes from the first element of a watched value to the end of its last row, gaps included. */
int64_t ls_watch_bytes(const LsWatch *w, int real_bytes);
/* Copies a watched value's elements from `from`, without the gaps between rows: ls_tensor_bytes in
 * all. */
void ls_watch_copy(const LsWatch *w, void *to, const void *from, int real_bytes);
/* "16x1x28x28", "scalar"; returns text. */
char *ls_dims_text(int rank, const int64_t *dim, char text[96]);

/* Visits the elements in row-major logical order and returns each element's place in memory. */
typedef struct LsWalk { int64_t channels, spatial, c, s, base; } LsWalk;

LsWalk ls_walk_start(const LsTensor *t);

static inline int64_t ls_walk_next(LsWalk *w)
{
    int64_t at = w->base + w->s * w->channels + w->c;
    if (++w->s == w->spatial) {
        w->s = 0;
        if (++w->c == w->channels) {
            w->c = 0;
            w->base += w->channels * w->spatial;
        }
    }
    return at;
}

/* Place in memory of element i of the row-major logical order, for a walk at its start. */
static inline int64_t ls_walk_at(const LsWalk *w, int64_t i)
{
    int64_t s = i % w->spatial, c = i / w->spatial % w->channels;
    return (i / w->spatial - c) * w->spatial + s * w->channels + c;
}

/* Reads the next `count` elements of the walk, from the tensor at `from`, row-major to `to`. */
void ls_walk_read(LsWalk *w, const void *from, void *to, int64_t count, int64_t element_bytes);
/* The same for reals of 4 or 8 bytes, as float32. */
void ls_walk_floats(LsWalk *w, const void *from, float *to, int64_t count, int real_bytes);
/* Writes row-major `from` into the tensor at `to`. */
void ls_walk_write(LsWalk *w, const void *from, void *to, int64_t count, int64_t element_bytes);

#endif
