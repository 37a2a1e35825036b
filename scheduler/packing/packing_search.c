/* scheduler/packing/packing_search.c -- backtracking over canonical placements, after Moffitt
 * (MiniMalloc, ASPLOS 2023).
 *
 * If a placement exists, then a canonical one exists: every box rests on another box or on the
 * ground, and boxes placed in the order of their offsets each lie on the skyline of the earlier
 * ones. The search enumerates these: the next box is one of the boxes that could lie lowest. A box
 * that is passed over must later rest on a later box. Boxes that separate in time are placed part
 * by part. A box that leaves a gap which an open box would fill is not tried. A fingerprint
 * recognises refuted states. ls_refute looks ahead.
 *
 * A refutation has a reason: sections whose boxes alone cannot be placed from their state. If the
 * box placed last did not change the state of any of these boxes, the reason holds without it, and
 * no other choice in its place is tried. A bad early choice can still cost everything, so the
 * search restarts with other orders of preference and ever more nodes. */
#include "scheduler/packing/packing_search.h"

#include <assert.h>
#include <string.h>

#include "scheduler/packing/packing_refute.h"

typedef struct Seen { uint64_t print; LsSpan why; } Seen;

struct LsSearch {
    LsArena *arena;
    const LsBoxes *b;
    uint32_t from, to;
    LsRefuter r;
    LsOpenBox *open; size_t used, room;     /* a stack: the lists of the search nodes on the current
                                             * path */
    LsOpenBox *mixed;           /* a list before it is sorted into its parts */
    uint32_t *part;             /* by section: the first section of its part */
    uint32_t *last;             /* by first section of a part: its last section */
    uint32_t *fill;             /* by first section of a part: its end in the stack so far */
    int32_t *cross;             /* by section: boxes that go on in the next section, as
                                 * differences */
    Seen *seen;                 /* refuted states, by the low bits of their fingerprints */
    LsSpan why;                 /* reason of the last refutation: sections whose boxes alone prove
                                 * it */
    bool jump;                  /* `why` holds without the box that was placed last */
    uint32_t *rank;             /* by box: 0 is preferred */
    int64_t *place;
    int64_t nodes, work;        /* limits: nodes of this start; work of all starts, as r.work */
    uint32_t depth;
};

enum { SEEN = 1 << 18, MOST_OPEN = 1 << 22, MOST_DEEP = 3000 };

static LsSearchEnd explore(LsSearch *s, const LsOpenList *l);

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

/* Hashes the open boxes with their heights: the completions of a state depend on nothing else. */
static uint64_t fingerprint(const LsSearch *s, const LsOpenList *l)
{
    uint64_t h = mix((uint64_t)s->r.cap);
    for (uint32_t k = 0; k < l->n; k++) {
        const LsOpenBox *o = &l->open[k];
        h += mix(mix((uint64_t)o->least + 1) + 2 * (uint64_t)o->box + o->passed);
    }
    return h ? h : 1;
}

/* Divides the sections into parts where none of the n boxes in s->mixed crosses. */
static void find_parts(LsSearch *s, uint32_t n, LsSpan in)
{
    memset(s->cross + in.from, 0, (in.to - in.from + 2) * sizeof *s->cross);
    for (uint32_t k = 0; k < n; k++) {
        const LsBox *x = &s->b->box[s->mixed[k].box];
        s->cross[x->from]++;
        s->cross[x->to]--;
    }
    int32_t crossing = 0;
    for (uint32_t t = in.from, first = in.from; t <= in.to; t++) {
        s->part[t] = first;
        s->last[first] = t;
        s->fill[t] = 0;
        crossing += s->cross[t];
        if (crossing == 0)
            first = t + 1;
    }
}

/* Puts the boxes of s->mixed on the stack, part by part, each still by falling `least`. */
static LsOpenBox *sort_parts(LsSearch *s, uint32_t n, LsSpan in)
{
    LsOpenBox *out = s->open + s->used;
    for (uint32_t k = 0; k < n; k++)
        s->fill[s->part[s->b->box[s->mixed[k].box].from]]++;
    for (uint32_t t = in.from, at = 0; t <= in.to; t = s->last[t] + 1) {
        uint32_t count = s->fill[t];
        s->fill[t] = at;
        at += count;
    }
    for (uint32_t k = 0; k < n; k++)
        out[s->fill[s->part[s->b->box[s->mixed[k].box].from]]++] = s->mixed[k];
    return out;
}

