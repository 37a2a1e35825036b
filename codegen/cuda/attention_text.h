/* codegen/cuda/attention_text.h -- the building blocks of the attention kernels on GPUs.
 *
 * A block holds a tile of `tile` rows of q (or of k) in shared memory and loops over tiles of the
 * other matrix. These lie transposed there, [column][tile + 1]: the odd stride spreads a column
 * over the banks. A row of threads has `group` rows of the tile; a lane has one column of scores.
 * In the text, i and j are a row and a column of the scores; i0 and j0 are the first of a tile;
 * `have` and `n` are the rows of q and of k that a tile has; g counts rows of threads. */
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
    int tile, pass;             /* rows of a block's tile; of each tile it loops over */
    int group;
    bool cores;                 /* products on tensor cores: attention_cores.c */
    bool half;                  /* these take factors of 16 bits */
    LsValueId mask;
    const char *scale;
} LsAttText;

LsAttText ls_att_text(const LsKernelText *k);

/* One part: blocks hold rows of q, or of k, and loop over tiles of the other matrix. */
typedef struct LsAttPass {      /* printers of the text */
    void (*declare)(const LsAttText *t);    /* after the operands: results, arrays */
    void (*begin)(const LsAttText *t);      /* in the loop over units, before the loop over tiles */
    void (*tile)(const LsAttText *t);       /* for each tile; a barrier follows */
    void (*end)(const LsAttText *t);        /* after the last tile; NULL: nothing */
} LsAttPass;
extern const LsAttPass ls_att_rows, ls_att_keys;        /* of the gradient: attention_back.c */
/* The parts on tensor cores (attention_cores.c). */
extern const LsAttPass ls_att_forward_cores, ls_att_rows_cores, ls_att_keys_cores;

/* Print the parts of attention, or of its gradient, and the function that launches them. In parts
 * by rows of q, a block's tile is rows i0 .. i0 + have of a head, at qh and yh (in the gradient dyh
 * and dqh too); the loop's tiles are rows j0 .. j0 + n of k, at kh and vh. Parts by rows of k have
 * dkh and dvh. */
void ls_att_emit_forward(const LsAttText *t, const LsAttPass *rows);
void ls_att_emit_gradient(const LsAttText *t, const LsAttPass *rows, const LsAttPass *keys);

/* The type of q, k, v, y and dy in the text. */
const char *ls_att_type(const LsAttText *t);
/* Elements from one row of the tensor to the next. */
int64_t ls_att_row(const LsAttText *t, LsAttentionPart part);

/* ---- the rows' statistics, in the gradient ---- */
/* Declares the pointers to the statistics, and arrays for `rows` of them. */
void ls_att_stat_arrays(const LsAttText *t, int64_t rows);
/* Declares "at": the index of the tile's row r among the rows of all heads. */
void ls_att_place_of_row(const LsAttText *t);
/* Loads row r's logarithm into logs and dy y into dots; dy y goes to the workspace (row_dots)
 * too. */
void ls_att_load_stats(const LsAttText *t, int64_t y_row);

/* ---- declarations ---- */
void ls_att_gradient(const LsAttText *t, const char *name, LsAttentionPart part);   /* dq, dk, dv */
void ls_att_local(const LsAttText *t, const char *type, const char *name, int64_t n);
/* "VAR = ARRAY + ...": row `first` of this head (of q, y and the like) or of its group (of k,
 * v). */
void ls_att_heads(const LsAttText *t, const char *type, const char *var, const char *array,
                  LsAttentionPart part, const char *first);

/* ---- tiles ---- */
/* Load rows 0 .. `have` of a head into to[r][columns], or transposed; the other rows become 0. */
void ls_att_load_rows(const LsAttText *t, const char *to, const char *from, int64_t row,
                      int64_t columns, const char *have, bool scaled);
void ls_att_load_turned(const LsAttText *t, const char *to, const char *from, int64_t row,
                        int64_t columns, const char *have);
/* var[group] = the thread's rows of `rows` times column `lane` of a transposed tile. */
void ls_att_multiply(const LsAttText *t, const char *var, const char *rows, const char *turned,
                     const char *lane, int64_t depth);
/* to[row][columns] += weights[row][tile] times a tile, whose element (i, c) is `element`. by: a
 * factor of each row, which `to` is multiplied by first. ls_att_clear sets `to` to 0. */
void ls_att_accumulate(const LsAttText *t, const char *to, int64_t row, int64_t columns,
                       const char *weights, const char *element, const char *have, const char *by);
void ls_att_clear(const LsAttText *t, const char *to, int64_t row, int64_t columns,
                  const char *have);
/* Applies the mask to the score at i, j: declares whether it counts (seen) and, if asked, whether a
 * change of q or k would change it (moves). */
void ls_att_mask_score(const LsAttText *t, bool moves);

#endif
