/* runtime/cuda/cudnn_library.c */
#include "runtime/cuda/cudnn_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 90000 };        /* the first version whose graph API stays as it is */

static const struct { const char *name; size_t at; } function[] = {
#define FN(name) {"cudnn" #name, offsetof(LsDnnApi, name)}
    FN(GetVersion), FN(GetErrorString), FN(GetLastErrorString), FN(Create), FN(Destroy),
    FN(SetStream), FN(BackendCreateDescriptor), FN(BackendDestroyDescriptor), FN(BackendFinalize),
    FN(BackendSetAttribute), FN(BackendGetAttribute), FN(BackendExecute),
#undef FN
};

/* Once open it stays until the process ends: threads and handlers of its own may outlive a dlclose. */
static void *open_file(const char *file)
{
    return dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* The first of the usual places that opens; its name in file. */
static void *open_any(char *file, size_t size)
{
    static const char *const soname[] = {"libcudnn.so.9", "libcudnn.so", "libcudnn.so.8"};
    static const char *const home[] = {"CUDA_HOME", "CUDA_PATH", NULL};
    static const char *const folder[] = {"lib64", "lib"};
    void *lib = NULL;
    for (size_t s = 0; s < sizeof soname / sizeof *soname && lib == NULL; s++) {
        snprintf(file, size, "%s", soname[s]);
        lib = open_file(file);
        for (size_t h = 0; h < sizeof home / sizeof *home && lib == NULL; h++) {
            const char *root = home[h] != NULL ? getenv(home[h]) : "/usr/local/cuda";
            for (size_t f = 0; f < 2 && lib == NULL && root != NULL && root[0] != '\0'; f++) {
                snprintf(file, size, "%s/%s/%s", root, folder[f], soname[s]);
                lib = open_file(file);
            }
        }
    }
    return lib;
}

static bool fail(LsDnn *lib, char *err, size_t size, const char *text)
{
    snprintf(err, size, "%s", text);
    ls_dnn_close(lib);
    return false;
}

bool ls_dnn_open(LsDnn *lib, char *err, size_t size)
{
    *lib = (LsDnn){.version = 0};
    char text[1200];
    const char *named = getenv("LOWERSET_CUDNN");
    if (named != NULL && named[0] != '\0') {
        snprintf(lib->file, sizeof lib->file, "%s", named);
        lib->library = open_file(named);
        snprintf(text, sizeof text, "cuDNN: %s, named by LOWERSET_CUDNN, does not open: %s", named,
                 lib->library == NULL ? dlerror() : "");
    } else {
        lib->library = open_any(lib->file, sizeof lib->file);
        snprintf(text, sizeof text, "cuDNN: libcudnn.so.9 was not found by the loader nor in the "
                 "CUDA toolkit (LOWERSET_CUDNN may name the file)");
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
