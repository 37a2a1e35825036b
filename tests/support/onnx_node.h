/* tests/support/onnx_node.h -- one node of an ONNX file, made by hand, and the result of its ONNX
 * row. */
#ifndef LS_TESTS_SUPPORT_ONNX_NODE_H
#define LS_TESTS_SUPPORT_ONNX_NODE_H

#include <stdarg.h>

#include "compiler/onnx/onnx_row.h"
#include "compiler/onnx_file/onnx_wire.h"
#include "tests/support/gradient.h"

enum { NODE_ATTRS = 12, NODE_RESULTS = 5 };

typedef struct Node {           /* filled by the node_ functions, read by node_build */
    Onnx__NodeProto proto;
    Onnx__AttributeProto attr[NODE_ATTRS], *list[NODE_ATTRS];
} Node;

static inline Onnx__AttributeProto *node_attr(Node *n, const char *name, int type)
{
    if (n->proto.n_attribute == 0) {
        onnx__node_proto__init(&n->proto);
        n->proto.attribute = n->list;
    }
    Onnx__AttributeProto *a = n->list[n->proto.n_attribute] = &n->attr[n->proto.n_attribute];
    n->proto.n_attribute++;
    onnx__attribute_proto__init(a);
    a->name = (char *)name;
    a->has_type = 1;
    a->type = type;
    return a;
}

