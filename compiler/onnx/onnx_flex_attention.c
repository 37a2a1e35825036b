/* compiler/onnx/onnx_flex_attention.c -- see the header. */
#include "compiler/onnx/onnx_flex_attention.h"

#include <math.h>

#include "compiler/fold/append.h"
#include "compiler/onnx/onnx_attr.h"
#include "compiler/onnx_file/onnx_subgraph.h"

typedef struct Flex {
    const LsOnnxNode *n;
    const LsOnnxFlat *f;
    int64_t batch, heads, groups;       /* heads of keys and values, and queries of each */
    int64_t rows, cols, depth, width;
    double scale;
} Flex;

/* The body's result for v, which has its shape; v itself, where there is no such body. */
static LsValueId changed(const Flex *r, const char *attribute, LsValueId v)
{
    LsBody body;
    LsOnnxValue in = {.v = v}, out[1] = {{.v = {0}}};
    LsImport *im = r->n->import;
    if (!ls_is(v) || ls_subgraph(r->f->proto, attribute) == NULL)
        return v;
    if (!ls_body_open(&body, im, r->f, attribute, 1, 1))
        return (LsValueId){0};
    if (body.g->n_output != 1) {
        ls_onnx_error(r->n, LS_E_NAME, NULL, "'%s' gives %zu results, not 1", attribute,
                      body.g->n_output);
        return (LsValueId){0};
    }
    if (!ls_body_run(&body, ls_arena_printf(r->n->cx->arena, "%s/%s", r->f->name, attribute), &in,
                     out))
        return (LsValueId){0};
    LsValueId y = out[0].v;
    if (ls_is(y)
        && (ls_type(r->n->g, y) != LS_REAL
            || !ls_shape_same(ls_shape(r->n->g, y), ls_shape(r->n->g, v)))) {
        ls_onnx_error(r->n, LS_E_SHAPE, "its result has the type and shape of its operand",
                      "'%s' gives %s of shape %s, not %s", attribute,
                      ls_type_name(ls_type(r->n->g, y)), ls_dims(r->n->g, y), ls_dims(r->n->g, v));
        return (LsValueId){0};
    }
    return y;
}

/* a [B,heads * groups,..] times b [B,heads,..], which the queries of a head share. */
static LsValueId product(const Flex *r, LsValueId a, LsValueId b, bool transposed, double alpha,
                         int64_t inner)
{
    LsCtx *cx = r->n->cx;
    LsGraph *g = r->n->g;
    LsShape s = *ls_shape(g, b), shared = {5, {r->batch, r->heads, 1, s.dim[2], s.dim[3]}};
    LsAttr at = {.gemm = {.alpha = alpha, .trans_b = transposed}};
    LsValueId v = ls_append2(
        cx, g, LS_OP_MATMUL,
        ls_reshape(cx, g, a, &(LsShape){5, {r->batch, r->heads, r->groups, r->rows, inner}}),
        ls_reshape(cx, g, b, &shared), &at);
    LsShape to = {4, {r->batch, r->heads * r->groups, r->rows, transposed ? s.dim[2] : s.dim[3]}};
    return ls_is(v) ? ls_reshape(cx, g, v, &to) : v;
}

static bool read_sizes(Flex *r, const LsValueId in[3])
{
    const LsGraph *g = r->n->g;
    const LsShape *q = ls_shape(g, in[0]), *k = ls_shape(g, in[1]), *v = ls_shape(g, in[2]);
    bool fits = q->rank == 4 && k->rank == 4 && v->rank == 4 && q->dim[0] == k->dim[0]
                && k->dim[0] == v->dim[0] && k->dim[1] == v->dim[1] && k->dim[2] == v->dim[2]
                && q->dim[3] == k->dim[3] && q->dim[1] % k->dim[1] == 0;
    if (!fits)
        return ls_onnx_error(
            r->n, LS_E_SHAPE,
            "they are batch x heads x tokens x depth, heads of Q a multiple of those of K",
            "Q is %s, K is %s, V is %s", ls_dims(g, in[0]), ls_dims(g, in[1]), ls_dims(g, in[2]));
    r->batch = q->dim[0];
    r->heads = k->dim[1];
    r->groups = q->dim[1] / k->dim[1];
    r->rows = q->dim[2];
    r->cols = k->dim[2];
    r->depth = q->dim[3];
    r->width = v->dim[3];
    r->scale = ls_onnx_float(r->n, "scale", 1 / sqrt((double)r->depth));
    return true;
}

/* Without bodies it is an attention like any other, whose row reads the same attributes. */
static bool plain(const LsOnnxNode *n, const LsValueId in[3], LsOnnxValue *to)
{
    static const char *const name[] = {"Y"};
    LsValueId out[4] = {{0}};       /* as many results as the row may give */
    LsOnnxNode node = *n;
    node.nin = 3;
    node.nout = 1;
    node.in = in;
    node.out_name = name;
    bool good = ls_onnx_find("Attention")->build(&node, out);
    to->v = out[0];
    return good;
}

bool ls_onnx_flex(const LsOnnxNode *n, const LsOnnxFlat *f, const LsValueId in[3], LsOnnxValue to[])
{
    Flex r = {.n = n, .f = f};
    for (int k = 0; k < 3; k++)
        if (ls_type(n->g, in[k]) != LS_REAL)
            return ls_onnx_error(n, LS_E_TYPE, "insert a Cast to float", "operand %d is %s", k,
                                 ls_type_name(ls_type(n->g, in[k])));
    if (!read_sizes(&r, in))
        return false;
    if (ls_subgraph(f->proto, "score_mod") == NULL && ls_subgraph(f->proto, "prob_mod") == NULL)
        return plain(n, in, &to[0]);
    LsValueId v = changed(&r, "score_mod", product(&r, in[0], in[1], true, r.scale, r.depth));
    v = ls_is(v) ? ls_append1(n->cx, n->g, LS_OP_SOFTMAX, v, &(LsAttr){.axis = {3}}) : v;
    v = changed(&r, "prob_mod", v);
    to[0].v = ls_is(v) ? product(&r, v, in[2], false, 1, r.cols) : v;
    return ls_is(to[0].v);
}
