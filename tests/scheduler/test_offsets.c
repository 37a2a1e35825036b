/* tests/scheduler/test_offsets.c -- live values never overlap in the arena, and the arena is near
 * the bound. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/candidates/reorder_to_pack.h"
#include "scheduler/order/edited_order.h"
#include "scheduler/order/run_order.h"
#include "scheduler/packing/offsets.h"
#include "scheduler/packing/offsets_over.h"
#include "scheduler/packing/packing_repair.h"
#include "scheduler/packing/packing_search.h"
#include "tests/support/dag_tools.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

static LsBlock block(int64_t size, uint32_t from, uint32_t to)
{
    return (LsBlock){size, from, to, 0, 0};
}

/* Of up to `most` units of bytes; one in four loses its upper end on the way. */
static LsBlock random_block(uint64_t *rnd, uint32_t most, int64_t unit, uint32_t steps,
                            uint32_t wide)
{
    LsBlock b = block((int64_t)dag_random(rnd, most) * unit, dag_random(rnd, steps), 0);
    b.to = b.from + dag_random(rnd, wide);
    if (dag_random(rnd, 4) == 0 && b.to > b.from && b.size > unit) {
        b.rest = 1 + dag_random(rnd, (uint32_t)(b.size - 1));
        b.full = b.from + dag_random(rnd, b.to - b.from);
    }
    return b;
}

/* The height of b at the first step at which both blocks are live. A block never grows. */
static int64_t top_beside(const LsBlock *b, const LsBlock *other)
{
    uint32_t step = b->from > other->from ? b->from : other->from;
    return b->rest > 0 && step > b->full ? b->rest : b->size;
}

static int64_t check(const LsBlock *b, uint32_t n, int64_t alignment, const int64_t *offset)
{
    int64_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_int_ge(offset[i], 0);
        ck_assert_int_eq(offset[i] % alignment, 0);
        end = offset[i] + b[i].size > end ? offset[i] + b[i].size : end;
        for (uint32_t j = 0; j < i; j++)
            ck_assert(b[i].to < b[j].from || b[j].to < b[i].from || b[i].size == 0 || b[j].size == 0
                      || offset[i] + top_beside(&b[i], &b[j]) <= offset[j]
                      || offset[j] + top_beside(&b[j], &b[i]) <= offset[i]);
    }
    return end;
}

START_TEST(random_blocks_never_overlap_and_the_end_is_the_one_returned)
{
    uint64_t rnd = 1;
    for (int round = 0; round < 60; round++) {
        uint32_t n = 1 + dag_random(&rnd, 60);
        int64_t alignment = round % 2 ? 64 : 1, offset[60];
        LsBlock b[60];
        for (uint32_t i = 0; i < n; i++)
            b[i] = random_block(&rnd, 40, 64, 50, 20);
        int64_t bound = ls_offsets_bound(b, n);
        int64_t end = ls_offsets(b, n, alignment, bound, 0, LS_PACK_FULL, offset);
        ck_assert_int_eq(check(b, n, alignment, offset), end);
        ck_assert_int_ge(end, bound);
        ck_assert_int_le(end, bound + bound / 4 + 64);
    }
}
END_TEST

START_TEST(blocks_lie_over_floors)
{
    enum { FLOORS = 4, STEPS = 50 };
    uint64_t rnd = 2;
    for (int round = 0; round < 60; round++) {
        const uint32_t n = FLOORS + 1 + dag_random(&rnd, 60);
        const int64_t alignment = round % 2 ? 64 : 1;
        int64_t offset[FLOORS + 61];
        LsBlock b[FLOORS + 61];
        for (uint32_t i = 0; i < n; i++)
            b[i] = i < FLOORS ? block((int64_t)dag_random(&rnd, 900), i * 12 + 3,
                                      i * 12 + 3 + dag_random(&rnd, 12))
                              : random_block(&rnd, 40, 64, STEPS, 20);
        const int64_t bound = ls_offsets_bound(b, n),
                      end = ls_offsets_over(b, n, FLOORS, alignment, offset);
        ck_assert_int_eq(ls_align(check(b, n, alignment, offset), alignment), end);
        ck_assert_int_le(end, bound + bound / 2 + 64 * alignment);
        for (uint32_t i = 0; i < FLOORS; i++)
            ck_assert_int_eq(offset[i], 0);
    }
}
END_TEST

