/* runtime/data/token_inputs.h -- binds rows of tokens to the inputs of a language model. */
#ifndef LS_RUNTIME_DATA_TOKEN_INPUTS_H
#define LS_RUNTIME_DATA_TOKEN_INPUTS_H

#include "runtime/data/dataset.h"

/* The inputs that a row of tokens serves. */
typedef struct LsTokenInputs {
    uint32_t ids, label;
    int64_t tokens;             /* of a row */
} LsTokenInputs;

/* False: the program does not take rows of tokens and a label for each, or they have data. */
bool ls_token_inputs(const LsDataset *d, LsTokenInputs *to);

/* The same for a program, whatever its data: tokens of a sample; 0: its samples are no rows of
 * tokens. */
int64_t ls_tokens_of_sample(const LsProgram *p);
/* What input k, which has no data yet, has of a row of tokens, where its name says so:
 * attention_mask, position_ids, the input of --segments. LS_ROW_TOKEN: it does not. */
LsRowPart ls_token_part(const LsDataset *d, uint32_t k);

#endif
