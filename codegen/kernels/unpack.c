/* codegen/kernels/unpack.c -- LS_K_UNPACK: reals from codes. A unit is a range of elements. */
#include "codegen/kernels/unpack.h"

#include "codegen/kernels/loop_nest.h"
#include "runtime/kernels/ls_kernel_sizes.h"

#include <inttypes.h>

const char *ls_packed_literal(LsArena *a, const LsPackedCodes *c)
{
    static const char *const form[LS_NCODES] = {"FP4", "NF4", "U4",   "I4",
                                                "U8",  "I8",  "BF16", "F16"};
    const LsPackedParts at = ls_packed_parts(c);
    return ls_arena_printf(a,
                           "{LS_PACKED_%s, %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
                           ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "}",
                           form[c->form], c->count, c->axis, c->inner, c->block,
                           ls_codes_scales(c), at.scales, at.zeros, at.nested);
}

void ls_unpack_emit_codes(const LsKernelText *k, const char *name, const LsPackedCodes *c)
{
    k->e->needs |= LS_NEEDS_UNPACK;
    ls_emit_line(k->e, "const LsPacked %s = %s;", name, ls_packed_literal(k->g->arena, c));
}

static void unpack_emit(const LsKernelText *k)
{
    const LsPackedCodes *c = &k->g->node[k->n.i].attr.unpack.codes;
    const int64_t unit = ls_unit(k);
    const LsGrid part = ls_flat_grid(k, "part", c->count);
    LsEmit *e = k->e;
    ls_emit_part(k, &part);
    ls_emit_operand(k, "x", 0);
    ls_emit_result(k, "y", 0);
    ls_unpack_emit_codes(k, "codes", c);
    ls_emit_line(e, "const int64_t end = ls_least(hi * %" PRId64 ", %" PRId64 ");", unit, c->count);
    if (k->target->kind == LS_TARGET_CPU) {
        ls_emit_line(e, "ls_unpack(&codes, x, lo * %" PRId64 ", y + lo * %" PRId64 ", end - lo * %"
                     PRId64 ");", unit, unit, unit);
    } else {
        ls_emit_line(e, "LS_LANES(i, lo * %" PRId64 ", end)", unit);
        ls_emit_line(e, "    y[i] = ls_packed_at(&codes, x, i);");
    }
    ls_emit_close(e, 1);
    ls_emit_launch(k, &part, 1);
}

const LsEmitter ls_emitter_unpack = {.emit = unpack_emit};
