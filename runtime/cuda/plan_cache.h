/* runtime/cuda/plan_cache.h -- plans of convolutions kept from one process to the next, as lines of
 * text.
 *
 * $XDG_CACHE_HOME/lowerset/NAME (or ~/.cache/lowerset/NAME): a head line, then per plan its
 * checksum, key and value with tabs between. What does not read as that is not there, and what is
 * read is checked again by cuDNN before it runs: a wrong line costs time, never a result. */
#ifndef LS_CUDA_PLAN_CACHE_H
#define LS_CUDA_PLAN_CACHE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct LsPlanCache LsPlanCache;

/* The folder above, in text; NULL: there is none. */
const char *ls_plan_cache_folder(char *text, size_t size);

/* Reads the file if it is there. folder NULL: kept in memory only. NULL: out of memory. */
LsPlanCache *ls_plan_cache_open(const char *folder, const char *name);
/* NULL: not there. The text lives until the cache is closed, or the key is put again. */
const char *ls_plan_cache_find(const LsPlanCache *c, const char *key);
/* In the place of the value with this key, if any. With tabs or line breaks in it nothing is
 * kept. */
void ls_plan_cache_put(LsPlanCache *c, const char *key, const char *value);
/* Writes the file when something is new, complete or not at all; failures are silent. NULL is
 * allowed. */
void ls_plan_cache_close(LsPlanCache *c);

#endif
