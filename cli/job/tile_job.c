/* cli/job/tile_job.c -- --tiles=auto: which values are computed in parts, and in how many, within a
 * budget. Bits are those of the whole values. */
#include "cli/job/job_parts.h"

#include "cli/job/progress_line.h"
#include "scheduler/report/html.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_SIZES = 4,
    MOST_TILES = 32,
    MORE = 3,                   /* ways behind the first that keeps a budget in bytes */
};

static bool is_word(const LsJob *job, const char *word)
{
    return job->options->memory.tiles != NULL && strcmp(job->options->memory.tiles, word) == 0;
}

static bool may_have_tiles(const LsJob *job, const LsBudget *b)
{
    const LsOptions *o = job->options;
    return !job->graph_file && job->tiling.tiles == 0 && !is_word(job, "off")
           && !o->memory.no_tiles
           && job->target.kind == LS_TARGET_CPU && ls_tiles_exclude(o) == NULL
           && (b->least ? is_word(job, "auto") : b->percent == 0 && b->bytes > 0)
           && o->memory.keep.n + o->memory.forget.n == 0 && o->memory.recompute == NULL
           && o->memory.strategy == NULL;
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The largest sizes of values with samples, each at most half of the one before; returns their
 * number. */
static int find_sizes(LsJob *job, int64_t size[MOST_SIZES])
{
    const LsGraph *g = job->train;
    int64_t *all = ls_arena_alloc(job->cx.arena, g->nvalue, sizeof *all);
    uint32_t n = 0;
    int found = 0;
    for (uint32_t v = 1; v < g->nvalue; v++)
        if (g->value[v].def.i != 0 && g->value[v].shape.rank > 1
            && g->value[v].shape.dim[0] % g->batch == 0)
            all[n++] = ls_value_bytes(g, (LsValueId){v}, job->target.real_bytes);
    qsort(all, n, sizeof *all, by_size);
    for (uint32_t k = 0; k < n && found < MOST_SIZES; k++)
        if (found == 0 || all[k] <= size[found - 1] / 2)
            size[found++] = all[k];
    return found;
}

static bool load_tiles(LsJob *to, const LsJob *job, LsTiling tiling, FILE *quiet)
{
    if (!ls_job_start_like(to, job, quiet))
        return false;
    to->tiling = tiling;
    return ls_job_load_model(to) == 0;
}

/* Bytes that the job takes at least, as far as its search found. */
static int64_t least_of(LsJob *job, bool planned)
{
    if (planned) {
        ls_job_set_arena(job);
        return ls_job_fixed_bytes(job) + job->arena_bytes;
    }
    const int64_t eval = job->eval_plan.arena, of = job->report.least;
    return ls_job_fixed_bytes(job) + (of > eval ? of : eval) * ls_job_process(job).arenas;
}

typedef struct Search {
    LsJob *job;
    const LsBudget *b;
    FILE *quiet;
    LsTiling best;              /* tiles 0: none */
    int64_t bytes;              /* that the best one takes */
    double ns;                  /* of its step */
    bool found;                 /* it keeps the budget */
    int since;                  /* ways that were tried since one first did */
} Search;

/* Of plans within a budget in bytes the one of the fastest step is best, else that of the fewest
 * bytes. */
static bool is_better(const Search *s, bool fits, int64_t bytes, double ns)
{
    if (s->found && !s->b->least)
        return fits && ns < s->ns;
    return bytes < s->bytes || (fits && !s->found);
}

/* Plans the job with this tiling. */
static void try_loaded(Search *s, LsJob *next, LsTiling tiling)
{
    next->unproven = true;
    const bool fits = ls_job_plan_loaded(next, s->b);
    const int64_t own = least_of(next, fits);
    const double ns = fits ? ls_job_step_ns(next) : 0;
    if (is_better(s, fits, own, ns)) {
        s->best = tiling;
        s->bytes = own;
        s->ns = ns;
    }
    s->found |= fits;
    s->since += s->found;
}

/* Looks at one tiling, unless it has no more tiles than half as many have; returns their number. */
static int64_t try_tiling(Search *s, LsTiling tiling)
{
    LsJob next;
    char size[24];
    int64_t tiles = 0;
    if (s->job->options->output.verbose)
        ls_progress_line(s->job->options, "values of %s or more in %" PRId64 " parts of the %s",
                         ls_page_bytes(size, tiling.least), tiling.tiles, ls_tiling_of(&tiling));
    if (load_tiles(&next, s->job, tiling, s->quiet)) {
        tiles = next.tiling.tiles;
        if (tiles > tiling.tiles / 2)
            try_loaded(s, &next, tiling);
    }
    ls_job_end(&next);
    return tiles;
}

/* Larger values first, and few tiles: they mostly cost least. A search for a budget in bytes ends
 * MORE ways behind the first that keeps it. One sample, a picture, is cut along its rows. Tokens
 * are cut last. */
static void try_all(Search *s)
{
    int64_t size[MOST_SIZES];
    const int sizes = find_sizes(s->job, size);
    const LsTilesOf of[] = {s->job->train->batch == 1 ? LS_OF_ROWS : LS_OF_SAMPLES, LS_OF_TOKENS};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < sizes; k++)
            for (int64_t tiles = 2; tiles <= MOST_TILES; tiles *= 2) {
                if (!s->b->least && s->since > MORE)
                    return;
                if (try_tiling(s, (LsTiling){tiles, size[k], of[i]}) < tiles)
                    break;
            }
}

static void tell(LsJob *job)
{
    char size[24];
    ls_warn(&job->cx, LS_NOWHERE, "--tiles=off keeps them whole",
            "no plan with whole values keeps this budget: those of %s or more are computed in "
            "%" PRId64 " parts of the %s", ls_page_bytes(size, job->tiling.least),
            job->tiling.tiles, ls_tiling_of(&job->tiling));
}

/* The job in the best tiling. */
static bool take_best(Search *s)
{
    LsJob *job = s->job, *best = ls_arena_alloc(job->cx.arena, 1, sizeof *best);
    if (s->best.tiles == 0 || !load_tiles(best, job, s->best, s->quiet))
        return false;
    best->untiled = job->untiled;
    const bool fits = ls_job_plan_loaded(best, s->b);
    ls_job_take(job, best);
    return fits;
}

bool ls_job_plan_tiles(LsJob *job, const LsBudget *b, bool planned)
{
    Search s = {.job = job, .b = b};
    if (!may_have_tiles(job, b))
        return false;
    s.bytes = job->untiled = least_of(job, planned);
    s.quiet = fopen("/dev/null", "w");
    if (s.quiet == NULL)
        return false;
    try_all(&s);
    const bool found = take_best(&s);
    fclose(s.quiet);
    if (found && !b->least)
        tell(job);
    return found;
}
