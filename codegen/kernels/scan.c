/* codegen/kernels/scan.c -- LS_K_SCAN: running sums and products along one axis, the largest
 * elements, and segments.
 *
 * Operands are row-major, so memory is outer x axis x inner. A lane computes one line along the
 * axis, element after element, so results do not depend on how lines are shared out. Sums and
 * products of real numbers run in double. */
#include "codegen/kernels/loop_nest.h"

#include <inttypes.h>

typedef struct Scan {
    const LsKernelText *k;
    LsEmit *e;
    const LsNode *node;
    int64_t n, inner, lines;
    const char *type;           /* of the elements */
} Scan;

static bool is_real(const Scan *s) { return ls_operand_type(s->k, 0) == LS_REAL; }

static int axis_of(const LsNode *node)
{
    return node->op == LS_OP_TOP_K      ? node->attr.top.axis
           : node->op == LS_OP_SEGMENTS ? 1
                                        : node->attr.scan.axis;
}

static Scan scan_new(const LsKernelText *k)
{
    const LsShape *x = ls_in_shape(k->g, k->n, 0);
    Scan s = {.k = k, .e = k->e, .node = &k->g->node[k->n.i], .inner = 1,
              .type = ls_ctype(ls_operand_type(k, 0))};
    int axis = axis_of(s.node);
    s.n = x->dim[axis];
    s.lines = ls_count(x) / s.n;
    for (int a = axis + 1; a < x->rank; a++)
        s.inner *= x->dim[a];
    return s;
}

static LsGrid lines_grid(const Scan *s)
{
    int64_t group = ls_line_group(s->k, s->n);
    return (LsGrid){"part", ls_ceil_div(s->lines, group), ls_threads(group, 256), 1};
}

/* Opens the loop over the lines l of a unit. */
static void lines_open(const Scan *s)
{
    int64_t group = ls_line_group(s->k, s->n);
    ls_emit_line(s->e, "LS_LANES(l, lo * " LS_INNER64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 group, group, s->lines);
}

/* Declares `name`: the offset of line l in a tensor whose axis has this length. */
static void line_start(const Scan *s, const char *name, int64_t length)
{
    ls_emit_line(s->e, "const int64_t %s = l / " LS_N64 " * " LS_N64 " + l %% " LS_N64 ";", name,
                 s->inner, length * s->inner, s->inner);
}

/* Opens the loop over the elements i of the line, from its start or from its end. */
static void steps_open(const Scan *s, bool from_end)
{
    ls_emit_line(s->e, "for (int64_t step = 0; step < " LS_N64 "; step++) {", s->n);
    if (from_end)
        ls_emit_line(s->e, "const int64_t i = at + (" LS_N64 " - step) * " LS_N64 ";", s->n - 1,
                     s->inner);
    else
        ls_emit_line(s->e, "const int64_t i = at + step * " LS_N64 ";", s->inner);
}

/* Prints y[i] = the elements so far, with x[i] or without. */
static void accumulate(const Scan *s, const char *y, const char *sum, bool product)
{
    ls_emit_line(s->e, "const %s v = x[i];", s->type);
    if (s->node->attr.scan.exclusive)
        ls_emit_line(s->e, "%s[i] = (%s)%s;", y, s->type, sum);
    ls_emit_line(s->e, "%s %s= v;", sum, product ? "*" : "+");
    if (!s->node->attr.scan.exclusive)
        ls_emit_line(s->e, "%s[i] = (%s)%s;", y, s->type, sum);
}

static void running(const Scan *s)
{
    bool product = s->node->op == LS_OP_CUM_PROD;
    const LsGrid part = lines_grid(s);
    ls_emit_part(s->k, &part);
    ls_emit_operand(s->k, "x", 0);
    ls_emit_result(s->k, "y", 0);
    lines_open(s);
    line_start(s, "at", s->n);
    ls_emit_line(s->e, "%s sum = %d;", is_real(s) ? "double" : "int64_t", product);
    steps_open(s, s->node->attr.scan.reverse);
    accumulate(s, "y", "sum", product);
    ls_emit_close(s->e, 3);
    ls_emit_launch(s->k, &part, 1);
}

