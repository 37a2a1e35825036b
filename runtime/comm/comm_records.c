/* runtime/comm/comm_records.c -- see comm_records.h. */
#include "runtime/comm/comm_records.h"

#include <stdlib.h>

struct LsRecord {
    struct LsRecord *older;     /* of all */
    struct LsRecord *next;      /* of the free ones */
    max_align_t content[];
};

void *ls_records_take(LsRecords *r, LsError *e)
{
    struct LsRecord *one = r->free;
    if (one != NULL) {
        r->free = one->next;
        return one->content;
    }
    one = malloc(sizeof *one + r->size);
    if (one == NULL) {
        ls_fail(e, LS_EXIT_FAIL, "out of memory");
        return NULL;
    }
    one->older = r->all;
    r->all = one;
    return one->content;
}

void ls_records_give(LsRecords *r, void *record)
{
    struct LsRecord *one =
        (struct LsRecord *)(void *)((char *)record - offsetof(struct LsRecord, content));
    one->next = r->free;
    r->free = one;
}

void ls_records_end(LsRecords *r)
{
    for (struct LsRecord *older; r->all != NULL; r->all = older) {
        older = r->all->older;
        free(r->all);
    }
    r->free = NULL;
}
