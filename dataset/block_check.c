/* dataset/block_check.c -- checksums of the blocks of columns. */
#include "dataset/packed_writer.h"

#include "runtime/base/checksum.h"

#include <inttypes.h>

#ifdef LS_HAVE_ZLIB
#include <zlib.h>

uint32_t ls_block_sum(uint32_t sum, const void *data, size_t n)
{
    enum { MOST = 1 << 30 };
    const unsigned char *p = data;
    for (; n > MOST; n -= MOST, p += MOST)
        sum = (uint32_t)crc32(sum, p, MOST);
    return (uint32_t)crc32(sum, p, (uInt)n);
}
#else
uint32_t ls_block_sum(uint32_t sum, const void *data, size_t n)
{
    return ls_crc32(sum, data, n);
}
#endif

static uint32_t number_at(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

bool ls_blocks_check(const LsDataFile *d, const LsDataField *field, LsError *e)
{
    const unsigned char *sum = d->f->data + d->sums;
    for (const LsDataField *f = d->field; f < field; f++)
        sum += ((f->bytes - 1) / LS_DATA_BLOCK + 1) * 4;
    for (int64_t at = 0; at < field->bytes; at += LS_DATA_BLOCK, sum += 4) {
        const int64_t left = field->bytes - at, n = left < LS_DATA_BLOCK ? left : LS_DATA_BLOCK;
        if (ls_block_sum(0, d->f->data + field->at + at, (size_t)n) != number_at(sum))
            return ls_fail(e, LS_EXIT_DATA,
                           "%s: damaged: bytes %" PRId64 " to %" PRId64 ", of '%s' from sample "
                           "%" PRId64 " on, are not as they were written",
                           d->f->path, field->at + at, field->at + at + n - 1, field->name,
                           at / (field->bytes / d->samples));
    }
    return true;
}
