/* base/csr.h -- numbers in rows, one row after the other. */
#ifndef LS_BASE_CSR_H
#define LS_BASE_CSR_H

#include "base/arena.h"

/* Row k: id[at[k] .. at[k + 1]). */
typedef struct LsRows { uint32_t *at, *id; } LsRows;

/* The input of ls_rows: each number with its row, in any order. All zero: empty. */
typedef struct LsPairs { uint32_t *row, *id, n, room_row, room_id; } LsPairs;

void ls_pairs_add(LsArena *arena, LsPairs *p, uint32_t row, uint32_t id);

/* Returns `many` rows. The numbers of a row keep the order in which they were added. */
LsRows ls_rows(LsArena *arena, const LsPairs *p, uint32_t many);

#endif
