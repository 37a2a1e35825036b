/* runtime/watch/json_log.h -- --log: one JSON object per line. */
#ifndef LS_RUNTIME_WATCH_JSON_LOG_H
#define LS_RUNTIME_WATCH_JSON_LOG_H

#include "runtime/base/run_error.h"
#include "runtime/ls_program.h"
#include "runtime/watch/step_values.h"

#include <stdio.h>

typedef struct LsLog {
    FILE *to;                   /* NULL: no log */
    int64_t start_ns, flushed_ns;
    int digits;
    const double *losses; int64_t nlosses;      /* of an ensemble's members, in every line with a
                                                 * loss; none: 0 */
    char buf[1 << 16];
} LsLog;

/* Appends when `append` (a resumed run), else starts the file with a line about the program. */
bool ls_log_open(LsLog *l, const char *path, bool append, const LsProgram *p, LsError *e);
void ls_log_step(LsLog *l, const LsStepValues *v);
/* The loss scale before and after a step; skipped: the step made no update. */
void ls_log_scale(LsLog *l, int64_t update, int64_t epoch, double was, double is, bool skipped);
/* What all updates so far guarantee (runtime/privacy/privacy_ledger.h). */
void ls_log_privacy(LsLog *l, int64_t update, int64_t epoch, double epsilon, double delta);
/* Results of an evaluation besides its loss and accuracy. */
typedef struct LsLogResults { const char *const *name; const double *value; int n; } LsLogResults;
/* accuracy < 0: none. */
void ls_log_eval(LsLog *l, int64_t update, int64_t epoch, double loss, double accuracy,
                 LsLogResults further);
/* Logs the result of --check-gradients; name and element: the worst, "": none. */
void ls_log_gradients(LsLog *l, int64_t elements, uint32_t parameters, uint32_t stopped,
                      double median, double worst, double limit, const char *name, int64_t element);
bool ls_log_close(LsLog *l, const char *path, LsError *e);

#endif
