/* models/weight_fill.h -- the initial values of a weight, block by block. */
#ifndef LS_MODELS_WEIGHT_FILL_H
#define LS_MODELS_WEIGHT_FILL_H

#include "models/build.h"

enum { LS_FILL_BLOCK = 8192 };  /* most elements in one call; starts are multiples of it */

/* Bytes of one element. */
size_t ls_fill_element(const LsWeight *w);
/* Writes elements start .. start + n of w to out. Element i is a function of (seed, name, i):
 * neither the order of the calls nor the other weights of a model matter. */
void ls_fill(const LsWeight *w, uint64_t seed, int64_t start, int64_t n, void *out);

#endif
