/* codegen/kernels/read_concat.c -- see the header. */
#include "codegen/kernels/read_concat.h"

#include <inttypes.h>

int ls_joined_runs(const LsGraph *g, LsNodeId n, int first, int count, int axis,
                   LsJoinedRun run[LS_JOINED_RUNS])
{
    int64_t from = 0, last = 0;
    int runs = 0;
    for (int x = first; x < first + count; x++) {
        int64_t length = ls_in_shape(g, n, x)->dim[axis];
        if (length != last && ++runs <= LS_JOINED_RUNS)
            run[runs - 1] = (LsJoinedRun){x, 0, from, length};
        if (runs <= LS_JOINED_RUNS)
            run[runs - 1].n++;
        from += length;
        last = length;
    }
    return runs;
}

static int runs_of(const LsBody *b, LsJoinedRun run[LS_JOINED_RUNS])
{
    const LsFused *f = b->f;
    return ls_joined_runs(b->k->g, b->k->n, f->joined, f->njoined,
                          ls_innermost(&f->space, f->layout), run);
}

void ls_joined_strides(const LsKernelText *k, LsNest *n, int row)
{
    const LsFused *f = k->g->node[k->n.i].attr.fused.body;
    int axis = ls_innermost(&f->space, f->layout);
    int64_t stride[LS_MAX_RANK];
    for (int x = f->joined; x < f->joined + f->njoined; x++) {
        ls_strides(ls_in_shape(k->g, k->n, x), f->layout, stride);
        stride[axis] = 1;                           /* even if the axis has length 1 */
        ls_nest_tensor(n, &f->space, f->layout, x, stride);
    }
    LsShape rows = f->space;
    rows.dim[axis] = 1;
    ls_strides(&rows, f->layout, stride);
    stride[axis] = 0;
    ls_nest_tensor(n, &f->space, f->layout, row, stride);
}

static const char *row_of(const LsBody *b, int tensor)
{
    return ls_nest_offset(b->nest, tensor, 0, b->nest->naxis - 1);
}

static const char *index_of(const LsBody *b) { return b->nest->var[b->nest->naxis - 1]; }

static bool on_gpu(const LsBody *b) { return b->k->target->kind != LS_TARGET_CPU; }

static bool reads_joined(const LsBody *b)
{
    return b->f->njoined > 0 && b->load[b->f->joined];
}

/* ---- CPU ---- */
void ls_joined_declare(const LsBody *b)
{
    if (on_gpu(b) || !reads_joined(b))
        return;
    LsJoinedRun run[LS_JOINED_RUNS];
    int n = runs_of(b, run);
    for (int r = 0; r < n; r++)
        if (run[r].n == 1)
            ls_emit_operand(b->k, ls_arena_printf(b->nest->arena, "x%d", run[r].first),
                            run[r].first);
}

/* Prints the copy of `length` elements, from `at` of the array x on, to `to` of the joined row,
 * widened. */
static void fill(const LsBody *b, const char *to, const char *x, const char *at, int64_t length)
{
    LsArena *a = b->nest->arena;
    LsType type = ls_operand_type(b->k, b->f->joined);
    LsEmit *e = b->k->e;
    if (!ls_is_16(type)) {
        ls_emit_line(e, "LS_COPY(row%d + %s, %s + %s, " LS_N64 ");", b->f->joined, to, x, at,
                     length);
        return;
    }
    ls_emit_line(e, "LS_INDEPENDENT for (int64_t element = 0; element < %" PRId64 "; element++)",
                 length);
    ls_emit_line(e, "    row%d[%s + element] = %s;", b->f->joined, to,
                 ls_widened(a, type, ls_arena_printf(a, "%s[%s + element]", x, at)));
}

