/* runtime/comm_nccl/nccl_library.c -- see nccl_library.h. */
#include "runtime/comm_nccl/nccl_library.h"
#include "runtime/cuda/library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 2700 };         /* the first version with ncclSend and ncclRecv */

static const struct { const char *name; size_t at;
} function[] = {
#define FN(name) {"nccl" #name, offsetof(LsNcclApi, name)}
    FN(GetVersion), FN(GetErrorString),    FN(GetUniqueId), FN(CommInitRank), FN(CommDestroy),
    FN(CommAbort),  FN(CommGetAsyncError), FN(GroupStart),  FN(GroupEnd),     FN(Send),
    FN(Recv),
#undef FN
};

static void *open_library(char *file, size_t size, LsError *e)
{
    static const char *const soname[] = {"libnccl.so.2", NULL};
    char why[256] = "";
    const char *named = getenv("LOWERSET_NCCL");
    void *so = named != NULL && named[0] != '\0'
                   ? ls_library_open(named)
                   : ls_library_find(soname, file, size, why, sizeof why);
    if (so == NULL && named != NULL && named[0] != '\0')
        ls_fail(e, LS_EXIT_DEVICE, "NCCL: %s, named by LOWERSET_NCCL, does not open: %s", named,
                dlerror());
    else if (so == NULL)
        ls_fail(e, LS_EXIT_DEVICE,
                "NCCL: libnccl.so.2 was not found by the loader, in the CUDA toolkit or in "
                "NVIDIA's Python "
                "packages (LOWERSET_NCCL may name the file)");
    return so;
}

bool ls_nccl_load(LsNcclApi *api, LsError *e)
{
    char file[1024];
    int version = 0;
    void *so = open_library(file, sizeof file, e);
    if (so == NULL)
        return false;
    for (size_t k = 0; k < sizeof function / sizeof function[0]; k++) {
        void *f = dlsym(so, function[k].name);
        if (f == NULL)
            return ls_fail(e, LS_EXIT_DEVICE,
                           "NCCL: the library has no function %s; 2.7 or later is needed",
                           function[k].name);
        memcpy((char *)api + function[k].at, &f, sizeof f);
    }
    if (api->GetVersion(&version) != 0 || version < OLDEST)
        return ls_fail(e, LS_EXIT_DEVICE, "NCCL: the library is version %d, 2.7 or later is needed",
                       version);
    return true;
}
