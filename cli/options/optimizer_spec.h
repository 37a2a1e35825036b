/* cli/options/optimizer_spec.h -- parses --optimizer: a kind, then settings. */
#ifndef LS_CLI_OPTIONS_OPTIMIZER_SPEC_H
#define LS_CLI_OPTIONS_OPTIMIZER_SPEC_H

#include "compiler/passes/passes.h"

#include <stdio.h>

/* The optimizer without --optimizer. */
#define LS_OPTIMIZER_USUAL "sgd:momentum=0.9"

/* "adam:beta1=0.9,lr=1e-3": fills *op except clipping and accumulation. *lr: the learning rate in
 * the text, else the usual one of its kind. False with a sentence in why. */
bool ls_optimizer_parse(const char *text, LsOptimizerOptions *op, double *lr, char *why,
                        size_t size);
/* "lion: 4 bytes of state per parameter (m)", counted in the graph. real_bytes: of an element. */
const char *ls_optimizer_state_text(const LsGraph *g, LsOptimizerKind kind, int real_bytes);
/* Prints lines for each kind: its settings and their defaults, its formula. */
void ls_optimizer_help(FILE *to);

#endif
