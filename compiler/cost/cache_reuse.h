/* compiler/cost/cache_reuse.h -- what lies in a cache that keeps what was touched last: how many other bytes
 * were touched since these were. */
#ifndef LS_COMPILER_COST_CACHE_REUSE_H
#define LS_COMPILER_COST_CACHE_REUSE_H

#include "base/arena.h"

/* age: bytes of different addresses that were touched from the last touch of these to this one,
 * these and their neighbours in that touch among them; LS_REUSE_NEVER: none is remembered. */
typedef struct LsAged { double bytes, age; } LsAged;
#define LS_REUSE_NEVER 1e15

typedef struct LsRange { int64_t from, to; } LsRange;

typedef struct LsReuse {        /* zeroed but for arena: nothing was touched */
    LsArena *arena;
    LsRange *range; uint32_t nrange, room;      /* disjoint; what was touched last at the end */
    LsRange *kept; uint32_t kept_room;          /* of one touch */
    LsAged *part; uint32_t npart, part_room;    /* of the last touch: latest first */
} LsReuse;

/* Touches the bytes from .. to - 1; r->part says what they were. Remembers some thousand ranges. */
void ls_reuse_touch(LsReuse *r, int64_t from, int64_t to);

#endif
