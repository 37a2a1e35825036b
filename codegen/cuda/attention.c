/* codegen/cuda/attention.c -- ATTENTION and its gradient for GPUs, in the words of kernels.
 *
 * A block has TILE rows of q, or of k, and passes over tiles of the other, which lie turned in
 * shared memory: a thread computes GROUP scores of one column. Three parts, each of whose blocks
 * writes what no other does: y and lse; dq, with dy y of each row to the workspace; dk and dv. Sums
 * over tiles grow in the results, each element by one thread. */
#include "codegen/kernels/nest.h"

#include "compiler/attention.h"

#include <inttypes.h>

enum {
    FIRST = 3,                  /* operands of the gradient before q, k, v, mask: dy, y, lse */
    SHARED = 46 << 10,          /* bytes of a block, of 48 KiB */
    GROUP = 8,
};

typedef struct Text {
    const LsKernelText *k;
    LsEmit *e;
    const LsAttentionAttr *at;
    LsAttentionSize s;
    bool grad;
    int tile, group, place;     /* place: of q among the operands */
    LsValueId mask;
    const char *scale;
} Text;

/* Rows of a tile: a power of two such that what the part that needs most keeps is there. */
static int tile_of(const LsAttentionSize *s, int real_bytes)
{
    int64_t deep = s->depth + s->width;
    int tile = 32;
    while (tile > 1 && ((2 * tile + 1) * deep + 2 * tile * tile + 4 * tile) * real_bytes > SHARED)
        tile /= 2;
    return tile;
}

static Text text_of(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    Text t = {.k = k, .e = k->e, .at = &node->attr.attention, .s = ls_attention_size(k->g, k->n),
              .grad = node->op == LS_OP_ATTENTION_GRAD};
    t.place = t.grad ? FIRST : 0;
    t.tile = tile_of(&t.s, k->target->real_bytes);
    t.group = t.tile < GROUP ? t.tile : GROUP;
    t.mask = ls_in(k->g, k->n, t.place + 3);
    t.scale = ls_literal(k->g->arena, LS_REAL, t.at->scale, 0, k->target->real_bytes);
    return t;
}

/* Distance of rows of a tensor that has this bit of by_token, and as many heads and columns. */
static int64_t row_of(const Text *t, unsigned bit, int64_t heads, int64_t columns)
{
    return t->at->by_token & bit ? heads * columns : columns;
}

/* "VAR = ARRAY + ...": the first element of a head, and of row `first`. */
static void head_of(const Text *t, const char *type, const char *var, const char *array,
                    unsigned bit, const char *head, int64_t heads, int64_t rows, int64_t columns,
                    const char *first)
{
    int64_t row = row_of(t, bit, heads, columns);
    int64_t apart = t->at->by_token & bit ? columns : rows * columns;
    ls_emit_line(t->e, "%s *const %s = %s + sample * %" PRId64 " + %s * %" PRId64 " + %s * %" PRId64
                 ";", type, var, array, heads * rows * columns, head, apart, first, row);
}

static void q_heads(const Text *t, const char *type, const char *var, const char *array,
                    unsigned bit, int64_t columns, const char *first)
{
    head_of(t, type, var, array, bit, "head", t->s.heads, t->s.rows, columns, first);
}

static void k_heads(const Text *t, const char *type, const char *var, const char *array,
                    unsigned bit, int64_t columns, const char *first)
{
    head_of(t, type, var, array, bit, "group", t->s.groups, t->s.cols, columns, first);
}

static void operands(const Text *t)
{
    ls_emit_operand(t->k, "q", t->place);
    ls_emit_operand(t->k, "k", t->place + 1);
    ls_emit_operand(t->k, "v", t->place + 2);
    if (ls_is(t->mask))
        ls_emit_operand(t->k, "mask", t->place + 3);
}

static void local(const Text *t, const char *type, const char *name, int64_t n)
{
    ls_emit_line(t->e, "LS_LOCAL(%s, %s, %" PRId64 ");", type, name, n);
}

