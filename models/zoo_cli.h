/* models/zoo_cli.h -- lowerset model: options in, one ONNX file out. */
#ifndef LS_MODELS_ZOO_CLI_H
#define LS_MODELS_ZOO_CLI_H

#include <stdio.h>

#include "models/zoo.h"

/* `lowerset model --list` and `lowerset model NAME [--option=value ...] -o FILE.onnx`; argv is
 * main's, argv[1] "model". Returns the exit code: 0 done, 1 not written, 2 usage. */
int ls_model_main(int argc, char **argv);
/* Lines for people: one per model; one per option of a model. */
void ls_model_list(FILE *to);
void ls_model_help(FILE *to, const LsModel *m);
/* "model --option" lines. */
void ls_model_table(FILE *to);

#endif
