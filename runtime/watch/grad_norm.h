/* runtime/watch/grad_norm.h -- --log-grad-norm: the norm of all gradients of an update together,
 * before they are clipped. */
#ifndef LS_RUNTIME_WATCH_GRAD_NORM_H
#define LS_RUNTIME_WATCH_GRAD_NORM_H

#include "runtime/engine/engine.h"

typedef struct LsGradNorm {
    const LsEngine *g;
    const LsPhaseTable *t;      /* whose steps run */
    double squares;             /* of this run so far */
} LsGradNorm;

/* For a run of these steps. They must be those of a whole update, with all gradients: see
 * ls_grad_norm_fits. */
LsHook ls_grad_norm_hook(LsGradNorm *n, const LsEngine *g, const LsPhaseTable *t);
/* Of the last run: of the gradients of the loss itself, whatever its scale. */
double ls_grad_norm(const LsGradNorm *n);
/* Whether an update's gradients are there while its steps run; else an LS_EXIT_USAGE error. */
bool ls_grad_norm_fits(const LsProgram *p, LsError *e);

#endif
