/* cli/precision_advice.h */
#ifndef LS_CLI_PRECISION_ADVICE_H
#define LS_CLI_PRECISION_ADVICE_H

#include "cli/job.h"

/* For a planned job that computes in 16 bits: plans the same in f32 and prints both arenas and steps side by side, and
 * whether 16 bits pay. Nothing for other jobs. */
void ls_precision_advice(const LsJob *job);

#endif
