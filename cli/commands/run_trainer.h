/* cli/commands/run_trainer.h -- runs newly built training programs to measure them. */
#ifndef LS_CLI_COMMANDS_RUN_TRAINER_H
#define LS_CLI_COMMANDS_RUN_TRAINER_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct LsTrial {
    const char *of;             /* for messages: the model */
    const char *program;        /* path */
    const char *log, *profile;  /* files that it writes; NULL: not written */
    const char *out;            /* receives its standard output; NULL: discarded */
    const char *err;            /* receives its messages; NULL: they are printed */
    const char *data;           /* NULL: synthetic */
    const char *lr;             /* NULL: 0 */
    const char *dump;           /* receives tensors of the last step; NULL: no dump */
    const char *gradients;      /* an option that makes it check its gradients; NULL: it trains */
    int64_t steps;
    int threads;
    bool draws;                 /* private training: it draws its samples */
    bool measure;               /* measure the bytes that it touches */
    bool hand_on;               /* its exit code is the result, as it has printed its own message */
} LsTrial;

/* Trains, on the data in file order if it draws none. 0, or the exit code after a message. */
int ls_trial_run(LsArena *arena, const LsTrial *t);

/* The median time between steps, ns, from a log; 0: the log has no steps. */
double ls_trial_step_ns(LsArena *arena, const char *log);

/* The last number, or string, under that key in a file of JSON lines, such as a program's log or
 * output; `otherwise`, or "", when the key is missing. In the output with `measure`, "touched" is
 * the highest byte of the arena that was written, plus 1. */
double ls_trial_number(const char *file, const char *key, double otherwise);
const char *ls_trial_text(LsArena *arena, const char *file, const char *key);

#endif
