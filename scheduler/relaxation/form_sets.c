/* scheduler/relaxation/form_sets.c -- searches roots a few steps up from each group with
 * alternatives; the nearest roots prove most. */
#include "scheduler/relaxation/form_sets.h"

#include <string.h>

/* Limits: reads examined per root, roots, and levels up from a group. Lower limits only weaken the
 * bound. */
enum { STEPS = 2000, ROOTS = 32, LEVELS = 3 };

enum { UNKNOWN, NOT, DERIVED, TAKEN };

typedef struct Forms {
    LsBoundGraph *b;
    LsArena *tmp;
    uint32_t *of_root;          /* by tensor: its form set, or LS_NO_ID */
    uint32_t *root; uint32_t nroot;     /* by form set */
    LsPairs tensors;            /* by form set, the root first */
    uint8_t *derived;           /* by tensor: whether it derives from the current root */
    uint32_t *seen; uint32_t nseen;     /* tensors whose `derived` is known */
    uint32_t steps;             /* reads examined */
} Forms;

static bool is_made(const LsBoundGraph *b, uint32_t t)
{
    return !b->p->dag->tensor[t].persistent && b->maker[t] != LS_NO_ID;
}

static bool group_derives(Forms *f, uint32_t group, uint32_t root, uint32_t beside);

/* Returns whether every maker of t reads `root` or a tensor derived from it. */
static bool is_derived(Forms *f, uint32_t t, uint32_t root)
{
    const LsBoundGraph *b = f->b;
    if (t == root)
        return true;
    if (!is_made(b, t) || b->maker[t] <= b->maker[root])
        return false;
    if (f->derived[t] == UNKNOWN) {
        f->derived[t] = NOT;        /* also during the query: cycles derive nothing */
        f->seen[f->nseen++] = t;
        if (f->steps < STEPS && group_derives(f, b->maker[t], root, LS_NO_ID))
            f->derived[t] = DERIVED;
    }
    return f->derived[t] >= DERIVED;
}

/* Among the tensors derived from root that `node` reads, returns the nearest to root, or LS_NO_ID.
 * Tensors that all members of `beside` read are excluded: they count by themselves. */
static uint32_t read_of(Forms *f, const LsDagNode *node, uint32_t root, uint32_t beside)
{
    const LsBoundGraph *b = f->b;
    uint32_t best = LS_NO_ID;
    f->steps += node->nin;
    for (uint32_t k = 0; k < node->nin; k++) {
        uint32_t t = node->in[k];
        if (is_derived(f, t, root) && (best == LS_NO_ID || b->maker[t] < b->maker[best])
            && (beside == LS_NO_ID || !ls_bound_reads(b, beside, t)))
            best = t;
    }
    return best;
}

static bool group_derives(Forms *f, uint32_t group, uint32_t root, uint32_t beside)
{
    const LsRows *of = &f->b->member;
    for (uint32_t k = of->at[group]; k < of->at[group + 1]; k++)
        if (read_of(f, &f->b->p->dag->node[of->id[k]], root, beside) == LS_NO_ID)
            return false;
    return true;
}

/* Adds to a form set the tensors of it that the members of a group read, and those that their
 * makers read. */
static void collect(Forms *f, uint32_t group, uint32_t set, uint32_t beside)
{
    const LsRows *of = &f->b->member;
    for (uint32_t k = of->at[group]; k < of->at[group + 1]; k++) {
        const LsDagNode *node = &f->b->p->dag->node[of->id[k]];
        uint32_t t = read_of(f, node, f->root[set], beside);
        if (t == f->root[set] || f->derived[t] == TAKEN)
            continue;
        f->derived[t] = TAKEN;
        ls_pairs_add(f->tmp, &f->tensors, set, t);
        collect(f, f->b->maker[t], set, LS_NO_ID);
    }
}

/* Inserts t into to[0 .. n) by maker, the nearest first. Returns the new number. */
static uint32_t insert(const LsBoundGraph *b, uint32_t t, uint32_t *to, uint32_t n)
{
    uint32_t at = n;
    if (n == ROOTS || ls_id_in(to, n, t))
        return n;
    for (; at > 0 && b->maker[to[at - 1]] < b->maker[t]; at--)
        to[at] = to[at - 1];
    to[at] = t;
    return n + 1;
}

/* Collects the tensors that some but not all members of a group read, and those that their makers
 * read, up to LEVELS levels. */
static uint32_t candidates(const LsBoundGraph *b, uint32_t group, uint32_t *to)
{
    uint32_t n = 0, from[ROOTS] = {group}, nfrom = 1;
    for (uint32_t level = 0; level < LEVELS; level++) {
        uint32_t had = n, next[ROOTS];
        memcpy(next, to, n * sizeof *to);
        for (uint32_t x = 0; x < nfrom; x++)
            for (uint32_t k = b->member.at[from[x]]; k < b->member.at[from[x] + 1]; k++) {
                const LsDagNode *node = &b->p->dag->node[b->member.id[k]];
                for (uint32_t j = 0; j < node->nin; j++) {
                    uint32_t t = node->in[j];
                    if (is_made(b, t) && b->maker[t] < group
                        && (level > 0 || !ls_bound_reads(b, group, t)))
                        n = insert(b, t, to, n);
                }
            }
        nfrom = 0;
        for (uint32_t k = 0; k < n; k++)
            if (!ls_id_in(next, had, to[k]))
                from[nfrom++] = b->maker[to[k]];
    }
    return n;
}

