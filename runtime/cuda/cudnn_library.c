/* runtime/cuda/cudnn_library.c -- see cudnn_library.h. */
#include "runtime/cuda/cudnn_library.h"
#include "runtime/cuda/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 90000 };        /* the first version with a stable graph API */

static const struct { const char *name; size_t at; } function[] = {
#define FN(name) {"cudnn" #name, offsetof(LsDnnApi, name)}
    FN(GetVersion), FN(GetErrorString), FN(GetLastErrorString), FN(Create), FN(Destroy),
    FN(SetStream), FN(BackendCreateDescriptor), FN(BackendDestroyDescriptor), FN(BackendFinalize),
    FN(BackendSetAttribute), FN(BackendGetAttribute), FN(BackendExecute),
#undef FN
};

static bool fail(LsDnn *lib, char *err, size_t size, const char *text)
{
    snprintf(err, size, "%s", text);
    ls_dnn_close(lib);
    return false;
}

bool ls_dnn_open(LsDnn *lib, char *err, size_t size)
{
    *lib = (LsDnn){.version = 0};
    static const char *const soname[] = {"libcudnn.so.9", "libcudnn.so", "libcudnn.so.8", NULL};
    char text[1200], why[256];
    const char *named = getenv("LOWERSET_CUDNN");
    if (named != NULL && named[0] != '\0') {
        snprintf(lib->file, sizeof lib->file, "%s", named);
        lib->library = ls_library_open(named);
        snprintf(text, sizeof text, "cuDNN: %s, named by LOWERSET_CUDNN, does not open: %s", named,
                 lib->library == NULL ? dlerror() : "");
    } else {
        lib->library = ls_library_find(soname, lib->file, sizeof lib->file, why, sizeof why);
        snprintf(text, sizeof text, "cuDNN: libcudnn.so.9 was not found by the loader, in the "
                 "CUDA toolkit or in NVIDIA's Python packages (LOWERSET_CUDNN may name the file)");
    }
    if (lib->library == NULL)
        return fail(lib, err, size, text);
    for (size_t k = 0; k < sizeof function / sizeof *function; k++) {
        void *f = dlsym(lib->library, function[k].name);
        memcpy((char *)&lib->api + function[k].at, &f, sizeof f);
    }
    lib->version = lib->api.GetVersion == NULL ? 0 : (int64_t)lib->api.GetVersion();
    if (lib->version < OLDEST) {
        int64_t v = lib->version;
        snprintf(text, sizeof text, "cuDNN: %s is version %d.%d.%d, 9.0 or later is needed",
                 lib->file, (int)(v / 1000), (int)(v / 100 % 10), (int)(v % 100));
        return fail(lib, err, size, text);
    }
    for (size_t k = 0; k < sizeof function / sizeof *function; k++) {
        void *f;
        memcpy(&f, (char *)&lib->api + function[k].at, sizeof f);
        if (f == NULL) {
            snprintf(text, sizeof text, "cuDNN: %s (version %d.%d.%d) has no function %s",
                     lib->file, (int)(lib->version / 10000), (int)(lib->version / 100 % 100),
                     (int)(lib->version % 100), function[k].name);
            return fail(lib, err, size, text);
        }
    }
    return true;
}

void ls_dnn_close(LsDnn *lib)
{
    if (lib->library != NULL)
        dlclose(lib->library);
    lib->library = NULL;
}
