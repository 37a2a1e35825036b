/* codegen/kernels/fused_body.c -- see the header. */
#include "codegen/kernels/fused_body.h"

#include "codegen/kernels/read_concat.h"
#include "codegen/kernels/read_padded.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool uses(const LsFused *f, int operand)
{
    for (int s = 0; s < f->nstmt; s++)
        for (int c = 0; c < f->stmt[s].narg; c++)
            if (f->stmt[s].arg[c] == ~operand)
                return true;
    return false;
}

static const char *constant(const LsKernelText *k, LsValueId v)
{
    LsType t = ls_type(k->g, v);
    if (t == LS_REAL)
        return ls_literal(k->g->arena, t, ls_const_at(k->g, v, 0), 0, k->target->real_bytes);
    return ls_literal(k->g->arena, t, 0, ls_const_int_at(k->g, v, 0), k->target->real_bytes);
}

static void operand(LsBody *b, int x)
{
    const LsKernelText *k = b->k;
    LsValueId v = ls_in(k->g, k->n, x);
    const LsValue *value = &k->g->value[v.i];
    bool literal = value->kind == LS_V_CONST && value->data != NULL && ls_count(&value->shape) == 1
        && !ls_is_joined(b->f, x);
    int level = ls_nest_level(b->nest, x);
    b->at[x] = level < 0 ? LS_AT_TOP : level < b->nest->naxis - 1 ? LS_AT_ROW : LS_AT_INNER;
    b->load[x] = !literal && uses(b->f, x);     /* of joined operands, the first */
    b->arg[x] = literal ? constant(k, v) : ls_arena_printf(k->g->arena, "a%d", x);
}

static bool has_parts(const LsFused *f, int nout)
{
    bool any = false;
    for (int y = 0; y < nout; y++)
        any |= f->out[y].length > 0;
    return any;
}

/* Sets the strides of a part; along the split axis its stride is not 0 even if it is one index
 * long. */
static void part_strides(const LsKernelText *k, const LsFused *f, int y,
                         int64_t stride[LS_MAX_RANK], int64_t *before)
{
    const LsValue *v = &k->g->value[ls_out(k->g, k->n, y).i];
    int64_t own[LS_MAX_RANK];
    ls_strides(&v->shape, v->layout, own);
    stride[f->split] = own[f->split];
    *before = f->out[y].from * own[f->split];
}

/* Whether a GPU's kernel reads or writes elements of 16 bits. */
static bool has_16(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    bool any = false;
    for (int x = 0; x < node->nin; x++)
        any |= ls_is(ls_in(k->g, k->n, x)) && ls_is_16(ls_operand_type(k, x));
    for (int y = 0; y < node->nout; y++)
        any |= ls_is_16(ls_result_type(k, y));
    return any && k->target->kind == LS_TARGET_CUDA;
}

static LsNest *body_nest(const LsKernelText *k, const LsNode *node, const LsFused *f)
{
    int nin = node->nin, nout = node->nout;
    bool joined = f->njoined > 0;
    LsNest *n = ls_nest_new(k->g, &f->space, f->layout, nin + nout + joined + 1);
    int64_t stride[LS_MAX_RANK];
    int order[LS_MAX_RANK];
    for (int x = 0; x < nin; x++) {
        if (ls_is_joined(f, x) || ls_inset_with(f, x) != NULL || (f->states > 0 && x >= f->states))
            continue;
        if (ls_inset_of(f, x) != NULL) {
            ls_inset_strides(k, n, x);
            continue;
        }
        ls_broadcast_strides(k->g, ls_in(k->g, k->n, x), &f->space, stride);
        for (int a = 0; a < f->space.rank && f->first > 0 && x == f->first; a++)
            stride[a] = f->axes >> a & 1 ? 0 : stride[a];
        ls_nest_tensor(n, &f->space, f->layout, x, stride);
    }
    for (int y = 0; y < nout; y++) {
        if (f->states > 0 && f->out[y].reduce)
            continue;
        ls_broadcast_strides(k->g, ls_out(k->g, k->n, y), &f->space, stride);
        if (f->out[y].length > 0)
            part_strides(k, f, y, stride, &n->before[nin + y]);
        ls_nest_tensor(n, &f->space, f->layout, nin + y, stride);
    }
    if (joined)
        ls_joined_strides(k, n, nin + nout);
    /* The walk index follows the logical order: a dropout and its gradient may differ in layout and
     * must drop the same elements. */
    ls_strides(&f->space, ls_fused_asks_for_index(f) ? LS_ROW : f->layout, stride);
    ls_nest_tensor(n, &f->space, f->layout, nin + nout + joined, stride);
    ls_walk_order(&f->space, f->layout, order);
    bool parts = has_parts(f, nout);
    for (int a = 0; a < f->space.rank; a++) {
        n->reduced[a] = f->axes >> order[a] & 1;
        n->alone[a] = (parts && order[a] == f->split)
            || ((joined || f->ninset > 0) && a == f->space.rank - 1);
    }
    ls_nest_merge(n);
    n->eights = has_16(k);
    return n;
}

