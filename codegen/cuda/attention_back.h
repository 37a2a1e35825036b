/* codegen/cuda/attention_back.h -- the gradient of attention on GPUs. */
#ifndef LS_CODEGEN_CUDA_ATTENTION_BACK_H
#define LS_CODEGEN_CUDA_ATTENTION_BACK_H

#include "codegen/cuda/attention_text.h"

/* Prints the gradient's parts and the function that launches them. */
void ls_att_emit_back(const LsAttText *t);
/* Declares the pointers to the rows' statistics, and arrays for `rows` of them. */
void ls_att_stat_arrays(const LsAttText *t, int64_t rows);
/* Loads row r's logarithm into logs and dy y into dots; dy y goes to the workspace (row_dots)
 * too. */
void ls_att_load_stats(const LsAttText *t, int64_t y_row);

#endif
