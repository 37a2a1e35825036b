/* runtime/cuda/plan_cache.h -- a cache of convolution plans across processes, as lines of text.
 *
 * $XDG_CACHE_HOME/lowerset/NAME (or ~/.cache/lowerset/NAME): a head line, then per plan its
 * checksum, key and value, separated by tabs. Unreadable lines are ignored, and cuDNN checks each
 * plan again before it runs: a wrong line costs time, never a result. */
#ifndef LS_CUDA_PLAN_CACHE_H
#define LS_CUDA_PLAN_CACHE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct LsPlanCache LsPlanCache;

/* The folder above, in text; NULL: no such folder. */
const char *ls_plan_cache_folder(char *text, size_t size);

/* Reads the file if it exists. folder NULL: a cache in memory only. Returns NULL when out of
 * memory. */
LsPlanCache *ls_plan_cache_open(const char *folder, const char *name);
/* NULL: not cached. The text lives until the cache is closed, or the key is put again. */
const char *ls_plan_cache_find(const LsPlanCache *c, const char *key);
/* Adds a value; replaces the value with this key, if any. A key or value with tabs or line breaks
 * is not cached. */
void ls_plan_cache_put(LsPlanCache *c, const char *key, const char *value);
/* Writes the file if it has changed, complete or not at all; failures are silent. NULL is
 * allowed. */
void ls_plan_cache_close(LsPlanCache *c);

#endif
