/* tests/support/tiny_net.h -- an instance of a library (runtime/library/net.h) of the program of
 * tiny_program.h. */
#ifndef LS_TESTS_SUPPORT_TINY_NET_H
#define LS_TESTS_SUPPORT_TINY_NET_H

#include "runtime/library/net.h"
#include "tests/support/tiny_run.h"

enum { STATES = 7 };
static const double rate = 0.25;
static _Alignas(LS_NET_ALIGN) char state[ST_END + 64], arena[AR_END + 64];
static const void *const all[] = {features, labels};

static inline LsNet *opened(const LsProgram *p, int threads)
{
    LsError e = {0};
    const LsNetMemory memory = {state, arena, sizeof state, sizeof arena};
    LsNet *n = ls_net_open(p, memory, (LsNetThreads){.count = threads}, 3, &e);
    ck_assert_msg(n != NULL, "%s", e.text);
    return n;
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        LsError e = {0};                                                                           \
        ck_assert_msg(call, "%s", e.text);                                                         \
    } while (0)
#define REFUSED(call, part)                                                                        \
    do {                                                                                           \
        LsError e = {0};                                                                           \
        ck_assert(!(call));                                                                        \
        TOLD(e.text, part);                                                                        \
    } while (0)

static inline double step(LsNet *n, const void *const *input, int64_t samples)
{
    double loss;
    OK(ls_net_step(n, input, samples, rate, &loss, &e));
    return loss;
}

/* All values of the state. */
static inline void values(LsNet *n, float to[STATES][TM * TF])
{
    memset(to, 0, sizeof(float[STATES][TM * TF]));
    for (uint32_t k = 0; k < STATES; k++)
        OK(ls_net_read(n, k, to[k], &e));
}

#endif
