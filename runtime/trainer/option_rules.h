/* runtime/trainer/option_rules.h -- the parts of trainer_options.c: the table of options, and what
 * goes together. */
#ifndef LS_RUNTIME_TRAINER_OPTION_RULES_H
#define LS_RUNTIME_TRAINER_OPTION_RULES_H

#include "runtime/base/option_table.h"
#include "runtime/trainer/trainer_options.h"

extern const LsOptionTable ls_trainer_table;    /* option_rows.c */

/* The path of row k, if it is an output option that was given; else NULL. */
const char *ls_trainer_output(const LsTrainerOptions *o, int k);
/* Whether the options go together and with the program; else an LS_EXIT_USAGE error. */
bool ls_trainer_options_fit(const LsTrainerOptions *o, const LsProgram *p, LsError *e);
/* Sets export_type of --export-precision, which the model must be able to cast. */
bool ls_trainer_export_type(LsTrainerOptions *o, const LsProgram *p, LsError *e);

#endif
