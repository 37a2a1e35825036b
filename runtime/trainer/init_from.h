/* runtime/trainer/init_from.h -- --init-from: initial weights by name, from safetensors files. */
#ifndef LS_RUNTIME_TRAINER_INIT_FROM_H
#define LS_RUNTIME_TRAINER_INIT_FROM_H

#include "runtime/engine/program_memory.h"

#include <stdio.h>

/* Gives parameters, weights that are not trained, statistics and averages the values of the tensors
 * of their names. Says on `report` what did not match; NULL: nowhere. strict: that is an error. No
 * tensor that matches at all is always one. */
bool ls_init_from(const LsMemory *m, const char *path, bool strict, FILE *report, LsError *e);

#endif
