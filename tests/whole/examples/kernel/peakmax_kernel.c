/* codegen/kernels/peakmax_kernel.c -- LS_K_PEAKMAX: a unit is a row. */
#include "codegen/emit/kernel_emit.h"

#include <inttypes.h>

static void peakmax_emit(const LsKernelText *k)
{
    const LsShape *s = ls_in_shape(k->g, k->n, 0);
    int64_t n = s->dim[s->rank - 1];
    const LsGrid part = {"part", ls_count(s) / n, 1, 1};
    ls_emit_part(k, &part);
    ls_emit_operand(k, "x", 0);
    ls_emit_result(k, "y", 0);
    ls_emit_line(k->e, "for (int64_t row = lo; row < hi; row++) {");
    ls_emit_line(k->e, "int64_t best = row * %" PRId64 ";", n);
    ls_emit_line(k->e, "for (int64_t i = best; i < (row + 1) * %" PRId64 "; i++)", n);
    ls_emit_line(k->e, "    best = x[i] > x[best] ? i : best;");
    ls_emit_line(k->e, "for (int64_t i = row * %" PRId64 "; i < (row + 1) * %" PRId64 "; i++)", n,
                 n);
    ls_emit_line(k->e, "    y[i] = i == best ? LS_R(1.0) : LS_R(0.0);");
    ls_emit_line(k->e, "}");
    ls_emit_line(k->e, "}");
    ls_emit_launch(k, &part, 1);
}
const LsEmitter ls_emitter_peakmax = {.emit = peakmax_emit};
