/* runtime/watch/gradient_check.h -- --check-gradients: the gradients of a program beside differences of the
 * loss that it computes itself.
 *
 * An element w of a parameter is moved by h to both sides, and (loss(w + h) - loss(w - h)) / 2h
 * should be its gradient. Everything else stays: the batch, the dropout masks, and the state, which
 * is put back before every run and at the end. In doubles the two agree to nine digits or so, and
 * LS_GRAD_LIMIT is far from that. Floats round the loss so much that h must be large, and only
 * coarse errors show. */
#ifndef LS_RUNTIME_WATCH_GRADIENT_CHECK_H
#define LS_RUNTIME_WATCH_GRADIENT_CHECK_H

#include "runtime/watch/dump_values.h"
#include "runtime/watch/progress.h"

#include <signal.h>
#include <stdio.h>

/* How far off an element may be, relative to the largest gradient of its parameter (gradient_check.c:
 * judge). In f32 the other one. */
#define LS_GRAD_LIMIT 1e-4
#define LS_GRAD_LIMIT_F32 1e-1

typedef struct LsGradSample {   /* one element of one parameter */
    uint32_t watch;             /* of the training phase */
    const LsStateTensor *of;
    int64_t element;            /* in ONNX's order */
    double gradient, difference;
    double error;               /* INFINITY: one of the two is not finite */
} LsGradSample;

typedef struct LsGradCheck {
    LsEngine *g;
    LsDump dump;                /* the gradients */
    char *saved;                /* the state */
    LsGradSample *sample; int64_t nsample;
    uint32_t *watch;            /* of the training phase, by parameter: those with gradients */
    uint32_t nparam;
    double *most;               /* by watch: the largest gradient, absolute */
    double all;                 /* the largest of them */
    double loss, noise;         /* noise: what rounding may make of a loss */
    double limit;
    double median, worst;       /* errors; worst: of sample[0] */
} LsGradCheck;

/* Checks the gradients of the batch that g was fed last; run.seed is set. elements: how many;
 * below 1: two of each parameter, but no more than take some seconds. Ends early when *stop is set.
 * Samples then come worst first. false: nothing could be checked: no gradients, a loss that is not
 * finite. Close it in any case. */
bool ls_gradcheck_run(LsGradCheck *c, LsEngine *g, int64_t elements, LsProgress *progress,
                      volatile sig_atomic_t *stop, LsError *e);
void ls_gradcheck_close(LsGradCheck *c);

/* Whether all are within the limit, else an LS_EXIT_CHECK error that names the worst. Prints both,
 * with the ten worst of those that are not. */
bool ls_gradcheck_tell(const LsGradCheck *c, FILE *to, LsError *e);

#endif
