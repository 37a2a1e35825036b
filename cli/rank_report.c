/* cli/rank_report.c -- see rank_report.h. */
#include "cli/rank_report.h"

#include "runtime/ls_program.h"

#include <inttypes.h>

typedef struct Facts {
    int64_t sums;               /* bytes of the sums that ranks add up */
    int64_t trees;              /* of partial sums of a rank's parts, and of statistics of all parts */
    int64_t moments, own;       /* of the optimizer's state: in all, and in one rank */
    int64_t rows;               /* of statistics of a part */
    int64_t sent;               /* that a rank sends in an update */
} Facts;

static Facts find_facts(const LsJob *job)
{
    const LsGraph *g = job->train, *u = g->updates;
    const int width = job->target.real_bytes;
    Facts f = {0};
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].of_update)
            *(g->value[i].rank_sum ? &f.sums : &f.trees) += ls_align(ls_stored_bytes(g, (LsValueId){i}, width), LS_ALIGNMENT);
    for (uint32_t i = 1; i < u->nvalue; i++)
        if (u->value[i].of_optimizer) {
            f.moments += ls_value_bytes(u, (LsValueId){i}, width);
            f.own += ls_stored_bytes(u, (LsValueId){i}, width);
        }
    for (uint32_t i = 1; i < g->nnode; i++)
        f.rows += g->node[i].op == LS_OP_PART_STAT ? ls_value_bytes(g, ls_in(g, (LsNodeId){i}, 0), width) : 0;
    f.sent = (g->ranks - 1) * (2 * (f.sums / g->ranks) + ls_rank_packet_bytes(g->block, f.rows));
    return f;
}

/* What keeps the updates whole. */
static const char *why_whole(const LsOptimizerOptions *o)
{
    const LsRule *r = o->kind != LS_OPT_NONE ? ls_rule_of(ls_optimizer_row[o->kind].op) : NULL;
    return o->scale.on ? "the loss scale looks at all gradients"
        : o->clip_norm > 0 ? "the norm is that of all gradients"
        : r != NULL && r->makes ? "a step of this optimizer depends on whole tensors"
        : "averages of the parameters are whole";
}

void ls_rank_report(const LsJob *job)
{
    const LsGraph *g = job->train;
    LsArena *a = job->cx.arena;
    if (g == NULL || g->updates == NULL)
        return;
    const Facts f = find_facts(job);
    const int64_t block = g->block, steps = ls_job_micro_steps(job);
    printf("\nover %d ranks: each runs %" PRId64 " of %" PRId64 " parts of an update; memory and time above are those of one "
           "rank, without messages\n", g->ranks, block, steps);
    printf("  gradients: %s for the sums of a rank, %s for its parts and their statistics, %s for what other ranks send\n",
           ls_bytes_text(a, f.sums), ls_bytes_text(a, f.trees), ls_bytes_text(a, job->exchange_bytes));
    if (g->sliced)
        printf("  updates: each rank updates a slice of every parameter, and has %s of %s of the optimizer's state\n",
               ls_bytes_text(a, f.own), ls_bytes_text(a, f.moments));
    else
        printf("  updates: every rank makes all of them, with %s of the optimizer's state, as %s\n", ls_bytes_text(a, f.moments),
               why_whole(&job->pipeline.optimizer));
    printf("  messages: a rank sends %s in an update, and receives as much\n", ls_bytes_text(a, f.sent));
}

const char *ls_rank_json(const LsJob *job)
{
    const LsGraph *g = job->train;
    if (g == NULL || g->updates == NULL)
        return NULL;
    const Facts f = find_facts(job);
    return ls_arena_printf(job->cx.arena, "{\"ranks\":%d,\"parts\":%" PRId64 ",\"own_parts\":%" PRId64 ",\"sliced\":%s,"
                           "\"sum_bytes\":%" PRId64 ",\"part_bytes\":%" PRId64 ",\"exchange_bytes\":%" PRId64
                           ",\"optimizer_bytes\":%" PRId64 ",\"own_optimizer_bytes\":%" PRId64 ",\"sent_bytes\":%" PRId64 "}",
                           g->ranks, ls_job_micro_steps(job), g->block, g->sliced ? "true" : "false", f.sums, f.trees,
                           job->exchange_bytes, f.moments, f.own, f.sent);
}
