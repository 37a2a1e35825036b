/* codegen/kernels/widen_rows.c */
#include "codegen/kernels/widen_rows.h"

#include <inttypes.h>

static void loop(const LsKernelText *k, int64_t n)
{
    ls_emit_line(k->e, "LS_LANES(element, 0, " LS_BOUND64 ")", n);
}

void ls_row_stage_in(const LsKernelText *k, const char *var, int operand, const LsRowStage *s)
{
    LsArena *a = k->g->arena;
    LsType type = ls_operand_type(k, operand);
    if (ls_is_16(type) && k->target->kind == LS_TARGET_CUDA) {
        ls_emit_line(k->e, "const %s *const %s = %s + %s;", ls_ctype(type), var, s->all, s->at);
        return;
    }
    if (!ls_is_16(type)) {
        ls_emit_line(k->e, "const real *const %s = %s + %s;", var, s->all, s->at);
        return;
    }
    ls_emit_line(k->e, "LS_LOCAL_ROWS(real, %s, %" PRId64 ", %d);", var, s->n, s->y);
    loop(k, s->n);
    ls_emit_line(k->e, "    %s[element] = %s;", var,
                 ls_widened(a, type, ls_arena_printf(a, "%s[%s + element]", s->all, s->at)));
    ls_emit_line(k->e, "LS_ROW_SYNC;");
}

void ls_row_stage_out(const LsKernelText *k, const char *var, int result, const LsRowStage *s)
{
    if (ls_rows_in_place(k))
        ls_emit_line(k->e, "%s *const %s = %s + %s;", ls_ctype(ls_result_type(k, result)), var,
                     s->all, s->at);
    else if (ls_is_16(ls_result_type(k, result)))
        ls_emit_line(k->e, "LS_LOCAL_ROWS(real, %s, %" PRId64 ", %d);", var, s->n, s->y);
    else
        ls_emit_line(k->e, "real *const %s = %s + %s;", var, s->all, s->at);
}

void ls_row_stage_end(const LsKernelText *k, const char *var, int result, const LsRowStage *s)
{
    LsArena *a = k->g->arena;
    LsType type = ls_result_type(k, result);
    if (!ls_is_16(type) || ls_rows_in_place(k))
        return;
    ls_emit_line(k->e, "LS_ROW_SYNC;");
    loop(k, s->n);
    ls_emit_line(k->e, "    %s[%s + element] = %s;", s->all, s->at,
                 ls_stored(a, type, ls_arena_printf(a, "%s[element]", var)));
    ls_emit_line(k->e, "LS_ROW_SYNC;");
}

/* ---- rows in place on a GPU ---- */
bool ls_rows_in_place(const LsKernelText *k)
{
    return k->target->kind == LS_TARGET_CUDA && ls_is_16(ls_result_type(k, 0));
}

const char *ls_row_get(const LsKernelText *k, LsType type, int wide, const char *x)
{
    const char *element = ls_get_text(k->g->arena, wide, x, x, "i");
    return wide > 0 ? element : ls_widened(k->g->arena, type, element);
}

void ls_row_put(const LsKernelText *k, LsType type, int wide, const char *y, const char *v)
{
    ls_emit_put(k->e, wide, y, "i",
                wide > 0 ? ls_rounded(k->g->arena, type, v) : ls_stored(k->g->arena, type, v));
}
