/* tests/runtime/test_nccl_abi.c -- nccl_library.h agrees with NCCL's own header, and the library of
 * this machine, if any, has all functions. Needs no GPU. */
#include "runtime/comm_nccl/nccl_library.h"

#include <nccl.h>
#include <stdio.h>

#define IS(expression, type)                                                                       \
    _Static_assert(__builtin_types_compatible_p(__typeof__(expression), type), #expression)

/* An enumeration is an int here, a handle a pointer. */
_Static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int),
               "enumerations");
_Static_assert(sizeof(ncclComm_t) == sizeof(void *) && sizeof(cudaStream_t) == sizeof(void *),
               "handles");
_Static_assert(sizeof(ncclUniqueId) == sizeof(LsNcclId)
                   && _Alignof(ncclUniqueId) == _Alignof(LsNcclId),
               "identity");
_Static_assert(ncclSuccess == 0 && ncclInt8 == 0, "values");

IS(&ncclGetVersion, ncclResult_t (*)(int *));
IS(&ncclGetErrorString, const char *(*)(ncclResult_t));
IS(&ncclGetUniqueId, ncclResult_t (*)(ncclUniqueId *));
IS(&ncclCommInitRank, ncclResult_t (*)(ncclComm_t *, int, ncclUniqueId, int));
IS(&ncclCommDestroy, ncclResult_t (*)(ncclComm_t));
IS(&ncclCommAbort, ncclResult_t (*)(ncclComm_t));
IS(&ncclCommGetAsyncError, ncclResult_t (*)(ncclComm_t, ncclResult_t *));
IS(&ncclGroupStart, ncclResult_t (*)(void));
IS(&ncclGroupEnd, ncclResult_t (*)(void));
IS(&ncclSend,
   ncclResult_t (*)(const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
IS(&ncclRecv, ncclResult_t (*)(void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));

int main(void)
{
    LsNcclApi api;
    LsError e = {0};
    int version = 0;
    if (!ls_nccl_load(&api, &e)) {
        printf("%s\n", e.text);
        return 0;
    }
    api.GetVersion(&version);
    printf("version %d: %s\n", version, api.GetErrorString(ncclInvalidUsage));
    return 0;
}