/* Rows 0 .. `have` of a head to to[r][columns]; the others are 0. */
static void load_rows(const Text *t, const char *to, const char *from, int64_t row, int64_t columns,
                      const char *have, bool scaled)
{
    ls_emit_line(t->e, "LS_ROWS(r, 0, %d) {", t->tile);
    ls_emit_line(t->e, "LS_LANES(c, 0, %" PRId64 ") {", columns);
    ls_emit_line(t->e, "%s[r * %" PRId64 " + c] = r < %s ? %s[r * %" PRId64 " + c]%s%s : 0;", to,
                 columns, have, from, row, scaled ? " * " : "", scaled ? t->scale : "");
    ls_emit_line(t->e, "}");
    ls_emit_line(t->e, "}");
}

/* ... to to[c][tile + 1]: the odd distance spreads a column over the banks. */
static void load_turned(const Text *t, const char *to, const char *from, int64_t row,
                        int64_t columns, const char *have)
{
    ls_emit_line(t->e, "LS_ROWS(r, 0, %d) {", t->tile);
    ls_emit_line(t->e, "LS_LANES(c, 0, %" PRId64 ") {", columns);
    ls_emit_line(t->e, "%s[c * %d + r] = r < %s ? %s[r * %" PRId64 " + c] : 0;", to, t->tile + 1,
                 have, from, row);
    ls_emit_line(t->e, "}");
    ls_emit_line(t->e, "}");
}

/* var[GROUP] = rows of `rows` times the column `lane` of a turned tile. */
static void multiply(const Text *t, const char *var, const char *rows, const char *turned,
                     const char *lane, int64_t depth)
{
    ls_emit_line(t->e, "real %s[%d] = {0};", var, t->group);
    ls_emit_line(t->e, "for (int64_t c = 0; c < %" PRId64 "; c++) {", depth);
    ls_emit_line(t->e, "const real x = %s[c * %d + %s];", turned, t->tile + 1, lane);
    ls_emit_line(t->e, "for (int64_t z = 0; z < %d; z++) {", t->group);
    ls_emit_line(t->e, "%s[z] = ls_fma(%s[(g * %d + z) * %" PRId64 " + c], x, %s[z]);", var, rows,
                 t->group, depth, var);
    ls_emit_line(t->e, "}");
    ls_emit_line(t->e, "}");
}

/* to[row][columns] += weights[row][tile] times a tile, whose element (i, c) is `element`; `by`:
 * first times this factor of each row. */
