/* tests/support/fake_nccl.h -- what a test may ask of the NCCL in fake_nccl.c, and tell it. */
#ifndef LS_TESTS_SUPPORT_FAKE_NCCL_H
#define LS_TESTS_SUPPORT_FAKE_NCCL_H

enum { FAKE_NCCL_BUSY = 600, FAKE_NCCL_MOST = 8 };      /* BUSY: cudaErrorNotReady */

typedef struct FakeNccl {
    int version, fail_init, async_error;        /* to be set */
    int made, destroyed, aborted, misused;      /* communicators; wrong calls */
} FakeNccl;
/* Symbols of the library: the record, and a stream's state. A stream is any address that no other
 * rank uses. */
typedef int FakeNcclQuery(void *stream);

#endif