LsBody ls_body_over(const LsKernelText *k, LsNest *nest)
{
    const LsNode *node = &k->g->node[k->n.i];
    LsBody b = {.k = k, .node = node, .f = node->attr.fused.body, .nest = nest};
    struct LsArena *arena = k->g->arena;
    b.arg = ls_arena_alloc(arena, node->nin + 1u, sizeof *b.arg);
    b.at = ls_arena_alloc(arena, node->nin + 1u, sizeof *b.at);
    b.load = ls_arena_alloc(arena, node->nin + 1u, sizeof *b.load);
    for (int x = 0; x < node->nin; x++)
        operand(&b, x);
    return b;
}

LsBody ls_body_new(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    return ls_body_over(k, body_nest(k, node, node->attr.fused.body));
}

bool ls_body_same_loops(const LsKernelText *a, const LsKernelText *b)
{
    const LsNest *x = ls_body_new(a).nest, *y = ls_body_new(b).nest;
    bool same = x->naxis == y->naxis;
    for (int k = 0; same && k < x->naxis; k++)
        same = x->size[k] == y->size[k] && x->reduced[k] == y->reduced[k];
    return same;
}

/* How many elements of operand x are read at a time: 4, 8, or 0: one. */
static int wide_of(const LsBody *b, int x)
{
    bool wide = b->load[x] && b->at[x] == LS_AT_INNER
                && ls_in_wide(b->k, b->wide, ls_operand_type(b->k, x));
    return wide ? b->wide : 0;
}

/* Whether it is also prefetched. */
static bool is_fetched(const LsBody *b, int x)
{
    return b->group > 0 && wide_of(b, x) > 0 && ls_inset_of(b->f, x) == NULL;
}

int ls_body_streams(const LsBody *b, int axis)
{
    int n = 0;
    for (int x = 0; x < b->node->nin; x++)
        n += wide_of(b, x) > 0 && b->nest->stride[x][axis] != 0;
    return n;
}

static const char *place_of(const LsBody *b, int x)
{
    return ls_is_joined(b->f, x) ? ls_joined_at(b)
                                 : ls_nest_offset(b->nest, x, 0, b->nest->naxis);
}

static const char *step_of(const LsBody *b, int x, int axis)
{
    return ls_is_joined(b->f, x)
               ? ls_joined_step(b, axis)
               : ls_arena_printf(b->nest->arena, LS_N64, b->nest->stride[x][axis]);
}

void ls_body_fetch(const LsBody *b, int axis, const char *g)
{
    ls_joined_pick(b);
    for (int x = 0; x < b->node->nin; x++)
        if (is_fetched(b, x))
            ls_emit_line(b->k->e, "LS_FETCH%d(" LS_N ", a%d, x%d, %s, %s, %s);", b->wide, b->group,
                         x, x, place_of(b, x), step_of(b, x, axis), g);
}

/* The operand's element at this point, widened to a value. */
static const char *load_text(const LsBody *b, int x)
{
    struct LsArena *a = b->nest->arena;
    const char *array = ls_is_joined(b->f, x) ? ls_joined_array(b) : ls_arena_printf(a, "x%d", x);
    if (is_fetched(b, x))
        return ls_arena_printf(a, "LS_FETCHED%d(a%d, %s, %s)", b->wide, x, array, place_of(b, x));
    const char *element =
        ls_get_text(a, wide_of(b, x), ls_arena_printf(a, "a%d", x), array, place_of(b, x));
    const bool real =
        wide_of(b, x) > 0 || (ls_is_joined(b->f, x) && b->k->target->kind == LS_TARGET_CPU);
    /* a CPU has a row of parts widened */
    return real ? element : ls_widened(a, ls_operand_type(b->k, x), element);
}

