/* runtime/trainer/print_plan.c -- see print_plan.h. */
#include "runtime/trainer/print_plan.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/engine/program_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_steps(const LsProgram *p, const LsPhaseTable *t)
{
    for (uint32_t k = 0; k < t->nstep; k++) {
        const LsStep *s = &t->step[k];
        int64_t bytes = 0;
        for (uint32_t r = 0; r < s->nout; r++)
            bytes += p->argument.count[s->count + r]
                     * ls_data_bytes((LsDataType)p->argument.type[s->count + r], p->real_bytes);
        printf("%4u  %4u  %-5s  %-20s %13" PRId64 " %7" PRId64 "  %s\n", k, s->node,
               s->again ? "yes" : "", s->op, bytes,
               s->nout ? p->argument.address[s->arg + s->nin].offset : 0, s->name);
    }
}

static void print_stage(const LsProgram *p, uint32_t number)
{
    const LsStage *s = &p->pipeline.stage[number];
    printf("stage %u: arena %" PRId64 " bytes,", number + 1, s->arena_bytes);
    for (uint32_t k = 0; k < s->nregion; k++)
        printf(" %s%u x %" PRId64, k > 0 ? "+ " : "", s->region[k].copies, s->region[k].bytes);
    printf("; sends %u, receives %u\n", s->nsend, s->nreceive);
    for (uint32_t plan = 0; plan < s->nplan; plan++) {
        printf(plan > 0 ? "the first part of an update: phases from steps" : "phases from steps");
        for (int k = 0; k < LS_STAGE_NPHASES; k++)
            printf(" %u", s->plan[plan].first[k]);
        printf("\n");
        print_steps(p, &s->plan[plan].table);
    }
}

/* The steps of an update's last part after which buckets are on their way. */
static void print_exchange(const LsProgram *p, int ranks, LsBucketing how)
{
    LsBucket *bucket = calloc(p->ranks->nsum + 1, sizeof *bucket);
    const uint32_t n = bucket != NULL ? ls_buckets_make(p->ranks, how, bucket) : 0;
    printf("over %d rank%s: gradients are exchanged", ranks, ranks == 1 ? "" : "s");
    for (uint32_t k = 0; k < n; k++)
        if (bucket[k].after == LS_NO_STEP)
            printf("%s the last step, %" PRId64 " bytes", k > 0 ? "," : " after", bucket[k].size);
        else
            printf("%s step %u, %" PRId64 " bytes", k > 0 ? "," : " after", bucket[k].after,
                   bucket[k].size);
    printf("\n");
    free(bucket);
}

void ls_print_plan(const LsProgram *p, int ranks, LsBucketing how)
{
    printf("%s  plan %s  strategy %s  batch %" PRId64 "\n"
           "state %" PRId64 "  arena %" PRId64 "  constants %" PRId64 "  input ring %" PRId64
           "  total %" PRId64 "  budget %" PRId64 " bytes, overhead %.1f %%\n",
           p->about.model, p->about.plan_hash, p->about.strategy, ls_batch_samples(&p->division),
           ls_memory_state(p, ranks), p->bytes.arena, p->bytes.constants, ls_memory_input(p),
           ls_memory_total(p, ranks), p->bytes.budget, 100 * p->about.overhead);
    if (ranks > 0)
        print_exchange(p, ranks, how);
    printf("step  node  again  op                    result bytes      at  name\n");
    print_steps(p, &p->phase.train);
    for (uint32_t k = 0; k < p->pipeline.nstage; k++)
        print_stage(p, k);
}
