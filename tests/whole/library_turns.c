/* tests/whole/library_turns.c -- a run of the library with the prefix `net`, for a process that
 * loads several such objects (library_two.c). */
#define _GNU_SOURCE
#include "library_client.h"

#include "library_turns.h"

static void *begin(int threads)
{
    Run *r = need(malloc(sizeof *r));
    *r = start(3 * NET_BATCH + NET_BATCH_LEAST, 7, threads);
    return r;
}

static double turn(void *run) { return step(run, 0.01); }

static const void *state(const void *run, size_t *bytes)
{
    *bytes = NET_STATE_BYTES;
    return ((const Run *)run)->state;
}

static void finish(void *run)
{
    end(run);
    free(run);
}

__attribute__((visibility("default"))) const Turns turns = {begin, turn, state, finish};
