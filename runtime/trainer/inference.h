/* runtime/trainer/inference.h -- runs that train nothing and predict: --predict, --generate,
 * --serve-stdin. */
#ifndef LS_RUNTIME_TRAINER_INFERENCE_H
#define LS_RUNTIME_TRAINER_INFERENCE_H

#include "runtime/trainer/trainer_state.h"

bool ls_infer(LsTrainer *t, LsError *e);

#endif