START_TEST(nested_lifetimes_are_packed_without_a_gap)
{
    enum { N = 40 };
    LsBlock b[N];
    int64_t offset[N];
    for (uint32_t i = 0; i < N; i++)                /* forward values: made in
                                                     * order, freed in reverse */
        b[i] = block(64 * (1 + i % 7), i, 2 * N - i);
    int64_t bound = ls_offsets_bound(b, N);
    ck_assert_int_eq(ls_offsets(b, N, 64, bound, 0, LS_PACK_QUICK, offset), bound);
    ck_assert_int_eq(check(b, N, 64, offset), bound);
}
END_TEST

/* The least end when the blocks from order[k] on are placed in every order, each on the skyline of
 * the earlier blocks. One of these placements is optimal. */
static int64_t least_end(const LsBlock *b, uint32_t n, uint32_t *order, uint32_t k, int64_t *place,
                         int64_t end)
{
    int64_t best = INT64_MAX;
    if (k == n)
        return end;
    for (uint32_t i = k; i < n; i++) {
        uint32_t id = order[i];
        order[i] = order[k];
        order[k] = id;
        int64_t on = 0;
        for (uint32_t j = 0; j < k; j++) {
            const LsBlock *o = &b[order[j]];
            int64_t top = place[order[j]] + top_beside(o, &b[id]);
            if (o->from <= b[id].to && b[id].from <= o->to && top > on)
                on = top;
        }
        int64_t top = on + b[id].size;
        place[id] = on;
        int64_t e = least_end(b, n, order, k + 1, place, top > end ? top : end);
        best = e < best ? e : best;
        order[k] = order[i];
        order[i] = id;
    }
    return best;
}

START_TEST(a_few_blocks_end_at_the_least_end_of_all_placements)
{
    enum { MOST = 7 };
    uint64_t rnd = 5;
    for (int round = 0; round < 200; round++) {
        uint32_t n = round % 4 ? MOST : 1 + dag_random(&rnd, MOST), order[MOST];
        int64_t offset[MOST], place[MOST];
        LsBlock b[MOST];
        for (uint32_t i = 0; i < n; i++) {
            b[i] = random_block(&rnd, 5, 1, 7, 5);
            order[i] = i;
        }
        int64_t bound = ls_offsets_bound(b, n), best = least_end(b, n, order, 0, place, 0);
        ck_assert_int_eq(ls_offsets(b, n, 1, bound, 0, LS_PACK_FULL, offset), best);
        ck_assert_int_eq(check(b, n, 1, offset), best);
    }
}
END_TEST

/* Cuts steps [from, to] and heights [low, high) into at most n blocks that fill them. */
static uint32_t cut(LsBlock *b, uint32_t n, uint64_t *rnd, uint32_t from, uint32_t to, int64_t low,
                    int64_t high)
{
    uint32_t part = n > 2 ? 1 + dag_random(rnd, n - 1) : 1;
    bool upright = dag_random(rnd, 2) && to > from;
    if (n < 2 || (!upright && high - low < 2)) {
        *b = block(high - low, from, to);
        return 1;
    }
    if (upright) {
        uint32_t at = from + 1 + dag_random(rnd, to - from);
        uint32_t made = cut(b, part, rnd, from, at - 1, low, high);
        return made + cut(b + made, n - part, rnd, at, to, low, high);
    }
    int64_t at = low + 1 + dag_random(rnd, (uint32_t)(high - low - 1));
    uint32_t made = cut(b, part, rnd, from, to, low, at);
    return made + cut(b + made, n - part, rnd, from, to, at, high);
}

