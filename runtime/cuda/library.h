/* runtime/cuda/library.h -- opens CUDA's shared libraries. */
#ifndef LS_CUDA_LIBRARY_H
#define LS_CUDA_LIBRARY_H

#include <stddef.h>

/* Opens the file. It stays open until the process ends, despite dlclose: its threads and handlers
 * may outlive a close. NULL: dlerror has the reason. */
void *ls_library_open(const char *file);

/* Opens the first of these names (NULL-terminated) that is found: in the loader's paths, else in
 * the toolkit ($CUDA_HOME, $CUDA_PATH or /usr/local/cuda), else among NVIDIA's packages for Python
 * ($VIRTUAL_ENV, $CONDA_PREFIX, the user's own or the system's). The file's name goes to `file`.
 * NULL: not found; why: the loader's message about the first name. */
void *ls_library_find(const char *const soname[], char *file, size_t size, char *why,
                      size_t why_size);

#endif
