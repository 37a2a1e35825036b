/* runtime/cuda/library.c -- see library.h. */
#include "runtime/cuda/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *ls_library_open(const char *file)
{
    return dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

void *ls_library_find(const char *const soname[], char *file, size_t size, char *why,
                      size_t why_size)
{
    static const char *const folder[] = {"lib64", "lib"};
    const char *root[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    void *so = NULL;
    for (size_t s = 0; soname[s] != NULL && so == NULL; s++) {
        snprintf(file, size, "%s", soname[s]);
        so = ls_library_open(file);
        if (so == NULL && s == 0)
            snprintf(why, why_size, "%s", dlerror());
        for (size_t r = 0; r < sizeof root / sizeof *root && so == NULL; r++)
            for (size_t f = 0; f < 2 && so == NULL && root[r] != NULL && root[r][0] != '\0'; f++) {
                snprintf(file, size, "%s/%s/%s", root[r], folder[f], soname[s]);
                so = ls_library_open(file);
            }
    }
    return so;
}
