/* runtime/predict/predict_run.h -- --predict: the evaluation form over a whole data set. */
#ifndef LS_RUNTIME_PREDICT_PREDICT_RUN_H
#define LS_RUNTIME_PREDICT_PREDICT_RUN_H

#include "runtime/predict/predict_file.h"

#include <signal.h>

typedef struct LsPredictOptions {
    const char *to, *as, *outputs;      /* --predict, --predict-as, --predict-outputs */
} LsPredictOptions;

/* Samples in the order of the data; the last batch gives only its own. *stop ends it: then nothing
 * is written, and *done has the samples so far. Ends the loader's pass. */
bool ls_predict(LsEngine *g, LsLoader *l, const LsDataset *data, const LsPredictOptions *o,
                const volatile sig_atomic_t *stop, int64_t *done, LsError *e);

#endif
