/* tests/support/less.h -- the part of their sets of cases that tests run. Under sanitizers, where
 * everything takes several times as long, tests run fewer cases: sanitizers would see nothing in
 * the others, which run without sanitizers. Without sanitizers tests run a selection, and whole
 * sets when asked (./dev test --all). */
#ifndef LS_TESTS_SUPPORT_LESS_H
#define LS_TESTS_SUPPORT_LESS_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool tests_do_less(void) { return getenv("LS_SANITIZED") != NULL; }
static inline bool tests_do_all(void) { return getenv("LS_WHOLE") != NULL; }

/* How many of `all` cases run when `some` of them are the selection. */
static inline int tests_part(int all, int some)
{
    return tests_do_all() && !tests_do_less() ? all : some;
}

#endif
