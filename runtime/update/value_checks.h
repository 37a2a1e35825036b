/* runtime/update/value_checks.h -- the first value of a step that is not finite:
 * --check-numerics. */
#ifndef LS_RUNTIME_UPDATE_VALUE_CHECKS_H
#define LS_RUNTIME_UPDATE_VALUE_CHECKS_H

#include "runtime/engine/engine.h"

/* An infinity may be intended (a mask added to scores), so it is reported only when the step ends
 * badly. A NaN is never intended. */
typedef struct LsFound {
    bool there;
    uint32_t step, result;
    int64_t element;
    double value;
} LsFound;
typedef struct LsCheck {
    const LsEngine *g;
    const LsPhaseTable *t;
    LsFound nan, inf;           /* the first of this step */
} LsCheck;

void ls_check_start(LsCheck *c, const LsEngine *g, const LsPhaseTable *t);
LsHook ls_check_hook(LsCheck *c);
/* After a step with this loss: true when no value is bad; else an LS_EXIT_DIVERGED error that names
 * the first step that made one. */
bool ls_check_end(const LsCheck *c, double loss, int64_t update, LsError *e);
/* True when the hook saw neither a NaN nor an infinity; else such an error, whatever the loss
 * is. */
bool ls_check_clean(const LsCheck *c, int64_t update, LsError *e);

#endif
