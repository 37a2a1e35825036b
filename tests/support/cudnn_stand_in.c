/* tests/support/cudnn_stand_in.c */
#include "tests/support/cudnn_stand_in.h"

#include "runtime/cuda/cudnn_run.h"

#include <stdlib.h>

static LsDnnRuns *runs;

static void stop(const LsError *e)
{
    fprintf(stderr, "%s\n", e->text);
    abort();
}

void cudnn_stand_in_open(void)
{
    LsError e = {0};
    if (!ls_dnn_runs_open(&runs, &(LsDnnSetup){.device = 0}, &e))
        stop(&e);
}

void cudnn_stand_in_close(int *kept, int *again)
{
    *kept = ls_dnn_tally(runs).kept;
    *again = ls_dnn_tally(runs).again;
    ls_dnn_runs_close(runs);
}

void ls_cuda_conv(LsRun *run, const LsCudaConv *c, void *const arg[])
{
    LsError e = {0};
    if (!ls_dnn_run(runs, run, c, arg, (void *)1, &e))
        stop(&e);
}
