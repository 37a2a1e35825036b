/* codegen/cuda/attention_text.c */
#include "codegen/cuda/attention_text.h"
#include "runtime/cuda_kernels/ls_cuda_sizes.h"

#include <inttypes.h>

enum {
    SHARED = 46 << 10, /* bytes of shared memory per block, out of 48 KiB */
    GROUP = 8,
    WARPS = 4,          /* of a block that uses tensor cores */
    PASS = 32,
};

/* Rows of a tile: a power of two for which the larger part's arrays fit in shared memory. */
static int tile_of(const LsAttentionSize *s, int real_bytes)
{
    int64_t deep = s->depth + s->width;
    int tile = 32;
    while (tile > 1 && ((2 * tile + 1) * deep + 2 * tile * tile + 4 * tile) * real_bytes > SHARED)
        tile /= 2;
    return tile;
}

static bool on_cores(const LsAttText *t)
{
    const LsTarget *target = t->k->target;
    return ((target->tf32 && target->real_bytes == 4) || ls_is_16(ls_operand_type(t->k, 0)))
        && ls_attention_fits_cores(t->k->g, t->k->n);
}

LsAttText ls_att_text(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    LsAttText t = {.k = k,
                   .e = k->e,
                   .at = &node->attr.attention,
                   .s = ls_attention_size(k->g, k->n),
                   .grad = ls_attention_is_back(k->g, k->n)};
    t.cores = on_cores(&t);
    t.half = t.cores && ls_is_16(ls_operand_type(k, 0));
    t.tile = t.cores ? LS_MMA_ROWS * WARPS : tile_of(&t.s, k->target->real_bytes);
    t.pass = t.cores ? PASS : t.tile;
    t.group = t.tile < GROUP ? t.tile : GROUP;
    t.mask = ls_in(k->g, k->n, ls_attention_mask(k->g, k->n));
    t.scale = ls_literal(k->g->arena, LS_REAL, t.at->scale, 0, k->target->real_bytes);
    return t;
}

static LsGrid grid_of(const LsAttText *t, const char *suffix, int64_t heads, int64_t rows)
{
    return (LsGrid){suffix, t->s.batch * heads * ls_ceil_div(rows, t->tile),
                    t->cores ? 32 : t->tile, t->cores ? WARPS : t->tile / t->group};
}

int64_t ls_att_row(const LsAttText *t, LsAttentionPart part)
{
    return ls_attention_heads(t->k->g, t->k->n, part).row;
}

void ls_att_heads(const LsAttText *t, const char *type, const char *var, const char *array,
                  LsAttentionPart part, const char *first)
{
    const LsHeadsAt at = ls_attention_heads(t->k->g, t->k->n, part);
    const char *from = at.from > 0 ? ls_arena_printf(t->k->g->arena, " + " LS_N64, at.from) : "";
    ls_emit_line(t->e,
                 "%s *const %s = %s%s + sample * " LS_N64 " + %s * " LS_N64 " + %s * " LS_N64 ";",
                 type, var, array, from, at.sample,
                 part == LS_ATT_Q || part == LS_ATT_Y ? "head" : "group", at.head, first, at.row);
}

static void operands(const LsAttText *t)
{
    static const char *const name[] = {"q", "k", "v"};
    for (int p = 0; p < 3; p++)
        ls_emit_operand(t->k, name[p],
                        ls_attention_heads(t->k->g, t->k->n, (LsAttentionPart)p).operand);
    if (ls_is(t->mask))
        ls_emit_operand(t->k, "mask", ls_attention_mask(t->k->g, t->k->n));
}

void ls_att_gradient(const LsAttText *t, const char *name, LsAttentionPart part)
{
    ls_emit_result(t->k, name, ls_attention_is_joint(t->k->g, t->k->n) ? 0 : (int)part);
}

void ls_att_local(const LsAttText *t, const char *type, const char *name, int64_t n)
{
    ls_emit_line(t->e, "LS_LOCAL(%s, %s, %" PRId64 ");", type, name, n);
}

/* Loads rows 0 .. `have` of a head to to[r][columns]; the other rows become 0. */
void ls_att_load_rows(const LsAttText *t, const char *to, const char *from, int64_t row,
                      int64_t columns, const char *have, bool scaled)
{
    ls_emit_line(t->e, "LS_ROWS(r, 0, " LS_N ") {", t->tile);
    ls_emit_line(t->e, "LS_LANES(c, 0, " LS_BOUND64 ") {", columns);
    ls_emit_line(t->e, "%s[r * " LS_N64 " + c] = r < %s ? %s[r * " LS_N64 " + c]%s%s : 0;", to,
                 columns, have, from, row, scaled ? " * " : "", scaled ? t->scale : "");
    ls_emit_line(t->e, "}");
    ls_emit_line(t->e, "}");
}