START_TEST(the_search_never_refutes_a_capacity_that_blocks_were_cut_from)
{
    enum { MOST = 60, HEIGHT = 1000 };
    uint64_t rnd = 3;
    int found = 0;
    for (int round = 0; round < 300; round++) {
        LsArena *arena = ls_arena_new();
        LsBlock b[MOST];
        LsBoxes boxes;
        int64_t place[MOST];
        uint32_t n = cut(b, 2 + dag_random(&rnd, MOST - 2), &rnd, 0, 30, 0, HEIGHT);
        ls_boxes_make(arena, b, n, 1, &boxes);
        ck_assert_int_eq(boxes.peak, HEIGHT);
        LsSearch *s = ls_offsets_search_new(arena, &boxes, 0, boxes.n);
        int64_t work = 1000000;
        LsSearchEnd end = ls_offsets_search(s, HEIGHT, &work, place);
        ck_assert_int_ne(end, LS_SEARCH_REFUTED);
        found += end == LS_SEARCH_FOUND;
        work = 1000000;
        ck_assert_int_eq(ls_offsets_search(s, HEIGHT - 1, &work, place), LS_SEARCH_REFUTED);
        ck_assert_int_gt(work, 0);
        ls_arena_free(arena);
    }
    ck_assert_int_ge(found, 290);
}
END_TEST

START_TEST(ejection_brings_boxes_below_a_capacity_or_leaves_them_where_they_are)
{
    enum { MOST = 60, HEIGHT = 1000 };
    uint64_t rnd = 7;
    int found = 0;
    for (int round = 0; round < 200; round++) {
        LsArena *arena = ls_arena_new();
        LsBlock b[MOST];
        LsBoxes boxes;
        int64_t place[MOST], before[MOST], offset[MOST], top = 0;
        uint32_t n = cut(b, 2 + dag_random(&rnd, MOST - 2), &rnd, 0, 30, 0, HEIGHT);
        ls_boxes_make(arena, b, n, 1, &boxes);
        for (uint32_t k = 0; k < n; k++) {          /* each above all others: far too high */
            before[k] = place[k] = top;
            top += boxes.box[k].size;
        }
        int64_t cap = HEIGHT + HEIGHT / 20 * (int64_t)(round % 2), work = 1000000;
        if (round % 3 == 2) {                       /* less than one section takes */
            ck_assert(!ls_offsets_eject(arena, &boxes, 0, n, HEIGHT - 1, &work, place));
            ck_assert_int_eq(memcmp(place, before, n * sizeof *place), 0);
        } else if (ls_offsets_eject(arena, &boxes, 0, n, cap, &work, place)) {
            for (uint32_t k = 0; k < n; k++)
                offset[boxes.box[k].block] = place[k];
            ck_assert_int_le(check(b, n, 1, offset), cap);
            found++;
        }
        ls_arena_free(arena);
    }
    ck_assert_int_ge(found, 110);                   /* of 134 */
}
END_TEST

START_TEST(what_is_found_for_some_bytes_is_found_for_more)
{
    enum { N = 40 };
    uint64_t rnd = 13;
    for (int round = 0; round < 12; round++) {
        LsBlock b[N];
        int64_t offset[N], last = INT64_MAX;
        for (uint32_t i = 0; i < N; i++)
            b[i] = random_block(&rnd, 1000, 1, 30, 12);
        int64_t bound = ls_offsets_bound(b, N);
        int64_t best = ls_offsets(b, N, 1, bound, 0, LS_PACK_FULL, offset);
        for (int64_t enough = bound; enough <= best + 40; enough += 1 + (best - bound) / 4) {
            int64_t end = ls_offsets(b, N, 1, bound, enough, LS_PACK_FULL, offset);
            ck_assert_int_eq(check(b, N, 1, offset), end);
            ck_assert_int_eq(end <= enough, best <= enough);
            last = end < last ? end : last;
        }
        ck_assert_int_ge(last, best);
    }
}
END_TEST

/* Too many for a complete search; greedy packings end 3 to 5 % above the bound. */
START_TEST(a_thousand_blocks_of_no_order_are_brought_near_the_bound)
{
    enum { N = 1000 };
    static LsBlock b[N];
    static int64_t offset[N];
    uint64_t rnd = 21;
    for (int round = 0; round < tests_part(3, 1); round++) {
        for (uint32_t i = 0; i < N; i++) {
            b[i] = block(1 + dag_random(&rnd, 400), dag_random(&rnd, 1000), 0);
            b[i].to = b[i].from + dag_random(&rnd, 1 + dag_random(&rnd, 400));
        }
        int64_t bound = ls_offsets_bound(b, N);
        int64_t quick = ls_offsets(b, N, 1, bound, 0, LS_PACK_QUICK, offset);
        int64_t end = ls_offsets(b, N, 1, bound, 0, LS_PACK_FULL, offset);
        ck_assert_int_eq(check(b, N, 1, offset), end);
        ck_assert_int_le(end, bound + bound / 22);
        ck_assert_int_le(end, quick - bound / 100);
    }
}
END_TEST

