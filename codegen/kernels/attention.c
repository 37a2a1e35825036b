/* codegen/kernels/attention.c -- ATTENTION and its gradient: sizes and strides as constants for the
 * code in runtime/kernels/ls_attention.h, or ls_attention16.h where factors are bfloat16. */
#include "codegen/kernels/computed_operand.h"

#include "compiler/ops/attention_shape.h"

#include <inttypes.h>

/* ".q = {8192, 1024, 32}, ": strides of samples, heads, rows. */
static void heads(const LsKernelText *k, const char *name, LsAttentionPart part)
{
    const LsHeadsAt at = ls_attention_heads(k->g, k->n, part);
    ls_emit_line(k->e, ".%s = {%" PRId64 ", %" PRId64 ", %" PRId64 "},", name, at.sample, at.head,
                 at.row);
}

static void mask_distances(const LsKernelText *k, LsValueId mask, const LsAttentionAttr *at)
{
    const LsShape *s = ls_shape(k->g, mask);
    int64_t stride[LS_MAX_RANK];
    ls_strides(s, LS_ROW, stride);
    for (int i = 0; i < 4; i++)
        stride[i] = s->dim[i] == 1 ? 0 : stride[i];
    ls_emit_line(k->e,
                 ".mask = {%" PRId64 ", %" PRId64 ", %" PRId64 "}, .mask_col = %" PRId64 ",",
                 stride[0], stride[1], stride[2], stride[3]);
    if (ls_type(k->g, mask) == LS_BOOL)
        ls_emit_line(k->e, ".keep = %d, .fill = %s,", at->keep,
                     ls_literal(k->g->arena, LS_REAL, at->fill, 0, k->target->real_bytes));
}

/* Operands or results are stored in 16 bits, or rounded. */
static bool is_narrow(const LsKernelText *k)
{
    return k->g->node[k->n.i].rounds != LS_REAL;
}

/* Its products have factors of bfloat16. Those of float16 are widened, and multiply in f32. */
static bool is_dot16(const LsKernelText *k) { return ls_is_dot16(&k->g->node[k->n.i]); }

static int64_t deep(const LsAttentionSize *s) { return s->depth > s->width ? s->depth : s->width; }

static void shape(const LsKernelText *k)
{
    const LsAttentionAttr *at = &k->g->node[k->n.i].attr.attention;
    const LsAttentionSize s = ls_attention_size(k->g, k->n);
    LsValueId mask = ls_in(k->g, k->n, ls_attention_mask(k->g, k->n));
    k->e->needs |= is_dot16(k) ? LS_NEEDS_ATTENTION16 | LS_NEEDS_DOT16 : LS_NEEDS_ATTENTION;
    ls_emit_line(k->e, "static const LsAttention %s_shape = {", k->name);
    ls_emit_line(k->e, ".batch = %" PRId64 ", .heads = %" PRId64 ", .groups = %" PRId64 ",",
                 s.batch, s.heads, s.groups);
    ls_emit_line(k->e, ".rows = %" PRId64 ", .cols = %" PRId64 ", .depth = %" PRId64
                 ", .width = %" PRId64 ",", s.rows, s.cols, s.depth, s.width);
    ls_emit_line(k->e, ".block = LS_ATT%s_COLS(%" PRId64 "), .scale = %s,",
                 is_dot16(k) ? "16" : "", deep(&s),
                 ls_literal(k->g->arena, LS_REAL, at->scale, 0, k->target->real_bytes));
    if (at->causal)
        ls_emit_line(k->e, ".causal = true, .past = %" PRId64 ",", at->past);
    heads(k, "q", LS_ATT_Q);
    heads(k, "k", LS_ATT_K);
    heads(k, "v", LS_ATT_V);
    heads(k, "y", LS_ATT_Y);
    if (ls_is(mask))
        mask_distances(k, mask, at);
    ls_emit_line(k->e, "};");
}

/* ".q = arg[3], ": the first head of a tensor in argument `at`. */
static void argument(const LsKernelText *k, const char *name, const char *type, int at,
                     LsAttentionPart part)
{
    int64_t from = ls_attention_heads(k->g, k->n, part).from;
    if (from == 0)
        ls_emit_line(k->e, ".%s = arg[%d],", name, at);
    else
        ls_emit_line(k->e, ".%s = (%s *)arg[%d] + %" PRId64 ",", name, type, at, from);
}

/* Operands and results by their place. */
static void arguments(const LsKernelText *k, bool grad)
{
    static const char *const in[] = {"q", "k", "v"}, *const out[] = {"dq", "dk", "dv"};
    const LsNode *node = &k->g->node[k->n.i];
    bool joint = ls_attention_is_joint(k->g, k->n);
    int with = ls_attention_mask(k->g, k->n);
    LsValueId mask = ls_in(k->g, k->n, with);
    ls_emit_line(k->e, "const LsAttentionArgs a = {");
    for (int p = 0; p < 3 && !is_narrow(k); p++)
        argument(k, in[p], "const real", ls_attention_heads(k->g, k->n, (LsAttentionPart)p).operand,
                 (LsAttentionPart)p);
    if (ls_is(mask))
        ls_emit_line(k->e, ".%s = arg[%d],", ls_type(k->g, mask) == LS_BOOL ? "bools" : "add",
                     with);
    if (ls_is(ls_in(k->g, k->n, ls_attention_spans(k->g, k->n))))
        ls_emit_line(k->e, ".spans = arg[%d],", ls_attention_spans(k->g, k->n));
    if (is_narrow(k))
        ls_emit_line(k->e, ".lse = arg[%d],", grad ? 2 : node->nin + 1);
    else if (grad)
        ls_emit_line(k->e, ".dy = arg[0], .y = arg[1], .lse = arg[2],");
    else
        ls_emit_line(k->e, ".y = arg[%d], .lse = arg[%d],", node->nin, node->nin + 1);
    for (int p = 0; grad && p < 3 && !is_narrow(k); p++)
        argument(k, out[p], "real", node->nin + (joint ? 0 : p), (LsAttentionPart)p);
    ls_emit_line(k->e, "};");
}