/* The same to to[c][tile + 1]: the odd stride spreads a column over the banks. */
void ls_att_load_turned(const LsAttText *t, const char *to, const char *from, int64_t row,
                        int64_t columns, const char *have)
{
    ls_emit_line(t->e, "LS_ROWS(r, 0, " LS_N ") {", t->tile);
    ls_emit_line(t->e, "LS_LANES(c, 0, " LS_BOUND64 ") {", columns);
    ls_emit_line(t->e, "%s[c * " LS_N " + r] = r < %s ? %s[r * " LS_N64 " + c] : 0;", to,
                 t->tile + 1,
                 have, from, row);
    ls_emit_line(t->e, "}");
    ls_emit_line(t->e, "}");
}

/* var[group] = the thread's rows of `rows` times column `lane` of a transposed tile. */
void ls_att_multiply(const LsAttText *t, const char *var, const char *rows, const char *turned,
                     const char *lane, int64_t depth)
{
    ls_emit_line(t->e, "real %s[%d] = {0};", var, t->group);
    ls_emit_line(t->e, "for (int64_t c = 0; c < %" PRId64 "; c++) {", depth);
    ls_emit_line(t->e, "const real x = %s[c * " LS_N " + %s];", turned, t->tile + 1, lane);
    ls_emit_line(t->e, "for (int64_t z = 0; z < %d; z++) {", t->group);
    ls_emit_line(t->e, "%s[z] = ls_fma(%s[(g * %d + z) * %" PRId64 " + c], x, %s[z]);", var, rows,
                 t->group, depth, var);
    ls_emit_line(t->e, "}");
    ls_emit_line(t->e, "}");
}

/* to[row][columns] += weights[row][tile] times a tile, whose element (i, c) is `element`; `by`: a
 * factor of each row, which `to` is multiplied by first. */
void ls_att_accumulate(const LsAttText *t, const char *to, int64_t row, int64_t columns,
                       const char *weights, const char *element, const char *have, const char *by)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_LANES(c, 0, " LS_BOUND64 ") {", columns);
    ls_emit_line(e, "real sum[%d];", t->group);
    ls_emit_line(e, "for (int64_t z = 0; z < %d; z++) {", t->group);
    ls_emit_line(e, "sum[z] = g * " LS_N " + z < %s ? %s[(g * " LS_N " + z) * " LS_N64
                 " + c]%s : 0;",
                 t->group, have, to, t->group, row, by);
    ls_emit_line(e, "}");
    ls_emit_line(e, "for (int64_t i = 0; i < %d; i++) {", t->tile);
    ls_emit_line(e, "const real x = %s;", element);
    ls_emit_line(e, "for (int64_t z = 0; z < %d; z++) {", t->group);
    ls_emit_line(e, "sum[z] = ls_fma(%s[(g * %d + z) * %d + i], x, sum[z]);", weights, t->group,
                 t->tile);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "for (int64_t z = 0; z < %d; z++) {", t->group);
    ls_emit_line(e, "if (g * %d + z < %s) {", t->group, have);
    ls_emit_line(e, "%s[(g * " LS_N " + z) * " LS_N64 " + c] = sum[z];", to, t->group, row);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

/* Sets to[row][columns] to 0 before the accumulation. */
void ls_att_clear(const LsAttText *t, const char *to, int64_t row, int64_t columns,
                  const char *have)
{
    ls_emit_line(t->e, "LS_ROWS(g, 0, " LS_N ") {", t->tile / t->group);
    ls_emit_line(t->e, "LS_LANES(c, 0, " LS_BOUND64 ") {", columns);
    ls_emit_line(t->e, "for (int64_t z = g * %d; z < ls_least((g + 1) * %d, %s); z++) {", t->group,
                 t->group, have);
    ls_emit_line(t->e, "%s[z * " LS_N64 " + c] = 0;", to, row);
    ls_emit_line(t->e, "}");
    ls_emit_line(t->e, "}");
    ls_emit_line(t->e, "}");
}

/* For row i and column j: declares whether the score counts (seen), applies the mask to it, and
 * declares whether it depends on q and k (moves). */
