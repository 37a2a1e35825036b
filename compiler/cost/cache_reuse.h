/* compiler/cost/cache_reuse.h -- reuse distances in a cache that evicts the least recently used
 * bytes: how many other bytes were touched since the last touch of these. */
#ifndef LS_COMPILER_COST_CACHE_REUSE_H
#define LS_COMPILER_COST_CACHE_REUSE_H

#include "base/arena.h"

/* age: reuse distance, the bytes of different addresses touched from the last touch of these bytes
 * to this touch. The bytes themselves and their neighbours in the last touch count. LS_REUSE_NEVER:
 * no touch is remembered. */
typedef struct LsAged { double bytes, age; } LsAged;
#define LS_REUSE_NEVER 1e15

typedef struct LsRange { int64_t from, to; } LsRange;

typedef struct LsReuse {        /* zeroed but for arena: no touches yet */
    LsArena *arena;
    LsRange *range; uint32_t nrange, room;      /* disjoint; the most recently touched last */
    LsRange *kept; uint32_t kept_room;          /* of one touch */
    LsAged *part; uint32_t npart, part_room;    /* of the last touch: most recent first */
} LsReuse;

/* Touches the bytes from .. to - 1; r->part gives their ages. Remembers some thousand ranges. */
void ls_reuse_touch(LsReuse *r, int64_t from, int64_t to);

#endif