START_TEST(the_same_blocks_always_get_the_same_places)
{
    enum { N = 150 };
    LsBlock b[N];
    int64_t one[N], two[N];
    uint64_t rnd = 9;
    for (uint32_t i = 0; i < N; i++)
        b[i] = random_block(&rnd, 1000, 1, 100, 30);
    int64_t bound = ls_offsets_bound(b, N);
    int64_t end = ls_offsets(b, N, 1, bound, 0, LS_PACK_FULL, one);
    ck_assert_int_eq(ls_offsets(b, N, 1, bound, 0, LS_PACK_FULL, two), end);
    ck_assert_int_eq(memcmp(one, two, sizeof one), 0);
    ck_assert_int_le(end, ls_offsets(b, N, 1, bound, 0, LS_PACK_QUICK, two));
}
END_TEST

START_TEST(blocks_of_no_size_need_no_arena_and_no_blocks_neither)
{
    int64_t offset[3];
    ck_assert_int_eq(ls_offsets(NULL, 0, 1, 0, 0, LS_PACK_FULL, offset), 0);
    LsBlock b[] = {block(0, 0, 9), block(0, 3, UINT32_MAX), block(0, 9, 9)};
    ck_assert_int_eq(ls_offsets(b, 3, 64, 0, 0, LS_PACK_FULL, offset), 0);
    ck_assert_int_eq(ls_offsets_bound(b, 3), 0);
    b[1].size = 65;
    ck_assert_int_eq(ls_offsets(b, 3, 64, 0, 0, LS_PACK_FULL, offset), 65);
    ck_assert_int_eq(check(b, 3, 64, offset), 65);
    for (int k = 0; k < 3; k++)
        b[k] = block(100 + k, 7, 7);            /* all at one step: aligned, one on another */
    ck_assert_int_le(ls_offsets(b, 3, 64, 0, 0, LS_PACK_FULL, offset), 2 * 128 + 102);
    check(b, 3, 64, offset);
}
END_TEST

START_TEST(sizes_near_63_bits_do_not_overflow)
{
    const int64_t half = INT64_MAX / 2;
    int64_t offset[3];
    LsBlock b[] = {block(half, 0, 5), block(half, 3, UINT32_MAX), block(half, 6, 6)};
    ck_assert_int_eq(ls_offsets_bound(b, 3), 2 * half);
    ck_assert_int_eq(ls_offsets(b, 3, 1, 0, 0, LS_PACK_FULL, offset), 2 * half);
    ck_assert_int_eq(check(b, 3, 1, offset), 2 * half);
    b[2].from = 4;
    ck_assert_int_eq(ls_offsets_bound(b, 3), INT64_MAX);
    ck_assert_int_eq(ls_offsets(b, 3, 1, 0, 0, LS_PACK_FULL, offset), INT64_MAX);
    ck_assert_int_eq(ls_offsets(b, 3, 4096, 0, 0, LS_PACK_FULL, offset), INT64_MAX);
}
END_TEST

START_TEST(the_hard_instances_of_minimalloc_fit_their_capacity)
{
    for (char name = 'A'; name <= 'K'; name++) {
        char path[4096], line[256];
        snprintf(path, sizeof path, "%s/judge/minimalloc/%c.1048576.csv", LS_SHARED, name);
        FILE *f = fopen(path, "r");
        if (f == NULL) {
            printf("skipped: no %s\n", path);
            return;
        }
        enum { MOST = 4000 };
        static LsBlock b[MOST];
        static int64_t offset[MOST];
        uint32_t n = 0, id, from, to;
        long long size;
        while (fgets(line, sizeof line, f) != NULL && n < MOST)
            if (sscanf(line, "%*[^,],%u,%u,%lld", &from, &to, &size) == 3
                || sscanf(line, "%u,%u,%u,%lld", &id, &from, &to, &size) == 4)
                b[n++] = block(size, from, to - 1);
        fclose(f);
        ck_assert_uint_gt(n, 50);
        int64_t bound = ls_offsets_bound(b, n);
        int64_t end = ls_offsets(b, n, 1, 1048576, 0, LS_PACK_LONG, offset);
        printf("minimalloc %c: %u blocks, %.3f of the bound, %.3f of the capacity\n", name, n,
               (double)end / (double)bound, (double)end / 1048576);
        ck_assert_int_eq(check(b, n, 1, offset), end);
        ck_assert_int_le(end, 1048576);
    }
}
END_TEST

