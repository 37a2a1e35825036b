/* scheduler/graph/memory_budget.c -- see the header. */
#include "scheduler/graph/memory_budget.h"

#include <assert.h>
#include <math.h>

int64_t ls_process_fixed(const LsProcessBytes *p)
{
    return p->state + p->input + p->exchange;
}

int64_t ls_process_total(const LsProcessBytes *p, int64_t arena)
{
    return ls_process_fixed(p) + p->arenas * arena;
}

int64_t ls_process_arena(const LsProcessBytes *p, int64_t total)
{
    const int64_t arena = (total - ls_process_fixed(p)) / p->arenas;
    return arena > 0 ? arena : 1;       /* 0 would be no limit */
}

LsBudget ls_budget_of_arena(const LsBudget *b, const LsProcessBytes *p)
{
    LsBudget arena = *b;
    if (b->of == LS_BUDGET_OF_PROCESS && b->bytes > 0)
        arena.bytes = ls_process_arena(p, b->bytes);
    arena.of = LS_BUDGET_OF_ARENA;
    return arena;
}

int64_t ls_budget_arena_bytes(const LsBudget *b, int64_t whole)
{
    assert(b->of == LS_BUDGET_OF_ARENA);
    if (b->percent <= 0)
        return b->bytes > 0 ? b->bytes : 0;
    const double bytes = floor((double)whole * b->percent / 100);
    return bytes < 1 ? 1 : bytes < (double)INT64_MAX ? (int64_t)bytes : INT64_MAX;
}
