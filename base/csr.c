/* base/csr.c -- see the header. */
#include "base/csr.h"

void ls_pairs_add(LsArena *arena, LsPairs *p, uint32_t row, uint32_t id)
{
    p->row = ls_arena_grow(arena, p->row, p->n, p->n + 1u, sizeof *p->row, &p->room_row);
    p->id = ls_arena_grow(arena, p->id, p->n, p->n + 1u, sizeof *p->id, &p->room_id);
    p->row[p->n] = row;
    p->id[p->n++] = id;
}

LsRows ls_rows(LsArena *arena, const LsPairs *p, uint32_t many)
{
    LsRows r = {ls_arena_alloc(arena, many + 2u, sizeof *r.at),
                ls_arena_alloc(arena, p->n + 1u, sizeof *r.id)};
    for (uint32_t k = 0; k < p->n; k++)
        r.at[p->row[k] + 2]++;                      /* shifted by one row: at[row + 1] is the fill position */
    for (uint32_t k = 2; k < many + 2; k++)
        r.at[k] += r.at[k - 1];
    for (uint32_t k = 0; k < p->n; k++)
        r.id[r.at[p->row[k] + 1]++] = p->id[k];
    return r;
}
