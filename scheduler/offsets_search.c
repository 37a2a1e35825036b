/* scheduler/offsets_search.c -- backtracking over canonical placements, after Moffitt (MiniMalloc,
 * ASPLOS 2023).
 *
 * If there is a placement, there is one where every box rests on another or on the ground, made
 * by placing boxes in the order of their offsets, each on the skyline of those before. The search
 * goes through these: the next box is one of those that could lie lowest. What is passed over
 * must then come to rest on a later one. Whatever falls apart in time is placed part by part; a
 * box that leaves a gap which an open one would fill is not tried; states that were refuted once
 * are recognised by a fingerprint; ls_refute looks ahead. As a bad early choice can cost
 * everything, the search starts over with other orders of preference, with ever more nodes. */
#include "scheduler/offsets_search.h"

#include "scheduler/offsets_refute.h"

struct LsSearch {
    LsArena *arena;
    const LsBoxes *b;
    uint32_t from, to;
    LsRefuter r;
    LsOpenBox *open; size_t used, room;     /* a stack: the lists of the nodes on the way down */
    uint64_t *seen;             /* fingerprints of refuted states, by their low bits */
    uint32_t *rank;             /* by box: 0 is preferred */
    uint32_t *base;             /* the same before a restart shuffles them */
    int64_t *place;
    int64_t nodes, work;        /* limits of this start; of all of them, by r.work */
};

enum { SEEN = 1 << 18, MOST_OPEN = 1 << 22 };

static LsSearchEnd explore(LsSearch *s, LsOpenBox *open, uint32_t n);

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

/* What is left to do, and where; what a state can still become depends on nothing else. */
static uint64_t fingerprint(const LsSearch *s, const LsOpenBox *open, uint32_t n)
{
    uint64_t h = mix((uint64_t)s->r.cap);
    for (uint32_t k = 0; k < n; k++)
        h += mix(mix((uint64_t)open[k].least + 1) + 2 * (uint64_t)open[k].box + open[k].passed);
    return h ? h : 1;
}

/* Open boxes behind a: those that share a section with it or are tied to it by others. */
static uint32_t part_of(const LsSearch *s, const LsOpenBox *open, uint32_t n, uint32_t a)
{
    uint32_t last = 0, z = a;
    for (; z < n && (z == a || s->b->box[open[z].box].from <= last); z++) {
        uint32_t to = s->b->box[open[z].box].to;
        last = to > last ? to : last;
    }
    return z;
}

/* All parts of open[n]: first looks ahead in each, then places the short ones first. */
static LsSearchEnd explore_parts(LsSearch *s, LsOpenBox *open, uint32_t n, int64_t floor)
{
    uint32_t longest = 0, length = 0;
    for (uint32_t a = 0, z; a < n; a = z) {
        z = part_of(s, open, n, a);
        if (ls_refute(&s->r, open + a, z - a, floor))
            return LS_SEARCH_REFUTED;
        if (z - a > length) {
            length = z - a;
            longest = a;
        }
    }
    for (uint32_t a = 0, z; a < n; a = z) {
        z = part_of(s, open, n, a);
        LsSearchEnd end = a == longest ? LS_SEARCH_FOUND : explore(s, open + a, z - a);
        if (end != LS_SEARCH_FOUND)
            return end;
    }
    return n ? explore(s, open + longest, length) : LS_SEARCH_FOUND;
}

/* Places open[k] on the skyline and goes on with the others. */
static LsSearchEnd place_next(LsSearch *s, const LsOpenBox *open, uint32_t n, uint32_t k)
{
    const LsBox *x = &s->b->box[open[k].box];
    int64_t at = open[k].least, top = at + x->size;
    LsOpenBox *left = s->open + s->used;
    uint32_t nleft = 0;
    if (s->used + n > s->room)
        return LS_SEARCH_CUT;
    for (uint32_t j = 0; j < n; j++) {
        LsOpenBox o = open[j];
        const LsBox *y = &s->b->box[o.box];
        if (j == k)
            continue;
        if (y->from <= x->to && x->from <= y->to) {
            if (o.least < top)
                o = (LsOpenBox){top, o.box, false};
        } else if (o.least < at || (o.least == at && s->rank[o.box] < s->rank[open[k].box])) {
            o.passed = true;
        }
        left[nleft++] = o;
    }
    s->used += nleft;
    LsSearchEnd end = explore_parts(s, left, nleft, at);
    s->used -= nleft;
    if (end == LS_SEARCH_FOUND)
        s->place[open[k].box] = at;
    return end;
}