void ls_body_load(const LsBody *b, LsLoadAt at)
{
    if (at == LS_AT_INNER && !is_fetched(b, b->f->joined))
        ls_joined_pick(b);
    for (int x = 0; x < b->node->nin; x++)
        if (b->load[x] && b->at[x] == at && ls_inset_of(b->f, x) != NULL)
            ls_inset_load(b, ls_inset_of(b->f, x));
        else if (b->load[x] && b->at[x] == at)
            ls_emit_line(b->k->e, "const %s a%d = %s;", ls_register_type(ls_operand_type(b->k, x)),
                         x, load_text(b, x));
}

void ls_body_declare(const LsBody *b)
{
    ls_body_count(b);
    for (int x = 0; x < b->node->nin; x++)
        if (b->load[x] && !ls_is_joined(b->f, x))
            ls_emit_operand(b->k, ls_arena_printf(b->k->g->arena, "x%d", x), x);
    ls_joined_declare(b);
    ls_inset_declare(b);
    for (int y = 0; y < b->node->nout; y++)
        if (!b->f->out[y].reduce)
            ls_emit_result(b->k, ls_arena_printf(b->k->g->arena, "y%d", y), y);
    for (int x = 0; x < b->node->nin; x++)
        if (is_fetched(b, x) && b->wide == 8)
            ls_emit_line(b->k->e, "LS_EIGHT_OF(%d, %s, a%d);", b->group,
                         ls_ctype(ls_operand_type(b->k, x)), x);
        else if (is_fetched(b, x))
            ls_emit_line(b->k->e, "LS_FOUR_OF(%d, a%d);", b->group, x);
        else if (wide_of(b, x) > 0 && ls_inset_of(b->f, x) == NULL)
            ls_emit_room(b->k->e, b->wide, ls_arena_printf(b->nest->arena, "a%d", x));
    ls_body_load(b, LS_AT_TOP);
}

void ls_body_rows(const LsBody *b)
{
    ls_body_load(b, LS_AT_ROW);
    ls_joined_fill(b);
    ls_inset_rows(b);
}

/* The scalar $a or $b of a statement as a literal of its type. */
static const char *scalar(const LsBody *b, const LsStmt *s, double v)
{
    const bool whole = s->type == LS_I64 || s->type == LS_I32;      /* a real may be infinite */
    return ls_literal(b->k->g->arena, whole ? s->type : LS_REAL, v, whole ? (int64_t)v : 0,
                      b->k->target->real_bytes);
}

/* The index of a point of a tile among those of all tiles. */
static const char *index_in_all(const LsBody *b, const char *own)
{
    const LsTilePlace *of = b->node->tile;
    int64_t each = 1;           /* elements of a sample, or of a row */
    for (int a = of->axis + 1; a < b->f->space.rank; a++)
        each *= b->f->space.dim[a];
    const int64_t first = of->first * each, some = b->f->space.dim[of->axis] * each;
    if (of->axis == 0)
        return ls_arena_printf(b->k->g->arena, LS_N64 " + %s", first, own);
    return ls_arena_printf(b->k->g->arena, "(%s) / " LS_N64 " * " LS_N64 " + (%s) %% " LS_N64
                           " + " LS_N64, own, some, of->of * each, own, some, first);
}

/* The index %i: where the graph has a part of the batch, that in the whole batch. */
static const char *index_of(const LsBody *b, const LsStmt *s, const char *own)
{
    const LsScalarAttr *at = &s->attr.scalar;
    if (b->node->tile != NULL)
        return index_in_all(b, own);
    if (at->parts < 2
        || (s->op != LS_OP_DROPOUT && s->op != LS_OP_UNIFORM && s->op != LS_OP_NORMAL))
        return own;
    if (at->inner == ls_count(&b->f->space))
        return ls_arena_printf(b->k->g->arena, "run->slice * " LS_N64 " + %s", at->inner, own);
    return ls_arena_printf(b->k->g->arena,
                           "ls_index_in_batch(%s, " LS_N64 ", " LS_N64 ", run->slice)", own,
                           at->inner, at->parts);
}

/* Statistics of the samples that count, and their gradients: GPUs take whole batches
 * (print_short_batches in codegen/program/program_text.c). */
