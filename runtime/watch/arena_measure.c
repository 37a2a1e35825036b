/* runtime/watch/arena_measure.c -- see arena_measure.h. */
#include "runtime/watch/arena_measure.h"

#include "runtime/base/tensor_copy.h"

/* The pattern's byte for place i. The last byte of a word is one that finite numbers of ordinary
 * size do not have: their sign and exponent may be the same after every step. */
static unsigned char pattern(int64_t i)
{
    return i % 4 == 3 ? 0xff : (unsigned char)((uint64_t)i * 2654435761u >> 24);
}

/* Finds the highest byte that differs from the pattern. A step may write the pattern's byte by
 * chance, so this runs after every step. */
static void find_touched(LsMeasure *x)
{
    int64_t top = x->g->p->bytes.arena;
    const unsigned char *arena = ls_memory_view(x->g->m, (LsAddress){LS_AT_ARENA, 0}, top);
    while (arena && top > x->touched && arena[top - 1] == pattern(top - 1))
        top--;
    x->touched = top;
}

static void measure_after(void *self, uint32_t step)
{
    LsMeasure *x = self;
    const LsProgram *p = x->g->p;
    const LsStep *s = &x->t->step[step];
    for (uint32_t k = s->nin; k < s->narg; k++) {
        LsAddress a = p->argument.address[s->arg + k];
        uint32_t c = s->count + k - s->nin;
        int64_t bytes = k < (uint32_t)s->nin + s->nout
                        ? p->argument.count[c] * ls_data_bytes((LsDataType)p->argument.type[c],
                                                              p->real_bytes)
                        : s->workspace;
        if (a.space == LS_AT_ARENA && a.offset + bytes > x->addressed)
            x->addressed = a.offset + bytes;
    }
    if (step + 1 == x->t->nstep)
        find_touched(x);
}

void ls_measure_start(LsMeasure *x, const LsEngine *g, const LsPhaseTable *t)
{
    *x = (LsMeasure){.g = g, .t = t};
    const LsAddress all = {LS_AT_ARENA, 0};
    unsigned char *arena = ls_memory_view(g->m, all, g->p->bytes.arena);
    for (int64_t i = 0; arena && i < g->p->bytes.arena; i++)
        arena[i] = pattern(i);
    if (arena)
        ls_memory_store(g->m, all, g->p->bytes.arena);
}

LsHook ls_measure_hook(LsMeasure *x) { return (LsHook){.after = measure_after, .self = x}; }

void ls_measure_end(LsMeasure *x) { find_touched(x); }
