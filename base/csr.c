/* base/csr.c -- see the header. */
#include "base/csr.h"

#include <assert.h>

LsRows ls_rows_by(LsArena *arena, const uint32_t *row, uint32_t n, uint32_t many)
{
    LsRows r = {ls_arena_alloc(arena, many + 2u, sizeof *r.at),
                ls_arena_alloc(arena, n + 1u, sizeof *r.id)};
    for (uint32_t k = 0; k < n; k++)
        if (row[k] < many)
            r.at[row[k] + 2]++;                     /* shifted by one row: at[row + 1] is the fill
                                                     * position */
    for (uint32_t k = 2; k < many + 2; k++)
        r.at[k] += r.at[k - 1];
    for (uint32_t k = 0; k < n; k++)
        if (row[k] < many)
            r.id[r.at[row[k] + 1]++] = k;
    return r;
}

void ls_pairs_add(LsArena *arena, LsPairs *p, uint32_t row, uint32_t id)
{
    p->row = ls_arena_grow(arena, p->row, p->n, p->n + 1u, sizeof *p->row, &p->room_row);
    p->id = ls_arena_grow(arena, p->id, p->n, p->n + 1u, sizeof *p->id, &p->room_id);
    p->row[p->n] = row;
    p->id[p->n++] = id;
}

void ls_pairs_add_once(LsArena *arena, LsPairs *p, uint32_t row, uint32_t id)
{
    for (uint32_t k = p->n; k-- > 0 && p->row[k] == row;)
        if (p->id[k] == id)
            return;
    ls_pairs_add(arena, p, row, id);
}

LsRows ls_rows(LsArena *arena, const LsPairs *p, uint32_t many)
{
    LsRows r = ls_rows_by(arena, p->row, p->n, many);       /* of places in p; their numbers
                                                             * below */
    assert(r.at[many] == p->n);                     /* no row lies outside */
    for (uint32_t k = 0; k < p->n; k++)
        r.id[k] = p->id[r.id[k]];
    return r;
}
