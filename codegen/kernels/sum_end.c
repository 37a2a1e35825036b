/* codegen/kernels/sum_end.c -- the results of sums whose parts nodes of some samples each have
 * left: SUM_END as the second part of codegen/kernels/reduce.c makes them, CONV_DW_END as the last
 * one of codegen/kernels/conv.c. */
#include "codegen/emit/kernel_emit.h"
#include "codegen/kernels/loop_nest.h"
#include "compiler/passes/fuse.h"
#include "runtime/kernels/ls_kernel_sizes.h"

#include <inttypes.h>

enum { COLUMNS = 64 };          /* results of a unit */

/* Elements that make one result, as text. */
static const char *count(const LsKernelText *k)
{
    const LsFusedAttr *at = &k->g->node[k->n.i].attr.fused;
    const LsStmt *s = &at->body->stmt[at->body->out[at->out].stmt];
    const bool counted = s->op == LS_OP_REDUCE_MEAN || s->op == LS_OP_NORM_VAR;
    const int64_t each = counted ? s->attr.reduce.counted.each : 0;
    int64_t n = 1;
    for (int a = 0; a < at->body->space.rank; a++)
        n *= at->body->axes >> a & 1 ? at->body->space.dim[a] : 1;
    return each > 0 ? ls_arena_printf(k->g->arena, "(double)(run->valid * " LS_N64 ")", each)
                    : ls_arena_printf(k->g->arena, LS_N64, n);
}

static void fused_end_emit(const LsKernelText *k)
{
    const LsFusedAttr *at = &k->g->node[k->n.i].attr.fused;
    const LsGrid part = {"part", ls_ceil_div(at->points, COLUMNS), 1, 1};
    LsEmit *e = k->e;
    ls_emit_line(e, "LS_EXACT_BEGIN");
    ls_emit_part(k, &part);
    ls_emit_line(e, "const double *part = arg[0];");
    ls_emit_result(k, "y", 0);
    ls_emit_line(e, "for (int64_t i = lo * %d; i < ls_least(hi * %d, " LS_N64 "); i++) {", COLUMNS,
                 COLUMNS, at->points);
    ls_emit_line(e, "double total = 0;");
    ls_emit_line(e, "for (int64_t p = 0; p < " LS_N64 "; p++)", at->pieces);
    ls_emit_line(e, "    total += part[p * " LS_N64 " + i];", at->points);
    if (at->body->out[at->out].mean)
        ls_emit_line(e, "y[i] = (real)(total / %s);", count(k));
    else
        ls_emit_line(e, "y[i] = (real)total;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_launch(k, &part, 1);
    ls_emit_line(e, "LS_EXACT_END");
}

static void conv_end_emit(const LsKernelText *k)
{
    LsEmit *e = k->e;
    const LsShape *w = ls_shape(k->g, ls_out(k->g, k->n, 0));
    const int64_t parts = k->g->node[k->n.i].attr.window.parts, size = ls_count(w);
    e->needs |= LS_NEEDS_CONV;
    if (parts > 0) {
        const LsGrid part = {"part", ls_ceil_div(size, LS_SUM_UNIT), 1, 1};
        ls_emit_part(k, &part);
        ls_emit_operand(k, "part", 0);
        ls_emit_result(k, "dw", 0);
        ls_emit_line(e, "ls_sum_parts(dw, part, %" PRId64 ", %" PRId64 ", lo, hi);", size, parts);
        ls_emit_line(e, "}");
        ls_emit_launch(k, &part, 1);
        return;
    }
    ls_emit_line(e, "static const LsConv %s_conv = {.cin = %" PRId64 ", .cout = %" PRId64 "};",
                 k->name, w->dim[1], w->dim[0]);
    ls_emit_line(e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(e, "{");
    ls_emit_line(e, "ls_wino_dw_end(run, &%s_conv, arg[0], arg[1]);", k->name);
    ls_emit_line(e, "}");
}

static void sum_end_emit(const LsKernelText *k)
{
    if (k->g->node[k->n.i].op == LS_OP_SUM_END)
        fused_end_emit(k);
    else
        conv_end_emit(k);
}

const LsEmitter ls_emitter_sum_end = {.emit = sum_end_emit};