/* dx: first the product of the elements before; then, on the way back, times the sum of what
 * follows. */
static void product_gradient(const Scan *s)
{
    bool exclusive = s->node->attr.scan.exclusive, reverse = s->node->attr.scan.reverse;
    const LsGrid part = lines_grid(s);
    ls_emit_line(s->e, "LS_EXACT_BEGIN");
    ls_emit_part(s->k, &part);
    ls_emit_operand(s->k, "dy", 0);
    ls_emit_operand(s->k, "x", 1);
    ls_emit_result(s->k, "dx", 0);
    lines_open(s);
    line_start(s, "at", s->n);
    ls_emit_line(s->e, "double before = 1, after = 0;");
    steps_open(s, reverse);
    ls_emit_line(s->e, "dx[i] = (real)before;");
    ls_emit_line(s->e, "before *= x[i];");
    ls_emit_line(s->e, "}");
    steps_open(s, !reverse);
    if (!exclusive)
        ls_emit_line(s->e, "after += dy[i];");
    ls_emit_line(s->e, "dx[i] = (real)(dx[i] * after);");
    ls_emit_line(s->e, "after *= x[i];");
    if (exclusive)
        ls_emit_line(s->e, "after += dy[i];");
    ls_emit_close(s->e, 3);
    ls_emit_line(s->e, "LS_EXACT_END");
    ls_emit_launch(s->k, &part, 1);
}

/* ---- largest elements ---- The result holds a heap of the best indices so far, the last of them
 * in the result's order at the root; in the end the heap is sorted in place. */
/* Prints NAME_after: element a comes after element b, and NAME_sift: the heap's order from `root`
 * down. */
