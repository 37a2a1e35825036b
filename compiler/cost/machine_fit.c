/* compiler/cost/machine_fit.c -- see machine_fit.h.
 *
 * The model is linear in four non-negative coefficients (ns of a launch, per operation, per byte
 * read and per byte written), once three things are fixed: the bytes in the cache, the shorter of
 * compute and transfer time, and the part of it that the longer hides. So the cache and the overlap
 * run over a small grid. For every class, the previous line decides which time is shorter, all 15
 * sets of coefficients that may differ from zero are tried, and the best non-negative solution is
 * taken (Lawson & Hanson's problem, small enough for enumeration).
 *
 * Kernels of a class are often so similar that no sample separates operations from bytes. So the
 * old figures, slowed down as the class is, count a little too (ridge regression): a coefficient
 * far from theirs costs as much as one sample missed by 22 %. */
#include "compiler/cost/machine_fit.h"

#include <math.h>
#include <string.h>

enum { NTERM = 4, ROUNDS = 6, WILD = 4 };   /* launch, operation, byte read, byte written */
static const double held = 0.05, close_to = 0.15;   /* see above; a relative error that counts as
                                                     * none */

/* part: the share of x that counts when the shorter of compute and transfer time is partly
 * hidden. */
typedef struct Row { double x[NTERM], part[NTERM], ns, weight; } Row;
typedef struct Line { double c[NTERM]; } Line;      /* ns = sum of c x */

/* Units that keep the coefficients of one size, for the solver. */
static const double unit[NTERM] = {1000, 100, 10, 10};

static Row row_of(const LsSample *s, double cache, double near)
{
    const LsWork *w = &s->work;
    return (Row){.x = {unit[0], ls_work_flops(w) / unit[1],
                       ls_work_slow(w, false, cache, near) * w->read / unit[2],
                       ls_work_slow(w, true, cache, near) * w->written / unit[3]},
                 .ns = s->ns};
}

/* Compute time is the longer. */
static bool computes(const Row *r, const Line *l)
{
    return l->c[1] * r->x[1] >= l->c[2] * r->x[2] + l->c[3] * r->x[3];
}

static void set_parts(Row *row, uint32_t n, const Line *l, double overlap)
{
    for (uint32_t r = 0; r < n; r++) {
        bool first = computes(&row[r], l);
        row[r].part[0] = row[r].x[0];
        for (int k = 1; k < NTERM; k++)
            row[r].part[k] = row[r].x[k] * ((k == 1) == first ? 1 : 1 - overlap);
    }
}

static double value(const Row *r, const Line *l)
{
    double ns = 0;
    for (int k = 0; k < NTERM; k++)
        ns += l->c[k] * r->part[k];
    return ns;
}

typedef struct Past { Line old; double hold[NTERM]; } Past;     /* and the weight of each
                                                                 * coefficient */

/* A coefficient far from the old one, in either direction, costs `held` and no more. now: the
 * previous line. */
static Past past_of(const Line *old, const Line *now)
{
    Past p = {.old = *old};
    for (int k = 0; k < NTERM; k++) {
        double size = fmax(old->c[k], now->c[k]);
        p.hold[k] = old->c[k] > 0 ? held / (size * size) : 0;
    }
    return p;
}

/* Solves m equations, symmetric and positive semidefinite, so without pivoting; the right side is
 * column m. False: singular, or a solution is negative. */
static bool solve_equations(double a[NTERM][NTERM + 1], int m, double x[NTERM])
{
    for (int i = 0; i < m; i++) {
        if (!(a[i][i] > 1e-12))
            return false;
        for (int r = i + 1; r < m; r++) {
            double f = a[r][i] / a[i][i], before = a[r][r];
            for (int j = i; j <= m; j++)
                a[r][j] -= f * a[i][j];
            if (!(a[r][r] > 1e-9 * before))
                return false;
        }
    }
    for (int i = m; i-- > 0;) {
        x[i] = a[i][m];
        for (int j = i + 1; j < m; j++)
            x[i] -= a[i][j] * x[j];
        x[i] /= a[i][i];
        if (!(x[i] >= 0))
            return false;
    }
    return true;
}

