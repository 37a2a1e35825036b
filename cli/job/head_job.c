/* cli/job/head_job.c -- --head-chunks=auto: how many chunks of positions a vocabulary head needs
 * within a budget. Chunks are taken only where all bits are those of the whole head. */
#include "cli/job/job_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_word(const LsJob *job, const char *word)
{
    return job->options->loss.head_chunks != NULL
           && strcmp(job->options->loss.head_chunks, word) == 0;
}

static bool may_have_chunks(const LsJob *job, const LsBudget *b)
{
    const LsOptions *o = job->options;
    return !job->graph_file && job->pipeline.head.chunks == 0 && !is_word(job, "off")
           && (b->least ? is_word(job, "auto") : b->percent == 0 && b->bytes > 0)
           && o->memory.keep.n + o->memory.forget.n == 0 && o->memory.recompute == NULL
           && !ls_wants_samples(&job->pipeline.grads);
}

/* First the gradient is whole, then in parts; each time with more and more chunks. */
typedef struct Search {
    LsJob *job, *best;          /* best: NULL: none */
    const LsBudget *b;
    FILE *quiet;
    int64_t bytes;              /* that the best one takes */
    bool found;                 /* it keeps the budget */
} Search;

/* The same job with so many chunks; false: its head has none. */
static bool load_chunks(LsJob *to, const Search *s, int64_t chunks, bool parts)
{
    if (!ls_job_start_like(to, s->job, s->quiet))
        return false;
    to->pipeline.head.chunks = chunks;
    to->pipeline.head.in_update = parts;
    to->pipeline.head.strict = true;
    return ls_job_load_model(to) == 0;
}

static int64_t total(LsJob *job)
{
    ls_job_set_arena(job);
    return ls_job_fixed_bytes(job) + job->arena_bytes;
}

/* The budget that the job's own search found to be the least. */
static int64_t least(const LsJob *job)
{
    return ls_job_fixed_bytes(job) + job->report.least * ls_job_process(job).arenas;
}

static void tell(LsJob *job)
{
    ls_warn(&job->cx, LS_NOWHERE, "--head-chunks=off keeps it whole",
            "no plan of the whole vocabulary head keeps this budget: it is computed in %" PRId64
            " chunks of positions%s, so that its scores are no output, and there is no accuracy",
            job->pipeline.head.chunks,
            job->pipeline.head.in_update ? ", and the gradient of its weight in parts by the update"
                                         : "");
}

/* Plans the job with so many chunks. Returns whether more of them may be better. */
static bool try_chunks(Search *s, int64_t chunks, bool parts)
{
    LsJob *next = ls_arena_alloc(s->job->cx.arena, 1, sizeof *next);
    if (!load_chunks(next, s, chunks, parts)) {     /* others may have chunks at ends of blocks */
        const bool more = next->cx.last == LS_E_OPTION && !parts;
        ls_job_end(next);
        return more;
    }
    const bool fits = ls_job_plan_loaded(next, s->b);
    const int64_t own = fits ? total(next) : least(next);
    const bool better = own < s->bytes;
    if (!better && !fits) {
        ls_job_end(next);
        return false;
    }
    s->bytes = better ? own : s->bytes;
    s->found |= fits;
    if (s->best != NULL)
        ls_job_end(s->best);
    s->best = next;
    return better;
}

/* Tries numbers of chunks from `from` on, as long as each is better than the one before. */
static void try_numbers(Search *s, int64_t from, bool parts)
{
    static const int64_t number[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    bool better = true;
    for (size_t k = 0; better && (s->b->least || !s->found) && k < sizeof number / sizeof *number;
         k++)
        if (number[k] >= from)
            better = try_chunks(s, number[k], parts);
}

/* Whether the update may compute the gradient in parts. */
static bool may_have_parts(const LsJob *job)
{
    const char *word = job->options->loss.head_gradient;
    return (word == NULL || strcmp(word, "auto") == 0) && job->target.kind == LS_TARGET_CPU
           && job->options->pipe.stages == 0 && !job->options->memory.store_gradients;
}

bool ls_job_plan_chunks(LsJob *job, const LsBudget *b, bool planned)
{
    Search s = {.job = job, .b = b};
    if (!may_have_chunks(job, b))
        return false;
    s.bytes = planned ? total(job) : least(job);
    s.quiet = fopen("/dev/null", "w");
    if (s.quiet == NULL)
        return false;
    try_numbers(&s, 0, job->pipeline.head.in_update);
    if (may_have_parts(job))
        try_numbers(&s, s.best != NULL ? s.best->pipeline.head.chunks : 0, true);
    fclose(s.quiet);
    if (s.best != NULL)
        ls_job_take(job, s.best);
    if (s.found)
        tell(job);
    return s.found;
}
