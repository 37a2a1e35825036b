/* runtime/base/number.h -- parses a number that a person typed: the whole text, finite, within
 * bounds. */
#ifndef LS_RUNTIME_BASE_NUMBER_H
#define LS_RUNTIME_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* *v: the value of `text`, from `least` to `most`; false: not such a number, and *v is
 * unchanged. */
bool ls_number_real(const char *text, double least, double most, double *v);
/* The same for a whole number. */
bool ls_number_whole(const char *text, int64_t least, int64_t most, int64_t *v);

#endif
