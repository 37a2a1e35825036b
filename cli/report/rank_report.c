/* cli/report/rank_report.c -- see rank_report.h. */
#include "cli/report/rank_report.h"

#include "base/json_print.h"
#include "cli/job/rank_facts.h"

#include <inttypes.h>

/* What keeps the updates whole. */
static const char *why_whole(const LsOptimizerOptions *o)
{
    const LsRule *r = o->kind != LS_OPT_NONE ? ls_rule_of(ls_optimizer_row[o->kind].op) : NULL;
    return o->scale.on ? "the loss scale looks at all gradients"
        : o->clip_norm > 0 ? "the norm is that of all gradients"
        : o->kind == LS_ADAM8 || o->kind == LS_ADAM4
            ? "moments in codes lie in blocks, at whose ends slices do not end"
        : o->hyper.bf16 != 0 ? "slices of moments lie as those of their sums, which have f32"
        : r != NULL && r->makes ? "a step of this optimizer depends on whole tensors"
        : "averages of the parameters are whole";
}

/* Bytes of the state with another number of ranks. */
static int64_t state(const LsJob *job, const LsRankFacts *f)
{
    const LsRankFacts counted = ls_rank_facts(job, job->train->rank.count);
    return job->state_bytes + f->own + f->trees - counted.own - counted.trees;
}

static int64_t total(const LsJob *job, const LsRankFacts *f)
{
    return ls_job_fixed_bytes(job) + job->arena_bytes + state(job, f) + f->exchange
           - job->state_bytes - job->exchange_bytes;
}

/* A row for each number of ranks that the program takes. */
static void print_choice(const LsJob *job)
{
    const LsGraph *g = job->train;
    LsArena *a = job->cx.arena;
    printf("  %5s %9s %16s %12s %12s %12s %16s\n", "ranks", "own parts", "optimizer state", "state",
           "exchange", "in all", "sent per update");
    for (int k = 0; k < g->rank.nchoice; k++) {
        const LsRankFacts f = ls_rank_facts(job, g->rank.choice[k]);
        printf("  %5d %9" PRId64 " %16s %12s %12s %12s %16s\n", g->rank.choice[k],
               g->rank.micro_batches / g->rank.choice[k], ls_bytes_text(a, f.own),
               ls_bytes_text(a, state(job, &f)), ls_bytes_text(a, f.exchange),
               ls_bytes_text(a, total(job, &f)), ls_bytes_text(a, f.sent));
    }
}

void ls_rank_report(const LsJob *job)
{
    const LsGraph *g = job->train;
    LsArena *a = job->cx.arena;
    if (g == NULL || g->rank.updates == NULL)
        return;
    const LsRankFacts f = ls_rank_facts(job, g->rank.count);
    const bool any = g->rank.nchoice > 1;
    printf("\nover %d rank%s%s: each runs %" PRId64 " of %" PRId64
           " parts of an update; memory and time above are those of one "
           "rank, without messages\n",
           g->rank.count, g->rank.count == 1 ? "" : "s",
           any ? ", the number of ranks with the most memory" : "",
           g->rank.micro_batches / g->rank.count, g->rank.micro_batches);
    printf("  gradients: %s for the sums of a rank, %s for its parts and their statistics, %s for "
           "what other ranks send\n",
           ls_bytes_text(a, f.sums), ls_bytes_text(a, f.trees), ls_bytes_text(a, f.exchange));
    if (g->rank.sliced)
        printf("  updates: each rank updates a slice of every parameter, and keeps %s for its part "
               "of %s of the optimizer's state\n",
               ls_bytes_text(a, f.own), ls_bytes_text(a, f.moments));
    else
        printf("  updates: every rank makes all of them, with %s of the optimizer's state, as %s\n",
               ls_bytes_text(a, f.moments), why_whole(&job->pipeline.optimizer));
    printf("  messages: a rank sends %s in an update, and receives as much\n",
           ls_bytes_text(a, f.sent));
    if (any)
        print_choice(job);
}

static cJSON *json_of(const LsJob *job, int ranks)
{
    const LsGraph *g = job->train;
    const LsRankFacts f = ls_rank_facts(job, ranks);
    const struct { const char *name; int64_t value; } row[] = {
        {"sum_bytes", f.sums}, {"part_bytes", f.trees}, {"exchange_bytes", f.exchange},
        {"optimizer_bytes", f.moments}, {"own_optimizer_bytes", f.own}, {"sent_bytes", f.sent},
        {"total_bytes", total(job, &f)}};
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "ranks", ranks);
    cJSON_AddNumberToObject(o, "parts", (double)g->rank.micro_batches);
    cJSON_AddNumberToObject(o, "own_parts", (double)(g->rank.micro_batches / ranks));
    cJSON_AddBoolToObject(o, "sliced", g->rank.sliced);
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        cJSON_AddNumberToObject(o, row[k].name, (double)row[k].value);
    return o;
}

const char *ls_rank_json(const LsJob *job)
{
    const LsGraph *g = job->train;
    if (g == NULL || g->rank.updates == NULL)
        return NULL;
    cJSON *o = json_of(job, g->rank.count);
    cJSON *any = g->rank.nchoice > 1 ? cJSON_AddArrayToObject(o, "any") : NULL;
    for (int k = 0; any != NULL && k < g->rank.nchoice; k++)
        cJSON_AddItemToArray(any, json_of(job, g->rank.choice[k]));
    return ls_json_line(job->cx.arena, o);
}
