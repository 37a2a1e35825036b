/* scheduler/packing/packing_greedy.c -- a skyline of stretches of equal height in a heap by height;
 * a tree over the boxes by start finds the preferred box that fits a valley. */
#include "scheduler/packing/packing_greedy.h"

#define NONE UINT32_MAX

const char *const ls_fill_key[LS_FILLS] = {"WAT", "AWT", "TWA", "ZWA", "TAW", "SZ"};

typedef struct Stretch {        /* sections [from, to] are filled up to level */
    int64_t level;
    uint32_t from, to;
    uint32_t left, right;       /* its neighbours, or NONE */
    uint32_t at;                /* in the heap */
} Stretch;

typedef struct Leaf { uint32_t rank, to; } Leaf;    /* minima of a subtree, independent of each
                                                     * other */

typedef struct Fill {
    const LsBoxes *b;
    Stretch *st; uint32_t nst;
    uint32_t *free_id; uint32_t nfree;
    uint32_t *heap; uint32_t nheap;
    Leaf *tree; uint32_t leaves;    /* leaf k is tree[leaves + k] */
    uint32_t *first;            /* by section: its first box; one extra entry at the end */
    uint32_t *box_of;           /* by rank */
} Fill;

static bool below(const Fill *f, uint32_t a, uint32_t b)
{
    const Stretch *x = &f->st[a], *y = &f->st[b];
    return x->level != y->level ? x->level < y->level : x->from < y->from;
}

static void set_heap(Fill *f, uint32_t at, uint32_t id)
{
    f->heap[at] = id;
    f->st[id].at = at;
}

