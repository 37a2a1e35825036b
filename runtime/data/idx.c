/* runtime/data/idx.c -- the format of the MNIST files: two zero bytes, type, rank, dims, values;
 * big-endian. */
#include "runtime/base/tensor_copy.h"
#include "runtime/data/dataset.h"

#include <inttypes.h>

static bool type_of(int code, LsElement *type)
{
    switch (code) {
    case 0x08: *type = LS_U8; return true;
    case 0x09: *type = LS_I8; return true;
    case 0x0b: *type = LS_I16; return true;
    case 0x0c: *type = LS_I32; return true;
    case 0x0d: *type = LS_F32; return true;
    case 0x0e: *type = LS_F64; return true;
    default: return false;
    }
}

bool ls_idx_is(const LsFile *f)
{
    LsElement type;
    return f->size >= 8 && f->data[0] == 0 && f->data[1] == 0 && type_of(f->data[2], &type)
           && f->data[3] >= 1 && f->data[3] <= LS_TENSOR_RANK;
}

bool ls_idx_read(LsArray *a, const LsFile *f, LsError *e)
{
    char dims[96];
    size_t head = 4 + 4 * (size_t)f->data[3];
    *a = (LsArray){.swap = true, .rank = f->data[3], .count = 1};
    type_of(f->data[2], &a->type);
    if (f->size < head)
        return ls_fail(e, LS_EXIT_DATA, "%s: truncated IDX header", f->path);
    for (int d = 0; d < a->rank; d++) {
        const unsigned char *p = f->data + 4 + 4 * d;
        a->dim[d] = (int64_t)p[0] << 24 | (int64_t)p[1] << 16 | (int64_t)p[2] << 8 | p[3];
        if (__builtin_mul_overflow(a->count, a->dim[d], &a->count))
            return ls_fail(e, LS_EXIT_DATA, "%s: impossible IDX dimensions", f->path);
    }
    a->data = f->data + head;
    int64_t room = (int64_t)(f->size - head) / ls_element_bytes(a->type);
    if (a->count > room)
        return ls_fail(e, LS_EXIT_DATA, "%s: truncated: %s values announced, %" PRId64 " are there",
                       f->path, ls_dims_text(a->rank, a->dim, dims), room);
    return true;
}
