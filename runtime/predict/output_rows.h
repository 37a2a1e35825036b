/* runtime/predict/output_rows.h -- the outputs of the evaluation form, sample by sample, in ONNX's
 * order. Of an ensemble an output of reals is the mean of its members'. */
#ifndef LS_RUNTIME_PREDICT_OUTPUT_ROWS_H
#define LS_RUNTIME_PREDICT_OUTPUT_ROWS_H

#include "runtime/watch/dump_values.h"

typedef struct LsOutput {
    uint32_t watch;             /* of the phase eval */
    const char *name;
    LsTensor t;                 /* of one member and a whole batch, reals widened */
    LsElement type;             /* of the values that are read */
    int64_t rows;               /* of axis 0 for each sample */
    int64_t count, bytes;       /* elements of a sample, and their bytes in all */
    bool scores;                /* class scores of the loss (LsLossTarget.classes) */
} LsOutput;

typedef struct LsOutputs {
    LsDump seen;                /* values of the last batch */
    LsOutput *output; int n;
    int64_t bytes;              /* of the largest sample */
} LsOutputs;

/* names: some of the outputs, by commas; NULL: all that have an axis of samples. */
bool ls_outputs_open(LsOutputs *o, const LsEngine *g, const char *names, LsError *e);
void ls_outputs_close(LsOutputs *o);
/* Output k of a sample of the last batch, row-major. */
void ls_output_read(const LsOutputs *o, int k, int64_t sample, void *to);
/* The same as reals. */
void ls_output_reals(const LsOutputs *o, int k, int64_t sample, double *to);
/* Class scores of a sample: their classes, positions, and the distance of one class to the next and
 * of one position's first class to the beginning, in elements of a row-major sample. */
typedef struct LsScoreShape { int64_t classes, positions, step; } LsScoreShape;
LsScoreShape ls_output_scores(const LsOutputs *o, int k);
int64_t ls_score_place(const LsScoreShape *s, int64_t position);
/* Probabilities [positions][classes] of the sample: of an ensemble the mean of the members'. */
void ls_output_probabilities(const LsOutputs *o, int k, int64_t sample, double *to);
/* The shape of one sample: rank and dim of `t` without axis 0, unless it has several rows. Returns
 * the rank. */
int ls_output_dims(const LsOutput *o, int64_t dim[LS_TENSOR_RANK]);

#endif