/* Least squares for the excess over `least` of the terms in `set` (one bit each). False: singular,
 * or a term is below `least`. */
static bool solve(const Row *row, uint32_t n, const Past *past, int set, const Line *least,
                  Line *out)
{
    double a[NTERM][NTERM + 1] = {{0}}, above[NTERM];
    int at[NTERM], m = 0;
    for (int k = 0; k < NTERM; k++)
        if (set >> k & 1)
            at[m++] = k;
    for (uint32_t r = 0; r < n; r++)
        for (int i = 0; i < m; i++) {
            double wx = row[r].weight * row[r].part[at[i]];
            for (int j = 0; j < m; j++)
                a[i][j] += wx * row[r].part[at[j]];
            a[i][m] += wx * (row[r].ns - value(&row[r], least));
        }
    for (int i = 0; i < m; i++) {
        a[i][i] += past->hold[at[i]];
        a[i][m] += past->hold[at[i]] * (past->old.c[at[i]] - least->c[at[i]]);
    }
    if (!solve_equations(a, m, above))
        return false;
    *out = *least;
    for (int i = 0; i < m; i++)
        out->c[at[i]] += above[i];
    return true;
}

static double squares(const Row *row, uint32_t n, const Past *past, const Line *l)
{
    double sum = 0;
    for (int k = 0; k < NTERM; k++)
        sum += past->hold[k] * (l->c[k] - past->old.c[k]) * (l->c[k] - past->old.c[k]);
    for (uint32_t r = 0; r < n; r++) {
        double d = value(&row[r], l) - row[r].ns;
        sum += row[r].weight * d * d;
    }
    return sum;
}

static Line best_line(const Row *row, uint32_t n, const Past *past, const Line *least)
{
    Line best = *least;
    double sum = squares(row, n, past, &best);
    for (int set = 1; set < 1 << NTERM; set++) {
        Line l;
        double now;
        if (solve(row, n, past, set, least, &l)
            && (now = squares(row, n, past, &l)) < sum * (1 - 1e-9))
            sum = now, best = l;
    }
    return best;
}

/* Scales the class to the total time of its samples, within bounds: the samples with less weight
 * were mostly slow ones, and other programs have such kernels too. A sample that took more than
 * WILD times the modelled time was disturbed and is left out. */
static void balance(Line *l, const Row *row, uint32_t n)
{
    double measured = 0, modelled = 0;
    for (uint32_t r = 0; r < n; r++) {
        if (row[r].ns > WILD * value(&row[r], l))
            continue;
        measured += row[r].ns;
        modelled += value(&row[r], l);
    }
    double f = modelled > 0 ? fmin(fmax(measured / modelled, 0.9), 1.25) : 1;
    for (int k = 0; k < NTERM; k++)
        l->c[k] *= f;
}

/* A sample's weight is 1 / ns^1.5, between absolute and relative errors (1 / ns^2 times the root of
 * its share of the mean). It is lower the further the previous line missed the sample: one
 * disturbed measurement must not bend the line. */
static Line fit_class(Row *row, uint32_t n, const Line *old, const Line *least, double overlap)
{
    Line l = *old;
    double mean = 0;
    for (uint32_t r = 0; r < n; r++)
        mean += row[r].ns / n;
    for (int round = 0; round < ROUNDS; round++) {
        set_parts(row, n, &l, overlap);
        for (uint32_t r = 0; r < n; r++) {
            double miss = fabs(value(&row[r], &l) - row[r].ns) / row[r].ns;
            row[r].weight = pow(row[r].ns, -1.5) / sqrt(mean)
                            * (round > 0 && miss > close_to ? close_to / miss : 1);
        }
        Past past = past_of(old, &l);
        l = best_line(row, n, &past, least);
    }
    set_parts(row, n, &l, overlap);
    balance(&l, row, n);
    for (int k = 0; k < NTERM; k++)
        l.c[k] = fmax(l.c[k], least->c[k]);
    return l;
}