static void sift(Fill *f, uint32_t at)
{
    uint32_t id = f->heap[at];
    while (at > 0 && below(f, id, f->heap[(at - 1) / 2])) {
        set_heap(f, at, f->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (uint32_t kid; (kid = 2 * at + 1) < f->nheap; at = kid) {
        if (kid + 1 < f->nheap && below(f, f->heap[kid + 1], f->heap[kid]))
            kid++;
        if (!below(f, f->heap[kid], id))
            break;
        set_heap(f, at, f->heap[kid]);
    }
    set_heap(f, at, id);
}

static uint32_t add_stretch(Fill *f, Stretch s)
{
    uint32_t id = f->nfree ? f->free_id[--f->nfree] : f->nst++;
    f->st[id] = s;
    f->heap[f->nheap] = id;
    sift(f, f->nheap++);
    return id;
}

static void drop_stretch(Fill *f, uint32_t id)
{
    uint32_t at = f->st[id].at, last = f->heap[--f->nheap];
    f->free_id[f->nfree++] = id;
    if (last != id) {
        set_heap(f, at, last);
        sift(f, at);
    }
}

/* Merges the stretch with neighbours of the same level. */
static void merge(Fill *f, uint32_t id)
{
    Stretch *s = &f->st[id];
    uint32_t l = s->left, r = s->right;
    if (l != NONE && f->st[l].level == s->level) {
        s->from = f->st[l].from;
        s->left = f->st[l].left;
        if (s->left != NONE)
            f->st[s->left].right = id;
        drop_stretch(f, l);
    }
    if (r != NONE && f->st[r].level == s->level) {
        s->to = f->st[r].to;
        s->right = f->st[r].right;
        if (s->right != NONE)
            f->st[s->right].left = id;
        drop_stretch(f, r);
    }
    sift(f, s->at);
}

static void set_leaf(Fill *f, uint32_t k, Leaf leaf)
{
    uint32_t at = f->leaves + k;
    f->tree[at] = leaf;
    while ((at /= 2) > 0) {
        const Leaf *l = &f->tree[2 * at], *r = l + 1;
        f->tree[at] = (Leaf){l->rank < r->rank ? l->rank : r->rank, l->to < r->to ? l->to : r->to};
    }
}

/* Returns the least rank among boxes [a, z) that end at section `to` or before, or best if none is
 * lower. The subtree at `node` holds boxes [low, low + wide). */
static uint32_t least(const Fill *f, uint32_t node, uint32_t low, uint32_t wide, uint32_t a,
                      uint32_t z, uint32_t to, uint32_t best)
{
    const Leaf *n = &f->tree[node];
    if (low >= z || low + wide <= a || n->rank >= best || n->to > to)
        return best;
    if (wide == 1)
        return n->rank;
    wide /= 2;
    uint32_t near = f->tree[2 * node].rank <= f->tree[2 * node + 1].rank ? 0 : 1;
    best = least(f, 2 * node + near, low + near * wide, wide, a, z, to, best);
    return least(f, 2 * node + !near, low + !near * wide, wide, a, z, to, best);
}

/* Cuts the stretch into the parts left of the box, under it and right of it. */
static void place_on(Fill *f, uint32_t id, const LsBox *x)
{
    Stretch s = f->st[id];
    uint32_t last = id;
    f->st[id] = (Stretch){ls_add(s.level, x->size), x->from, x->full, s.left, s.right, s.at};
    sift(f, s.at);
    if (x->full < x->to) {
        last = add_stretch(f, (Stretch){s.level + x->rest, x->full + 1, x->to, id, s.right, 0});
        if (s.right != NONE)
            f->st[s.right].left = last;
        f->st[id].right = last;
    }
    if (s.from < x->from) {
        uint32_t l = add_stretch(f, (Stretch){s.level, s.from, x->from - 1, s.left, id, 0});
        if (s.left != NONE)
            f->st[s.left].right = l;
        f->st[id].left = l;
    }
    if (s.to > x->to) {
        uint32_t r = add_stretch(f, (Stretch){s.level, x->to + 1, s.to, last, s.right, 0});
        if (s.right != NONE)
            f->st[s.right].left = r;
        f->st[last].right = r;
    }
    merge(f, id);
    if (last != id)
        merge(f, last);
}

static void prepare(LsArena *arena, Fill *f, const uint32_t *rank)
{
    const LsBoxes *b = f->b;
    uint32_t room = b->nsection + 2;
    f->st = ls_arena_alloc(arena, room, sizeof *f->st);
    f->free_id = ls_arena_alloc(arena, room, sizeof *f->free_id);
    f->heap = ls_arena_alloc(arena, room, sizeof *f->heap);
    f->first = ls_arena_alloc(arena, room, sizeof *f->first);
    f->box_of = ls_arena_alloc(arena, b->n + 1u, sizeof *f->box_of);
    for (f->leaves = 1; f->leaves < b->n; f->leaves *= 2)
        ;
    f->tree = ls_arena_alloc(arena, 2 * (size_t)f->leaves, sizeof *f->tree);
    for (uint32_t k = 0; k < 2 * f->leaves; k++)
        f->tree[k] = (Leaf){NONE, NONE};
    for (uint32_t k = 0; k < b->n; k++) {
        set_leaf(f, k, (Leaf){rank[k], b->box[k].to});
        f->box_of[rank[k]] = k;
    }
    for (uint32_t s = 0, k = 0; s <= b->nsection; s++) {
        while (k < b->n && b->box[k].from < s)
            k++;
        f->first[s] = k;
    }
}

int64_t ls_offsets_fill(LsArena *arena, const LsBoxes *b, const uint32_t *rank, int64_t *place)
{
    Fill f = {.b = b};
    int64_t end = 0;
    if (b->n == 0)
        return 0;
    prepare(arena, &f, rank);
    add_stretch(&f, (Stretch){0, 0, b->nsection - 1, NONE, NONE, 0});
    for (uint32_t left = b->n; left > 0;) {
        uint32_t id = f.heap[0];
        Stretch *s = &f.st[id];
        uint32_t r = least(&f, 1, 0, f.leaves, f.first[s->from], f.first[s->to + 1], s->to, NONE);
        if (r != NONE) {
            uint32_t k = f.box_of[r];
            place[k] = s->level;
            int64_t top = ls_add(s->level, b->box[k].size);
            end = top > end ? top : end;
            set_leaf(&f, k, (Leaf){NONE, NONE});
            place_on(&f, id, &b->box[k]);
            left--;
            continue;
        }
        int64_t l = s->left == NONE ? INT64_MAX : f.st[s->left].level;
        int64_t w = s->right == NONE ? INT64_MAX : f.st[s->right].level;
        s->level = l < w ? l : w;
        merge(&f, id);
    }
    return end;
}