/* Bytes above part of the peak, over all steps; -1: the sequence reads a missing value, or its peak
 * or cost is not what liveness.h finds in seq. */
static int64_t crowd(LsArena *arena, const LsProb *p, const LsSeq *seq, const LsSeq *of)
{
    LsLive *live = ls_live_new(arena, p);
    LsTape *t = ls_tape_new(p);
    ls_live(p, of, live);
    ls_tape_load(t, seq);
    int64_t over = ls_peak_tree_over(&t->tree, (int64_t)((double)live->peak * 0.8));
    if (t->bad > 0 || ls_tape_peak(t) != live->peak || t->cost != live->cost)
        over = -1;
    ls_tape_free(t);
    return over;
}

START_TEST(a_looser_order_has_the_same_runs_and_peak_but_less_near_it)
{
    LsArena *arena = ls_arena_new();
    int less = 0, different = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        LsProb *p = ls_prob_new(arena, dag_make(arena, 10 + seed, seed), seed % 4 != 0);
        LsSeq plain = ls_seq_plain(arena, p), one = ls_offsets_loosen(arena, p, &plain, 0);
        LsSeq again = ls_offsets_loosen(arena, p, &plain, 0);
        LsSeq other = ls_offsets_loosen(arena, p, &plain, 1);
        uint32_t *runs = ls_arena_alloc(arena, p->n, sizeof *runs);
        ck_assert_uint_eq(one.n, plain.n);
        for (uint32_t s = 0; s < plain.n; s++) {
            runs[plain.node[s]]++;
            runs[one.node[s]]--;
        }
        for (uint32_t v = 0; v < p->n; v++)
            ck_assert_uint_eq(runs[v], 0);
        int64_t before = crowd(arena, p, &plain, &plain), then = crowd(arena, p, &one, &plain);
        ck_assert_int_ge(then, 0);
        ck_assert_int_le(then, before);
        ck_assert_int_ge(crowd(arena, p, &other, &plain), 0);
        ck_assert_int_eq(memcmp(one.node, again.node, one.n * sizeof *one.node), 0);
        different += memcmp(one.node, other.node, one.n * sizeof *one.node) != 0;
        less += then < before;
    }
    ck_assert_int_ge(less, 10);
    ck_assert_int_ge(different, 10);
    ls_arena_free(arena);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("offsets");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, random_blocks_never_overlap_and_the_end_is_the_one_returned);
    tcase_add_test(tc, blocks_lie_over_floors);
    tcase_add_test(tc, nested_lifetimes_are_packed_without_a_gap);
    tcase_add_test(tc, a_few_blocks_end_at_the_least_end_of_all_placements);
    tcase_add_test(tc, the_search_never_refutes_a_capacity_that_blocks_were_cut_from);
    tcase_add_test(tc, ejection_brings_boxes_below_a_capacity_or_leaves_them_where_they_are);
    tcase_add_test(tc, what_is_found_for_some_bytes_is_found_for_more);
    tcase_add_test(tc, a_thousand_blocks_of_no_order_are_brought_near_the_bound);
    tcase_add_test(tc, the_same_blocks_always_get_the_same_places);
    tcase_add_test(tc, blocks_of_no_size_need_no_arena_and_no_blocks_neither);
    tcase_add_test(tc, sizes_near_63_bits_do_not_overflow);
    tcase_add_test(tc, a_looser_order_has_the_same_runs_and_peak_but_less_near_it);
    tcase_add_test(tc, the_hard_instances_of_minimalloc_fit_their_capacity);
    return run_tests("offsets", tc);
}