void ls_att_mask_score(const LsAttText *t, bool moves)
{
    const LsAttentionAttr *at = t->at;
    const char *diagonal = ls_arena_printf(t->k->g->arena, " && j <= i + " LS_N64, at->past);
    ls_emit_line(t->e, "const bool seen = i < %" PRId64 " && j < %" PRId64 "%s;", t->s.rows,
                 t->s.cols, at->causal ? diagonal : "");
    if (!ls_is(t->mask)) {
        if (moves)
            ls_emit_line(t->e, "const bool moves = seen;");
        return;
    }
    const LsShape *s = ls_shape(t->k->g, t->mask);
    int64_t d[LS_MAX_RANK];
    ls_strides(s, LS_ROW, d);
    for (int a = 0; a < 4; a++)
        d[a] = s->dim[a] == 1 ? 0 : d[a];
    ls_emit_line(t->e,
                 "const int64_t m = seen ? sample * " LS_N64 " + head * " LS_N64 " + i * " LS_N64
                 " + j * " LS_N64 " : 0;",
                 d[0], d[1], d[2], d[3]);
    if (ls_type(t->k->g, t->mask) == LS_BOOL) {
        ls_emit_line(t->e, "const bool moves = seen && (mask[m] != 0) == %d;", at->keep);
        ls_emit_line(t->e, "score = moves ? score : %s;",
                     ls_literal(t->k->g->arena, LS_REAL, at->fill, 0, t->k->target->real_bytes));
    } else {
        ls_emit_line(t->e, "score += mask[m];");
        if (moves)
            ls_emit_line(t->e, "const bool moves = seen;");
    }
}

/* ---- statistics of rows ---- */
void ls_att_place_of_row(const LsAttText *t)
{
    ls_emit_line(t->e, "const int64_t at = (sample * " LS_N64 " + head) * " LS_N64 " + i0 + r;",
                 t->s.heads, t->s.rows);
}

void ls_att_stat_arrays(const LsAttText *t, int64_t rows)
{
    ls_emit_operand(t->k, "dy", 0);
    ls_emit_operand(t->k, "lse", 2);
    ls_emit_workspace(t->k, "real", "row_dots");
    ls_att_local(t, "real", "logs", rows);
    ls_att_local(t, "real", "dots", rows);
}

