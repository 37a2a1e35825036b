/* cli/trial.h -- runs training programs that were just built, to see what they take. */
#ifndef LS_CLI_TRIAL_H
#define LS_CLI_TRIAL_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct LsTrial {
    const char *of;             /* for messages: the model */
    const char *program;        /* path */
    const char *log, *profile;  /* files that it writes; NULL: not this one */
    const char *out;            /* takes its standard output; NULL: nobody does */
    const char *err;            /* takes its messages; NULL: they are told */
    const char *data;           /* NULL: made up */
    const char *lr;             /* NULL: 0 */
    const char *dump;           /* takes tensors of the last step; NULL: nobody does */
    const char *gradients;      /* an option that has it check its gradients; NULL: it trains */
    int64_t steps;
    int threads;
    bool measure;               /* the bytes that it touches */
    bool hand_on;               /* its exit code is the result, as it told itself what is wrong */
} LsTrial;

/* Trains, on the data in the order of their file. 0, or the exit code after a message. */
int ls_trial_run(LsArena *arena, const LsTrial *t);

/* The median of the times between its steps, ns, out of a log; 0 when there are none. */
double ls_trial_step_ns(LsArena *arena, const char *log);

/* The last number, or string, of that key in a file of JSON lines, such as its log or its output;
 * `otherwise`, or "", when there is none. Of its output with `measure`, "touched" is the highest
 * byte of its arena that was written to, plus 1. */
double ls_trial_number(const char *file, const char *key, double otherwise);
const char *ls_trial_text(LsArena *arena, const char *file, const char *key);

/* A new folder for files that nobody keeps, in $TMPDIR or /tmp; NULL after a message. */
const char *ls_trial_folder(LsArena *arena);

#endif
