/* runtime/update/learning_rate.h -- the learning rate schedule. */
#ifndef LS_RUNTIME_UPDATE_LEARNING_RATE_H
#define LS_RUNTIME_UPDATE_LEARNING_RATE_H

#include "runtime/base/run_error.h"

#include <stdint.h>

/* LS_RATE_RISING: of --find-rate, by the same factor from one update to the next, from lr to lr *
 * gamma. It has no word in --schedule. */
typedef enum {
    LS_RATE_CONSTANT,
    LS_RATE_STEP,
    LS_RATE_LINEAR,
    LS_RATE_COSINE,
    LS_RATE_RISING
} LsRateKind;
typedef struct LsRate {
    LsRateKind kind;
    double lr, gamma, least;    /* least: of linear and cosine, as a fraction of lr */
    int64_t every, warmup;      /* updates; every: of rising, those before the first one */
    int64_t total;              /* updates of the whole run */
} LsRate;

/* Whether a number is a learning rate: at least 0, and finite as a float. */
bool ls_rate_is_lr(double lr);
bool ls_rate_parse_lr(const char *text, double *lr);
/* Parses a schedule: constant, step:every=N,gamma=F, linear, cosine, each with warmup=N, the last
 * two with min=F. */
bool ls_rate_parse(LsRate *r, const char *text, double lr, int64_t total, LsError *e);
/* Rate of update `update`, from 1. During warm-up it grows linearly from lr / warmup to lr. */
double ls_rate_at(const LsRate *r, int64_t update);

#endif
