/* runtime/data/token_rows.h -- samples of tokens in rows of the model's context, from JSON lines:
 * one sample in a row, or as many as fit. */
#ifndef LS_RUNTIME_DATA_TOKEN_ROWS_H
#define LS_RUNTIME_DATA_TOKEN_ROWS_H

#include "runtime/base/run_error.h"

#include <stdbool.h>
#include <stdint.h>

/* What an input has of each token of a row. */
typedef enum {
    LS_ROW_TOKEN,
    LS_ROW_LABEL,               /* the label of the next token; of the last one of a sample none */
    LS_ROW_SEGMENT,             /* the sample's number within its row */
    LS_ROW_PLACE,               /* the token's within its sample */
    LS_ROW_SEEN,                /* 1; behind the samples 0 */
} LsRowPart;

typedef struct LsTokenSample {
    int64_t from, count;        /* tokens */
    int64_t line;               /* of the file, from 1 */
} LsTokenSample;

/* Behind the samples of a row: tokens 0 without a label, of a segment of their own. */
typedef struct LsTokenRows {
    int32_t *token, *label;     /* of all samples; label: of the token itself */
    int64_t ntoken, tokens_cap;
    LsTokenSample *sample;      /* in the file's order, then in that of rows */
    int64_t nsample, samples_cap;
    int64_t *first;             /* of each row, and behind the last: a sample */
    int64_t rows;
    int64_t length;             /* tokens of a row */
    int64_t none;               /* the label that does not count */
} LsTokenRows;

bool ls_token_rows_add(LsTokenRows *, int32_t token, int32_t label);    /* to the last sample; false
                                                                         * without memory */
bool ls_token_rows_begin(LsTokenRows *, int64_t line);                  /* a new sample */
/* Gives each sample, of at most `length` tokens, a row; `pack`: the first one that has room for it.
 * False without memory. */
bool ls_token_rows_place(LsTokenRows *, int64_t length, bool pack);
void ls_token_rows_free(LsTokenRows *);

int64_t ls_token_row_value(const LsTokenRows *, LsRowPart, int64_t row, int64_t i);
/* The line of the sample that place i of a row belongs to; 0: to none. */
int64_t ls_token_row_line(const LsTokenRows *, int64_t row, int64_t i);

#endif
