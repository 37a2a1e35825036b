/* runtime/trainer/export_trained.h -- --export: the evaluation form of the model with the trained weights. */
#ifndef LS_RUNTIME_TRAINER_EXPORT_TRAINED_H
#define LS_RUNTIME_TRAINER_EXPORT_TRAINED_H

#include "runtime/data/alphabet.h"
#include "runtime/engine/program_memory.h"

/* alphabet: of the training text, written to the file's metadata; may be empty. */
bool ls_export(const LsMemory *m, const LsAlphabet *alphabet, const char *path, LsError *e);

#endif
