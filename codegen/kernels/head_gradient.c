/* codegen/kernels/head_gradient.c -- see the header. */
#include "codegen/kernels/head_gradient.h"

#include "codegen/kernels/loss_text.h"

#include <inttypes.h>

enum { LINE = 64 };         /* bytes: where arrays begin */
enum { SCORES, SLOPE, SUM, WIDE, TABLE, UPDATE, STEPS };
static const char *const step_name[STEPS] = {"scores", "slope", "sum", "wide", "table",
                                              "update"};

typedef struct Head {
    const LsKernelText *k;
    const LsNode *node;
    const LsHeadGradient *of;
    int first;                  /* operand of LS_HEAD_X */
    int64_t all, columns, positions;
    int64_t classes;            /* of the part */
    LsGraph g;                  /* of the part's steps */
    LsNodeId step[STEPS];       /* none: it is left out */
} Head;

static Head head_new(const LsKernelText *k)
{
    const LsNode *node = &k->g->node[k->n.i];
    const LsShape *p = ls_in_shape(k->g, k->n, 0);
    const int first = node->computed->first;
    return (Head){.k = k, .node = node, .of = node->computed->head, .first = first,
                  .all = p->dim[0], .columns = p->dim[1],
                  .positions = ls_in_shape(k->g, k->n, first + LS_HEAD_X)->dim[0]};
}

/* ---- the graph of a part ---- */

/* Operand k of the node, with so many rows; none: it has none. */
static LsValueId operand(Head *h, int k, const LsShape *shape)
{
    const LsValueId v = ls_in(h->k->g, h->k->n, k);
    if (!ls_is(v))
        return v;
    LsValue own = h->k->g->value[v.i];
    own.def = (LsNodeId){0};
    own.shape = *shape;
    return ls_graph_push_value(&h->g, own);
}

static LsValueId whole(Head *h, int k)
{
    return ls_is(ls_in(h->k->g, h->k->n, h->first + k))
               ? operand(h, h->first + k, ls_in_shape(h->k->g, h->k->n, h->first + k))
               : (LsValueId){0};
}

/* Those elements of the update's operand k that belong to the part's classes. */
static LsValueId of_part(Head *h, int k)
{
    const LsValueId v = ls_in(h->k->g, h->k->n, k);
    if (!ls_is(v) || ls_shape(h->k->g, v)->rank == 0)
        return ls_is(v) ? operand(h, k, ls_shape(h->k->g, v)) : v;
    LsShape s = *ls_shape(h->k->g, v);
    s.dim[0] = s.dim[0] * h->classes / h->all;
    return operand(h, k, &s);
}

static LsValueId add(Head *h, int step, LsOpCode op, int nin, const LsValueId in[],
                     const LsAttr *attr, LsType type, const LsShape *shape)
{
    const LsNodeId n = ls_append_bare(&h->g, op, nin, in, shape != NULL, attr);
    h->step[step] = n;
    if (shape == NULL)
        return (LsValueId){0};
    ls_set_out(&h->g, n, 0, type, shape);
    return ls_out(&h->g, n, 0);
}

static LsValueId add_slope(Head *h, LsValueId scores, LsValueId class_at)
{
    const LsValueId in[] = {whole(h, LS_HEAD_DLOSS), scores, whole(h, LS_HEAD_LABEL),
                            whole(h, LS_HEAD_WEIGHTS), whole(h, LS_HEAD_LSE), {0}, class_at};
    return add(h, SLOPE, LS_OP_XENT_GRAD, LS_LOSS_CLASS_AT + 1, in, &(LsAttr){.loss = h->of->loss},
               h->of->slope_type, &(LsShape){2, {h->positions, h->classes}});
}

static LsValueId add_wide(Head *h, LsValueId sum)
{
    const LsShape rows = {2, {h->classes, h->columns}};
    LsFused *body = ls_arena_alloc(h->k->g->arena, 1, sizeof *body);
    *body = *h->of->widens;
    body->space = rows;
    return add(h, WIDE, LS_OP_FUSED, 1, &sum, &(LsAttr){.fused = {.body = body}}, LS_REAL, &rows);
}

static LsValueId add_table(Head *h, LsValueId sum, LsValueId class_at)
{
    const LsShape rows = {2, {h->classes, h->columns}};
    const LsValueId in[] = {whole(h, LS_HEAD_DY), whole(h, LS_HEAD_INDEX), sum, class_at};
    LsAttr at = {.gather = h->of->table};
    at.gather.x = rows;
    at.gather.rows = h->all;
    return add(h, TABLE, LS_OP_GATHER_GRAD, 4, in, &at, LS_REAL, &rows);
}

