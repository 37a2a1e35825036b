/* codegen/kernels/update_codes.c -- see update_codes.h. */
#include "codegen/kernels/update_codes.h"

#include "base/arena.h"
#include "codegen/kernels/loop_nest.h"

#include <inttypes.h>

static int bits(const LsUpdateText *u) { return (int)u->at->hyper.bits; }
static int64_t block(const LsUpdateText *u) { return ls_code_block(u->at->hyper.bits); }

int64_t ls_update_block(const LsUpdateText *u)
{
    return u->rule != NULL && ls_rule_has_codes(u->rule) ? block(u) : 0;
}

/* Elements of the first axis's index, among which a layout moves the others; 1: it moves none. */
static int64_t slab(const LsUpdateText *u)
{
    const LsValueId p = ls_in(u->k->g, u->k->n, 0);
    const LsShape *s = ls_shape(u->k->g, p);
    return u->k->g->value[p.i].layout == LS_LAST && !ls_layout_free(s) ? ls_count(s) / s->dim[0]
                                                                       : 1;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int64_t ls_update_block_unit(const LsUpdateText *u)
{
    const int64_t least = block(u) / common_divisor(block(u), slab(u)) * slab(u);
    return ls_ceil_div(ls_unit(u->k), least) * least;
}

/* Bytes of the codes of a block. */
static int64_t bytes(const LsUpdateText *u) { return block(u) * bits(u) / 8; }

const char *ls_update_block_operand(const LsUpdateText *u, int in)
{
    LsArena *a = u->k->g->arena;
    if (in < 2 || in >= ls_rule_factor(u->rule))
        return ls_arena_printf(a, "(real *)all[%d] + at,", in);
    if (ls_are_codes(in - 2))
        return ls_arena_printf(a, "(uint8_t *)all[%d] + at * %d / 8,", in, bits(u));
    return ls_arena_printf(a, "(real *)all[%d] + at / %" PRId64 ",", in, block(u));
}

static const struct { const char *name, *table; } moment[] = {{"m", "signed"}, {"v", "unsigned"}};
enum { MOMENTS = sizeof moment / sizeof *moment };

static void read_moments(const LsUpdateText *u)
{
    LsEmit *e = u->k->e;
    ls_emit_line(e, "LS_LANES(j, 0, %" PRId64 ") {", block(u));
    for (int k = 0; k < MOMENTS; k++)
        ls_emit_line(e, "%s[j] = ls_codes_get%d(%s_codes + b * %" PRId64
                        ", j, %s_scales[b], ls_codes_%s%d);",
                     moment[k].name, bits(u), moment[k].name, bytes(u), moment[k].name,
                     moment[k].table, bits(u));
    ls_emit_line(e, "}");
}

void ls_update_open_blocks(const LsUpdateText *u)
{
    LsEmit *e = u->k->e;
    const LsShape *s = ls_in_shape(u->k->g, u->k->n, 0);
    const int64_t n = block(u), all = slab(u);
    e->needs |= LS_NEEDS_CODES;
    for (int k = 0; k < MOMENTS; k++)
        ls_emit_line(e, "LS_LOCAL(real, %s, %" PRId64 ");", moment[k].name, n);
    if (u->at->sum.levels > 0)      /* other threads made the sums */
        ls_emit_line(e, "LS_SYNC;");
    if (u->row)
        ls_emit_line(e, "for (int64_t b = 0; b < end / %" PRId64 "; b++) {", n);
    else
        ls_emit_line(e, "for (int64_t b = lo * %" PRId64 "; b < end / %" PRId64 "; b++) {",
                     u->unit / n, n);
    read_moments(u);
    ls_emit_line(e, "LS_LANES(j, 0, %" PRId64 ") {", n);
    ls_emit_line(e, "const int64_t %s = b * %" PRId64 " + j;", all > 1 ? "at" : "i", n);
    if (all > 1)
        ls_emit_line(e, "const int64_t in = at %% %" PRId64 ", i = at - in + in %% %" PRId64
                        " * %" PRId64 " + in / %" PRId64 ";",
                     all, all / s->dim[1], s->dim[1], all / s->dim[1]);
}

void ls_update_close_blocks(const LsUpdateText *u)
{
    LsEmit *e = u->k->e;
    ls_emit_line(e, "LS_SYNC;");
    for (int k = 0; k < MOMENTS; k++)
        ls_emit_line(e, "const real %s_scale = ls_codes_scale(%s, %" PRId64 ");", moment[k].name,
                     moment[k].name, block(u));
    ls_emit_line(e, "LS_LANES(j, 0, %" PRId64 ") {", bytes(u));
    for (int k = 0; k < MOMENTS; k++)
        ls_emit_line(e, "%s_codes[b * %" PRId64 " + j] = ls_codes_put%d(%s, j, %s_scale, "
                        "ls_codes_%s%d);",
                     moment[k].name, bytes(u), bits(u), moment[k].name, moment[k].name,
                     moment[k].table, bits(u));
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_ONE {");
    for (int k = 0; k < MOMENTS; k++)
        ls_emit_line(e, "%s_scales[b] = %s_scale;", moment[k].name, moment[k].name);
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "}");
}