typedef struct Fit {
    double cache, near, overlap, missed;
    Line line[LS_NCOSTS];
    bool sampled[LS_NCOSTS];
} Fit;

static double inverse(double speed) { return speed > 0 ? 1 / speed : 0; }

/* The figures of m as a line, slowed down by `times`. */
static Line line_of(const LsMachine *m, int c, double times)
{
    const LsClassCost *o = &m->cost[c];
    return (Line){{times * o->launch / unit[0],
                   times * unit[1] * inverse(o->compute * m->peak[LS_PEAK_F32]),
                   times * unit[2] * inverse(o->read * m->memory),
                   times * unit[3] * inverse(o->write * m->memory)}};
}

/* Samples with packing are left out: packing is only a small part of their time. */
static bool is_of(const LsSample *s, int c)
{
    return !s->work.none && s->work.packing == 0 && (int)s->work.kind == c && s->ns > 0;
}

/* Products of 16 bits may be faster than those of floats, by so much: by 16 in AMX tiles. */
static double most_of_peak(int c) { return c < LS_COST_BF16 ? 1 : 16; }

static void fit_all(Fit *f, Row *row, const LsSample *sample, uint32_t n, const Line old[],
                    const Line *least)
{
    f->missed = 0;
    for (int c = 0; c < LS_NCOSTS; c++) {
        uint32_t k = 0;
        for (uint32_t i = 0; i < n; i++)
            if (is_of(&sample[i], c))
                row[k++] = row_of(&sample[i], f->cache, f->near);
        f->sampled[c] = k > 0;
        Line floor = *least;
        floor.c[1] /= most_of_peak(c);
        f->line[c] = k > 0 ? fit_class(row, k, &old[c], &floor, f->overlap) : old[c];
        for (uint32_t i = 0; i < k; i++)
            f->missed += fabs(value(&row[i], &f->line[c]) - row[i].ns) / sqrt(row[i].ns);
    }
}

static double rate(const Line *l, int term) { return l->c[term] > 0 ? unit[term] / l->c[term] : 0; }

static bool is_product(int c) { return c >= LS_COST_CONV && c <= LS_COST_MATMUL; }

/* Operations per ns of the fastest large product; 0: no such sample. */
static double peak_of(const Fit *f)
{
    double peak = 0;
    for (int c = 0; c < LS_NCOSTS; c++)
        if (is_product(c) && f->sampled[c] && rate(&f->line[c], 1) > peak)
            peak = rate(&f->line[c], 1);
    return peak;
}

/* Fits without limit, then with the speed of products as the limit for all classes: where only
 * bytes count, a fit would make operations free, which a machine file cannot express. */
static void fit_twice(Fit *f, Row *row, const LsSample *sample, uint32_t n, const Line old[])
{
    Line least = {{0}};
    fit_all(f, row, sample, n, old, &least);
    double peak = peak_of(f);
    least.c[1] = peak > 0 ? unit[1] / peak : 0;
    fit_all(f, row, sample, n, old, &least);
}

/* ---- from coefficients to figures ---- */
/* Rounds to four digits; more would be noise. */
static double rounded(double v)
{
    double scale = v > 0 ? pow(10, 3 - floor(log10(v))) : 1;
    return floor(v * scale + 0.5) / scale;
}

/* The peak is that of products. The memory's speed is that of a simple stream that reads as much as
 * it writes. */
