/* cli/options/trainer_words.h -- the defaults that compile passes to a trainer, parsed as the
 * trainer parses them. A file of its own because runtime/base/run_error.h and compiler/ir/diag.h
 * name exit codes alike. */
#ifndef LS_CLI_OPTIONS_TRAINER_WORDS_H
#define LS_CLI_OPTIONS_TRAINER_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* A learning rate; false: the text is not one. */
bool ls_trainer_lr(const char *text, double *lr);
/* Whether the trainer accepts the text as --schedule; else a sentence in why. */
bool ls_trainer_schedule(const char *text, char *why, size_t size);

#endif
