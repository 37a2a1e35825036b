/* codegen/kernels/accumulator.c -- the accumulators of a reduction as text: types, initial values,
 * the combination of two, and the result of a total. */
#include "codegen/kernels/fused_body.h"
#include "codegen/kernels/reduce.h"

#include <inttypes.h>

LsType ls_reduce_type(const LsReduce *r, int y)
{
    return r->state ? LS_REAL : ls_result_type(r->body.k, y);
}

bool ls_long_sum(const LsReduce *r, int y)
{
    return r->body.f->out[y].combine == LS_SUM && ls_reduce_type(r, y) == LS_REAL
        && r->body.k->target->real_bytes == 4;
}

const char *ls_total_type(const LsReduce *r, int y)
{
    LsCombine c = r->body.f->out[y].combine;
    if (ls_reduce_type(r, y) != LS_REAL)
        return "int64_t";
    return c == LS_SUM || c == LS_PROD ? "double" : "real";
}

const char *ls_total_start(const LsReduce *r, int y)
{
    static const char *const real[] = {"0", "-INFINITY", "INFINITY", "1"};
    static const char *const whole[] = {"0", "INT64_MIN", "INT64_MAX", "1"};
    return (ls_reduce_type(r, y) == LS_REAL ? real : whole)[r->body.f->out[y].combine];
}

void ls_total_combine(const LsReduce *r, int y, const char *total, const char *x)
{
    switch (r->body.f->out[y].combine) {
    case LS_SUM:  ls_emit_line(r->e, "%s += %s;", total, x); break;
    case LS_PROD: ls_emit_line(r->e, "%s *= %s;", total, x); break;
    case LS_MAX:  ls_emit_line(r->e, "%s = ls_max(%s, %s);", total, total, x); break;
    case LS_MIN:  ls_emit_line(r->e, "%s = ls_min(%s, %s);", total, total, x); break;
    }
}

const char *ls_reduce_text(const LsReduce *r, const char *format, int y)
{
    char buffer[64];
    snprintf(buffer, sizeof buffer, format, y);
    return ls_arena_strdup(r->body.nest->arena, buffer);
}

/* The operand's first element along the reduced axes, to which its mean is relative. */
static const char *first_of(const LsBody *b)
{
    LsArena *a = b->nest->arena;
    int x = b->f->first;
    return ls_widened(
        a, ls_operand_type(b->k, x),
        ls_arena_printf(a, "x%d[%s]", x, ls_nest_offset(b->nest, x, 0, b->nest->naxis)));
}

void ls_total_finish(const LsReduce *r, int y, const char *total)
{
    const LsBody *b = &r->body;
    const char *at = ls_nest_offset(b->nest, ls_body_result(b, y), 0, b->nest->naxis);
    const char *type = ls_ctype(ls_reduce_type(r, y));
    if (b->f->out[y].variance)
        ls_emit_line(r->e, "y%d[%s] = (%s)ls_variance(%s, sum0, " LS_N64 ");", y, at, type, total,
                     r->count);
    else if (b->f->out[y].mean && b->f->first > 0)
        ls_emit_line(r->e, "y%d[%s] = (%s)(%s + %s / " LS_N64 ");", y, at, type, first_of(b), total,
                     r->count);
    else if (b->f->out[y].mean && ls_body_counted(b, b->f->out[y].stmt) > 0)
        ls_emit_line(r->e, "y%d[%s] = (%s)(%s / (double)(run->valid * " LS_N64 "));", y, at, type,
                     total, ls_body_counted(b, b->f->out[y].stmt));
    else if (b->f->out[y].mean)
        ls_emit_line(r->e, "y%d[%s] = (%s)(%s / " LS_N64 ");", y, at, type, total, r->count);
    else
        ls_emit_line(r->e, "y%d[%s] = (%s)%s;", y, at, type, total);
}

void ls_reduce_each(const LsReduce *r, void (*print)(const LsReduce *, const char *format, int y),
                    const char *format)
{
    for (int y = 0; y < r->body.node->nout; y++)
        if (r->body.f->out[y].reduce)
            print(r, format, y);
}

void ls_local_rows(const LsReduce *r, const LsGrid *part, const char *type, const char *name, int y,
                   int64_t n)
{
    ls_emit_line(r->e, "LS_LOCAL_ROWS(%s, %s%d, %" PRId64 ", %d);", type, name, y, n, part->y);
}

bool ls_any_long_sum(const LsReduce *r)
{
    for (int y = 0; y < r->body.node->nout; y++)
        if (r->body.f->out[y].reduce && ls_long_sum(r, y))
            return true;
    return false;
}
