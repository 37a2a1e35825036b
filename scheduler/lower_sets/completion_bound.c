/* scheduler/lower_sets/completion_bound.c -- the bounds (ceilings), by a DP over the projections of
 * a family's sets. */
#include "scheduler/lower_sets/completion_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- projections ---- */

typedef struct Light { int64_t mem; uint32_t vertex; } Light;

static int by_mem(const void *x, const void *y)
{
    const Light *a = x, *b = y;
    if (a->mem != b->mem)
        return a->mem < b->mem ? -1 : 1;
    return a->vertex < b->vertex ? -1 : a->vertex > b->vertex;
}

static uint64_t hash_row(const uint64_t *row, const uint64_t *light, uint32_t nword)
{
    uint64_t h = 0;
    for (uint32_t w = 0; w < nword; w++) {
        h = (h ^ (row[w] & ~light[w])) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

static bool same_row(const uint64_t *a, const uint64_t *b, const uint64_t *light, uint32_t nword)
{
    for (uint32_t w = 0; w < nword; w++)
        if ((a[w] ^ b[w]) & ~light[w])
            return false;
    return true;
}

/* Numbers the projections in the order of their first sets, which first[] lists. `table` has `room`
 * places, a power of two, at least twice the number of sets. */
static uint32_t project(LsRelax *r, uint32_t *first, uint32_t *table, uint32_t room)
{
    const LsFamily *fam = r->fam;
    uint32_t n = 0;
    memset(table, 0xff, room * sizeof *table);
    for (uint32_t i = 0; i < fam->n; i++) {
        const uint64_t *row = fam->low + (size_t)i * fam->nword;
        uint32_t at = (uint32_t)hash_row(row, r->light, fam->nword) & (room - 1);
        while (table[at] != LS_NO_ID
               && !same_row(fam->low + (size_t)first[table[at]] * fam->nword, row, r->light,
                            fam->nword))
            at = (at + 1) & (room - 1);
        if (table[at] == LS_NO_ID) {
            table[at] = n;
            first[n++] = i;
        }
        r->of[i] = table[at];
    }
    return n;
}

static void leave_out(LsRelax *r, const Light *order, uint32_t n)
{
    memset(r->light, 0, r->f->nword * sizeof *r->light);
    for (uint32_t k = 0; k < n; k++)
        ls_bit_add(r->light, order[k].vertex);
}

/* Leaves out as few light vertices as needed for at most `most` projections. */
static uint32_t choose_light(LsArena *arena, LsRelax *r, uint32_t most, uint32_t *first)
{
    const LsForward *f = r->f;
    uint32_t room = 4;
    while (room < 2 * r->fam->n)
        room *= 2;
    uint32_t *table = ls_arena_alloc(arena, room, sizeof *table);
    Light *order = ls_arena_alloc(arena, f->n + 1u, sizeof *order);
    for (uint32_t v = 0; v < f->n; v++)
        order[v] = (Light){f->mem[v], v};
    qsort(order, f->n, sizeof *order, by_mem);
    uint32_t lo = 0, hi = r->fam->n > most ? f->n : 0;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        leave_out(r, order, mid);
        if (project(r, first, table, room) <= most)
            hi = mid;
        else
            lo = mid + 1;
    }
    leave_out(r, order, lo);
    return project(r, first, table, room);
}

/* Returns whether v is kept in any case: it has a heavy successor outside. */
static bool on_edge(const LsRelax *r, const uint64_t *low, uint32_t v)
{
    const LsForward *f = r->f;
    for (uint32_t k = f->succ.at[v]; k < f->succ.at[v + 1]; k++)
        if (!ls_bit(r->light, f->succ.id[k]) && !ls_bit(low, f->succ.id[k]))
            return true;
    return false;
}

static void measure(LsArena *arena, LsRelax *r, const uint32_t *first)
{
    const LsForward *f = r->f;
    uint32_t room = 0, n = 0;
    for (uint32_t k = 0; k < r->n; k++) {
        uint64_t *low = r->low + (size_t)k * f->nword;
        for (uint32_t w = 0; w < f->nword; w++)
            low[w] = r->fam->low[(size_t)first[k] * f->nword + w] & ~r->light[w];
        r->edge_at[k] = n;
        r->edge = ls_arena_grow(arena, r->edge, n, n + f->n, sizeof *r->edge, &room);
        for (uint32_t w = 0; w < f->nword; w++)
            for (uint64_t s = low[w]; s != 0; s &= s - 1) {
                uint32_t v = 64 * w + (uint32_t)__builtin_ctzll(s);
                r->mem[k] += f->mem[v];
                if (ls_bit(f->stuck, v))
                    r->stuck[k] += f->mem[v];
                else if (on_edge(r, low, v))
                    r->edge[n++] = v;
            }
        r->halo[k] = INT64_MAX;
    }
    r->edge_at[r->n] = n;
    for (uint32_t i = 0; i < r->fam->n; i++)
        if (r->fam->halo[i] < r->halo[r->of[i]])
            r->halo[r->of[i]] = r->fam->halo[i];
}

LsRelax *ls_relax_new(LsArena *arena, const LsForward *f, const LsFamily *fam, uint32_t most)
{
    LsRelax *r = ls_arena_alloc(arena, 1, sizeof *r);
    *r = (LsRelax){.f = f, .fam = fam};
    r->light = ls_arena_alloc(arena, f->nword, sizeof *r->light);
    r->of = ls_arena_alloc(arena, fam->n, sizeof *r->of);
    uint32_t *first = ls_arena_alloc(arena, fam->n, sizeof *first);
    r->n = choose_light(arena, r, most, first);
    r->low = ls_arena_alloc(arena, (size_t)r->n * f->nword, sizeof *r->low);
    r->halo = ls_arena_alloc(arena, r->n, sizeof *r->halo);
    r->mem = ls_arena_alloc(arena, r->n, sizeof *r->mem);
    r->stuck = ls_arena_alloc(arena, r->n, sizeof *r->stuck);
    r->edge_at = ls_arena_alloc(arena, r->n + 1u, sizeof *r->edge_at);
    measure(arena, r, first);
    r->fiber = ls_rows_by(arena, r->of, fam->n, r->n);
    return r;
}

bool ls_relax_holds(const LsRelax *r, uint32_t j, uint32_t i)
{
    uint32_t nword = r->f->nword;
    const uint64_t *a = r->low + (size_t)i * nword, *b = r->low + (size_t)j * nword;
    for (uint32_t w = 0; w < nword; w++)
        if (a[w] & ~b[w])
            return false;
    return true;
}

/* ---- the ceiling ---- */

LsCeilingStep ls_ceiling_step(const LsCeiling *b, uint32_t i, uint32_t j)
{
    const LsRelax *r = b->relax;
    const uint64_t *from = r->low + (size_t)i * r->f->nword;
    LsCeilingStep s = {b->budget - 2 * (r->mem[j] - r->mem[i]) - r->halo[j],
                     r->stuck[j] - r->stuck[i], b->stuck[j] - b->stuck[i]};
    for (uint32_t k = r->edge_at[j]; k < r->edge_at[j + 1]; k++)
        if (!ls_bit(from, r->edge[k])) {
            s.kept += r->f->mem[r->edge[k]];
            s.gain += b->sure[r->edge[k]];
        }
    if (j == r->n - 1 && b->last != NULL)
        s.gain = fmax(s.gain, b->last[j] - b->last[i]);
    return s;
}

/* Returns the first of n points with at least m bytes. */
static uint32_t first_at(const LsCeilingPoint *point, uint32_t n, int64_t m)
{
    uint32_t lo = 0;
    while (lo < n) {
        uint32_t mid = (lo + n) / 2;
        if (point[mid].most >= m)
            n = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

double ls_ceiling_at(const LsCeiling *b, uint32_t k, int64_t m)
{
    uint32_t at = first_at(b->point[k], b->n[k], m);
    return at < b->n[k] ? b->point[k][at].gain : -INFINITY;
}

/* Finds the least bytes kept at every projection, at any gain. */
static void find_least(LsCeiling *b)
{
    const LsRelax *r = b->relax;
    for (uint32_t j = 1; j < r->n; j++) {
        b->least[j] = INT64_MAX;
        for (uint32_t i = 0; i < j; i++) {
            if (b->least[i] == INT64_MAX
                || b->least[i] + 2 * (r->mem[j] - r->mem[i]) + r->halo[j] > b->budget
                || !ls_relax_holds(r, j, i))
                continue;
            int64_t m = b->least[i] + ls_ceiling_step(b, i, j).kept;
            b->least[j] = m < b->least[j] ? m : b->least[j];
        }
    }
}

typedef struct Backward {       /* fronts by rising most, falling gain */
    LsArena *arena;
    LsCeiling *b;
    LsCeilingPoint *work, *other, *add;       /* the front being made, a buffer, the new points */
    uint32_t nwork, room, add_room;
} Backward;

/* Merges n points of x->add into x->work; the tie-break is the earlier point. */
static void merge(Backward *x, uint32_t n)
{
    if (x->nwork + n > x->room) {
        x->room = 2 * (x->nwork + n) + 64;
        LsCeilingPoint *work = ls_arena_alloc(x->arena, x->room, sizeof *work);
        if (x->nwork > 0)
            memcpy(work, x->work, x->nwork * sizeof *work);
        x->work = work;
        x->other = ls_arena_alloc(x->arena, x->room, sizeof *x->other);
    }
    uint32_t i = x->nwork, k = n, to = x->room;
    while (i > 0 || k > 0) {                        /* from the greatest most down */
        bool old = k == 0 || (i > 0 && (x->work[i - 1].most > x->add[k - 1].most
                   || (x->work[i - 1].most == x->add[k - 1].most
                       && x->work[i - 1].gain >= x->add[k - 1].gain)));
        LsCeilingPoint p = old ? x->work[--i] : x->add[--k];
        if (to == x->room || p.gain > x->other[to].gain)
            x->other[--to] = p;
    }
    x->nwork = x->room - to;
    memmove(x->other, x->other + to, x->nwork * sizeof *x->other);
    LsCeilingPoint *work = x->work;
    x->work = x->other;
    x->other = work;
}

/* Offers to i the points of j after a step from i. */
static void relax(Backward *x, uint32_t i, uint32_t j)
{
    const LsCeiling *b = x->b;
    LsCeilingStep s = ls_ceiling_step(b, i, j);
    const LsCeilingPoint *to = b->point[j];
    uint32_t n = b->n[j], k = first_at(to, n, b->least[i] + s.kept), nadd = 0;
    if (k == n || s.most < b->least[i])
        return;
    int64_t most = to[n - 1].most - s.kept < s.most ? to[n - 1].most - s.kept : s.most;
    uint32_t at = first_at(x->work, x->nwork, most);
    if (at < x->nwork && x->work[at].gain >= to[k].gain + s.gain)
        return;                                     /* that point dominates all of them */
    if (n > x->add_room) {
        x->add_room = 2 * n;
        x->add = ls_arena_alloc(x->arena, x->add_room, sizeof *x->add);
    }
    bool end = false;
    for (uint32_t q = 0; k < n && !end; k++) {
        LsCeilingPoint p = {to[k].most - s.kept, to[k].gain + s.gain};
        end = p.most >= s.most;
        p.most = end ? s.most : p.most;
        while (q < x->nwork && x->work[q].most < p.most)
            q++;
        if (q == x->nwork || x->work[q].gain < p.gain)
            x->add[nadd++] = p;
    }
    if (nadd > 0)
        merge(x, nadd);
}

/* The projection does not show whether v is kept if v is light or has a light successor. Such a v
 * is assumed to be kept if that gains. */
static void weigh(LsCeiling *b, const double *gain, const double *last)
{
    const LsRelax *r = b->relax;
    const LsForward *f = r->f;
    bool whole = true;
    for (uint32_t v = 0; v < f->n; v++) {
        bool unsure = ls_bit(r->light, v);
        for (uint32_t k = f->succ.at[v]; k < f->succ.at[v + 1]; k++)
            unsure |= ls_bit(r->light, f->succ.id[k]);
        double most = last != NULL ? fmax(gain[v], last[v]) : gain[v];
        b->sure[v] = unsure && most > 0 ? 0 : gain[v];
        b->loose[v] = unsure && most > 0 ? most : 0;
        whole &= !unsure;
    }
    for (uint32_t k = 0; k < r->n; k++)
        for (uint32_t v = 0; v < f->n; v++)
            if (ls_bit(r->low + (size_t)k * f->nword, v)) {
                b->stuck[k] += ls_bit(f->stuck, v) ? b->sure[v] : 0;
                if (last != NULL)
                    b->last[k] += whole ? last[v] : fmax(0, last[v] - b->loose[v]);
            }
}

static LsCeiling *ceiling_new(LsArena *arena, const LsRelax *r, int64_t budget, bool last)
{
    LsCeiling *b = ls_arena_alloc(arena, 1, sizeof *b);
    *b = (LsCeiling){.relax = r, .budget = budget};
    b->point = ls_arena_alloc(arena, r->n, sizeof *b->point);
    b->n = ls_arena_alloc(arena, r->n, sizeof *b->n);
    b->least = ls_arena_alloc(arena, r->n, sizeof *b->least);
    b->loose = ls_arena_alloc(arena, r->f->n + 1u, sizeof *b->loose);
    b->sure = ls_arena_alloc(arena, r->f->n + 1u, sizeof *b->sure);
    b->stuck = ls_arena_alloc(arena, r->n, sizeof *b->stuck);
    b->last = last ? ls_arena_alloc(arena, r->n, sizeof *b->last) : NULL;
    return b;
}

LsCeiling *ls_ceiling_new(LsArena *arena, const LsRelax *r, int64_t budget, const double *gain,
                          const double *last, uint32_t most)
{
    uint64_t total = 0;
    LsCeiling *b = ceiling_new(arena, r, budget, last != NULL);
    Backward x = {.arena = arena, .b = b};
    weigh(b, gain, last);
    find_least(b);
    b->point[r->n - 1] = ls_arena_alloc(arena, 1, sizeof **b->point);
    b->point[r->n - 1][0] = (LsCeilingPoint){INT64_MAX, 0};
    b->n[r->n - 1] = 1;
    for (uint32_t i = r->n - 1; i-- > 0;) {
        x.nwork = 0;
        for (uint32_t j = i + 1; b->least[i] != INT64_MAX && j < r->n; j++)
            if (b->n[j] > 0 && ls_relax_holds(r, j, i))
                relax(&x, i, j);
        if ((total += x.nwork) > most)
            return NULL;
        b->n[i] = x.nwork;
        b->point[i] = ls_arena_alloc(arena, x.nwork, sizeof **b->point);
        if (x.nwork > 0)
            memcpy(b->point[i], x.work, x.nwork * sizeof **b->point);
    }
    return b;
}