/* Returns the part that begins at section t; its boxes begin at `open`. */
static LsOpenList part_at(const LsSearch *s, LsOpenBox *open, uint32_t t, const LsOpenBox *all)
{
    return (LsOpenList){open, (uint32_t)(all + s->fill[t] - open), t, s->last[t]};
}

static bool meet(LsSpan a, const LsBox *x)
{
    return x->from <= a.to && a.from <= x->to;
}

/* Widens the reason by the boxes that were passed over: the boxes on which they come to rest belong
 * to it. */
static LsSpan with_passed(const LsSearch *s, const LsOpenList *l, LsSpan why)
{
    for (bool grown = true; grown;) {
        grown = false;
        for (uint32_t k = l->n; k-- > 0;) {
            const LsBox *x = &s->b->box[l->open[k].box];
            if (!l->open[k].passed || !meet(why, x) || (why.from <= x->from && x->to <= why.to))
                continue;
            why = ls_span_join(why, (LsSpan){x->from, x->to});
            grown = true;
        }
    }
    return why;
}

/* Explores all parts of the n boxes in s->mixed, which lie in sections `in`. First looks ahead in
 * each changed part, then places the parts, the longest last. */
static LsSearchEnd explore_parts(LsSearch *s, uint32_t n, int64_t floor, LsSpan in, LsSpan changed)
{
    find_parts(s, n, in);
    LsOpenBox *all = sort_parts(s, n, in), *open = all;
    LsOpenList longest = {0};
    LsSearchEnd end = LS_SEARCH_FOUND;
    for (uint32_t t = in.from; t <= in.to; t = s->last[t] + 1) {
        LsOpenList l = part_at(s, open, t, all);
        open += l.n;
        if (l.n > 0 && ls_refute(&s->r, &l, floor, changed)) {
            s->why = with_passed(s, &l, s->r.why);
            return LS_SEARCH_REFUTED;
        }
        if (l.n > longest.n)
            longest = l;
    }
    s->used += n;
    open = all;
    for (uint32_t t = in.from, next; t <= in.to && end == LS_SEARCH_FOUND; t = next) {
        LsOpenList l = t == longest.from ? longest : part_at(s, open, t, all);
        next = l.to + 1;
        open += l.n;
        if (l.n > 0 && t != longest.from)
            end = explore(s, &l);
    }
    if (longest.n > 0 && end == LS_SEARCH_FOUND)
        end = explore(s, &longest);
    s->used -= n;
    return end;
}

/* Returns whether placing l->open[k] changes the state of a box in the reason. */
static bool matters(const LsSearch *s, const LsOpenList *l, uint32_t k)
{
    const LsOpenBox *me = &l->open[k];
    const LsBox *x = &s->b->box[me->box];
    if (meet(s->why, x))
        return true;
    for (uint32_t j = 0; j < l->n; j++) {
        const LsOpenBox *o = &l->open[j];
        const LsBox *y = &s->b->box[o->box];
        if (!meet(s->why, y))
            continue;
        if (y->from <= x->to && x->from <= y->to) {
            if (o->least < me->least + x->size)
                return true;
        } else if (!o->passed && (o->least < me->least || (o->least == me->least
                                     && s->rank[o->box] < s->rank[me->box]))) {
            return true;
        }
    }
    return false;
}

/* Appends to s->mixed, which holds n boxes, the boxes that open[k] raises at sections `on` to
 * `top`, one of its upper ends. Returns their number then, or UINT32_MAX if a box has no room
 * above. first: the least section at which such a box may begin. */
static uint32_t raise(LsSearch *s, const LsOpenList *l, uint32_t k, LsSpan on, uint32_t first,
                      int64_t top, uint32_t n, LsSpan *changed)
{
    for (uint32_t j = 0; j < l->n; j++) {
        uint32_t id = l->open[j].box;
        const LsBox *y = &s->b->box[id];
        if (j == k || l->open[j].least >= top || !meet(on, y) || y->from < first)
            continue;
        if (top > s->r.cap - y->size) {
            uint32_t a = on.from > y->from ? on.from : y->from;
            s->why = (LsSpan){a, a};
            s->jump = false;
            return UINT32_MAX;
        }
        *changed = ls_span_join(*changed, (LsSpan){y->from, y->to});
        s->mixed[n++] = (LsOpenBox){top, id, false};
    }
    return n;
}

