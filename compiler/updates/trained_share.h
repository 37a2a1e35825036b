/* compiler/updates/trained_share.h -- how much of a model its updates change. */
#ifndef LS_COMPILER_UPDATES_TRAINED_SHARE_H
#define LS_COMPILER_UPDATES_TRAINED_SHARE_H

#include "compiler/ir/graph.h"

/* Tensors that some node updates, of all weights of the model, trained or frozen; constants and
 * running statistics are none. A tensor that several operators read counts once, and of an ensemble
 * one member counts. */
typedef struct LsTrainedShare {
    int64_t tensors, of_tensors, elements, of_elements;
} LsTrainedShare;

LsTrainedShare ls_trained_share(const LsGraph *g);      /* of a training graph with its updates */
/* "trains 28 of 49 tensors, 16,384 of 123,200 elements" */
const char *ls_trained_share_text(const LsGraph *g);

#endif
