/* codegen/kernels/fused.c -- LS_K_FUSED: pointwise chains; bodies with reductions are in reduce.c.
 *
 * A unit is a box of about 8192 elements: some rows of the innermost axis, or a piece of one row where rows
 * are long. Every unit starts its loops anew, so the bits of a result do not depend on the threads. */
#include "codegen/kernels/body.h"

#include <inttypes.h>

enum { BLOCK = 8192 };      /* elements of a unit */

typedef struct Boxes {
    int64_t inner, mid;         /* elements and rows of one unit */
    int64_t ninner, nmid, outer;    /* units along each axis; product of the axes outside */
} Boxes;

static Boxes boxes(const LsNest *n)
{
    int64_t inner = n->size[n->naxis - 1], mid = n->naxis > 1 ? n->size[n->naxis - 2] : 1;
    Boxes b = {.inner = inner, .mid = mid, .outer = 1};
    if (inner >= 2 * BLOCK) {
        b.inner = BLOCK;
        b.mid = 1;
    } else if (BLOCK / inner < mid) {
        b.mid = inner < BLOCK ? BLOCK / inner : 1;
    }
    b.ninner = ls_ceil_div(inner, b.inner);
    b.nmid = ls_ceil_div(mid, b.mid);
    for (int k = 0; k + 2 < n->naxis; k++)
        b.outer *= n->size[k];
    return b;
}

/* The loop over the indices of one axis in unit u, or the index itself when there is one; true: a loop. */
static bool walk(LsEmit *e, const char *var, const char *unit, int64_t size, int64_t block)
{
    if (block == 1 && size > 1) {
        ls_emit_line(e, "const int64_t %s = %s;", var, unit);
        return false;
    }
    if (block == size)
        ls_emit_line(e, "for (int64_t %s = 0; %s < %" PRId64 "; %s++) {", var, var, size, var);
    else
        ls_emit_line(e, "for (int64_t %s = %s0; %s < %s1; %s++) {", var, var, var, var, var);
    return true;
}

/* First and last index of one axis in a unit. */
static void bounds(LsEmit *e, const char *var, const char *unit, int64_t size, int64_t block)
{
    if (block == size || block == 1)
        return;
    ls_emit_line(e, "const int64_t %s0 = %s * %" PRId64 ";", var, unit, block);
    if (size % block == 0)
        ls_emit_line(e, "const int64_t %s1 = %s0 + %" PRId64 ";", var, var, block);
    else
        ls_emit_line(e, "const int64_t %s1 = ls_least(%s0 + %" PRId64 ", %" PRId64 ");", var, var,
                     block, size);
}

typedef struct Place { const char *mid, *inner; } Place;    /* number of the box along an axis */

/* Indices of the outer axes from unit u; which box of the two inner ones it is. */
static Place place(LsEmit *e, const LsNest *n, const Boxes *b)
{
    Place p = {"u", "u"};
    int axis[LS_NEST_AXES], outer = n->naxis - 2;
    int64_t per = b->nmid * b->ninner;
    for (int k = 0; k < outer; k++)
        axis[k] = k;
    if (outer > 0) {
        const char *flat = per == 1 ? "u" : ls_arena_printf(n->arena, "u / %" PRId64, per);
        ls_nest_decode(e, n, flat, outer, axis);
        p.mid = p.inner = ls_arena_printf(n->arena, "u %% %" PRId64, per);
    }
    if (b->ninner > 1 && (outer > 0 || b->nmid > 1)) {
        p.mid = ls_arena_printf(n->arena, "%s / %" PRId64, p.mid, b->ninner);
        p.inner = ls_arena_printf(n->arena, "u %% %" PRId64, b->ninner);
    }
    return p;
}

static void pointwise(const LsKernelText *k)
{
    LsBody body = ls_body_new(k);
    const LsNest *n = body.nest;
    const Boxes b = boxes(n);
    LsEmit *e = k->e;
    int last = n->naxis - 1;
    ls_emit_line(e, "static void %s_part(LsRun *run, void *const arg[], int64_t lo, int64_t hi)",
                 k->name);
    ls_emit_line(e, "{");
    ls_emit_line(e, "(void)run;");
    ls_body_declare(&body);
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    Place p = place(e, n, &b);
    bool mid = false;
    if (last > 0) {
        bounds(e, n->var[last - 1], p.mid, n->size[last - 1], b.mid);
        mid = walk(e, n->var[last - 1], p.mid, n->size[last - 1], b.mid);
    }
    ls_body_rows(&body);
    bounds(e, n->var[last], p.inner, n->size[last], b.inner);
    ls_emit_line(e, "#pragma GCC ivdep");
    walk(e, n->var[last], p.inner, n->size[last], b.inner);
    ls_body_point(&body);
    for (int close = mid ? 4 : 3; close > 0; close--)
        ls_emit_line(e, "}");
    ls_emit_launch(k, b.outer * b.nmid * b.ninner);
}

static bool reduces(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    for (int y = 0; y < node->nout; y++)
        if (node->attr.fused.body->out[y].reduce)
            return true;
    return false;
}

static void fused_emit(const LsKernelText *k)
{
    if (reduces(k->g, k->n))
        ls_reduce_emit(k);
    else
        pointwise(k);
}

static int64_t fused_workspace(const LsGraph *g, LsNodeId n, int real_bytes)
{
    return reduces(g, n) ? ls_reduce_workspace(g, n, real_bytes) : 0;
}

const LsEmitter ls_emitter_fused = {.emit = fused_emit, .workspace = fused_workspace};
