/* cli/job/max_batch.c -- plan --max-batch: searches the batch instead of the plan.
 *
 * A strategy's least budget grows almost linearly with the batch: the line through two batches
 * predicts the next one to try, so that a search takes a handful of plans. The answer does not rest
 * on the line: its batch was planned and fits, and one sample more was planned and does not fit. */
#include "cli/job/max_batch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_print.h"
#include "base/heap.h"
#include "cli/job/job.h"
#include "cli/job/memory_here.h"
#include "scheduler/strategies/strategy_names.h"

enum { MOST = 1 << 24 };        /* larger batches are not tried */

typedef struct Probe {          /* the plan for one batch */
    int64_t batch;
    bool fits;
    int64_t least;              /* least budget of the strategy in bytes; 0: not known, as the batch
                                 * is too large for the compiler */
    int64_t total, arena;       /* of the plan within the budget, in bytes */
    double overhead;
    char hash[17];
} Probe;

typedef struct Search {
    const LsOptions *o;
    const char *strategy;
    int64_t budget;             /* bytes in all */
    Probe low, high;            /* the largest batch that fits (0: none yet), the smallest that
                                 * does not (0: none yet) */
    int plans;                  /* plans since the search began */
} Search;

static int usage(const char *text)
{
    fprintf(stderr, "lowerset: --max-batch %s\n", text);
    return LS_EXIT_USAGE;
}

static int check(const LsOptions *o)
{
    LsBudget b;
    if (!ls_budget_parse(o->memory.budget, &b) || b.bytes <= 0)
        return usage("needs --budget in bytes, like 8GiB");
    if (o->sizes.batch > 0)
        return usage("searches for the batch: leave --batch out");
    if (ls_options_over_ranks(o))
        return usage("searches for the batch of one process: leave --ranks out");
    if (o->parts.microbatches > 1)
        return usage("searches for the batch that fits at once: leave --microbatches out");
    if (o->reports.graph_json != NULL || o->reports.plan_json != NULL || o->reports.dot != NULL ||
        o->reports.timeline != NULL || o->reports.page != NULL || o->reports.against != NULL
        || o->reports.markdown != NULL || o->reports.update)
        return usage("writes no reports: run plan again with the --batch that it finds");
    if (ls_job_is_graph(o->model)) {
        fprintf(stderr, "lowerset: --max-batch: '%s' is a training graph, whose batch is fixed; "
                "give the model\n", o->model);
        return LS_EXIT_MODEL;
    }
    return 0;
}

/* Compiles two batches as requested before the search. Diagnostics are printed here only; the
 * search is silent. */
static int rehearse(const LsOptions *o, int64_t batch)
{
    LsOptions with = *o;
    LsJob job;
    with.sizes.batch = batch;
    int code = ls_job_start(&job, &with, true);
    if (batch > 1)
        job.cx.log = fopen("/dev/null", "w");   /* the first batch printed the warnings */
    code = code != 0 ? code : ls_job_load(&job);
    bool follows = code != 0 || job.train->batch == batch;
    if (job.cx.log != NULL)
        fclose(job.cx.log);
    if (batch > 1 && code != 0)
        fprintf(stderr, "lowerset: --max-batch: the model takes a batch of 1, but not of %" PRId64
                ": lowerset plan --batch %" PRId64 " says why\n", batch, batch);
    if (!follows) {
        fprintf(stderr, "lowerset: --max-batch: the batch of '%s' is fixed at %" PRId64 "; export "
                "it with a dynamic first dimension, and give no --dim or --shape for it\n",
                o->model, job.train->batch);
        code = LS_EXIT_MODEL;
    }
    ls_job_end(&job);
    return code;
}