static void add_update(Head *h, LsValueId gradient)
{
    LsValueId *in = ls_arena_alloc(h->k->g->arena, (size_t)h->first, sizeof *in);
    for (int k = 0; k < h->first; k++)
        in[k] = k == 1 ? gradient : of_part(h, k);
    add(h, UPDATE, (LsOpCode)h->node->op, h->first, in, &h->node->attr, LS_REAL, NULL);
}

/* The steps of a part of so many classes. */
static void make_steps(Head *h, int64_t classes)
{
    LsCtx cx = {.arena = h->k->g->arena};
    const LsGraph *empty = ls_graph_new(&cx);
    h->classes = classes;
    h->g = *h->k->g;
    h->g.value = empty->value, h->g.nvalue = empty->nvalue, h->g.cap_value = empty->cap_value;
    h->g.node = empty->node, h->g.nnode = empty->nnode, h->g.cap_node = empty->cap_node;
    h->g.operand = empty->operand, h->g.noperand = empty->noperand;
    h->g.cap_operand = empty->cap_operand;
    const LsValueId x = whole(h, LS_HEAD_X),
                    bias = ls_in(h->k->g, h->k->n, h->first + LS_HEAD_BIAS);
    const LsValueId class_at =
        ls_graph_push_value(&h->g, (LsValue){.name = "class", .type = LS_I64, .kind = LS_V_INPUT});
    const LsValueId of_scores[] = {
        x, of_part(h, 0),
        ls_is(bias) ? operand(h, h->first + LS_HEAD_BIAS, &(LsShape){1, {classes}}) : bias};
    const LsValueId scores =
        add(h, SCORES, LS_OP_MATMUL, ls_is(bias) ? 3 : 2, of_scores,
            &(LsAttr){.gemm = h->of->scores}, h->of->scores_type,
            &(LsShape){2, {h->positions, classes}});
    h->g.node[h->step[SCORES].i].rounds = h->of->scores_rounds;
    const LsValueId slope = add_slope(h, scores, class_at);
    const LsValueId of_sum[] = {slope, x};
    LsValueId sum = add(h, SUM, LS_OP_MATMUL, 2, of_sum, &(LsAttr){.gemm = h->of->sum},
                        h->of->sum_type, &(LsShape){2, {classes, h->columns}});
    h->g.node[h->step[SUM].i].rounds = h->of->sum_rounds;
    h->step[WIDE] = h->step[TABLE] = (LsNodeId){0};
    if (h->of->widens != NULL)
        sum = add_wide(h, sum);
    if (ls_is(ls_in(h->k->g, h->k->n, h->first + LS_HEAD_DY)))
        sum = add_table(h, sum, class_at);
    add_update(h, sum);
}

/* ---- workspace ---- */

static int64_t align(int64_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

typedef struct Room { int64_t slope, sum, wide, bytes; } Room;       /* scores come first */

static Room room_of(const Head *h, int64_t classes, int real_bytes)
{
    const int64_t scores = h->positions * classes * ls_type_bytes(h->of->scores_type, real_bytes),
                  slope = h->positions * classes * ls_type_bytes(h->of->slope_type, real_bytes);
    Room r = {.slope = 0, .sum = align(scores)};
    if (h->of->scores_type != h->of->slope_type) {
        r.slope = r.sum;
        r.sum += align(slope);
    }
    r.wide = r.sum;
    if (h->of->widens != NULL)
        r.wide += align(classes * h->columns * ls_type_bytes(h->of->sum_type, real_bytes));
    r.bytes = r.wide + classes * h->columns * real_bytes;
    return r;
}

int64_t ls_head_gradient_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    const LsKernelText k = {.g = g, .n = n, .target = t};
    const Head h = head_new(&k);
    return room_of(&h, g->node[n.i].computed->head->part, t->real_bytes).bytes;
}

/* ---- text ---- */

static const char *argument(const Head *h, int k)
{
    return ls_is(ls_in(h->k->g, h->k->n, h->first + k))
               ? ls_arena_printf(h->k->g->arena, "arg[%d]", h->first + k) : "NULL";
}

