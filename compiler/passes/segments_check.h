/* compiler/passes/segments_check.h -- what a model does with the tokens of a row, which --segments
 * lets several samples share. */
#ifndef LS_COMPILER_PASSES_SEGMENTS_CHECK_H
#define LS_COMPILER_PASSES_SEGMENTS_CHECK_H

#include "compiler/per_sample/batch_mixing.h"

typedef struct LsTokens {
    LsCtx *cx;
    const LsGraph *g;
    int64_t samples, tokens;    /* [samples, tokens]: the shape of the numbers */
    LsSamples by_sample, by_token;
    bool *need;                 /* by node: the loss is computed by it */
    bool *masks;                /* by value: only masks of attention are computed by it */
    bool *random;               /* by value: of random numbers, and of parameters and constants */
} LsTokens;

/* requires the forward part and its loss. Follows the tokens; false after the refusal of a model
 * that combines them otherwise than by attention, or whose loss is not one of tokens. */
bool ls_tokens_find(LsTokens *, LsCtx *, const LsGraph *, int64_t tokens);

/* Attention over the tokens of a row. */
bool ls_tokens_attend(const LsTokens *, LsNodeId n);

/* Operand k of node n is a table with a row for each position, which the node reads for each token:
 * its axis of positions, and the results' axes of tokens and of samples (-1: there is one sample).
 * The node is refused by ls_tokens_find where the table cannot be read by position. */
typedef struct LsTable { int axis, token, sample; } LsTable;
bool ls_tokens_table(const LsTokens *, LsNodeId n, int k, LsTable *);

#endif