static int probe(Search *s, int64_t batch, Probe *p)
{
    LsOptions with = *s->o;
    LsJob job;
    with.sizes.batch = batch;
    with.memory.strategy = s->strategy;
    *p = (Probe){.batch = batch};
    int code = ls_job_start(&job, &with, true);
    char *said = NULL;
    size_t length = 0;
    FILE *log = ls_text_open(&said, &length);
    job.cx.log = log;
    job.unproven = true;
    code = code != 0 ? code : ls_job_plan(&job);
    ls_text_close(log, &said);
    /* small batches were compiled without error */
    bool large = code == LS_EXIT_MODEL && job.cx.last == LS_E_SHAPE;
    if (large) {
        code = 0;
    } else if (code == 0 || code == LS_EXIT_BUDGET) {
        const int64_t eval = job.eval_plan.arena, least = job.report.least;
        const LsProcessBytes process = ls_job_process(&job);
        p->fits = code == 0;
        p->least = ls_process_total(&process, least > eval ? least : eval);
        p->arena = job.arena_bytes;
        p->total = ls_process_fixed(&process) + job.arena_bytes;
        p->overhead = p->fits ? ls_plan_overhead(&job.plan) : 0;
        memcpy(p->hash, job.report.hash, sizeof p->hash);
        code = 0;
    }
    if (code == 0 && !s->o->output.quiet)
        fprintf(stderr, "%s: batch %" PRId64 " %s%.*s\n", s->strategy, batch,
                p->fits ? "fits"
                : large ? "does not fit: "
                        : "does not fit",
                !large ? 0 : (int)strcspn(said, "\n"), said);
    free(said);
    ls_job_end(&job);
    s->plans++;
    return code;
}

/* The batch where the line through the last two batches meets the budget; -1: none. */
static int64_t guess(const Search *s, const Probe *a, const Probe *b)
{
    double slope = (double)(b->least - a->least) / (double)(b->batch - a->batch);
    double at = (double)a->batch + (double)(s->budget - a->least) / slope;
    return slope > 0 && at < MOST ? (int64_t)at : -1;
}

/* The next batch to try, strictly between low and high: by the line, or by bisection when the line
 * is wrong too often. */
static int64_t next(const Search *s, const Probe *before, const Probe *last)
{
    enum { PATIENCE = 6 };
    int64_t low = s->low.batch, high = s->high.batch;
    bool line = before->batch != last->batch && before->least > 0 && last->least > 0;
    int64_t at = line && s->plans < PATIENCE ? guess(s, before, last) : -1;
    if (high == 0)
        return at > low && at < 1024 * (low + 1) ? at : 2 * low > 0 ? 2 * low : 1;
    if (at < 0)
        return low + (high - low) / 2;
    return at <= low ? low + 1 : at >= high ? high - 1 : at;
}

/* Narrows low and high until they are neighbours, beginning with batch `at`. 0 or the exit code. */
static int narrow(Search *s, int64_t at)
{
    Probe before = {0}, last = {0};
    int64_t batch = at;
    s->plans = 0;
    while (s->high.batch == 0 || s->high.batch - s->low.batch > 1) {
        before = last;
        int code = probe(s, batch, &last);
        if (code != 0)
            return code;
        if (last.fits)
            s->low = last;
        else
            s->high = last;
        if (before.batch == 0)
            before = last;
        if (s->low.batch >= MOST)
            break;
        batch = next(s, &before, &last);
        batch = batch < MOST ? batch : MOST;
    }
    return 0;
}

/* The search of auto may fail at one batch and succeed at a larger one, so this tries a little
 * further. True: low has moved there, and nothing is known above it. */
static bool leap(Search *s, int *code)
{
    static const int percent[] = {3, 10, 30};
    for (size_t k = 0; *code == 0 && k < sizeof percent / sizeof *percent; k++) {
        Probe p;
        int64_t batch = s->low.batch + s->low.batch * percent[k] / 100;
        if (s->low.batch >= MOST || batch <= s->high.batch)
            continue;
        *code = probe(s, batch, &p);
        if (*code == 0 && p.fits) {
            s->low = p;
            s->high = (Probe){0};
            return true;
        }
    }
    return false;
}

/* 0 or the exit code. */
static int search(Search *s, int64_t start)
{
    int code = narrow(s, start > 0 ? start : 1);
    while (code == 0 && strcmp(s->strategy, "auto") == 0 && leap(s, &code))
        code = narrow(s, s->low.batch + s->low.batch / 8 + 1);
    return code;
}