/* The part of an operand of the update, or of the bias or the weights of classes. */
static const char *at_class(const Head *h, int k)
{
    const LsGraph *g = h->k->g;
    const LsValueId v = ls_in(g, h->k->n, k);
    if (!ls_is(v))
        return "NULL";
    const int64_t n = ls_count(ls_shape(g, v));
    if (ls_shape(g, v)->rank == 0)
        return ls_arena_printf(g->arena, "arg[%d]", k);
    return ls_arena_printf(g->arena, "(%s *)arg[%d] + class_at * %" PRId64 " / %" PRId64,
                           ls_ctype(ls_type(g, v)), k, n, h->all);
}

static const char *step_function(const Head *h, const char *size, int step)
{
    return ls_arena_printf(h->k->g->arena, "%s_%s%s", h->k->name, size, step_name[step]);
}

static void emit_steps(const Head *h, const char *size)
{
    for (int s = 0; s < STEPS; s++) {
        if (h->step[s].i == 0)
            continue;
        LsKernelText own = *h->k;
        own.g = &h->g;
        own.n = h->step[s];
        own.name = step_function(h, size, s);
        ls_emitter_of(LS_TARGET_CPU, ls_op[h->g.node[own.n.i].op]->kernel)->emit(&own);
    }
}

static void call(const Head *h, const char *size, int step, const char *arguments)
{
    ls_emit_line(h->k->e, "%s(run, (void *const[]){%s});", step_function(h, size, step), arguments);
}

/* Prints NAME_SIZEpart, which updates `classes` rows from class_at on. */
static void emit_part(const Head *h, const char *size, int real_bytes)
{
    LsEmit *e = h->k->e;
    LsArena *a = h->k->g->arena;
    const Room r = room_of(h, h->of->part, real_bytes);
    emit_steps(h, size);
    ls_emit_line(e, "static void %s_%spart(LsRun *run, void *const arg[], int64_t class_at)",
                 h->k->name, size);
    ls_emit_line(e, "{");
    ls_emit_line(e, "char *const room = arg[%d];", h->node->nin + h->node->nout);
    ls_emit_line(e, "void *const scores = room, *const slope = room + %" PRId64
                 ",", r.slope);
    ls_emit_line(e, "    *const sum = room + %" PRId64 ", *const wide = room + %" PRId64 ";", r.sum,
                 r.wide);
    const char *bias = at_class(h, h->first + LS_HEAD_BIAS);
    const bool biased = ls_is(ls_in(h->k->g, h->k->n, h->first + LS_HEAD_BIAS));
    call(h, size, SCORES, ls_arena_printf(a, "%s, %s, %s%sscores", argument(h, LS_HEAD_X),
                                          at_class(h, 0), biased ? bias : "", biased ? ", " : ""));
    call(h, size, SLOPE,
         ls_arena_printf(a, "%s, scores, %s, %s, %s, NULL, &class_at, slope",
                         argument(h, LS_HEAD_DLOSS), argument(h, LS_HEAD_LABEL),
                         at_class(h, h->first + LS_HEAD_WEIGHTS), argument(h, LS_HEAD_LSE)));
    call(h, size, SUM, ls_arena_printf(a, "slope, %s, sum", argument(h, LS_HEAD_X)));
    if (h->step[WIDE].i != 0)
        call(h, size, WIDE, "sum, wide");
    if (h->step[TABLE].i != 0)
        call(h, size, TABLE, ls_arena_printf(a, "%s, %s, wide, &class_at, wide",
                                             argument(h, LS_HEAD_DY), argument(h, LS_HEAD_INDEX)));
    const char *own = "";
    for (int k = 0; k < h->first; k++)
        own = ls_arena_printf(a, "%s%s%s", own, k > 0 ? ", " : "",
                              k == 1 ? "wide" : at_class(h, k));
    call(h, size, UPDATE, own);
    ls_emit_line(e, "}");
}

void ls_head_gradient_emit(const LsKernelText *k)
{
    Head h = head_new(k);
    LsEmit *e = k->e;
    const int64_t part = h.of->part, rest = h.all % part;
    make_steps(&h, part);
    emit_part(&h, "", k->target->real_bytes);
    if (rest > 0) {
        make_steps(&h, rest);
        emit_part(&h, "last_", k->target->real_bytes);
    }
    ls_emit_line(e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(e, "{");
    ls_emit_line(e, "if (!run->apply) return;");
    ls_emit_line(e, "for (int64_t c = 0; c + %" PRId64 " <= %" PRId64 "; c += %" PRId64 ")", part,
                 h.all, part);
    ls_emit_line(e, "    %s_part(run, arg, c);", k->name);
    if (rest > 0)
        ls_emit_line(e, "%s_last_part(run, arg, %" PRId64 ");", k->name, h.all - rest);
    ls_emit_line(e, "}");
}