void ls_att_load_stats(const LsAttText *t, int64_t y_row)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(r, 0, have) {");
    ls_emit_line(e,
                 "const real dot = (real)ls_row_dot(dyh + r * %" PRId64 ", yh + r * %" PRId64
                 ", %" PRId64 ", %d);",
                 y_row, y_row, t->s.width, t->tile);
    ls_emit_line(e, "LS_LEAD {");
    ls_att_place_of_row(t);
    ls_emit_line(e, "logs[r] = lse[at];");
    ls_emit_line(e, "dots[r] = dot;");
    ls_emit_line(e, "row_dots[at] = dot;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

/* ---- loops over tiles ---- */
/* The loop over units, with the tile's first row, the head (or the group) and the sample. */
static void each_unit(const LsAttText *t, const char *first, int64_t down, const char *head,
                      int64_t heads)
{
    ls_emit_line(t->e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(t->e, "const int64_t %s = u %% " LS_N64 " * " LS_N ";", first, down, t->tile);
    ls_emit_line(t->e, "const int64_t %s = u / " LS_N64 " %% " LS_N64 ";", head, down, heads);
    ls_emit_line(t->e, "const int64_t sample = u / " LS_N64 ";", down * heads);
}

/* The type of the elements that are read (q, k, v, y and dy have one type), and of those that are
 * written. */
const char *ls_att_type(const LsAttText *t) { return ls_ctype(ls_operand_type(t->k, 0)); }
static const char *read_type(const LsAttText *t)
{
    return ls_arena_printf(t->k->g->arena, "const %s", ls_att_type(t));
}
static const char *write_type(const LsAttText *t) { return ls_ctype(ls_result_type(t->k, 0)); }

/* Declares kh and vh, the tile's first rows of k and v. */
static void key_heads(const LsAttText *t)
{
    ls_att_heads(t, read_type(t), "kh", "k", LS_ATT_K, "j0");
    ls_att_heads(t, read_type(t), "vh", "v", LS_ATT_V, "j0");
}

/* The loop over units, each a tile of q's rows i0 .. i0 + have of a head, with the head's group of
 * k and v. The rows begin at qh and yh; in the gradient, which only reads y, also at dyh and
 * dqh. */
static void each_query_tile(const LsAttText *t)
{
    const LsAttentionSize *s = &t->s;
    each_unit(t, "i0", ls_ceil_div(s->rows, t->tile), "head", s->heads);
    ls_emit_line(t->e,
                 "const int64_t group = head / " LS_N64 ", have = ls_least(" LS_N ", " LS_N64
                 " - i0);",
                 s->heads / s->groups, t->tile, s->rows);
    ls_att_heads(t, read_type(t), "qh", "q", LS_ATT_Q, "i0");
    ls_att_heads(t, t->grad ? read_type(t) : write_type(t), "yh", "y", LS_ATT_Y, "i0");
    if (t->grad) {
        ls_att_heads(t, read_type(t), "dyh", "dy", LS_ATT_Y, "i0");
        ls_att_heads(t, write_type(t), "dqh", "dq", LS_ATT_Q, "i0");
    }
}

/* The same for tiles of k's rows j0 .. j0 + n of a group, which begin at kh, vh, dkh, dvh. */
static void each_key_tile(const LsAttText *t)
{
    const LsAttentionSize *s = &t->s;
    each_unit(t, "j0", ls_ceil_div(s->cols, t->tile), "group", s->groups);
    ls_emit_line(t->e, "const int64_t n = ls_least(" LS_N ", " LS_N64 " - j0);", t->tile, s->cols);
    key_heads(t);
    ls_att_heads(t, write_type(t), "dkh", "dk", LS_ATT_K, "j0");
    ls_att_heads(t, write_type(t), "dvh", "dv", LS_ATT_V, "j0");
}

/* The loop over tiles of k, at kh and vh, with scores that count for rows i0 .. i0 + have. */
static void each_tile_of_keys(const LsAttText *t)
{
    if (t->at->causal)
        ls_emit_line(t->e,
                     "const int64_t seen_cols = ls_least(i0 + have + " LS_N64 ", " LS_N64 ");",
                     t->at->past, t->s.cols);
    else
        ls_emit_line(t->e, "const int64_t seen_cols = %" PRId64 ";", t->s.cols);
    ls_emit_line(t->e, "for (int64_t j0 = 0; j0 < seen_cols; j0 += %d) {", t->pass);
    ls_emit_line(t->e, "const int64_t n = ls_least(" LS_N ", " LS_N64 " - j0);", t->pass,
                 t->s.cols);
    key_heads(t);
}

/* The loops over the group's heads and tiles of q's rows, at qh and dyh, with scores that count
 * from j0. */
static void each_tile_of_rows(const LsAttText *t)
{
    const int64_t share = t->s.heads / t->s.groups;
    if (t->at->causal)
        ls_emit_line(t->e,
                     "const int64_t from = j0 > %" PRId64 " ? (j0 - " LS_N64 ") / " LS_N " * "
                     LS_N " : 0;",
                     t->at->past, t->at->past, t->pass, t->pass);
    ls_emit_line(t->e,
                 "for (int64_t head = group * %" PRId64 "; head < (group + 1) * %" PRId64
                 "; head++) {",
                 share, share);
    ls_emit_line(t->e, "for (int64_t i0 = %s; i0 < %" PRId64 "; i0 += %d) {",
                 t->at->causal ? "from" : "0", t->s.rows, t->pass);
    ls_emit_line(t->e, "const int64_t have = ls_least(" LS_N ", " LS_N64 " - i0);", t->pass,
                 t->s.rows);
    ls_att_heads(t, read_type(t), "qh", "q", LS_ATT_Q, "i0");
    ls_att_heads(t, read_type(t), "dyh", "dy", LS_ATT_Y, "i0");
}

/* ---- passes ---- */
/* Prints the work on each tile, closes the `loops` over tiles, and prints the work after them. */
static void pass_by(const LsAttText *t, const LsAttPass *pass, int loops)
{
    pass->tile(t);
    ls_emit_line(t->e, "LS_SYNC;");
    ls_emit_close(t->e, loops);
    if (pass->end != NULL)
        pass->end(t);
    ls_emit_close(t->e, 2);
}

/* The head of a part. On tensor cores with factors of 16 bits, registers must suffice for more
 * blocks on a multiprocessor than they would: each waits for its tiles (GPT-2 on an H200: 16.2 ms
 * of attention in place of 19.5). */
static void part_head(const LsAttText *t, const LsGrid *part)
{
    ls_emit_part_together(t->k, part, !t->half ? 0 : t->grad ? 3 : 5);
}

static void rows_part(const LsAttText *t, const LsGrid *part, const LsAttPass *pass)
{
    part_head(t, part);
    operands(t);
    pass->declare(t);
    each_query_tile(t);
    pass->begin(t);
    each_tile_of_keys(t);
    pass_by(t, pass, 1);
}

static void keys_part(const LsAttText *t, const LsGrid *part, const LsAttPass *pass)
{
    part_head(t, part);
    operands(t);
    ls_att_gradient(t, "dk", LS_ATT_K);
    ls_att_gradient(t, "dv", LS_ATT_V);
    pass->declare(t);
    each_key_tile(t);
    pass->begin(t);
    each_tile_of_rows(t);
    pass_by(t, pass, 2);
}

void ls_att_emit_forward(const LsAttText *t, const LsAttPass *rows)
{
    const LsGrid part = grid_of(t, "part", t->s.heads, t->s.rows);
    rows_part(t, &part, rows);
    ls_emit_launch(t->k, &part, 1);
}

void ls_att_emit_gradient(const LsAttText *t, const LsAttPass *rows, const LsAttPass *keys)
{
    const LsGrid part[] = {grid_of(t, "rows", t->s.heads, t->s.rows),
                           grid_of(t, "keys", t->s.groups, t->s.cols)};
    rows_part(t, &part[0], rows);
    keys_part(t, &part[1], keys);
    ls_emit_launch(t->k, part, 2);
}