static LsCounted counted(const LsBody *b, const LsStmt *s)
{
    return b->k->target->kind == LS_TARGET_CPU ? ls_stmt_counted(s) : (LsCounted){0};
}

int64_t ls_body_counted(const LsBody *b, int s) { return counted(b, &b->f->stmt[s]).each; }

static bool has_some_samples(const LsBody *b)
{
    return b->node->tile != NULL && b->node->tile->axis == 0;
}

/* The condition that the point belongs to a sample that counts; NULL: it does anyway. */
static const char *counts(const LsBody *b, const LsStmt *s)
{
    const LsShape *space = &b->f->space;
    const LsCounted c = counted(b, s);
    const int axis = space->rank - c.rank;
    int order[LS_MAX_RANK], at = 0;
    if (c.each == 0 || s->op == LS_OP_NORM_COEF || axis < 0)
        return NULL;
    if (space->dim[axis] == 1)          /* a statistic, or a tile of one sample */
        return has_some_samples(b) ? "0 < valid" : NULL;
    ls_walk_order(space, b->f->layout, order);
    while (order[at] != axis)
        at++;
    const int64_t batch = has_some_samples(b) ? b->f->space.dim[0] : b->k->g->batch;
    const char *text = ls_nest_below(b->nest, at, "valid", space->dim[axis] / batch);
    return b->only != NULL && strcmp(b->only, text) == 0 ? NULL : text;
}

const char *ls_body_rows_that_count(const LsBody *b)
{
    const LsNest *n = b->nest;
    const char *all = NULL;
    for (int y = 0; y < b->node->nout; y++) {
        const LsFusedOut *out = &b->f->out[y];
        const char *text = out->reduce && ls_body_counted(b, out->stmt) > 0
                               ? counts(b, &b->f->stmt[out->stmt])
                               : NULL;
        if (text == NULL || (all != NULL && strcmp(all, text) != 0))
            return NULL;
        all = text;
    }
    /* The samples are along the outermost axis; the innermost one is walked many elements at a
     * time. */
    const char *outermost = ls_arena_printf(n->arena, "%s < ", n->var[0]);
    return n->naxis > 1 && n->reduced[0] && all != NULL
                   && strncmp(all, outermost, strlen(outermost)) == 0
               ? all
               : NULL;
}

void ls_body_count(const LsBody *b)
{
    bool any = false;
    for (int s = 0; s < b->f->nstmt; s++)
        any |= counted(b, &b->f->stmt[s]).each > 0;
    if (any && has_some_samples(b))
        ls_emit_line(b->k->e,
                     "const int64_t all = run->valid, valid = ls_most(all - %" PRId64
                     ", 0);\n(void)all, (void)valid;", b->node->tile->first);
    else if (any)
        ls_emit_line(b->k->e,
                     "const int64_t all = run->valid, valid = all;\n(void)all, (void)valid;");
}

/* The scalar $a of such a statement: what it is for a full batch, for the samples that count. */
static const char *counted_scalar(const LsBody *b, const LsStmt *s)
{
    const LsCounted c = counted(b, s);
    return ls_arena_printf(b->k->g->arena, "(real)(%.17g / (double)(all * " LS_N64 "))",
                           nearbyint(s->attr.scalar.a * (double)(b->k->g->batch * c.each)), c.each);
}

/* On all targets with the same rounding. */
static const char *counted_share(const LsBody *b, const LsStmt *s)
{
    LsArena *a = b->k->g->arena;
    const int64_t each = s->attr.scalar.counted.each, all = b->k->g->batch * each;
    const int arg = s->arg[0];
    return ls_arena_printf(a, "ls_counted_share(%s, %.17g, %s)",
                           arg < 0 ? b->arg[~arg] : ls_arena_printf(a, "v%d", arg),
                           nearbyint(s->attr.scalar.a * (double)all),
                           counted(b, s).each > 0 ? ls_arena_printf(a, "all * " LS_N64, each)
                                                  : ls_arena_printf(a, "%" PRId64, all));
}