static void begin(Forms *f)
{
    for (uint32_t k = 0; k < f->nseen; k++)
        f->derived[f->seen[k]] = UNKNOWN;
    f->nseen = f->steps = 0;
}

static void find_roots(Forms *f, uint32_t group)
{
    uint32_t to[ROOTS], n = candidates(f->b, group, to), taken[ROOTS], ntaken = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t root = to[k];
        begin(f);
        bool behind = false; /* behind a root that was taken: proves nothing new */
        for (uint32_t j = 0; j < ntaken; j++)
            behind |= is_derived(f, taken[j], root);
        if (behind || !group_derives(f, group, root, group))
            continue;
        taken[ntaken++] = root;
        if (f->of_root[root] == LS_NO_ID) {
            f->of_root[root] = f->nroot;
            ls_pairs_add(f->tmp, &f->tensors, f->nroot, root);
            f->root[f->nroot++] = root;
        }
        collect(f, group, f->of_root[root], group);
    }
}

/* Lists the tensors of each set, each once, the root first. */
static void fill_forms(Forms *f)
{
    LsBoundGraph *b = f->b;
    LsRows of = ls_rows(f->tmp, &f->tensors, f->nroot);
    LsPairs form = {0};
    for (uint32_t k = 0; k < f->nroot; k++) {
        for (uint32_t j = of.at[k]; j < of.at[k + 1]; j++)
            ls_pairs_add_once(f->tmp, &form, k, of.id[j]);
        b->maker[b->p->nt + k] = b->maker[f->root[k]];
    }
    b->nform = f->nroot;
    b->form = ls_rows(b->arena, &form, b->nform);
}

/* A set gets bytes that any live tensor of it takes at least. The bytes of a tensor beyond those of
 * its sets count for the tensor. */
static void share_bytes(LsBoundGraph *b)
{
    uint32_t nt = b->p->nt;
    for (uint32_t s = 0; s < b->nform; s++) {
        int64_t least = INT64_MAX;
        for (uint32_t k = b->form.at[s]; k < b->form.at[s + 1]; k++) {
            uint32_t t = b->form.id[k];
            int64_t share = ls_bound_bytes(b->p, t) / (b->sets.at[t + 1] - b->sets.at[t]);
            least = share < least ? share : least;
        }
        b->bytes[nt + s] = least;
        for (uint32_t k = b->form.at[s]; k < b->form.at[s + 1]; k++)
            b->bytes[b->form.id[k]] -= least;
    }
}

static bool reads_any(const LsBoundGraph *b, const LsDagNode *node, uint32_t set)
{
    for (uint32_t k = b->form.at[set]; k < b->form.at[set + 1]; k++)
        if (ls_id_in(node->in, node->nin, b->form.id[k]))
            return true;
    return false;
}

static void find_sets(LsBoundGraph *b, LsArena *tmp)
{
    LsPairs of = {0};
    for (uint32_t s = 0; s < b->nform; s++)
        for (uint32_t k = b->form.at[s]; k < b->form.at[s + 1]; k++)
            ls_pairs_add(tmp, &of, b->form.id[k], s);
    b->sets = ls_rows(b->arena, &of, b->p->nt);
}

/* Appends to the row of each group the sets of which every member reads a tensor. */
static void append_reads(LsBoundGraph *b, LsArena *tmp)
{
    LsPairs in = {0};
    uint32_t *last = ls_arena_alloc(tmp, b->nform + 1u, sizeof *last); /* group + 1 */
    for (uint32_t v = 0; v < b->p->n; v++) {
        for (uint32_t k = b->in.at[v]; k < b->in.at[v + 1]; k++)
            ls_pairs_add(tmp, &in, v, b->in.id[k]);
        if (b->member.at[v] == b->member.at[v + 1])
            continue;
        const LsDagNode *first = &b->p->dag->node[b->member.id[b->member.at[v]]];
        for (uint32_t j = 0; j < first->nin; j++)
            for (uint32_t k = b->sets.at[first->in[j]]; k < b->sets.at[first->in[j] + 1]; k++) {
                uint32_t s = b->sets.id[k];
                bool all = last[s] != v + 1 && b->maker[b->p->nt + s] < v;
                last[s] = v + 1;
                for (uint32_t m = b->member.at[v]; all && m < b->member.at[v + 1]; m++)
                    all = reads_any(b, &b->p->dag->node[b->member.id[m]], s);
                if (all)
                    ls_pairs_add(tmp, &in, v, b->p->nt + s);
            }
    }
    b->in = ls_rows(b->arena, &in, b->p->n);
}

void ls_bound_find_forms(LsBoundGraph *b)
{
    const LsProb *p = b->p;
    LsArena *tmp = ls_arena_new();
    Forms f = {.b = b, .tmp = tmp};
    f.of_root = ls_arena_alloc(tmp, p->nt + 1u, sizeof *f.of_root);
    f.root = ls_arena_alloc(tmp, p->nt + 1u, sizeof *f.root);
    f.derived = ls_arena_alloc(tmp, p->nt + 1u, 1);
    f.seen = ls_arena_alloc(tmp, p->nt + 1u, sizeof *f.seen);
    memset(f.of_root, 0xff, (p->nt + 1u) * sizeof *f.of_root);
    for (uint32_t v = 0; v < p->n; v++)
        if (b->member.at[v + 1] - b->member.at[v] > 1)
            find_roots(&f, v);
    fill_forms(&f);
    find_sets(b, tmp);
    share_bytes(b);
    if (b->nform > 0)
        append_reads(b, tmp);
    ls_arena_free(tmp);
}
