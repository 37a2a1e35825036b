/* runtime/cuda/cublaslt_library.c -- see cublaslt_library.h. */
#include "runtime/cuda/cublaslt_library.h"
#include "runtime/cuda/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { OLDEST = 12 };           /* oldest major version whose enumerators and structures match */

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool find_functions(LsCublasLibrary *l, const char *path, LsError *e)
{
    struct { const char *name; void *at; } f[] = {
#define ROW(name) {"cublasLt" #name, &l->name},
        LS_CUBLASLT_FUNCTIONS(ROW)
#undef ROW
    };
    for (size_t k = 0; k < sizeof f / sizeof *f; k++) {
        void *at = dlsym(l->so, f[k].name);
        if (at == NULL)
            return ls_fail(e, LS_EXIT_DEVICE,
                           "%s has no function %s: cuBLASLt %d or newer is needed", path, f[k].name,
                           OLDEST);
        memcpy(f[k].at, &at, sizeof at);
    }
    return true;
}

/* 130100 means 13.1.0. */
static bool check_version(LsCublasLibrary *l, const char *path, LsError *e)
{
    int v = (int)l->GetVersion(), major = v / 10000, minor = v / 100 % 100, patch = v % 100;
    snprintf(l->name, sizeof l->name, "%.40s %d.%d.%d", file_name(path), major, minor, patch);
    return major >= OLDEST
        || ls_fail(e, LS_EXIT_DEVICE, "%s is cuBLASLt %d.%d.%d: %d or newer is needed", path, major,
                   minor, patch, OLDEST);
}

bool ls_cublas_library_open(LsCublasLibrary *l, const char *path, LsError *e)
{
    static const char *const soname[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    char why[256] = "", found[512];
    *l = (LsCublasLibrary){0};
    if (path != NULL) {
        snprintf(found, sizeof found, "%s", path);
        l->so = ls_library_open(path);
        if (l->so == NULL)
            snprintf(why, sizeof why, "%s", dlerror());
    } else {
        l->so = ls_library_find(soname, found, sizeof found, why, sizeof why);
    }
    if (l->so == NULL)
        return ls_fail(e, LS_EXIT_DEVICE,
                       "this program multiplies matrices with cuBLASLt, and libcublasLt.so.13 (or "
                       ".12) cannot be "
                       "opened: %s; nor is it in the CUDA toolkit or in NVIDIA's Python packages. "
                       "Put its folder "
                       "into LD_LIBRARY_PATH",
                       why);
    if (find_functions(l, found, e) && check_version(l, found, e))
        return true;
    ls_cublas_library_close(l);
    return false;
}

void ls_cublas_library_close(LsCublasLibrary *l)
{
    if (l->so != NULL)
        dlclose(l->so);
    *l = (LsCublasLibrary){0};
}
