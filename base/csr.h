/* base/csr.h -- numbers in rows, one row after the other. */
#ifndef LS_BASE_CSR_H
#define LS_BASE_CSR_H

#include "base/arena.h"

/* Row k: id[at[k] .. at[k + 1]). */
typedef struct LsRows { uint32_t *at, *id; } LsRows;

/* Returns `many` rows. Row r: the k < n with row[k] == r, rising. A k with row[k] >= many is in no
 * row. */
LsRows ls_rows_by(LsArena *arena, const uint32_t *row, uint32_t n, uint32_t many);

/* The input of ls_rows: each number with its row, in any order. All zero: empty. */
typedef struct LsPairs { uint32_t *row, *id, n, room_row, room_id; } LsPairs;

void ls_pairs_add(LsArena *arena, LsPairs *p, uint32_t row, uint32_t id);

/* Adds the number unless its row has it. The row's numbers must be the latest added. */
void ls_pairs_add_once(LsArena *arena, LsPairs *p, uint32_t row, uint32_t id);

/* Returns `many` rows; every row of the pairs must be less. The numbers of a row keep the order in
 * which they were added. */
LsRows ls_rows(LsArena *arena, const LsPairs *p, uint32_t many);

#endif
