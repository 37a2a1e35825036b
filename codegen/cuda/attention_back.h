/* codegen/cuda/attention_back.h -- the gradient of attention on GPUs. */
#ifndef LS_CODEGEN_CUDA_ATTENTION_BACK_H
#define LS_CODEGEN_CUDA_ATTENTION_BACK_H

#include "codegen/cuda/attention_text.h"

/* The gradient's parts, and the function that launches them. */
void ls_att_emit_back(const LsAttText *t);
/* What a part of the gradient reads of the rows' statistics, and arrays for `rows` of them. */
void ls_att_stat_arrays(const LsAttText *t, int64_t rows);
/* Row r's logarithm (logs) and dy y (dots), which goes to the workspace as well (row_dots). */
void ls_att_load_stats(const LsAttText *t, int64_t y_row);

#endif
