/* runtime/predict/generate.h -- --generate: text or tokens that follow a prompt. */
#ifndef LS_RUNTIME_PREDICT_GENERATE_H
#define LS_RUNTIME_PREDICT_GENERATE_H

#include "runtime/predict/token_model.h"

#include <signal.h>

typedef struct LsGenerator {
    LsTokenModel model;
    LsAlphabet alphabet;        /* empty: tokens are numbers */
    int16_t number[256];        /* of each character; -1: none */
    unsigned char character[256];       /* of each number */
    LsDrawHow how;
    int64_t count;              /* tokens to add */
    int64_t *token;             /* the prompt, and what was added: */
    int64_t n, room;
    LsTokenRank *rank;
} LsGenerator;

bool ls_generator_open(LsGenerator *x, LsEngine *g, LsLoader *l, const LsAlphabet *a,
                       const LsDrawHow *how, int64_t count, LsError *e);
void ls_generator_close(LsGenerator *x);
/* Begins anew with this text: characters, or numbers with blanks and commas between. */
bool ls_generator_prompt(LsGenerator *x, const char *text, size_t n, LsError *e);
/* Begins anew, without a token; adds one. */
void ls_generator_begin(LsGenerator *x);
bool ls_generator_add(LsGenerator *x, int64_t token, LsError *e);
/* Draws the token that follows all these, the number `index` from 0 on, and appends it. */
bool ls_generator_next(LsGenerator *x, int64_t index, int64_t *token, LsError *e);

#endif
