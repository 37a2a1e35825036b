/* scheduler/blocks/block_ranges.c -- see the header. */
#include "scheduler/blocks/block_ranges.h"

#include <math.h>

#include "scheduler/blocks/block_keep.h"

/* Returns the longest range, in blocks: shorter in large graphs, so that the work of all ranges
 * stays about the same. */
static uint32_t longest_range(const LsBlocks *b)
{
    enum { MOST = 10, LEAST = 2, WORK = 160000 };
    double nodes = b->n > 0 ? b->ahead.at[b->n] + b->behind.at[b->n] : 1;
    double longest = sqrt(2 * WORK / nodes);
    return longest < LEAST ? LEAST : longest < MOST ? (uint32_t)longest : MOST;
}

LsBlockRanges ls_block_ranges(LsArena *arena, const LsProb *p, uint32_t most, LsBlockCuts cuts)
{
    LsBlocks *b = ls_blocks_new(arena, p, most, cuts);
    LsBlockRanges r = {.b = b, .longest = longest_range(b)};
    if (b->n < 2)
        return r;
    r.w = ls_block_work_new(arena, b);
    r.options = ls_arena_alloc(arena, (size_t)b->n * r.longest, sizeof *r.options);
    uint64_t *print = ls_arena_alloc(arena, (size_t)b->n * r.longest + 1, sizeof *print);
    uint32_t *scratch = ls_arena_alloc(arena, p->nt + 1u, sizeof *scratch);
    for (uint32_t from = 0; from < b->n; from++)
        for (uint32_t to = from + 1; to <= b->n && to - from <= r.longest; to++) {
            size_t at = ls_block_ranges_place(&r, from, to);
            bool found = false;
            print[at] = ls_blocks_print(b, from, to, scratch);
            for (size_t k = to - from - 1; k < at && !found; k += r.longest)
                if (print[k] == print[at]) {
                    r.options[at] = r.options[k];
                    found = true;
                }
            if (!found)
                r.options[at] = ls_block_options(arena, r.w, from, to);
        }
    return r;
}

void ls_block_ranges_offer(LsCandidates *pool, const LsBlockRanges *r, const LsPhase *phase,
                           uint32_t n)
{
    LsSeq seq = ls_block_sequence(pool->tmp, r->w, phase, n);
    ls_candidates_offer_moved(pool, r->b->p, &seq, "auto");
}