static void heap_helpers(const Scan *s)
{
    LsEmit *e = s->e;
    const char *name = s->k->name;
    bool least = s->node->attr.top.least, real = is_real(s);
    ls_emit_line(e, "LS_HELPER bool %s_after(const %s *x, int64_t a, int64_t b, int64_t inner)",
                 name, s->type);
    ls_emit_line(e, "{");
    ls_emit_line(e, "const %s v = x[%s * inner], w = x[%s * inner];", s->type, least ? "b" : "a",
                 least ? "a" : "b");
    ls_emit_line(e, real ? "if (v == w || (v != v && w != w))" : "if (v == w)");
    ls_emit_line(e, "    return a > b;");
    ls_emit_line(e, real ? "return v < w || w != w;" : "return v < w;");
    ls_emit_line(e, "}");
    ls_emit_line(e,
                 "LS_HELPER void %s_sift(const %s *x, int64_t *heap, int64_t size, int64_t root, "
                 "int64_t inner)",
                 name, s->type);
    ls_emit_line(e, "{");
    ls_emit_line(e, "const int64_t moved = heap[root * inner];");
    ls_emit_line(e, "for (int64_t child = 2 * root + 1; child < size; child = 2 * root + 1) {");
    ls_emit_line(e,
                 "if (child + 1 < size && %s_after(x, heap[(child + 1) * inner], heap[child * "
                 "inner], inner))",
                 name);
    ls_emit_line(e, "    child++;");
    ls_emit_line(e, "if (!%s_after(x, heap[child * inner], moved, inner))", name);
    ls_emit_line(e, "    break;");
    ls_emit_line(e, "heap[root * inner] = heap[child * inner];");
    ls_emit_line(e, "root = child;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "heap[root * inner] = moved;");
    ls_emit_line(e, "}");
}

static void largest(const Scan *s)
{
    LsEmit *e = s->e;
    const char *name = s->k->name;
    int64_t k = s->node->attr.top.k, inner = s->inner;
    const LsGrid part = lines_grid(s);
    heap_helpers(s);
    ls_emit_part(s->k, &part);
    ls_emit_operand(s->k, "all_x", 0);
    ls_emit_result(s->k, "all_y", 0);
    lines_open(s);
    line_start(s, "from", s->n);
    line_start(s, "to", k);
    ls_emit_line(e, "const %s *const x = all_x + from;", s->type);
    ls_emit_line(e, "int64_t *const heap = all_y + to;");
    ls_emit_line(e, "for (int64_t i = 0; i < " LS_N64 "; i++)", k);
    ls_emit_line(e, "    heap[i * " LS_N64 "] = i;", inner);
    ls_emit_line(e, "for (int64_t i = " LS_N64 "; i-- > 0; )", k / 2);
    ls_emit_line(e, "    %s_sift(x, heap, " LS_N64 ", i, " LS_N64 ");", name, k, inner);
    ls_emit_line(e, "for (int64_t i = " LS_N64 "; i < " LS_N64 "; i++) {", k, s->n);
    ls_emit_line(e, "if (%s_after(x, i, heap[0], " LS_N64 "))", name, inner);
    ls_emit_line(e, "    continue;");
    ls_emit_line(e, "heap[0] = i;");
    ls_emit_line(e, "%s_sift(x, heap, " LS_N64 ", 0, " LS_N64 ");", name, k, inner);
    ls_emit_line(e, "}");
    ls_emit_line(e, "for (int64_t size = " LS_N64 "; size > 0; size--) {", k - 1);
    ls_emit_line(e, "const int64_t last = heap[0];");
    ls_emit_line(e, "heap[0] = heap[size * " LS_N64 "];", inner);
    ls_emit_line(e, "heap[size * " LS_N64 "] = last;", inner);
    ls_emit_line(e, "%s_sift(x, heap, size, 0, " LS_N64 ");", name, inner);
    ls_emit_close(e, 3);
    ls_emit_launch(s->k, &part, 1);
}

/* ---- segments: where each token's begins, then, from the end, where it ends ---- */
static void segments(const Scan *s)
{
    LsEmit *e = s->e;
    const LsGrid part = lines_grid(s);
    ls_emit_part(s->k, &part);
    ls_emit_operand(s->k, "all", 0);
    ls_emit_result(s->k, "spans", 0);
    ls_emit_result(s->k, "places", 1);
    lines_open(s);
    line_start(s, "at", s->n);
    ls_emit_line(e, "const %s *const x = all + at;", s->type);
    ls_emit_line(e, "int32_t *const span = spans + 2 * at, *const place = places + at;");
    ls_emit_line(e, "int32_t first = 0, end = " LS_N64 ";", s->n);
    ls_emit_line(e, "for (int32_t i = 0; i < " LS_N64 "; i++) {", s->n);
    ls_emit_line(e, "if (i > 0 && x[i] != x[i - 1])");
    ls_emit_line(e, "    first = i;");
    ls_emit_line(e, "span[2 * i] = first;");
    ls_emit_line(e, "place[i] = i - first;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "for (int32_t i = " LS_N64 "; i-- > 0; ) {", s->n);
    ls_emit_line(e, "span[2 * i + 1] = end;");
    ls_emit_line(e, "if (i > 0 && x[i] != x[i - 1])");
    ls_emit_line(e, "    end = i;");
    ls_emit_close(e, 3);
    ls_emit_launch(s->k, &part, 1);
}

static void scan_emit(const LsKernelText *k)
{
    const Scan s = scan_new(k);
    if (s.node->op == LS_OP_TOP_K)
        largest(&s);
    else if (s.node->op == LS_OP_SEGMENTS)
        segments(&s);
    else
        (s.node->op == LS_OP_CUM_PROD_GRAD ? product_gradient : running)(&s);
}

const LsEmitter ls_emitter_scan = {.emit = scan_emit};
