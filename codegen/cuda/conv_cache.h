/* codegen/cuda/conv_cache.h -- plans of convolutions kept between compilations, as lines of text.
 *
 * $XDG_CACHE_HOME/lowerset/NAME (or ~/.cache/lowerset/NAME): a head line, then per plan its
 * checksum, key and value with tabs between. What does not read as that is not there; a plan is
 * checked again by the program that runs it, so a wrong one costs speed, never a result. */
#ifndef LS_CODEGEN_CONV_CACHE_H
#define LS_CODEGEN_CONV_CACHE_H

#include "compiler/arena.h"

#include <stdbool.h>

typedef struct LsConvCache LsConvCache;

/* Reads the file if it is there. Never NULL; where there is no folder for it the cache lives only
 * as long as the compilation. */
LsConvCache *ls_conv_cache_open(LsArena *a, const char *name);
/* NULL: not there. */
const char *ls_conv_cache_find(const LsConvCache *c, const char *key);
/* key, value: without tabs and line breaks, else nothing is kept. */
void ls_conv_cache_put(LsConvCache *c, const char *key, const char *value);
/* Writes the file when something is new: complete or not at all. Failures are silent. */
void ls_conv_cache_save(LsConvCache *c);

#endif
