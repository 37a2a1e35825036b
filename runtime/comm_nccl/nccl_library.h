/* runtime/comm_nccl/nccl_library.h -- NCCL 2.7 or later, opened at run time; needs none of its
 * headers. */
#ifndef LS_RUNTIME_COMM_NCCL_NCCL_LIBRARY_H
#define LS_RUNTIME_COMM_NCCL_NCCL_LIBRARY_H

#include "runtime/base/run_error.h"

#include <stddef.h>

typedef struct LsNcclId { char bytes[128]; } LsNcclId;

/* Results are ncclResult_t; types are ncclDataType_t, of which 0 is a signed byte. */
typedef struct LsNcclApi {
    int (*GetVersion)(int *version);
    const char *(*GetErrorString)(int result);
    int (*GetUniqueId)(LsNcclId *id);
    int (*CommInitRank)(void **comm, int size, LsNcclId id, int rank);
    int (*CommDestroy)(void *comm);
    int (*CommAbort)(void *comm);
    int (*CommGetAsyncError)(void *comm, int *result);
    int (*GroupStart)(void);
    int (*GroupEnd)(void);
    int (*Send)(const void *data, size_t n, int type, int peer, void *comm, void *stream);
    int (*Recv)(void *data, size_t n, int type, int peer, void *comm, void *stream);
} LsNcclApi;

/* Opens $LOWERSET_NCCL, else libnccl.so.2 where CUDA's libraries are looked for. It stays open. An
 * LS_EXIT_DEVICE error: not found, or too old. */
bool ls_nccl_load(LsNcclApi *api, LsError *e);

#endif