static void print_row(LsArena *a, const Search *s)
{
    if (s->low.batch == 0)
        printf("%-10s %10s  a batch of 1 needs %s\n", s->strategy, "none",
               ls_bytes_text(a, s->high.least));
    else if (s->low.batch >= MOST)
        printf("%-10s %10" PRId64 " %12s %12s %8.2f %%  larger batches were not tried\n",
               s->strategy, s->low.batch, ls_bytes_text(a, s->low.total),
               ls_bytes_text(a, s->low.arena), 100 * s->low.overhead);
    else
        printf("%-10s %10" PRId64 " %12s %12s %8.2f %%\n", s->strategy, s->low.batch,
               ls_bytes_text(a, s->low.total), ls_bytes_text(a, s->low.arena),
               100 * s->low.overhead);
}

static void add_json(cJSON *rows, const Search *s)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "strategy", s->strategy);
    cJSON_AddNumberToObject(o, "batch", (double)s->low.batch);
    if (s->low.batch > 0) {
        cJSON_AddNumberToObject(o, "total_bytes", (double)s->low.total);
        cJSON_AddNumberToObject(o, "arena_bytes", (double)s->low.arena);
        cJSON_AddNumberToObject(o, "overhead", s->low.overhead);
        cJSON_AddStringToObject(o, "plan", s->low.hash);
    }
    if (s->low.batch >= MOST)
        cJSON_AddBoolToObject(o, "larger_not_tried", true);
    cJSON_AddItemToArray(rows, o);
}

static void print_json(const LsOptions *o, const Search *s, uint32_t n)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "model", o->model);
    cJSON_AddNumberToObject(root, "budget_bytes", (double)s[0].budget);
    cJSON *rows = cJSON_AddArrayToObject(root, "strategies");
    for (uint32_t k = 0; k < n; k++)
        add_json(rows, &s[k]);
    ls_json_print(stdout, root);
}

/* Warns of the largest program's memory; the program may be for another machine. */
static void warn_of_memory(const LsOptions *o, const Search *s, uint32_t n)
{
    int64_t here = ls_memory_here(), most = 0;
    bool gpu = o->machine.target != NULL && strcmp(o->machine.target, "cuda") == 0;
    for (uint32_t k = 0; k < n; k++)
        most = s[k].low.total > most ? s[k].low.total : most;
    if (here <= 0 || most <= here || gpu || o->output.quiet)
        return;
    LsArena *a = ls_arena_new();
    fprintf(stderr, "%s: warning: the program takes %s, but this machine has %s\n", o->model,
            ls_bytes_text(a, most), ls_bytes_text(a, here));
    ls_arena_free(a);
}

int ls_max_batch(const LsOptions *o)
{
    Search s[LS_NSTRATEGY];
    uint32_t n = o->memory.strategy != NULL ? 1 : LS_NSTRATEGY;
    LsBudget b;
    int64_t start = 0;
    int code = check(o);
    code = code != 0 ? code : rehearse(o, 1);
    code = code != 0 ? code : rehearse(o, 2);
    if (code == 0)
        ls_budget_parse(o->memory.budget, &b);
    if (code == 0 && b.bytes > LS_MOST_BYTES)
        b.bytes = LS_MOST_BYTES;
    for (uint32_t k = 0; code == 0 && k < n; k++) {
        s[k] = (Search){.o = o,
                        .strategy = o->memory.strategy != NULL ? o->memory.strategy
                                                               : ls_strategy_name[k].name,
                        .budget = b.bytes};
        code = search(&s[k], start);
        start = s[k].low.batch > start ? s[k].low.batch : start;    /* every strategy includes
                                                                     * none */
    }
    if (code != 0)
        return code;
    warn_of_memory(o, s, n);
    if (o->reports.json) {
        print_json(o, s, n);
        return 0;
    }
    LsArena *a = ls_arena_new();
    printf("%s: the largest batch within %s\n%-10s %10s %12s %12s %10s\n", o->model,
           ls_bytes_text(a, s[0].budget), "strategy", "batch", "total", "arena", "overhead");
    for (uint32_t k = 0; k < n; k++)
        print_row(a, &s[k]);
    ls_arena_free(a);
    return 0;
}
