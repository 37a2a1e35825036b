/* runtime/predict/token_model.h -- a program that predicts the next token, run on one row of tokens
 * at a time. */
#ifndef LS_RUNTIME_PREDICT_TOKEN_MODEL_H
#define LS_RUNTIME_PREDICT_TOKEN_MODEL_H

#include "runtime/engine/engine.h"
#include "runtime/metrics/score_rows.h"

typedef struct LsTokenModel {
    LsEngine *g;
    LsLoader *l;
    LsDataset row;              /* the inputs of one sample */
    void **input;               /* by input: its array, in the input's type */
    char *batch;
    uint32_t ids;               /* the input of tokens */
    const LsWatch *logits;
    int64_t context, vocabulary;
    int64_t at;                 /* position whose scores are read */
    double *score;              /* [vocabulary]: of an ensemble -- logs of the mean probabilities */
    bool causal;                /* padding behind the tokens was seen to change nothing */
} LsTokenModel;

/* False with a sentence: the program does not predict tokens. Close it in any case. */
bool ls_token_model_open(LsTokenModel *m, LsEngine *g, LsLoader *l, LsError *e);
void ls_token_model_close(LsTokenModel *m);
/* Sets `score` for the token behind these n, of which the last `context` count. */
bool ls_token_model_run(LsTokenModel *m, const int64_t *token, int64_t n, LsError *e);

typedef struct LsDrawHow {
    double temperature;         /* 0: the likeliest; of equal ones the first */
    int64_t top_k;              /* 0: all */
    double top_p;               /* 1: all */
    uint64_t seed;
} LsDrawHow;

typedef struct LsTokenRank { double score; int64_t token; } LsTokenRank;
/* Draws a token by these scores, the number `index` of its text: room [vocabulary]. The same seed,
 * index and scores give the same token. */
int64_t ls_token_draw(const double *score, int64_t n, const LsDrawHow *how, int64_t index,
                      LsTokenRank *room);

#endif
