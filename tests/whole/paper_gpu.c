/* tests/whole/paper_gpu.c -- the device half of a whole generated program for a simulated (paper)
 * GPU: the device text is compiled for the executor, and its kernels go to the fake CUDA runtime.
 *
 * Compiled with LS_EXECUTOR, LS_TEXT="net.cu" and LS_PARTS="a file of PART(name) lines", and linked
 * with the host text, fake_cudart.c and cuda_executor.c: see paper_gpu.sh. LS_FAKE_CUDART=lazy:
 * work is done as late as possible; LS_FAKE_ORDER=N: threads run in another order, and so do steps
 * where a recording allows it; LS_FAKE_GPUS=N: there are so many GPUs; LS_FAKE_KINDS: all of
 * different kinds; LS_FAKE_ROOM=BYTES: of the memory of each. */
#include "tests/support/fake_cudart.h"
/* CUDA's headers define these words for the host; here they have the device's meaning. */
#undef __device__
#undef __forceinline__
#include "tests/support/cuda_executor.h"
#include LS_TEXT

#include <stdio.h>
#include <stdlib.h>

static const ExecPart *const part[] = {
#define PART(name) &name,
#include LS_PARTS
#undef PART
};
enum { NPART = sizeof part / sizeof *part };

static void execute(const FakeKernel *k, const LsRun *run, void *const at[], int64_t blocks)
{
    exec_launch(k->data, blocks, run, at);
    const char *wrong = exec_error();
    if (wrong != NULL) {
        fprintf(stderr, "FAIL %s\n", wrong);
        exit(70);
    }
}

__attribute__((constructor)) static void plug_in(void)
{
    static FakeKernel kernel[NPART];
    const char *mode = getenv("LS_FAKE_CUDART"), *order = getenv("LS_FAKE_ORDER"),
               *gpus = getenv("LS_FAKE_GPUS");
    for (int k = 0; k < NPART; k++)
        kernel[k] = (FakeKernel){part[k]->name, part[k]->narg, execute, part[k]};
    fake_cudart.kernel = kernel;
    fake_cudart.nkernel = NPART;
    fake_cudart.lazy = mode != NULL && mode[0] == 'l';
#ifdef LS_EXACT_FACTORS
    exec_exact_factors();
#endif
    fake_cudart.order = order != NULL ? (unsigned)atoi(order) : 0;
    fake_cudart.devices = gpus != NULL ? atoi(gpus) : 1;
    fake_cudart.kinds = getenv("LS_FAKE_KINDS") != NULL;
    if (getenv("LS_FAKE_ROOM") != NULL)
        fake_cudart.room = (size_t)atoll(getenv("LS_FAKE_ROOM"));
    exec_order(fake_cudart.order);
}