static void set_tops(LsMachine *m, const Fit *f)
{
    double peak = peak_of(f), memory, old = m->peak[LS_PEAK_F32];
    double both = f->line[LS_COST_MAP].c[2] + f->line[LS_COST_MAP].c[3];
    memory = both > 0 ? 2 * unit[2] / both : 0;
    m->peak[LS_PEAK_F32] = peak > 0 ? rounded(peak) : old;
    m->peak[LS_PEAK_F64] = rounded(m->peak[LS_PEAK_F64] / old * m->peak[LS_PEAK_F32]);
    m->memory = memory > 0 ? rounded(memory) : m->memory;
    m->cache = f->cache;
    m->near = f->near;
    m->overlap = f->overlap;
}

static LsClassCost figures(const LsMachine *m, int c, const Line *l)
{
    return (LsClassCost){.compute =
                             rounded(fmin(rate(l, 1) / m->peak[LS_PEAK_F32], most_of_peak(c))),
                         .read = rounded(rate(l, 2) / m->memory),
                         .write = rounded(rate(l, 3) / m->memory),
                         .launch = rounded(l->c[0] * unit[0])};
}

/* Ratio of the samples' times of class c to the old figures; `parent` if the class has no
 * samples. */
static double slowdown(const LsMachine *old, const LsSample *sample, uint32_t n, int c,
                       double parent)
{
    double measured = 0, modelled = 0;
    for (uint32_t i = 0; i < n; i++)
        if (is_of(&sample[i], c) || (c == LS_COST_OTHER && !sample[i].work.none)) {
            measured += sample[i].ns;
            modelled += ls_work_ns(old, &sample[i].work, 4);
        }
    return modelled > 0 && measured > 0 ? measured / modelled : parent;
}

/* The cache and the overlap with the least error; a cache other than the old one must give a
 * gain. */
static Fit best_fit(Row *row, const LsMachine *m, const LsSample *sample, uint32_t n,
                    const Line old[])
{
    static const double cache[] = {1e6, 2e6, 4e6, 8e6, 1.6e7, 3.2e7, 6.4e7};
    static const double near[] = {1, 1.5, 2, 3, 4, 6, 8}, overlap[] = {0, 0.25, 0.5, 0.75, 1};
    enum { CACHES = sizeof cache / sizeof *cache, NEARS = sizeof near / sizeof *near,
           OVERLAPS = sizeof overlap / sizeof *overlap };
    const double better = 0.98;
    Fit best = {.cache = m->cache, .near = m->near, .overlap = m->overlap};
    fit_twice(&best, row, sample, n, old);
    for (int i = 0; i < CACHES * NEARS * OVERLAPS; i++) {
        Fit f = {.cache = cache[i / OVERLAPS / NEARS], .near = near[i / OVERLAPS % NEARS],
                 .overlap = overlap[i % OVERLAPS]};
        fit_twice(&f, row, sample, n, old);
        if (f.missed < best.missed * (best.cache == m->cache ? better : 1))
            best = f;
    }
    return best;
}

double ls_machine_fit(LsArena *arena, LsMachine *m, const LsSample *sample, uint32_t n)
{
    Row *row = ls_arena_alloc(arena, (size_t)n + 1, sizeof *row);
    double times[LS_NCOSTS], all = 0, missed = 0;
    Line old[LS_NCOSTS];
    for (int c = 0; c < LS_NCOSTS; c++) {
        times[c] = slowdown(m, sample, n, c, c == 0 ? 1 : times[ls_cost_class[c].parent]);
        old[c] = line_of(m, c, times[c]);
    }
    Fit best = best_fit(row, m, sample, n, old);
    set_tops(m, &best);
    for (int c = 0; c < LS_NCOSTS; c++)         /* without samples of 16 bits, as the parent is
                                                 * now */
        m->cost[c] = c < LS_COST_BF16 || best.sampled[c] ? figures(m, c, &best.line[c])
                                                         : m->cost[ls_cost_class[c].parent];
    for (uint32_t i = 0; i < n; i++) {
        all += sample[i].ns;
        missed += fabs(ls_work_ns(m, &sample[i].work, 4) - sample[i].ns);
    }
    return all > 0 ? missed / all : 0;
}
