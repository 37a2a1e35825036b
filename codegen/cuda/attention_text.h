/* codegen/cuda/attention_text.h -- what the parts of attention on GPUs are put together from.
 *
 * A block has `tile` rows of q, or of k, in shared memory, and passes over tiles of the other,
 * which lie turned there: [column][tile + 1], the odd distance spreading a column over the banks. A
 * row of threads has `group` rows of the tile, a lane one column of scores. In the text, i and j
 * are a row and a column of the scores, i0 and j0 where tiles begin, `have` and `n` how many rows
 * of q and of k a tile has, g counts rows of threads. */
#ifndef LS_CODEGEN_CUDA_ATTENTION_TEXT_H
#define LS_CODEGEN_CUDA_ATTENTION_TEXT_H

#include "codegen/kernels/loop_nest.h"
#include "compiler/ops/attention_shape.h"

typedef struct LsAttText {
    const LsKernelText *k;
    LsEmit *e;
    const LsAttentionAttr *at;
    LsAttentionSize s;
    bool grad;
    int tile, pass;             /* rows of a block's tile; of those that pass by */
    int group;
    bool cores;                 /* products on tensor cores: attention_cores.c */
    LsValueId mask;
    const char *scale;
} LsAttText;

LsAttText ls_att_text(const LsKernelText *k);

/* A part: blocks have rows of q, or of k, and tiles of the other pass by. */
typedef struct LsAttPass {      /* what is printed */
    void (*declare)(const LsAttText *t);    /* behind the operands: results, arrays */
    void (*begin)(const LsAttText *t);      /* in the loop over units, before the tiles that pass by */
    void (*tile)(const LsAttText *t);       /* for each of these; a barrier stands behind it */
    void (*end)(const LsAttText *t);        /* after the last; NULL: nothing */
} LsAttPass;
extern const LsAttPass ls_att_rows, ls_att_keys;        /* of the gradient: attention_back.c */
/* On tensor cores (attention_cores.c). */
extern const LsAttPass ls_att_forward_cores, ls_att_rows_cores, ls_att_keys_cores;

/* Attention, and its gradient: the parts, and the function that launches them. Where blocks have rows of
 * q, a tile's are i0 .. i0 + have of a head, at qh and yh, in the gradient at dyh and dqh as well, and
 * those of k that pass by j0 .. j0 + n, at kh and vh. Where they have rows of k, dkh and dvh are there. */
void ls_att_emit_forward(const LsAttText *t, const LsAttPass *rows);
void ls_att_emit_gradient(const LsAttText *t, const LsAttPass *rows, const LsAttPass *keys);

/* Distance of the rows of one of the tensors. */
int64_t ls_att_row(const LsAttText *t, LsAttentionPart part);

/* ---- statistics of rows, of the gradient ---- */
/* What a part reads of them, and arrays for `rows` of them. */
void ls_att_stat_arrays(const LsAttText *t, int64_t rows);
/* "at": the place of row r of a tile's, of this head. */
void ls_att_place_of_row(const LsAttText *t);
/* Row r's logarithm (logs) and dy y (dots), which goes to the workspace as well (row_dots). */
void ls_att_load_stats(const LsAttText *t, int64_t y_row);

/* ---- declarations ---- */
void ls_att_gradient(const LsAttText *t, const char *name, LsAttentionPart part);   /* dq, dk, dv */
void ls_att_local(const LsAttText *t, const char *type, const char *name, int64_t n);
/* "VAR = ARRAY + ...": row `first` of this head of q, y and the like, or of this group of k, v. */
void ls_att_heads(const LsAttText *t, const char *type, const char *var, const char *array,
                  LsAttentionPart part, const char *first);

/* ---- tiles ---- */
/* Rows 0 .. `have` of a head to to[r][columns], or turned; the others are 0. */
void ls_att_load_rows(const LsAttText *t, const char *to, const char *from, int64_t row,
                      int64_t columns, const char *have, bool scaled);
void ls_att_load_turned(const LsAttText *t, const char *to, const char *from, int64_t row,
                        int64_t columns, const char *have);
/* var[group] = the thread's rows of `rows` times the column `lane` of a turned tile. */
void ls_att_multiply(const LsAttText *t, const char *var, const char *rows, const char *turned,
                     const char *lane, int64_t depth);
/* to[row][columns] += weights[row][tile] times a tile, whose element (i, c) is `element`; by: first
 * times this factor of each row. ls_att_clear begins it. */
void ls_att_accumulate(const LsAttText *t, const char *to, int64_t row, int64_t columns,
                       const char *weights, const char *element, const char *have, const char *by);
void ls_att_clear(const LsAttText *t, const char *to, int64_t row, int64_t columns,
                  const char *have);
/* From i, j and score: whether that score counts (seen), what the mask makes of it, and, if asked,
 * whether a change of q or k would change it (moves). */
void ls_att_mask_score(const LsAttText *t, bool moves);

#endif
