/* codegen/kernels/update_operands.c -- see update_operands.h. */
#include "codegen/kernels/update_operands.h"

#include "codegen/kernels/loop_nest.h"
#include "compiler/passes/fuse.h"

#include <inttypes.h>

bool ls_update_has(const LsUpdateText *u, int operand)
{
    int own = u->node->computed != NULL ? u->node->computed->first : ls_update_operands(u->node);
    return operand < own && ls_is(ls_in(u->k->g, u->k->n, operand));
}

const char *ls_update_number(const LsUpdateText *u, double v)
{
    return ls_literal(u->k->g->arena, LS_REAL, v, 0, u->k->target->real_bytes);
}

void ls_update_declare(const LsUpdateText *u, const char *word, const char *name, int operand)
{
    const LsValueId v = ls_in(u->k->g, u->k->n, operand);
    const char *type = ls_is(v) ? ls_ctype(ls_type(u->k->g, v)) : "real";
    if (u->each > 0)
        ls_emit_line(u->k->e, "%s(%s, %s, u * " LS_N " + " LS_N ");", word, type, name, u->each,
                     operand);
    else
        ls_emit_line(u->k->e, "%s(%s, %s, " LS_N ");", word, type, name, operand);
}

void ls_update_state(const LsUpdateText *u, const char *name, int operand)
{
    ls_update_declare(u, "LS_OUT", name, operand);
}

void ls_update_operand(const LsUpdateText *u, const char *name, int operand)
{
    ls_update_declare(u, "LS_IN", name, operand);
}

void ls_update_open_loop(const LsUpdateText *u)
{
    if (u->each > 0 || u->row)
        ls_emit_line(u->k->e, "%s(i, 0, end) {", ls_lanes_word(u->fours ? 4 : 0));
    else
        ls_emit_line(u->k->e, "%s(i, lo * " LS_INNER64 ", end) {", ls_lanes_word(u->fours ? 4 : 0),
                     u->unit);
}

void ls_update_declare_weight(const LsUpdateText *u)
{
    LsEmit *e = u->k->e;
    if (u->weight >= 0) {
        ls_update_operand(u, "weights", u->weight);
        ls_emit_line(e, "const real part = weights[0] != 0 ? weights[0] : 1;");
    } else if (u->at->sum.by_samples) {
        ls_emit_line(e, "const real part = (real)(run->share * %.17g);", u->at->sum.scale);
    } else {
        ls_emit_line(e, "const real part = %s;", ls_update_number(u, u->at->sum.scale));
    }
}

void ls_update_declare_part(const LsUpdateText *u)
{
    if (u->at->sum.levels == 0)
        ls_emit_line(u->k->e, "const bool first = run->first;");
    ls_update_declare_weight(u);
}

void ls_update_join_tree(const LsUpdateText *u, const char *to)
{
    LsEmit *e = u->k->e;
    const int64_t n = ls_count(ls_in_shape(u->k->g, u->k->n, 0));
    if (u->node->op == LS_OP_LOCAL_SUM)
        ls_emit_line(e, "const int64_t apart = run->apart;");
    else if (u->each > 0)
        ls_emit_line(e, "const int64_t apart = end;");
    else
        ls_emit_line(e, "const int64_t apart = " LS_N64 ";", n);
    ls_emit_line(e, "const int64_t joined = ls_tree_joined(run->part, run->apply);");
    const char *level = "acc + ls_tree_level(run->part, run->apply) * apart";
    if (to != NULL)
        ls_emit_line(e, "real *const sums = run->apply ? %s : %s;", to, level);
    else
        ls_emit_line(e, "real *const sums = %s;", level);
    ls_emit_line(e, "if (joined == 0) {");
    ls_update_open_loop(u);
    ls_emit_line(e, "sums[i] = g[i] * part;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "} else {");
    ls_emit_line(e, "const real *const before = acc + ls_tree_lowest(joined) * apart;");
    ls_emit_line(e, "const LsBits none = ls_no_bits();");
    ls_update_open_loop(u);
    ls_emit_line(e, "sums[i] = before[i] + ls_as_stored(g[i] * part, none);");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "for (int64_t rest = joined & (joined - 1); rest != 0; rest &= rest - 1) {");
    ls_emit_line(e, "const real *const before = acc + ls_tree_lowest(rest) * apart;");
    ls_update_open_loop(u);
    ls_emit_line(e, "sums[i] = before[i] + sums[i];");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

void ls_update_accumulate(const LsUpdateText *u)
{
    ls_emit_line(u->k->e, "const real sum = (first ? 0 : acc[i]) + g[i] * part;");
    ls_emit_line(u->k->e, "acc[i] = sum;");
}
