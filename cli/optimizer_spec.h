/* cli/optimizer_spec.h -- what --optimizer says: a kind, then settings. */
#ifndef LS_CLI_OPTIMIZER_SPEC_H
#define LS_CLI_OPTIMIZER_SPEC_H

#include "compiler/passes/passes.h"

#include <stdio.h>

/* Without --optimizer. */
#define LS_OPTIMIZER_USUAL "sgd:momentum=0.9"

/* "adam:beta1=0.9,lr=1e-3": *op is whole but for clipping and accumulation; *lr: the learning rate
 * it says, else the usual one of its kind. false with a sentence in why. */
bool ls_optimizer_parse(const char *text, LsOptimizerOptions *op, double *lr, char *why,
                        size_t size);
/* A line for each kind, with the settings it takes and what they are without. */
void ls_optimizer_help(FILE *to);

#endif
