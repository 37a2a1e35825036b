/* runtime/trainer/save_weights.h -- --save-weights: weights alone, under the names and in the
 * shapes of the ONNX file, as safetensors. */
#ifndef LS_RUNTIME_TRAINER_SAVE_WEIGHTS_H
#define LS_RUNTIME_TRAINER_SAVE_WEIGHTS_H

#include "runtime/engine/program_memory.h"

/* Floats, or doubles where the program computes in doubles. Averages take the place of parameters,
 * as in --export, unless `trained`. Of an ensemble one member; -1: all, along an axis before the
 * others. */
bool ls_save_weights(const LsMemory *m, int64_t member, bool trained, const char *path, LsError *e);

#endif
