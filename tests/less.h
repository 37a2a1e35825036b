/* tests/less.h -- whether tests do less: under sanitizers, where all takes several times as long. What is
 * left out is nothing that these would see, and is checked without them. */
#ifndef LS_TESTS_LESS_H
#define LS_TESTS_LESS_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool tests_do_less(void) { return getenv("LS_SANITIZED") != NULL; }

#endif
