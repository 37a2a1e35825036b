/* cli/job/rank_facts.c -- see rank_facts.h. */
#include "cli/job/rank_facts.h"

#include "runtime/ls_program.h"

static int64_t stored(const LsGraph *g, LsValueId v, int width, int ranks)
{
    const bool depends = g->value[v.i].sliced || g->value[v.i].rank_levels > 0;
    return depends ? ls_stored_of_rank(g, v, width, ranks) : ls_stored_bytes(g, v, width);
}

LsRankFacts ls_rank_facts(const LsJob *job, int ranks)
{
    const LsGraph *g = job->train, *u = g->rank.updates;
    const int width = job->target.real_bytes;
    LsRankFacts f = {0};
    int64_t rows = 0;           /* of the statistics of a part */
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].of_update)
            *(g->value[i].rank_sum ? &f.sums : &f.trees) +=
                ls_align(stored(g, (LsValueId){i}, width, ranks), LS_ALIGNMENT);
    for (uint32_t i = 1; i < u->nvalue; i++)
        if (u->value[i].of_optimizer) {
            f.moments += ls_value_bytes(u, (LsValueId){i}, width);
            f.own += stored(u, (LsValueId){i}, width, ranks);
        }
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; g->node[i].op == LS_OP_PART_STAT && k < g->node[i].nin;
             k += ls_update_operands(&g->node[i]))
            rows += ls_value_bytes(g, ls_in(g, (LsNodeId){i}, k), width);
    f.exchange = ls_rank_exchange_bytes(ranks, g->rank.micro_batches, f.sums, rows);
    f.sent = (ranks - 1)
             * (2 * (f.sums / ranks) + ls_rank_packet_bytes(g->rank.micro_batches / ranks, rows));
    return f;
}
