/* tests/whole/library_turns.h -- what an object around a library has for others: a run by steps. */
#ifndef LS_TESTS_WHOLE_LIBRARY_TURNS_H
#define LS_TESTS_WHOLE_LIBRARY_TURNS_H

#include <stddef.h>

typedef struct Turns {
    void *(*begin)(int threads);
    double (*turn)(void *run);          /* an update; its loss */
    const void *(*state)(const void *run, size_t *bytes);
    void (*finish)(void *run);
} Turns;

#endif