/* Places l->open[k] on the skyline and explores the others. */
static LsSearchEnd place_next(LsSearch *s, const LsOpenList *l, uint32_t k)
{
    const LsOpenBox *me = &l->open[k];
    const LsBox *x = &s->b->box[me->box];
    int64_t at = me->least, top = at + x->size, step = at + x->rest;
    LsSpan changed = {x->from, x->to};
    uint32_t n = 0, split = 0;
    if (s->used + l->n > s->room || s->depth >= MOST_DEEP)
        return LS_SEARCH_CUT;
    s->r.work += l->n;
    while (split < l->n && l->open[split].least >= top)
        s->mixed[n++] = l->open[split++];
    n = raise(s, l, k, (LsSpan){x->from, x->full}, 0, top, n, &changed);
    bool low = x->full == x->to;                    /* boxes on the lower end are in s->mixed */
    for (uint32_t j = split; j < l->n && n <= l->n; j++) {
        LsOpenBox o = l->open[j];
        const LsBox *y = &s->b->box[o.box];
        if (!low && o.least < step) {               /* by falling `least` */
            low = true;
            n = raise(s, l, k, (LsSpan){x->full + 1, x->to}, x->full + 1, step, n, &changed);
            if (n > l->n)
                break;
        }
        if (j == k || (y->from <= x->full && y->to >= x->from)
            || (y->from <= x->to && y->to > x->full && o.least < step))
            continue;
        if (o.least < at || (o.least == at && s->rank[o.box] < s->rank[me->box])) {
            o.passed = true;
            changed = ls_span_join(changed, (LsSpan){y->from, y->to});
        }
        s->mixed[n++] = o;
    }
    if (n > l->n)
        return LS_SEARCH_REFUTED;
    s->depth++;
    LsSearchEnd end = LS_SEARCH_FOUND;
    if (n > 0)
        end = explore_parts(s, n, at, (LsSpan){l->from, l->to}, changed);
    s->depth--;
    if (end == LS_SEARCH_FOUND)
        s->place[me->box] = at;
    s->jump = end == LS_SEARCH_REFUTED && !matters(s, l, k);
    return end;
}

/* Returns whether a is tried before b: lower, or preferred at the same height. */
static bool before(const LsSearch *s, const LsOpenBox *a, const LsOpenBox *b)
{
    return a->least != b->least ? a->least < b->least : s->rank[a->box] < s->rank[b->box];
}

/* Returns the candidate after `last` (NULL: the first) among l->open[tail ...]; l->n: none. */
static uint32_t candidate(const LsSearch *s, const LsOpenList *l, uint32_t tail,
                          const LsOpenBox *last)
{
    uint32_t best = l->n;
    for (uint32_t k = l->n; k-- > tail;) {
        const LsOpenBox *o = &l->open[k];
        if (best < l->n && o->least > l->open[best].least)
            break;
        if (!o->passed && (last == NULL || before(s, last, o))
            && (best == l->n || before(s, o, &l->open[best])))
            best = k;
    }
    return best;
}

static bool is_copy(const LsSearch *s, const LsOpenList *l, uint32_t tail, uint32_t k)
{
    const LsOpenBox *me = &l->open[k];
    const LsBox *x = &s->b->box[me->box];
    for (uint32_t j = tail; j < l->n; j++) {
        const LsOpenBox *o = &l->open[j];
        const LsBox *y = &s->b->box[o->box];
        if (o->least == me->least && !o->passed && y->size == x->size && y->from == x->from
            && y->to == x->to && y->rest == x->rest && y->full == x->full
            && s->rank[o->box] < s->rank[me->box])
            return true;
    }
    return false;
}

/* The next box must lie at most at `most`, else section `full` exceeds the capacity; and below
 * `gap`, else box `filler` could move down into the gap below it. */
typedef struct Window { int64_t most, gap; uint32_t full, filler; } Window;

static Window window(LsSearch *s, const LsOpenList *l)
{
    Window w = {.most = s->r.cap - ls_refuter_sums(&s->r, l), .gap = INT64_MAX};
    w.full = s->r.most;
    for (uint32_t k = 0; k < l->n; k++) {
        int64_t end = l->open[k].least + s->b->box[l->open[k].box].size;
        if (end < w.gap) {
            w.gap = end;
            w.filler = l->open[k].box;
        }
    }
    return w;
}