static inline void node_int(Node *n, const char *name, int64_t v)
{
    Onnx__AttributeProto *a = node_attr(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->i = v;
    a->has_i = 1;
}

static inline void node_float(Node *n, const char *name, float v)
{
    Onnx__AttributeProto *a = node_attr(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->f = v;
    a->has_f = 1;
}

static inline void node_string(Node *n, const char *name, const char *v)
{
    Onnx__AttributeProto *a = node_attr(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->s = (ProtobufCBinaryData){strlen(v), (uint8_t *)v};
    a->has_s = 1;
}

static inline void node_ints(Node *n, const char *name, size_t count, const int64_t *v)
{
    Onnx__AttributeProto *a = node_attr(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->ints = (int64_t *)v;
    a->n_ints = count;
}

static inline void node_floats(Node *n, const char *name, size_t count, const float *v)
{
    Onnx__AttributeProto *a = node_attr(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
    a->floats = (float *)v;
    a->n_floats = count;
}

static inline void node_strings(Node *n, const char *name, size_t count, const char *const v[])
{
    Onnx__AttributeProto *a = node_attr(n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    a->strings = ls_arena_alloc(cx.arena, count + 1, sizeof *a->strings);
    a->n_strings = count;
    for (size_t k = 0; k < count; k++)
        a->strings[k] = (ProtobufCBinaryData){strlen(v[k]), (uint8_t *)v[k]};
}

/* Runs the row of `op` at this opset; false after an error, whose text is then in *log (if not
 * NULL). */
static inline bool node_build(Node *n, const char *op, int version, int nin, const LsValueId in[],
                              int nout, LsValueId out[], char **log)
{
    static const char *const name[] = {"r0", "r1", "r2", "r3", "r4"};
    const LsOnnxOp *row = ls_onnx_find(op);
    size_t size;
    char *text;
    ck_assert_msg(row != NULL && version >= row->since, "%s is not read at opset %d", op, version);
    if (n->proto.n_attribute == 0)
        onnx__node_proto__init(&n->proto);
    LsOnnxNode node = {.cx = &cx, .g = g, .op = op, .domain = "", .name = "node",
                       .version = version, .nin = nin, .nout = nout, .in = in, .out_name = name,
                       .proto = &n->proto};
    memset(out, 0, (size_t)nout * sizeof *out);
    cx.log = open_memstream(&text, &size);
    int before = cx.nerror;
    bool ok = row->build(&node, out) && cx.nerror == before;
    fclose(cx.log);
    cx.log = NULL;
    if (log != NULL)
        *log = ls_arena_strdup(cx.arena, text);
    else
        ck_assert_msg(ok, "%s", text);
    free(text);
    return ok;
}

/* One result, no errors expected. */
static inline LsValueId node_one(Node *n, const char *op, int version, int nin,
                                 const LsValueId in[])
{
    LsValueId out[NODE_RESULTS];    /* rows write all that their operator can give */
    ck_assert(node_build(n, op, version, nin, in, 1, out, NULL));
    ck_assert(ls_is(out[0]));
    return out[0];
}

static inline void node_fails(Node *n, const char *op, int version, int nin, const LsValueId in[],
                              LsErrId id, const char *text)
{
    LsValueId out[NODE_RESULTS];
    char *log = NULL;
    ck_assert_msg(!node_build(n, op, version, nin, in, 1, out, &log), "%s was accepted", op);
    ck_assert_int_eq(cx.last, id);
    ck_assert_msg(log != NULL && strstr(log, text) != NULL, "'%s' is not in: %s", text,
                  log != NULL ? log : "");
}

/* ---- operands: constants, an input, none ---- */
static inline LsValueId ints_of(LsShape s, const int64_t *v)
{
    int64_t *data = ls_arena_alloc(cx.arena, (size_t)ls_count(&s) + 1, sizeof *data);
    memcpy(data, v, (size_t)ls_count(&s) * sizeof *data);
    return ls_const_add(&cx, g, LS_I64, &s, data);
}

static inline LsValueId reals_of(LsShape s, const float *v)
{
    float *data = ls_arena_alloc(cx.arena, (size_t)ls_count(&s) + 1, sizeof *data);
    memcpy(data, v, (size_t)ls_count(&s) * sizeof *data);
    return ls_const_add(&cx, g, LS_REAL, &s, data);
}

static inline LsValueId scalar(double v) { return ls_const_real(&cx, g, v); }

static inline LsValueId input(LsShape s)
{
    return ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &s, NULL);
}

#define LIST(...) sizeof (int64_t[]){__VA_ARGS__} / 8, (int64_t[]){__VA_ARGS__}
#define INTS(...) ints_of(SHAPE(sizeof (int64_t[]){__VA_ARGS__} / 8), (int64_t[]){__VA_ARGS__})
#define REALS(...) reals_of(SHAPE(sizeof (float[]){__VA_ARGS__} / 4), (float[]){__VA_ARGS__})
#define IN(...) sizeof (LsValueId[]){__VA_ARGS__} / sizeof(LsValueId), (LsValueId[]){__VA_ARGS__}
static const LsValueId NONE;      /* left out */

/* ---- results ---- */
/* v is a constant of these numbers. */
static inline void expect(LsValueId v, int n, const double *want)
{
    ck_assert(ls_is_const(g, v));
    ck_assert_int_eq(ls_count(ls_shape(g, v)), n);
    for (int i = 0; i < n; i++)
        ck_assert_msg(fabs(ls_const_at(g, v, i) - want[i]) <= 1e-6 * (1 + fabs(want[i])),
                      "element %d is %.9g, not %.9g", i, ls_const_at(g, v, i), want[i]);
}
#define EXPECT(v, ...) expect(v, sizeof (double[]){__VA_ARGS__} / 8, (double[]){__VA_ARGS__})

/* v, computed at run time, holds these numbers. */
static inline void expect_run(LsValueId y, int n, const double *want)
{
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    ck_assert_int_eq(ls_count(ls_shape(g, y)), n);
    for (int i = 0; i < n; i++)
        ck_assert_msg(fabs(e.v[y.i][i] - want[i]) <= 1e-6 || (isnan(want[i]) && isnan(e.v[y.i][i])),
                      "element %d is %.9g, not %.9g", i, e.v[y.i][i], want[i]);
}
#define EXPECT_RUN(v, ...) expect_run(v, sizeof(double[]){__VA_ARGS__} / 8, (double[]){__VA_ARGS__})

static inline void expect_shape(LsValueId v, LsShape want)
{
    ck_assert_msg(ls_shape_same(ls_shape(g, v), &want), "%s, not %s",
                  ls_shape_text(cx.arena, ls_shape(g, v)), ls_shape_text(cx.arena, &want));
}

static inline const LsNode *made_by(LsValueId v) { return &g->node[g->value[v.i].def.i]; }

#endif