void ls_joined_fill(const LsBody *b)
{
    if (on_gpu(b) || !reads_joined(b))
        return;
    LsEmit *e = b->k->e;
    LsJoinedRun run[LS_JOINED_RUNS];
    LsArena *a = b->nest->arena;
    int n = runs_of(b, run), x = b->f->joined;
    ls_emit_line(e, "real row%d[%" PRId64 "];", x, b->nest->size[b->nest->naxis - 1]);
    for (int r = 0; r < n; r++) {
        const LsJoinedRun *p = &run[r];
        const char *row = row_of(b, p->first);
        if (p->n == 1) {
            fill(b, ls_arena_printf(a, LS_N64, p->from), ls_arena_printf(a, "x%d", p->first), row,
                 p->length);
            continue;
        }
        ls_emit_line(e, "for (int64_t part = 0; part < %d; part++) {", p->n);
        ls_emit_line(e, "LS_IN(%s, x, " LS_N " + part);", ls_ctype(ls_operand_type(b->k, x)),
                     p->first);
        fill(b, ls_arena_printf(a, LS_N64 " + part * " LS_N64, p->from, p->length), "x", row,
             p->length);
        ls_emit_line(e, "}");
    }
}

/* ---- GPU ---- */
/* Chooses by index i among the texts that `print` gives for each run: A below 64, B below 96, else
 * C. */
static const char *chosen(const LsBody *b, const LsJoinedRun run[], int n,
                          const char *(*print)(const LsBody *, const LsJoinedRun *))
{
    struct LsArena *a = b->nest->arena;
    const char *text = print(b, &run[n - 1]);
    for (int r = n - 1; r-- > 0;)
        text = ls_arena_printf(a, "LS_BELOW(%s, " LS_N64 ", %s, %s)", index_of(b),
                               run[r].from + run[r].n * run[r].length, print(b, &run[r]), text);
    return text;
}

static const char *part_text(const LsBody *b, const LsJoinedRun *p)
{
    struct LsArena *a = b->nest->arena;
    if (p->n == 1)
        return ls_arena_printf(a, "%d", p->first);
    if (p->from == 0)
        return ls_arena_printf(a, LS_N " + %s / " LS_N64, p->first, index_of(b), p->length);
    return ls_arena_printf(a, LS_N " + (%s - " LS_N64 ") / " LS_N64, p->first, index_of(b), p->from,
                           p->length);
}

static const char *length_text(const LsBody *b, const LsJoinedRun *p)
{
    return ls_arena_printf(b->nest->arena, LS_N64, p->length);
}

static const char *from_text(const LsBody *b, const LsJoinedRun *p)
{
    struct LsArena *a = b->nest->arena;
    if (p->n == 1)
        return ls_arena_printf(a, "%" PRId64, p->from);
    return ls_arena_printf(a, LS_N64 " + (part%d - " LS_N ") * " LS_N64, p->from, b->f->joined,
                           p->first, p->length);
}

void ls_joined_pick(const LsBody *b)
{
    if (!on_gpu(b) || !reads_joined(b))
        return;
    LsEmit *e = b->k->e;
    LsJoinedRun run[LS_JOINED_RUNS];
    int n = runs_of(b, run), x = b->f->joined;
    const char *four = b->wide > 0 ? "LS_WHOLE4" : "";         /* tells the compiler */
    ls_emit_line(e, "const int64_t part%d = %s;", x, chosen(b, run, n, part_text));
    ls_emit_line(e, "const int64_t length%d = %s(%s);", x, four, chosen(b, run, n, length_text));
    ls_emit_line(e, "const int64_t from%d = %s(%s);", x, four, chosen(b, run, n, from_text));
    const char *type = ls_ctype(ls_operand_type(b->k, x));
    ls_emit_line(e, "LS_IN(%s, own%d, part%d);", type, x, x);
    ls_emit_line(e, "const %s *const x%d = own%d + ((%s) * length%d - from%d);", type, x, x,
                 row_of(b, ls_joined_row(b)), x, x);
}

/* ---- both ---- */
const char *ls_joined_array(const LsBody *b)
{
    return ls_arena_printf(b->nest->arena, "%s%d", on_gpu(b) ? "x" : "row", b->f->joined);
}

const char *ls_joined_at(const LsBody *b) { return index_of(b); }

const char *ls_joined_step(const LsBody *b, int axis)
{
    return ls_arena_printf(b->nest->arena, "%" PRId64 " * length%d",
                           b->nest->stride[ls_joined_row(b)][axis], b->f->joined);
}
