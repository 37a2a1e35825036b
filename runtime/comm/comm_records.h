/* runtime/comm/comm_records.h -- what engines remember of messages under way: records of one size,
 * which are used again, so that training allocates none after its first updates. Not safe among
 * threads: a rank has its own. */
#ifndef LS_RUNTIME_COMM_COMM_RECORDS_H
#define LS_RUNTIME_COMM_COMM_RECORDS_H

#include "runtime/base/run_error.h"

#include <stddef.h>

typedef struct LsRecords {
    size_t size;                /* bytes of a record */
    struct LsRecord *all, *free;
} LsRecords;

/* A record with any content; NULL, with a sentence, without memory. */
void *ls_records_take(LsRecords *r, LsError *e);
void ls_records_give(LsRecords *r, void *record);
/* Frees all records, also those that were not given back. */
void ls_records_end(LsRecords *r);

#endif
