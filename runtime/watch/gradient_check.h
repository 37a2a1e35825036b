/* runtime/watch/gradient_check.h -- --check-gradients: compares a program's gradients with finite
 * differences of its own loss.
 *
 * Of a batch that runs in parts, loss and gradients are those of the whole batch. An element w of a
 * parameter is moved by h in both directions; (loss(w + h) - loss(w - h)) / 2h should be its
 * gradient. Everything else stays: the batch, the dropout masks, and the state, which is restored
 * before every run and at the end. In doubles the two agree to nine digits or so, far within
 * LS_GRAD_LIMIT. Floats round the loss so much that h must be large, and only coarse errors
 * show. */
#ifndef LS_RUNTIME_WATCH_GRADIENT_CHECK_H
#define LS_RUNTIME_WATCH_GRADIENT_CHECK_H

#include "runtime/watch/dump_values.h"
#include "runtime/watch/progress.h"

#include <signal.h>
#include <stdio.h>

/* Largest error of an element, relative to the largest gradient of its parameter (gradient_check.c:
 * judge). The second limit is for f32. */
#define LS_GRAD_LIMIT 1e-4
#define LS_GRAD_LIMIT_F32 1e-1

typedef struct LsGradSample {   /* one element of one parameter */
    uint32_t watch;             /* of the training phase */
    const LsStateTensor *of;
    int64_t element;            /* in ONNX's order */
    double gradient, difference;
    double error;               /* INFINITY: the gradient or the difference is not finite */
} LsGradSample;

/* A batch of several parts: `feed` gives the engine part k, from 0 to n - 1, and sets what its
 * kernels read of it. */
typedef struct LsGradParts {
    int64_t n;
    bool (*feed)(void *of, int64_t k, LsError *e);
    void *of;
} LsGradParts;

typedef struct LsGradCheck {
    LsEngine *g;
    LsGradParts parts;
    LsDump dump;                /* the gradients of a part */
    double *whole;              /* those of the batch; by watch from `at` on, in the order of the
                                 * dump */
    int64_t *at;
    char *saved;                /* the state */
    LsGradSample *sample; int64_t nsample;
    uint32_t *watch;            /* of the training phase, by parameter: parameters with gradients */
    uint32_t nparam;
    uint32_t nstopped;          /* parameters that are left out, as LsProgram.stopped says */
    double *most;               /* by watch: the largest absolute gradient */
    double all;                 /* the largest over all watches */
    double loss, noise;         /* noise: bound on the rounding error of a loss */
    double limit;
    double median, worst;       /* errors; worst: of sample[0] */
} LsGradCheck;

/* Checks the gradients of a batch; run.seed is set. parts: NULL: it is the one that g was fed last.
 * elements: how many; below 1: two of each parameter, but no more than some seconds allow. Ends
 * early when *stop is set. Sorts the samples by error, worst first. False: nothing could be
 * checked, as there are no gradients or the loss is not finite. Close the check in any case. */
bool ls_gradcheck_run(LsGradCheck *c, LsEngine *g, const LsGradParts *parts, int64_t elements,
                      LsProgress *progress, volatile sig_atomic_t *stop, LsError *e);
void ls_gradcheck_close(LsGradCheck *c);

/* Whether all errors are within the limit, else an LS_EXIT_CHECK error that names the worst. Prints
 * the verdict, with the ten worst elements beyond the limit. */
bool ls_gradcheck_tell(const LsGradCheck *c, FILE *to, LsError *e);

#endif
