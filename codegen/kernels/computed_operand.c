/* codegen/kernels/computed_operand.c */
#include "codegen/kernels/computed_operand.h"

#include "codegen/kernels/fused_body.h"
#include "codegen/kernels/read_padded.h"
#include "codegen/kernels/unpack.h"
#include "compiler/ir/precision.h"

#include <inttypes.h>

bool ls_computed_strides(const LsGraph *g, LsValueId operand, const LsShape *value, LsLayout layout,
                         int axis, int64_t stride[2])
{
    const LsValue *u = &g->value[operand.i];
    const LsShape *s = &u->shape;
    int at = axis - (value->rank - s->rank);        /* the operand's axis of channels */
    stride[0] = stride[1] = 0;
    if (ls_count(s) == 1)
        return true;
    stride[1] = 1;
    if (ls_shape_same(s, value) && (u->layout == layout || ls_layout_free(s))) {
        stride[0] = value->dim[axis];
        return true;
    }
    if (at == axis && s->dim[axis] == 1 && ls_count(s) * value->dim[axis] == ls_count(value)) {
        stride[0] = 1;          /* one element per place */
        stride[1] = 0;
        return true;
    }
    return s->rank <= value->rank && at >= 0 && s->dim[at] == value->dim[axis]
        && ls_count(s) == s->dim[at];
}

/* A graph of the same values with the body as its FUSED node 1. */
static LsGraph body_graph(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    LsGraph g = *k->g;
    g.node = ls_arena_alloc(g.arena, 2, sizeof *g.node);
    g.nnode = 2;
    g.node[1] = (LsNode){.op = LS_OP_FUSED, .in = node->in + (uint32_t)node->computed->first,
                         .nin = (uint16_t)(node->nin - node->computed->first), .tile = node->tile,
                         .attr = {.fused = {.body = node->computed->body}}};
    return g;
}

/* A nest of two axes: places j, and channels i counted from c. */
static LsNest *places_nest(const LsKernelText *k, const LsComputed *c)
{
    const LsNode *node = &k->g->node[k->n.i];
    const LsShape *s = &c->body->space;
    LsNest *n = ls_arena_alloc(k->g->arena, 1, sizeof *n);
    n->arena = k->g->arena;
    n->naxis = 2;
    n->ntensor = node->nin + 1;
    n->stride = ls_arena_alloc(k->g->arena, (size_t)n->ntensor, sizeof *n->stride);
    n->before = ls_arena_alloc(k->g->arena, (size_t)n->ntensor, sizeof *n->before);
    n->size[1] = s->dim[c->axis];
    n->size[0] = ls_count(s) / n->size[1];
    n->var[0] = "j";
    n->var[1] = "(c + i)";
    int order[LS_MAX_RANK];
    ls_walk_order(s, c->body->layout, order);
    for (int a = 0; a < s->rank; a++)
        n->whole[a] = s->dim[order[a]];
    n->last[0] = s->rank - 2;
    n->last[1] = s->rank - 1;
    for (int x = 0; x < node->nin; x++) {
        int64_t stride[2] = {0, 1};                 /* of an inset operand */
        if (ls_inset_of(c->body, x) == NULL)
            ls_computed_strides(k->g, ls_in(k->g, k->n, x), s, c->body->layout, c->axis, stride);
        n->stride[x][0] = stride[0];
        n->stride[x][1] = stride[1];
    }
    return n;
}

/* Prints NAME_rows, for rows of n channels; n is a constant for whole vectors. */
static void emit_rows(const LsKernelText *k, const LsComputed *c, const LsBody *b)
{
    LsEmit *e = k->e;
    ls_emit_line(
        e,
        "LS_INLINE void %s_rows(const LsRun *run, void *const arg[], int64_t place, int64_t step,",
        k->name);
    ls_emit_line(e, "    int64_t count, int64_t c, int64_t n, real *restrict to, int64_t ld)");
    ls_emit_line(e, "{");
    ls_emit_line(e, "(void)run, (void)arg, (void)c;");
    ls_body_count(b);
    for (int x = 0; x < b->node->nin; x++)
        if (b->load[x] || ls_inset_with(b->f, x) != NULL)
            ls_emit_line(e, "const %s *const x%d = arg[%d];",
                         ls_ctype(ls_operand_type(b->k, x)), x, c->first + x);
    ls_body_load(b, LS_AT_TOP);
    ls_emit_line(e, "for (int64_t q = 0; q < count; q++, to += ld) {");
    ls_emit_line(e, "const int64_t j = place + q * step;");
    ls_emit_line(e, "(void)j;");
    ls_body_load(b, LS_AT_ROW);
    ls_inset_rows(b);
    ls_emit_line(e, "LS_INDEPENDENT for (int64_t i = 0; i < n; i++) {");
    ls_body_statements(b);
    const LsStmt *last = &c->body->stmt[c->body->out[0].stmt];
    LsType rounds = ls_is_16(last->type) ? LS_REAL : ls_rounds_operand(k->g, k->n, c->operand);
    ls_emit_line(
        e, "to[i] = %s;",
        ls_rounded(k->g->arena, rounds, ls_arena_printf(k->g->arena, "v%d", c->body->out[0].stmt)));
    ls_emit_close(e, 3);
}

