/* cli/trial.h -- runs training programs that were just built, to see what they take. */
#ifndef LS_CLI_TRIAL_H
#define LS_CLI_TRIAL_H

#include "compiler/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct LsTrial {
    const char *of;             /* for messages: the model */
    const char *program;        /* path */
    const char *log, *profile;  /* files that it writes; NULL: not this one */
    const char *out;            /* takes its standard output; NULL: nobody does */
    int64_t steps;
    int threads;
    bool measure;               /* the bytes that it touches */
} LsTrial;

/* Trains on made-up data, at a rate of 0. 0, or the exit code after a message. */
int ls_trial_run(LsArena *arena, const LsTrial *t);

/* The median of the times between its steps, ns, out of a log; 0 when there are none. */
double ls_trial_step_ns(LsArena *arena, const char *log);

/* The highest byte of its arena that was written to, plus 1, out of the output of one with
 * `measure`; -1 when it says nothing. */
int64_t ls_trial_touched(const char *out);

/* A new folder for files that nobody keeps, in $TMPDIR or /tmp; NULL after a message. */
const char *ls_trial_folder(LsArena *arena);

#endif