/* Tries every candidate. If all are refuted, s->why is the reason. */
static LsSearchEnd try_all(LsSearch *s, const LsOpenList *l)
{
    Window w = window(s, l);
    const LsBox *filler = &s->b->box[w.filler];
    const LsOpenBox *last = NULL;
    LsSpan why = {1, 0};
    uint32_t tail = l->n;
    while (tail > 0 && l->open[tail - 1].least <= w.most && l->open[tail - 1].least < w.gap)
        tail--;
    for (uint32_t k; (k = candidate(s, l, tail, last)) < l->n; last = &l->open[k]) {
        if (is_copy(s, l, tail, k))
            continue;
        LsSearchEnd end = place_next(s, l, k);
        if (end != LS_SEARCH_REFUTED)
            return end;
        if (s->jump) {                              /* no other candidate needs a trial */
            s->why = with_passed(s, l, s->why);
            return LS_SEARCH_REFUTED;
        }
        why = ls_span_join(why, s->why);
    }
    if (tail > 0 && w.gap <= w.most)
        why = ls_span_join(why, (LsSpan){filler->from, filler->to});
    else if (tail > 0)
        why = ls_span_join(why, (LsSpan){w.full, w.full});
    if (why.from > why.to)
        why = (LsSpan){l->from, l->to};
    s->why = with_passed(s, l, why);
    return LS_SEARCH_REFUTED;
}

static LsSearchEnd explore(LsSearch *s, const LsOpenList *l)
{
    if (s->nodes-- <= 0 || s->r.work > s->work)
        return LS_SEARCH_CUT;
    s->r.work += 4 * (int64_t)l->n;
    uint64_t print = fingerprint(s, l);
    Seen *seen = &s->seen[print % SEEN];
    if (seen->print == print) {
        s->why = seen->why;
        return LS_SEARCH_REFUTED;
    }
    LsSearchEnd end = try_all(s, l);
    if (end == LS_SEARCH_REFUTED)
        *seen = (Seen){print, s->why};
    return end;
}

LsSearch *ls_offsets_search_new(LsArena *arena, const LsBoxes *b, uint32_t from, uint32_t to)
{
    assert(from <= to && to <= b->n);
    LsSearch *s = ls_arena_alloc(arena, 1, sizeof *s);
    uint64_t n = to - from, all = n * (n + 1) / 2 + n + 1;
    *s = (LsSearch){.arena = arena, .b = b, .from = from, .to = to};
    s->r = ls_refuter(arena, b);
    s->room = all < MOST_OPEN ? all : MOST_OPEN;
    s->open = ls_arena_alloc(arena, s->room, sizeof *s->open);
    s->mixed = ls_arena_alloc(arena, n + 1, sizeof *s->mixed);
    s->part = ls_arena_alloc(arena, b->nsection + 2u, sizeof *s->part);
    s->last = ls_arena_alloc(arena, b->nsection + 2u, sizeof *s->last);
    s->fill = ls_arena_alloc(arena, b->nsection + 2u, sizeof *s->fill);
    s->cross = ls_arena_alloc(arena, b->nsection + 2u, sizeof *s->cross);
    s->seen = ls_arena_alloc(arena, SEEN, sizeof *s->seen);
    s->rank = ls_arena_alloc(arena, b->n + 1u, sizeof *s->rank);
    return s;
}

LsSearchEnd ls_offsets_search(LsSearch *s, int64_t cap, int64_t *work, int64_t *place)
{
    assert(cap >= 0 && cap <= INT64_MAX / 4);
    static const char *const key[] = {"WAT", "TAW", "TWA", "TZW", "SAT", "AWT"};
    enum { NKEYS = sizeof key / sizeof key[0] };
    uint32_t n = s->to - s->from, first = s->b->box[s->from].from, last = 0;
    for (uint32_t k = s->from; k < s->to; k++)
        last = s->b->box[k].to > last ? s->b->box[k].to : last;
    s->r.cap = cap;
    s->place = place;
    s->work = s->r.work + *work;
    LsSearchEnd end = LS_SEARCH_CUT;
    for (uint32_t start = 0; end == LS_SEARCH_CUT && s->r.work < s->work; start++) {
        uint32_t round = start / NKEYS;
        ls_boxes_rank(s->arena, s->b, key[start % NKEYS], s->rank);
        s->nodes = 2 * (int64_t)n << (round < 40 ? round : 40);
        for (uint32_t k = 0; k < n; k++)
            s->mixed[k] = (LsOpenBox){0, s->from + k, false};
        end = explore_parts(s, n, 0, (LsSpan){first, last}, (LsSpan){first, last});
    }
    *work = s->work - s->r.work;
    return end;
}