void ls_computed_emit(const LsKernelText *k)
{
    const LsComputed *c = k->g->node[k->n.i].computed;
    if (c == NULL || c->codes != NULL)
        return;
    LsEmit *e = k->e;
    const LsGraph g = body_graph(k);
    LsKernelText own = *k;
    own.g = &g;
    own.n = (LsNodeId){1};
    const LsBody b = ls_body_over(&own, places_nest(&own, c));
    ls_emit_line(e, "LS_EXACT_BEGIN");
    emit_rows(k, c, &b);
    ls_emit_line(
        e,
        "static void %s_compute(const LsRun *run, void *const arg[], int64_t place, int64_t step,",
        k->name);
    ls_emit_line(e, "    int64_t count, int64_t c, int64_t n, real *to, int64_t ld)");
    ls_emit_line(e, "{");
    ls_emit_line(e, "if (n == LS_NR)");
    ls_emit_line(e, "    %s_rows(run, arg, place, step, count, c, LS_NR, to, ld);", k->name);
    ls_emit_line(e, "else");
    ls_emit_line(e, "    %s_rows(run, arg, place, step, count, c, n, to, ld);", k->name);
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_EXACT_END");
}

const char *ls_stored_word(LsType t)
{
    return t == LS_BF16 ? "LS_STORED_BF16" : t == LS_F16 ? "LS_STORED_F16" : "LS_STORED_REAL";
}

/* Elements of a place: the channels of a convolution's image, or the last axis of a matrix. */
static int64_t row_of(const LsKernelText *k, const LsShape *s)
{
    return ls_op[k->g->node[k->n.i].op]->kernel == LS_K_CONV ? s->dim[1] : s->dim[s->rank - 1];
}

LsType ls_rounds_operand(const LsGraph *g, LsNodeId n, int operand)
{
    const LsNode *node = &g->node[n.i];
    const LsPrecisionRow *row = &ls_precision_row[node->op];
    if (node->computed != NULL && node->computed->product != NULL)      /* both factors */
        return operand >= node->computed->first ? node->computed->rounds : LS_REAL;
    return operand < 32 && row->rounded >> operand & 1 ? node->rounds : LS_REAL;
}

const char *ls_stored_source(const LsKernelText *k, const char *at, int operand)
{
    LsArena *a = k->g->arena;
    const LsValue *v = &k->g->value[ls_in(k->g, k->n, operand).i];
    LsType rounds = ls_rounds_operand(k->g, k->n, operand);
    if (ls_is_16(v->type))
        return ls_arena_printf(a, "{.at = %s, .type = %s, .row = %" PRId64 "}", at,
                               ls_stored_word(v->type), row_of(k, &v->shape));
    if (ls_is_16(rounds))
        return ls_arena_printf(a, "{.at = %s, .round = %s, .row = %" PRId64 "}", at,
                               ls_stored_word(rounds), row_of(k, &v->shape));
    return ls_arena_printf(a, "{.at = %s}", at);
}

/* Numbers of 16 bits that are not rounded once more are read like any others that are stored so. */
static void emit_codes(const LsKernelText *k, const char *var, const LsComputed *c)
{
    LsArena *a = k->g->arena;
    const LsType own = c->codes->form == LS_CODES_BF16  ? LS_BF16
                       : c->codes->form == LS_CODES_F16 ? LS_F16
                                                        : LS_REAL,
                 rounds = ls_rounds_operand(k->g, k->n, c->operand);
    const bool plain = ls_is_16(own) && (!ls_is_16(rounds) || rounds == own);
    const char *codes = ls_arena_printf(a, "%s_codes", var);
    if (!plain)
        ls_unpack_emit_codes(k, codes, c->codes);
    const char *how = plain ? ls_arena_printf(a, ".type = %s", ls_stored_word(own))
                            : ls_arena_printf(a, ".type = LS_STORED_PACKED, .packed = &%s%s%s",
                                              codes, ls_is_16(rounds) ? ", .round = " : "",
                                              ls_is_16(rounds) ? ls_stored_word(rounds) : "");
    ls_emit_line(k->e, "const LsSource %s = {.at = arg[%d], %s, .row = %" PRId64 "};", var,
                 c->first, how, row_of(k, ls_in_shape(k->g, k->n, c->operand)));
}

void ls_computed_source(const LsKernelText *k, const char *var, int operand)
{
    const LsComputed *c = k->g->node[k->n.i].computed;
    if (c != NULL && c->codes != NULL && c->operand == operand)
        emit_codes(k, var, c);
    else if (ls_is_read(&k->g->node[k->n.i], operand))
        ls_emit_line(
            k->e, "const LsSource %s = %s;", var,
            ls_stored_source(k, ls_arena_printf(k->g->arena, "arg[%d]", operand), operand));
    else
        ls_emit_line(k->e, "const LsSource %s = {.compute = %s_compute, .run = run, .arg = arg};",
                     var, k->name);
}