/* Whether another open box of the same size and time is preferred. */
static bool is_copy(const LsSearch *s, const LsOpenBox *open, uint32_t n, uint32_t k)
{
    const LsBox *x = &s->b->box[open[k].box];
    for (int step = -1; step <= 1; step += 2)
        for (int64_t j = (int64_t)k + step; j >= 0 && j < n; j += step) {
            const LsBox *y = &s->b->box[open[j].box];
            if (y->from != x->from || y->to != x->to)
                break;
            if (y->size == x->size && open[j].least == open[k].least && !open[j].passed
                && s->rank[open[j].box] < s->rank[open[k].box])
                return true;
        }
    return false;
}

/* The next candidate behind `last` (NULL: the first) by place and rank that would lie at most at
 * `most` and below `gap`. returns n when there is none. */
static uint32_t candidate(LsSearch *s, const LsOpenBox *open, uint32_t n, const LsOpenBox *last,
                          int64_t most, int64_t gap)
{
    uint32_t best = n, best_rank = 0;
    s->r.work += n;
    for (uint32_t k = 0; k < n; k++) {
        const LsOpenBox *o = &open[k];
        uint32_t rank = s->rank[o->box];
        if (o->passed || o->least > most || o->least >= gap)
            continue;
        if (last != NULL
            && (o->least < last->least
                || (o->least == last->least && rank <= s->rank[last->box])))
            continue;
        if (best == n || o->least < open[best].least
            || (o->least == open[best].least && rank < best_rank)) {
            best = k;
            best_rank = rank;
        }
    }
    return best;
}

static LsSearchEnd explore(LsSearch *s, LsOpenBox *open, uint32_t n)
{
    if (s->nodes-- <= 0 || s->r.work > s->work)
        return LS_SEARCH_CUT;
    uint64_t print = fingerprint(s, open, n), *seen = &s->seen[print % SEEN];
    if (*seen == print)
        return LS_SEARCH_REFUTED;
    int64_t most = s->r.cap - ls_refuter_sums(&s->r, open, n), gap = INT64_MAX;
    for (uint32_t k = 0; k < n; k++) {              /* above it, a box leaves a gap for another */
        int64_t end = open[k].least + s->b->box[open[k].box].size;
        gap = end < gap ? end : gap;
    }
    const LsOpenBox *last = NULL;
    for (uint32_t k; (k = candidate(s, open, n, last, most, gap)) < n; last = &open[k]) {
        if (is_copy(s, open, n, k))
            continue;
        LsSearchEnd end = place_next(s, open, n, k);
        if (end != LS_SEARCH_REFUTED)
            return end;
    }
    *seen = print;
    return LS_SEARCH_REFUTED;
}

LsSearch *ls_offsets_search_new(LsArena *arena, const LsBoxes *b, uint32_t from, uint32_t to)
{
    LsSearch *s = ls_arena_alloc(arena, 1, sizeof *s);
    uint64_t n = to - from, all = n * (n + 1) / 2 + 1;
    *s = (LsSearch){.arena = arena, .b = b, .from = from, .to = to};
    s->r = ls_refuter(arena, b, to - from);
    s->room = all < MOST_OPEN ? all : MOST_OPEN;
    s->open = ls_arena_alloc(arena, s->room, sizeof *s->open);
    s->seen = ls_arena_alloc(arena, SEEN, sizeof *s->seen);
    s->rank = ls_arena_alloc(arena, b->n + 1u, sizeof *s->rank);
    s->base = ls_arena_alloc(arena, b->n + 1u, sizeof *s->base);
    return s;
}

LsSearchEnd ls_offsets_search(LsSearch *s, int64_t cap, int64_t work, int64_t *place)
{
    static const char *const key[] = {"WAT", "TAW", "TWA", "AWT", "ZWA"};
    enum { NKEYS = sizeof key / sizeof key[0], MOST_DEEP = 6000 };
    uint32_t n = s->to - s->from;
    if (n > MOST_DEEP)
        return LS_SEARCH_CUT;
    LsOpenBox *open = ls_arena_alloc(s->arena, n + 1u, sizeof *open);
    for (uint32_t k = 0; k < n; k++)
        open[k] = (LsOpenBox){0, s->from + k, false};
    s->r.cap = cap;
    s->place = place;
    s->work = s->r.work + work;
    LsSearchEnd end = LS_SEARCH_CUT;
    for (int64_t nodes = 2 * (int64_t)n; end == LS_SEARCH_CUT && s->r.work < s->work; nodes *= 2)
        for (int k = 0; k < NKEYS && end == LS_SEARCH_CUT && s->r.work < s->work; k++) {
            ls_boxes_rank(s->arena, s->b, key[k], s->rank);
            s->nodes = nodes;
            s->used = 0;
            end = explore_parts(s, open, n, 0);
        }
    return end;
}
