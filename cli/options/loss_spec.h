/* cli/options/loss_spec.h -- parses --loss: the terms of the loss. */
#ifndef LS_CLI_OPTIONS_LOSS_SPEC_H
#define LS_CLI_OPTIONS_LOSS_SPEC_H

#include "compiler/passes/passes.h"

#include <stdio.h>

/* "ce", "huber:delta=0.5", "ce:logits,mse:box@0.5", "triplet:a,p,n@margin=1":
 * KIND[:OUTPUT]{@SETTING} by commas, where a setting is a weight or NAME=NUMBER; the only setting
 * may follow the colon. Fills the terms of *o, from `arena`. False with a sentence in why. */
bool ls_loss_parse(struct LsArena *arena, const char *text, LsLossOptions *o, char *why,
                   size_t size);
/* The word of a kind. */
const char *ls_loss_word(LsLossKind);
/* Prints a line for each kind: its settings and their defaults. */
void ls_loss_help(FILE *to);

#endif
