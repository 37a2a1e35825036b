/* runtime/watch/step_values.h -- what a log has of an update. */
#ifndef LS_RUNTIME_WATCH_STEP_VALUES_H
#define LS_RUNTIME_WATCH_STEP_VALUES_H

#include <stdint.h>

typedef struct LsStepValues {
    int64_t update, epoch;      /* from 1 */
    double loss, rate;
    double grad_norm;           /* < 0: it is not known */
    double samples, tokens;     /* per second; 0: not known */
} LsStepValues;

#endif
