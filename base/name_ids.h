/* base/name_ids.h -- strings to dense ids, in order of arrival. */
#ifndef LS_BASE_NAME_IDS_H
#define LS_BASE_NAME_IDS_H

#include "base/arena.h"

typedef struct LsNames {        /* all zero except the arena: empty */
    LsArena *arena;
    const char **name;          /* by id, from 1 */
    uint32_t n, cap;            /* ids in use: 1 .. n */
    uint32_t *slot, nslot;      /* open addressing; only find and add see its order */
} LsNames;

uint32_t ls_names_find(const LsNames *t, const char *name);     /* 0: not found */
uint32_t ls_names_add(LsNames *t, const char *name); /* returns the new or old id; keeps the
                                                      * pointer */

#endif
