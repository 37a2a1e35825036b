/* cli/trainer_words.h -- the defaults that compile hands on to a trainer, read as the trainer reads
 * them. Apart from the rest because runtime/base/run_error.h and compiler/ir/diag.h name exit codes alike. */
#ifndef LS_CLI_TRAINER_WORDS_H
#define LS_CLI_TRAINER_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* A learning rate. false: it is none. */
bool ls_trainer_lr(const char *text, double *lr);
/* Whether the trainer takes it as --schedule; else a sentence in why. */
bool ls_trainer_schedule(const char *text, char *why, size_t size);

#endif
