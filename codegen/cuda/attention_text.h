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

LsGrid ls_att_grid(const LsAttText *t, const char *suffix, int64_t heads, int64_t rows);
/* Distance of the rows of one of the tensors. */
int64_t ls_att_row(const LsAttText *t, LsAttentionPart part);

/* ---- declarations ---- */
void ls_att_operands(const LsAttText *t);       /* q, k, v, mask */
void ls_att_gradient(const LsAttText *t, const char *name, LsAttentionPart part);   /* dq, dk, dv */
void ls_att_local(const LsAttText *t, const char *type, const char *name, int64_t n);
/* The loop over units: where the tile begins, the head (or the group) and the sample. */
void ls_att_each_unit(const LsAttText *t, const char *first, int64_t down, const char *head,
                      int64_t heads);
/* The same over tiles of q's rows: i0 .. i0 + have of a head, and the group it reads k and v of;
 * where they begin: qh and yh, which is read in the gradient (back), and there dyh and dqh. */
void ls_att_each_query_tile(const LsAttText *t, bool back);
/* The same over tiles of k's rows: j0 .. j0 + n of a group; where they begin: kh, vh, dkh, dvh. */
void ls_att_each_key_tile(const LsAttText *t);
/* The loop over tiles of k, kh and vh, that rows i0 .. i0 + have see something of. */
void ls_att_tile_columns(const LsAttText *t);
/* The loops over the group's heads and tiles of q's rows that see something of k's rows from j0. */
void ls_att_each_tile_of_rows(const LsAttText *t);
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
