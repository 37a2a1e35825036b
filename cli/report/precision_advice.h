/* cli/report/precision_advice.h -- what 16 bits bring: the plan beside the one of the same model in
 * f32. */
#ifndef LS_CLI_REPORT_PRECISION_ADVICE_H
#define LS_CLI_REPORT_PRECISION_ADVICE_H

#include "cli/job/job.h"

/* What a job's plan takes. */
typedef struct LsPrecisionPlan {
    const char *type;
    bool planned;
    int64_t arena, state;
    double step_ns;
} LsPrecisionPlan;

typedef enum { LS_PAYS_BOTH, LS_PAYS_TIME, LS_PAYS_MEMORY, LS_PAYS_NOTHING } LsPays;
/* In what 16 bits pay: a step takes less time; the arena is smaller by a twentieth at least. */
LsPays ls_precision_pays(const LsPrecisionPlan *narrow, const LsPrecisionPlan *wide);

/* For a planned job that computes in 16 bits: plans the same in f32. False for other jobs. Strings
 * are in the job's arena. */
bool ls_precision_compare(const LsJob *job, LsPrecisionPlan *narrow, LsPrecisionPlan *wide);
/* Prints both arenas and steps side by side, and whether 16 bits pay. Nothing for other jobs. */
void ls_precision_advice(const LsJob *job);
/* The same as JSON in the job's arena; NULL for other jobs. */
const char *ls_precision_json(const LsJob *job);

#endif
