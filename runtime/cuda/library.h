/* runtime/cuda/library.h -- where shared libraries of CUDA are opened. */
#ifndef LS_CUDA_LIBRARY_H
#define LS_CUDA_LIBRARY_H

#include <stddef.h>

/* Opens the file. Once open it stays until the process ends, whatever dlclose is told: threads and
 * handlers of its own may outlive one. NULL: dlerror says why. */
void *ls_library_open(const char *file);

/* Opens the first of these names (NULL behind the last) that is anywhere: where the loader finds it,
 * else in the toolkit ($CUDA_HOME, $CUDA_PATH or /usr/local/cuda), else among NVIDIA's packages for
 * Python ($VIRTUAL_ENV, $CONDA_PREFIX, the user's own or the system's). The file's name goes to
 * `file`. NULL: there is none; why: what the loader said of the first. */
void *ls_library_find(const char *const soname[], char *file, size_t size, char *why,
                      size_t why_size);

#endif
