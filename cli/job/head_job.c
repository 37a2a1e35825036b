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

/* The same job with so many chunks; false: its head has none. */
static bool load_chunks(LsJob *to, const LsJob *job, int64_t chunks, FILE *quiet)
{
    if (!ls_job_start_like(to, job, quiet))
        return false;
    to->pipeline.head.chunks = chunks;
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
            " chunks of positions, so that its scores are no output, and there is no accuracy",
            job->pipeline.head.chunks);
}

bool ls_job_plan_chunks(LsJob *job, const LsBudget *b, bool planned)
{
    static const int64_t number[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    FILE *quiet = fopen("/dev/null", "w");
    LsJob *best = NULL;
    int64_t bytes = planned ? total(job) : least(job);
    bool found = false, better = true;
    for (size_t k = 0; quiet != NULL && may_have_chunks(job, b) && better && (b->least || !found)
                       && k < sizeof number / sizeof *number; k++) {
        LsJob *next = ls_arena_alloc(job->cx.arena, 1, sizeof *next);
        bool fits = false;
        if (load_chunks(next, job, number[k], quiet)) {
            fits = ls_job_plan_loaded(next, b);
            const int64_t own = fits ? total(next) : least(next);
            better = own < bytes;
            bytes = better ? own : bytes;
        } else {                        /* other numbers may have chunks at ends of blocks */
            better = next->cx.last == LS_E_OPTION;
            ls_job_end(next);
            continue;
        }
        if (better || fits) {
            if (best != NULL)
                ls_job_end(best);
            best = next;
            found |= fits;
        } else {
            ls_job_end(next);
        }
    }
    if (best != NULL)
        ls_job_take(job, best);
    if (quiet != NULL)
        fclose(quiet);
    if (found)
        tell(job);
    return found;
}
