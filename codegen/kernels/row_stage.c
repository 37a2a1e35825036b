/* codegen/kernels/row_stage.c */
#include "codegen/kernels/row_stage.h"

#include <inttypes.h>

static void loop(const LsKernelText *k, int64_t n)
{
    ls_emit_line(k->e, "LS_LANES(element, 0, " LS_BOUND64 ")", n);
}

void ls_row_stage_in(const LsKernelText *k, const char *var, int operand, const LsRowStage *s)
{
    LsArena *a = k->g->arena;
    LsType type = ls_operand_type(k, operand);
    if (!ls_is_16(type)) {
        ls_emit_line(k->e, "const real *const %s = %s + %s;", var, s->all, s->at);
        return;
    }
    ls_emit_line(k->e, "LS_LOCAL_ROWS(real, %s, %" PRId64 ", %d);", var, s->n, s->y);
    loop(k, s->n);
    ls_emit_line(k->e, "    %s[element] = %s;", var, ls_widened(a, type, ls_arena_printf(a, "%s[%s + element]", s->all, s->at)));
    ls_emit_line(k->e, "LS_ROW_SYNC;");
}

void ls_row_stage_out(const LsKernelText *k, const char *var, int result, const LsRowStage *s)
{
    if (ls_is_16(ls_result_type(k, result)))
        ls_emit_line(k->e, "LS_LOCAL_ROWS(real, %s, %" PRId64 ", %d);", var, s->n, s->y);
    else
        ls_emit_line(k->e, "real *const %s = %s + %s;", var, s->all, s->at);
}

void ls_row_stage_end(const LsKernelText *k, const char *var, int result, const LsRowStage *s)
{
    LsArena *a = k->g->arena;
    LsType type = ls_result_type(k, result);
    if (!ls_is_16(type))
        return;
    ls_emit_line(k->e, "LS_ROW_SYNC;");
    loop(k, s->n);
    ls_emit_line(k->e, "    %s[%s + element] = %s;", s->all, s->at,
                 ls_stored(a, type, ls_arena_printf(a, "%s[element]", var)));
    ls_emit_line(k->e, "LS_ROW_SYNC;");
}