/* The operator's expression with the statement's arguments inserted. */
static const char *expression(const LsBody *b, const LsStmt *s)
{
    struct LsArena *arena = b->k->g->arena;
    const char *p = ls_op[s->op]->expr, *text = "";
    int index = b->nest->ntensor - 1;
    while (*p != '\0') {
        size_t plain = strcspn(p, "%$");
        text = ls_arena_printf(arena, "%s%.*s", text, (int)plain, p);
        p += plain;
        if (*p == '\0')
            break;
        if (*p == '%' && p[1] >= '0' && p[1] <= '9') {
            int a = s->arg[p[1] - '0'];
            text = a < 0 ? ls_arena_printf(arena, "%s%s", text, b->arg[~a])
                         : ls_arena_printf(arena, "%sv%d", text, a);
        } else if (*p == '%' && p[1] == 'i') {
            text =
                ls_arena_printf(arena, "%s(%s)", text,
                                index_of(b, s, ls_nest_offset(b->nest, index, 0, b->nest->naxis)));
        } else if (*p == '$') {
            const bool share = p[1] == 'a' && counted(b, s).each > 0;
            text = ls_arena_printf(arena, "%s%s", text, share ? counted_scalar(b, s) :
                                   scalar(b, s, p[1] == 'a' ? s->attr.scalar.a : s->attr.scalar.b));
        }
        p += p[1] == '\0' ? 1 : 2;
    }
    return text;
}

/* The arguments, by bits, of which a statement gives one, or its negative or its size; 0 counts as
 * one of them. */
static unsigned gives(LsOpCode op)
{
    switch (op) {
    case LS_OP_RELU: case LS_OP_RELU_GRAD: case LS_OP_NEG: case LS_OP_ABS: return 1;
    case LS_OP_MIN: case LS_OP_MAX: return 1 | 2;
    case LS_OP_WHERE: return 2 | 4;
    default: return 0;
    }
}

/* The statement's value is a number of its type before it is rounded, as its arguments are. */
static bool is_exact(const LsBody *b, const LsStmt *s)
{
    const unsigned given = gives((LsOpCode)s->op);
    for (int k = 0; k < s->narg; k++) {
        LsType type =
            s->arg[k] < 0 ? ls_operand_type(b->k, ~s->arg[k]) : b->f->stmt[s->arg[k]].type;
        if ((given >> k & 1) && type != s->type)
            return false;
    }
    return given != 0;
}

void ls_body_statements(const LsBody *b)
{
    ls_body_load(b, LS_AT_INNER);
    for (int s = 0; s < b->f->nstmt; s++) {
        const LsStmt *st = &b->f->stmt[s];
        const char *text = expression(b, st), *condition = counts(b, st);
        if (st->op == LS_OP_COUNTED_SHARE)
            text = counted_share(b, st);
        if (condition != NULL)
            text = ls_arena_printf(b->k->g->arena, "%s ? %s : 0", condition, text);
        if (st->op == LS_OP_CAST && st->type == LS_BOOL)
            text = ls_arena_printf(b->k->g->arena, "%s != 0", text);
        if (!is_exact(b, st))
            text = ls_rounded(b->k->g->arena, st->type, text);
        ls_emit_line(b->k->e, "const %s v%d = %s;    /* %s */", ls_register_type(st->type), s, text,
                     ls_op[st->op]->name);
    }
}

/* Prints the condition under which a part is stored, before the store. */
static void emit_within(const LsBody *b, const LsFusedOut *part)
{
    const LsNest *n = b->nest;
    int axis = 0;
    while (!n->alone[axis])
        axis++;
    int wide = axis == n->naxis - 1 ? b->wide : 0;
    ls_emit_line(b->k->e, "%s(%s, " LS_N64 ", " LS_N64 ")",
                 wide == 8   ? "LS_WITHIN8"
                 : wide == 4 ? "LS_WITHIN4"
                             : "LS_WITHIN",
                 n->var[axis], part->from, part->from + part->length);
}

void ls_body_point(const LsBody *b)
{
    ls_body_statements(b);
    for (int y = 0; y < b->node->nout; y++) {
        if (b->f->out[y].reduce)
            continue;
        if (b->f->out[y].length > 0)
            emit_within(b, &b->f->out[y]);
        const LsType type = ls_result_type(b->k, y);
        const int wide = ls_in_wide(b->k, b->wide, type) ? b->wide : 0;
        const char *v = ls_arena_printf(b->nest->arena, "v%d", b->f->out[y].stmt);
        ls_emit_put(b->k->e, wide, ls_arena_printf(b->nest->arena, "y%d", y),
                    ls_nest_offset(b->nest, b->node->nin + y, 0, b->nest->naxis),
                    wide > 0 ? v : ls_narrowed(b->nest->arena, type, v));
    }
}