/* ".q = {.at = (const ls_bf16 *)arg[3] + 64, ...},": an operand as a source. */
static void source(const LsKernelText *k, const char *name, int operand, int64_t from)
{
    const char *type = ls_ctype(ls_operand_type(k, operand));
    const char *at =
        ls_arena_printf(k->g->arena, "(const %s *)arg[%d] + %" PRId64, type, operand, from);
    ls_emit_line(k->e, ".%s = %s,", name, ls_stored_source(k, at, operand));
}

/* The tensors of LsAttentionNarrow. */
static void narrow_arguments(const LsKernelText *k, bool grad)
{
    static const char *const in[] = {"q", "k", "v"}, *const out[] = {"dq", "dk", "dv"};
    const LsNode *node = &k->g->node[k->n.i];
    LsType to = ls_result_type(k, 0);
    bool joint = ls_attention_is_joint(k->g, k->n);
    ls_emit_line(k->e, "const LsAttentionNarrow narrow = {");
    for (int p = 0; p < 3; p++) {
        const LsHeadsAt at = ls_attention_heads(k->g, k->n, (LsAttentionPart)p);
        source(k, in[p], at.operand, at.from);
        if (grad)
            ls_emit_line(k->e, ".%s = (%s *)arg[%d] + %" PRId64 ",", out[p], ls_ctype(to),
                         node->nin + (joint ? 0 : p), at.from);
    }
    if (grad) {
        source(k, "dy", 0, 0);
        source(k, "y", 1, 0);
    } else {
        ls_emit_line(k->e, ".out = arg[%d],", node->nin);
    }
    ls_emit_line(k->e, ".to = %s,", ls_stored_word(to));
    ls_emit_line(k->e, "};");
}

/* The words between "ls_attention" and "_some" or "_units", or "ROOM". */
typedef struct Form { const char *function, *room; } Form;
static Form form_of(const LsKernelText *k)
{
    static const Form form[3][2] = {{{"", "LS_ATT"}, {"_back", "LS_ATT_BACK"}},
                                    {{"_narrow", "LS_ATT"}, {"_back_narrow", "LS_ATT_BACK"}},
                                    {{"16", "LS_ATT16"}, {"16_back", "LS_ATT16_BACK"}}};
    return form[is_dot16(k) ? 2 : is_narrow(k)][ls_attention_is_back(k->g, k->n)];
}

/* Room on the stack for one head: float16's rows in f32; bfloat16's sums of the gradient. Returns
 * the last argument of the function that computes some units. */
static const char *head_room(const LsKernelText *k, const LsAttentionSize *s)
{
    const bool grad = ls_attention_is_back(k->g, k->n);
    if (!is_narrow(k) || (is_dot16(k) && !grad))
        return "";
    if (is_dot16(k) && ls_result_type(k, 0) == LS_REAL)
        return ", NULL";
    ls_emit_line(k->e,
                 "_Alignas(64) real heads[%s(%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
                 ")];",
                 is_dot16(k) ? "LS_ATT16_SUMS" : grad ? "2 * LS_ATT_HEADS" : "LS_ATT_HEADS",
                 s->rows, s->cols, s->depth, s->width);
    return ", heads";
}

static void attention_emit(const LsKernelText *k)
{
    const bool grad = ls_attention_is_back(k->g, k->n), narrow = is_narrow(k);
    const LsAttentionSize s = ls_attention_size(k->g, k->n);
    const Form form = form_of(k);
    shape(k);
    ls_emit_line(k->e, "static void %s_part(LsRun *run, void *const arg[], int64_t lo, int64_t hi)",
                 k->name);
    ls_emit_line(k->e, "{");
    ls_emit_line(k->e,
                 "_Alignas(64) real room[%s_ROOM(%" PRId64 ", %" PRId64 ", %" PRId64 ")];",
                 form.room, s.depth, s.width, deep(&s));
    arguments(k, grad);
    ls_emit_line(k->e, "(void)run;");
    if (narrow)
        narrow_arguments(k, grad);
    const char *heads = head_room(k, &s);
    ls_emit_line(k->e, "ls_attention%s_some(&%s_shape, &a, %slo, hi, room%s);", form.function,
                 k->name, narrow ? "&narrow, " : "", heads);
    ls_emit_line(k->e, "}");
    ls_emit_line(k->e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(k->e, "{");
    ls_emit_line(k->e, "ls_parallel(run, %s_part, ls_attention%s_units(&%s_shape), arg);", k->name,
                 form.function, k->name);
    ls_emit_line(k->e, "}");
}

const LsEmitter ls_emitter_attention = {.emit = attention_emit};
