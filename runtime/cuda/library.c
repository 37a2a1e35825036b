/* runtime/cuda/library.c -- see library.h. */
#include "runtime/cuda/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

void *ls_library_open(const char *file)
{
    return dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* Opens the file of that name in a folder of `place`; NULL: no place, or no such file. */
static void *open_at(const char *place, const char *folder, const char *soname, char *file,
                     size_t size)
{
    if (place == NULL || place[0] == '\0'
        || snprintf(file, size, "%s/%s/%s", place, folder, soname) >= (int)size)
        return NULL;
    return ls_library_open(file);
}

static void *open_in_toolkit(const char *soname, char *file, size_t size)
{
    static const char *const folder[] = {"lib64", "lib"};
    const char *place[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    void *so = NULL;
    for (size_t p = 0; p < sizeof place / sizeof *place && so == NULL; p++)
        for (size_t f = 0; f < sizeof folder / sizeof *folder && so == NULL; f++)
            so = open_at(place[p], folder[f], soname, file, size);
    return so;
}

/* NVIDIA's wheels have their libraries in site-packages/nvidia/PACKAGE/lib. */
static void *open_in_python(const char *soname, char *file, size_t size)
{
    static const char *const folder[] = {"lib/python3*/site-packages/nvidia/*/lib",
                                         "lib/python3*/dist-packages/nvidia/*/lib"};
    char local[1024];
    const char *home = getenv("HOME");
    snprintf(local, sizeof local, "%s/.local", home != NULL ? home : "");
    const char *place[] = {getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"), local, "/usr/local",
                           "/usr"};
    void *so = NULL;
    for (size_t p = 0; p < sizeof place / sizeof *place && so == NULL; p++)
        for (size_t f = 0; f < sizeof folder / sizeof *folder && so == NULL; f++) {
            glob_t found;
            if (place[p] == NULL || place[p][0] == '\0'
                || snprintf(file, size, "%s/%s/%s", place[p], folder[f], soname) >= (int)size
                || glob(file, 0, NULL, &found) != 0)
                continue;
            for (size_t k = 0; k < found.gl_pathc && so == NULL; k++) {
                snprintf(file, size, "%s", found.gl_pathv[k]);
                so = ls_library_open(file);
            }
            globfree(&found);
        }
    return so;
}

void *ls_library_find(const char *const soname[], char *file, size_t size, char *why,
                      size_t why_size)
{
    void *so = NULL;
    for (size_t s = 0; soname[s] != NULL && so == NULL; s++) {
        snprintf(file, size, "%s", soname[s]);
        so = ls_library_open(file);
        if (so == NULL && s == 0)
            snprintf(why, why_size, "%s", dlerror());
        so = so != NULL ? so : open_in_toolkit(soname[s], file, size);
        so = so != NULL ? so : open_in_python(soname[s], file, size);
    }
    return so;
}
