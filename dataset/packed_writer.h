/* dataset/packed_writer.h -- writes a packed data set (runtime/data/data_file.h) column by column,
 * each in the order of its samples, with no more memory than a checksum for each block.
 *
 * The file has its name once it is complete and on disk; until then it is PATH.tmp. */
#ifndef LS_DATASET_PACKED_WRITER_H
#define LS_DATASET_PACKED_WRITER_H

#include "runtime/data/data_file.h"

typedef struct LsColumn {
    LsDataField field; /* what the description says of it; `at` is set by ls_pack_begin,
                        * `bytes` by what is written. Memory of the caller's. */
    int64_t each;      /* bytes of a sample */
    uint32_t *sum;
    int64_t sums, room; /* of whole blocks */
    uint32_t open;      /* checksum of the block under way */
} LsColumn;

enum { LS_PACK_COLUMNS = 64 };

typedef struct LsPack {
    LsOut out;
    int lock;                  /* on the temporary file: two writers would spoil each other's */
    LsColumn column[LS_PACK_COLUMNS];
    int columns;
    int64_t samples; /* how many there are, once all are written */
    const char *const *source;
    int sources; /* their names go into the description */
} LsPack;

/* Nothing is changed under the name until ls_pack_end. Every open file is ended. */
bool ls_pack_open(LsPack *p, const char *path, LsError *e);
/* A new column; NULL with an error: too many. */
LsColumn *ls_pack_column(LsPack *p, const LsDataField *field, LsError *e);
/* Places all columns, with room for so many samples. */
bool ls_pack_begin(LsPack *p, int64_t samples, LsError *e);
/* The next `samples` of a column. Calls for one column follow each other. */
bool ls_pack_append(LsPack *p, LsColumn *c, const void *data, int64_t samples, LsError *e);
/* Completes the file; or, if `ok` is false, removes what there is of it and returns false. */
bool ls_pack_end(LsPack *p, bool ok, LsError *e);

/* Whether the text is UTF-8, which a description may have. */
bool ls_is_utf8(const char *s);

/* block_check.c: whether the blocks of a field are as they were written; else an error names the
 * first other one. */
bool ls_blocks_check(const LsDataFile *d, const LsDataField *field, LsError *e);
/* zlib's CRC-32, which is several times as fast as the runtime's where there is zlib. */
uint32_t ls_block_sum(uint32_t sum, const void *data, size_t n);

#endif
