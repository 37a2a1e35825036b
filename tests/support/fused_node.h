/* tests/support/fused_node.h -- a node of com.microsoft beside the nodes of ai.onnx that it stands
 * for. */
#ifndef LS_TESTS_SUPPORT_FUSED_NODE_H
#define LS_TESTS_SUPPORT_FUSED_NODE_H

#include "tests/support/onnx_node.h"

#define MS(op) LS_MICROSOFT op
/* A node of one result without attributes. */
#define PLAIN(op, version, ...) node_one(&(Node){0}, op, version, IN(__VA_ARGS__))

static inline void expect_equal(LsValueId a, LsValueId b)
{
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    ck_assert(ls_shape_same(ls_shape(g, a), ls_shape(g, b)));
    for (int64_t i = 0; i < ls_count(ls_shape(g, a)); i++)
        ck_assert_msg(fabs(e.v[a.i][i] - e.v[b.i][i]) <= 1e-6, "element %d: %.9g, not %.9g", (int)i,
                      e.v[a.i][i], e.v[b.i][i]);
}

/* fused has the numbers of its definition, and right gradients. */
static inline void expect_fused(LsValueId fused, LsValueId definition)
{
    expect_equal(fused, definition);
    check_gradients(weighed(fused));
}

static inline LsValueId int_input(const char *name, LsShape s, const int32_t *v)
{
    return ls_value_add(&cx, g, LS_V_INPUT, name, LS_I32, &s, v);
}

static inline LsValueId turned(LsValueId v, size_t rank, const int64_t *perm)
{
    Node n = {0};
    node_ints(&n, "perm", rank, perm);
    return node_one(&n, "Transpose", 13, IN(v));
}

static inline LsValueId reshaped(LsValueId v, LsShape s) { return ls_reshape(&cx, g, v, &s); }

#endif