static void accumulate(const Text *t, const char *to, int64_t row, int64_t columns,
                       const char *weights, const char *element, const char *have, const char *by)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_LANES(c, 0, %" PRId64 ") {", columns);
    ls_emit_line(e, "real sum[%d];", t->group);
    ls_emit_line(e, "for (int64_t z = 0; z < %d; z++) {", t->group);
    ls_emit_line(e, "sum[z] = g * %d + z < %s ? %s[(g * %d + z) * %" PRId64 " + c]%s : 0;",
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
    ls_emit_line(e, "%s[(g * %d + z) * %" PRId64 " + c] = sum[z];", to, t->group, row);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

/* Where accumulation begins. */
static void clear(const Text *t, const char *to, int64_t row, int64_t columns, const char *have)
{
    ls_emit_line(t->e, "LS_ROWS(g, 0, %d) {", t->tile / t->group);
    ls_emit_line(t->e, "LS_LANES(c, 0, %" PRId64 ") {", columns);
    ls_emit_line(t->e, "for (int64_t z = g * %d; z < ls_least((g + 1) * %d, %s); z++) {", t->group,
                 t->group, have);
    ls_emit_line(t->e, "%s[z * %" PRId64 " + c] = 0;", to, row);
    ls_emit_line(t->e, "}");
    ls_emit_line(t->e, "}");
    ls_emit_line(t->e, "}");
}

/* From row i and column j: whether that score counts, what the mask makes of it (score), and
 * whether it moves. */
static void mask_score(const Text *t, bool moves)
{
    const LsAttentionAttr *at = t->at;
    const char *diagonal = ls_arena_printf(t->k->g->arena, " && j <= i + %" PRId64, at->past);
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
    ls_emit_line(t->e, "const int64_t m = seen ? sample * %" PRId64 " + head * %" PRId64
                 " + i * %" PRId64 " + j * %" PRId64 " : 0;", d[0], d[1], d[2], d[3]);
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

static void each_unit(const Text *t, const char *first, int64_t down, const char *head,
                      int64_t heads)
{
    ls_emit_line(t->e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(t->e, "const int64_t %s = u %% %" PRId64 " * %d;", first, down, t->tile);
    ls_emit_line(t->e, "const int64_t %s = u / %" PRId64 " %% %" PRId64 ";", head, down, heads);
    ls_emit_line(t->e, "const int64_t sample = u / %" PRId64 ";", down * heads);
}

static void tile_columns(const Text *t)
{
    if (t->at->causal)
        ls_emit_line(t->e, "const int64_t seen_cols = ls_least(i0 + have + %" PRId64 ", %" PRId64
                     ");", t->at->past, t->s.cols);
    else
        ls_emit_line(t->e, "const int64_t seen_cols = %" PRId64 ";", t->s.cols);
    ls_emit_line(t->e, "for (int64_t j0 = 0; j0 < seen_cols; j0 += %d) {", t->tile);
    ls_emit_line(t->e, "const int64_t n = ls_least(%d, %" PRId64 " - j0);", t->tile, t->s.cols);
}

static LsGrid grid(const Text *t, const char *suffix, int64_t heads, int64_t rows)
{
    return (LsGrid){suffix, t->s.batch * heads * ls_ceil_div(rows, t->tile), t->tile,
                    t->tile / t->group};
}

/* ---- y and lse ---- */
/* Scores to weights, and what became of the maximum and the sum of each row. */
static void weigh(const Text *t)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(g, 0, %d) {", t->tile / t->group);
    ls_emit_line(e, "for (int64_t z = g * %d; z < (g + 1) * %d; z++) {", t->group, t->group);
    ls_emit_line(e, "real *const row = s + z * %d;", t->tile);
    ls_emit_line(e, "const real was = top[z], now = ls_max_real(was, ls_row_max(row, %d, %d));",
                 t->tile, t->tile);
    ls_emit_line(e, "const real shift = now == -INFINITY ? 0 : now;");
    ls_emit_line(e, "const double more = ls_row_exp_to(row, row, shift, %d, %d);", t->tile,
                 t->tile);
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e, "by[z] = ls_exp(was - shift);");
    ls_emit_line(e, "top[z] = now;");
    ls_emit_line(e, "sums[z] = sums[z] * by[z] + more;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void finish(const Text *t, int64_t y_row)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(g, 0, %d) {", t->tile / t->group);
    ls_emit_line(e, "for (int64_t z = g * %d; z < ls_least((g + 1) * %d, have); z++) {", t->group,
                 t->group);
    ls_emit_line(e, "const bool none = sums[z] == 0;");
    ls_emit_line(e, "const real part = none ? 0 : (real)(1 / sums[z]);");
    ls_emit_line(e, "LS_LANES(c, 0, %" PRId64 ") {", t->s.width);
    ls_emit_line(e, "yh[z * %" PRId64 " + c] *= part;", y_row);
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e, "lse[(sample * %" PRId64 " + head) * %" PRId64
                 " + i0 + z] = none ? 0 : top[z] + ls_log((real)sums[z]);", t->s.heads, t->s.rows);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void scores(const Text *t)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(g, 0, %d) {", t->tile / t->group);
    ls_emit_line(e, "LS_LANES(l, 0, %d) {", t->tile);
    multiply(t, "qk", "qs", "kv", "l", t->s.depth);
    ls_emit_line(e, "for (int64_t z = 0; z < %d; z++) {", t->group);
    ls_emit_line(e, "const int64_t i = i0 + g * %d + z, j = j0 + l;", t->group);
    ls_emit_line(e, "real score = qk[z];");
    mask_score(t, false);
    ls_emit_line(e, "s[(g * %d + z) * %d + l] = seen ? score : -INFINITY;", t->group, t->tile);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void attend(const Text *t, const LsGrid *part)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    int64_t turned = s->depth * (t->tile + 1), flat = s->width * t->tile;
    int64_t q_row = row_of(t, LS_Q_BY_TOKEN, s->heads, s->depth);
    int64_t k_row = row_of(t, LS_K_BY_TOKEN, s->groups, s->depth);
    int64_t v_row = row_of(t, LS_V_BY_TOKEN, s->groups, s->width);
    int64_t y_row = row_of(t, LS_Y_BY_TOKEN, s->heads, s->width);
    ls_emit_part(t->k, part);
    operands(t);
    ls_emit_result(t->k, "y", 0);
    ls_emit_result(t->k, "lse", 1);
    local(t, "real", "qs", t->tile * s->depth);
    local(t, "real", "kv", turned > flat ? turned : flat);
    local(t, "real", "s", t->tile * t->tile);
    local(t, "real", "top", t->tile);
    local(t, "real", "by", t->tile);
    local(t, "double", "sums", t->tile);
    each_unit(t, "i0", ls_ceil_div(s->rows, t->tile), "head", s->heads);
    ls_emit_line(e, "const int64_t group = head / %" PRId64 ", have = ls_least(%d, %" PRId64
                 " - i0);", s->heads / s->groups, t->tile, s->rows);
    q_heads(t, "const real", "qh", "q", LS_Q_BY_TOKEN, s->depth, "i0");
    q_heads(t, "real", "yh", "y", LS_Y_BY_TOKEN, s->width, "i0");
    load_rows(t, "qs", "qh", q_row, s->depth, "have", true);
    clear(t, "yh", y_row, s->width, "have");
    ls_emit_line(e, "LS_ROWS(z, 0, %d) {", t->tile);
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e, "top[z] = -INFINITY;");
    ls_emit_line(e, "sums[z] = 0;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    tile_columns(t);
    k_heads(t, "const real", "kh", "k", LS_K_BY_TOKEN, s->depth, "j0");
    k_heads(t, "const real", "vh", "v", LS_V_BY_TOKEN, s->width, "j0");
    load_turned(t, "kv", "kh", k_row, s->depth, "n");
    ls_emit_line(e, "LS_SYNC;");
    scores(t);
    ls_emit_line(e, "LS_ROW_SYNC;");
    weigh(t);
    ls_emit_line(e, "LS_SYNC;");
    load_rows(t, "kv", "vh", v_row, s->width, "n", false);
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "LS_ROWS(g, 0, %d) {", t->tile / t->group);
    accumulate(t, "yh", y_row, s->width, "s",
               ls_arena_printf(t->k->g->arena, "kv[i * %" PRId64 " + c]", s->width), "have",
               ls_arena_printf(t->k->g->arena, " * by[g * %d + z]", t->group));
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "}");
    finish(t, y_row);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

/* ---- gradients ---- */
/* Scores and dy vT of a tile become the weights p (of `keys` alone) and w = scale p (dy vT - dy y).
 * A row of threads has some rows of q and its lanes columns; for `keys`, the reverse. */
static void back_scores(const Text *t, bool keys)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(g, 0, %d) {", t->tile / t->group);
    ls_emit_line(e, "LS_LANES(l, 0, %d) {", t->tile);
    multiply(t, "qk", keys ? "ks" : "qs", keys ? "qt" : "kt", "l", t->s.depth);
    multiply(t, "dp", keys ? "vs" : "dys", keys ? "dyt" : "vt", "l", t->s.width);
    ls_emit_line(e, "for (int64_t z = 0; z < %d; z++) {", t->group);
    ls_emit_line(e, "const int64_t r = %s, at = (g * %d + z) * %d + l;",
                 keys ? "l" : ls_arena_printf(t->k->g->arena, "g * %d + z", t->group), t->group,
                 t->tile);
    ls_emit_line(e, keys ? "const int64_t i = i0 + r, j = j0 + g * %d + z;"
                         : "const int64_t i = i0 + r, j = j0 + l;", t->group);
    ls_emit_line(e, "real score = qk[z];");
    mask_score(t, true);
    ls_emit_line(e, "const real part = seen ? ls_exp(score - logs[r]) : 0;");
    if (keys)
        ls_emit_line(e, "p[at] = part;");
    ls_emit_line(e, "w[at] = moves ? part * (dp[z] - dots[r]) * %s : 0;", t->scale);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

/* Row r's logarithm and dy y, which goes to the workspace as well. */
static void load_stats(const Text *t, int64_t y_row)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(r, 0, have) {");
    ls_emit_line(e, "const real dot = (real)ls_row_dot(dyh + r * %" PRId64 ", yh + r * %" PRId64
                 ", %" PRId64 ", %d);", y_row, y_row, t->s.width, t->tile);
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e, "const int64_t at = (sample * %" PRId64 " + head) * %" PRId64 " + i0 + r;",
                 t->s.heads, t->s.rows);
    ls_emit_line(e, "logs[r] = lse[at];");
    ls_emit_line(e, "dots[r] = dot;");
    ls_emit_line(e, "row_dots[at] = dot;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void stat_arrays(const Text *t)
{
    ls_emit_operand(t->k, "dy", 0);
    ls_emit_operand(t->k, "lse", 2);
    ls_emit_workspace(t->k, "real", "row_dots");
    local(t, "real", "logs", t->tile);
    local(t, "real", "dots", t->tile);
    local(t, "real", "w", t->tile * t->tile);
}

static void back_rows(const Text *t, const LsGrid *part)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    int64_t q_row = row_of(t, LS_Q_BY_TOKEN, s->heads, s->depth);
    int64_t k_row = row_of(t, LS_K_BY_TOKEN, s->groups, s->depth);
    int64_t v_row = row_of(t, LS_V_BY_TOKEN, s->groups, s->width);
    int64_t y_row = row_of(t, LS_Y_BY_TOKEN, s->heads, s->width);
    ls_emit_part(t->k, part);
    operands(t);
    ls_emit_operand(t->k, "y", 1);
    ls_emit_result(t->k, "dq", 0);
    stat_arrays(t);
    local(t, "real", "qs", t->tile * s->depth);
    local(t, "real", "dys", t->tile * s->width);
    local(t, "real", "kt", s->depth * (t->tile + 1));
    local(t, "real", "vt", s->width * (t->tile + 1));
    each_unit(t, "i0", ls_ceil_div(s->rows, t->tile), "head", s->heads);
    ls_emit_line(e, "const int64_t group = head / %" PRId64 ", have = ls_least(%d, %" PRId64
                 " - i0);", s->heads / s->groups, t->tile, s->rows);
    q_heads(t, "const real", "qh", "q", LS_Q_BY_TOKEN, s->depth, "i0");
    q_heads(t, "const real", "yh", "y", LS_Y_BY_TOKEN, s->width, "i0");
    q_heads(t, "const real", "dyh", "dy", LS_Y_BY_TOKEN, s->width, "i0");
    q_heads(t, "real", "dqh", "dq", LS_Q_BY_TOKEN, s->depth, "i0");
    load_rows(t, "qs", "qh", q_row, s->depth, "have", true);
    load_rows(t, "dys", "dyh", y_row, s->width, "have", false);
    load_stats(t, y_row);
    clear(t, "dqh", q_row, s->depth, "have");
    tile_columns(t);
    k_heads(t, "const real", "kh", "k", LS_K_BY_TOKEN, s->depth, "j0");
    k_heads(t, "const real", "vh", "v", LS_V_BY_TOKEN, s->width, "j0");
    load_turned(t, "kt", "kh", k_row, s->depth, "n");
    load_turned(t, "vt", "vh", v_row, s->width, "n");
    ls_emit_line(e, "LS_SYNC;");
    back_scores(t, false);
    ls_emit_line(e, "LS_ROW_SYNC;");
    ls_emit_line(e, "LS_ROWS(g, 0, %d) {", t->tile / t->group);
    accumulate(t, "dqh", q_row, s->depth, "w",
               ls_arena_printf(t->k->g->arena, "kt[c * %d + i]", t->tile + 1), "have", "");
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

/* One tile of rows of q against the block's tile of k. */
static void back_keys_tile(const Text *t)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    const char *odd = ls_arena_printf(t->k->g->arena, "[c * %d + i]", t->tile + 1);
    int64_t k_row = row_of(t, LS_K_BY_TOKEN, s->groups, s->depth);
    int64_t v_row = row_of(t, LS_V_BY_TOKEN, s->groups, s->width);
    ls_emit_line(e, "const int64_t have = ls_least(%d, %" PRId64 " - i0);", t->tile, s->rows);
    q_heads(t, "const real", "qh", "q", LS_Q_BY_TOKEN, s->depth, "i0");
    q_heads(t, "const real", "dyh", "dy", LS_Y_BY_TOKEN, s->width, "i0");
    load_turned(t, "qt", "qh", row_of(t, LS_Q_BY_TOKEN, s->heads, s->depth), s->depth, "have");
    load_turned(t, "dyt", "dyh", row_of(t, LS_Y_BY_TOKEN, s->heads, s->width), s->width, "have");
    ls_emit_line(e, "LS_ROWS(r, 0, have) {");
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e, "const int64_t at = (sample * %" PRId64 " + head) * %" PRId64 " + i0 + r;",
                 s->heads, s->rows);
    ls_emit_line(e, "logs[r] = lse[at];");
    ls_emit_line(e, "dots[r] = row_dots[at];");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_SYNC;");
    back_scores(t, true);
    ls_emit_line(e, "LS_ROW_SYNC;");
    ls_emit_line(e, "LS_ROWS(g, 0, %d) {", t->tile / t->group);
    accumulate(t, "dvh", v_row, s->width, "p", ls_arena_printf(t->k->g->arena, "dyt%s", odd), "n",
               "");
    accumulate(t, "dkh", k_row, s->depth, "w", ls_arena_printf(t->k->g->arena, "qt%s", odd), "n",
               "");
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_SYNC;");
}

static void back_keys(const Text *t, const LsGrid *part)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    int64_t k_row = row_of(t, LS_K_BY_TOKEN, s->groups, s->depth);
    int64_t v_row = row_of(t, LS_V_BY_TOKEN, s->groups, s->width), share = s->heads / s->groups;
    ls_emit_part(t->k, part);
    operands(t);
    ls_emit_result(t->k, "dk", 1);
    ls_emit_result(t->k, "dv", 2);
    stat_arrays(t);
    local(t, "real", "p", t->tile * t->tile);
    local(t, "real", "ks", t->tile * s->depth);
    local(t, "real", "vs", t->tile * s->width);
    local(t, "real", "qt", s->depth * (t->tile + 1));
    local(t, "real", "dyt", s->width * (t->tile + 1));
    each_unit(t, "j0", ls_ceil_div(s->cols, t->tile), "group", s->groups);
    ls_emit_line(e, "const int64_t n = ls_least(%d, %" PRId64 " - j0);", t->tile, s->cols);
    k_heads(t, "const real", "kh", "k", LS_K_BY_TOKEN, s->depth, "j0");
    k_heads(t, "const real", "vh", "v", LS_V_BY_TOKEN, s->width, "j0");
    k_heads(t, "real", "dkh", "dk", LS_K_BY_TOKEN, s->depth, "j0");
    k_heads(t, "real", "dvh", "dv", LS_V_BY_TOKEN, s->width, "j0");
    load_rows(t, "ks", "kh", k_row, s->depth, "n", true);
    load_rows(t, "vs", "vh", v_row, s->width, "n", false);
    clear(t, "dkh", k_row, s->depth, "n");
    clear(t, "dvh", v_row, s->width, "n");
    if (t->at->causal)
        ls_emit_line(e, "const int64_t from = j0 > %" PRId64 " ? (j0 - %" PRId64 ") / %d * %d : 0;",
                     t->at->past, t->at->past, t->tile, t->tile);
    ls_emit_line(e, "for (int64_t head = group * %" PRId64 "; head < (group + 1) * %" PRId64
                 "; head++) {", share, share);
    ls_emit_line(e, "for (int64_t i0 = %s; i0 < %" PRId64 "; i0 += %d) {",
                 t->at->causal ? "from" : "0", s->rows, t->tile);
    back_keys_tile(t);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void attention_emit(const LsKernelText *k)
{
    const Text t = text_of(k);
    if (!t.grad) {
        const LsGrid part = grid(&t, "part", t.s.heads, t.s.rows);
        attend(&t, &part);
        ls_emit_launch(k, &part, 1);
        return;
    }
    const LsGrid part[] = {grid(&t, "rows", t.s.heads, t.s.rows),
                           grid(&t, "keys", t.s.groups, t.s.cols)};
    back_rows(&t, &part[0]);
    back_keys(&t, &part[1]);
    ls_emit_launch(k, part, 2);
}

/* dy y of every row. */
static int64_t attention_workspace(const LsGraph *g, LsNodeId n, const LsTarget *target)
{
    LsAttentionSize s = ls_attention_size(g, n);
    return g->node[n.i].op == LS_OP_ATTENTION ? 0
                                              : s.batch * s.heads * s.rows * target->real_bytes;
}

const LsEmitter ls_emitter_attention_cuda = {.emit = attention_emit,
                                             .workspace = attention_workspace};
