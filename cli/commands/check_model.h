/* cli/commands/check_model.h -- lowerset check MODEL.onnx. */
#ifndef LS_CLI_COMMANDS_CHECK_MODEL_H
#define LS_CLI_COMMANDS_CHECK_MODEL_H

#include "cli/options/options.h"

/* Builds programs of the model in a temporary folder, runs a few steps of each, and prints a row
 * for every check: the plan, gradients against finite differences of the loss, the bits under a
 * budget against those without, float and GPU results against doubles, a reference. 0;
 * LS_EXIT_CHECK when a check fails; another exit code, after diagnostics, when a check could not be
 * made. */
int ls_check_model(const LsOptions *o);

#endif
