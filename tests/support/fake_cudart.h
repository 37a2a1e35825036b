/* tests/support/fake_cudart.h -- a CUDA runtime without a GPU, for tests: device memory is memory
 * that only work in progress can touch, streams are queues, kernels are C functions. See
 * fake_cudart.c. */
#ifndef LS_TESTS_SUPPORT_FAKE_CUDART_H
#define LS_TESTS_SUPPORT_FAKE_CUDART_H

#include "runtime/ls_program.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

enum { FAKE_ARGS = 256 };
typedef struct FakeKernel FakeKernel;
struct FakeKernel {
    const char *name;
    int narg;
    /* Computes that many blocks. */
    void (*body)(const FakeKernel *k, const LsRun *run, void *const at[], int64_t blocks);
    const void *data;           /* the body's own */
};

typedef struct FakeCudart {
    const FakeKernel *kernel; int nkernel;      /* what code has */
    bool lazy; /* work runs only when something waits for it, as late as possible; else when it is
                * issued */
    int devices, driver;        /* how many; CUDA version */
    bool kinds;                 /* each device is of another kind */
    size_t room;                /* bytes of device memory */
    int fail_at;
    cudaError_t fail_with;       /* the run of a kernel with that number, from 1, breaks
                                  * the device; 0: none */
    int ran, launched, replayed; /* kernels run; launches outside recordings; graph launches */
    size_t used;                /* bytes of device memory taken */
    bool unrecordable;          /* recordings fail */
    bool in_order;              /* dependencies of a recording cannot be changed */
    unsigned order;             /* order of steps that recordings leave open, by this number; 0: as
                                 * recorded */
    int apart;                  /* number of choices between several next nodes, with an order */
    FILE *log;                  /* not NULL: gets a line for each operation that is given to a
                                 * stream, and for each wait of the host; streams and events are
                                 * numbered from 0 in the order in which they were made */
} FakeCudart;
extern FakeCudart fake_cudart;

/* Work of the fake libraries, and whether it is recorded: tests/support/fake_stream.h. */
bool fake_cudart_records(void *stream);
void fake_cudart_work(void *stream, void (*work)(const void *), const void *data, size_t bytes);

#endif
