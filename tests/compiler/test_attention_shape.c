/* tests/compiler/test_attention_shape.c -- attention: its row's shapes and gradients, the forms
 * that become one node, ONNX Attention. */
#include "compiler/ops/attention_shape.h"

#include "compiler/ops/row.h"
#include "compiler/patterns/patterns.h"
#include "tests/support/onnx_node.h"
#include "tests/support/suite.h"

static LsValueId op2(LsOpCode op, LsValueId a, LsValueId b)
{
    return ls_append2(&cx, g, op, a, b, NULL);
}
static LsValueId num(double v) { return ls_const_real(&cx, g, v); }

/* ---- the row ---- */
static LsAttr plain(double scale, unsigned by_token)
{
    return (LsAttr){.attention = {.scale = scale, .by_token = by_token}};
}

static void check_row(LsShape q, LsShape k, LsShape v, LsValueId mask, LsAttr at)
{
    LsValueId in[] = {param("q", q), param("k", k), param("v", v), mask};
    LsValueId y = ls_append(&cx, g, LS_OP_ATTENTION, ls_is(mask) ? 4 : 3, in, &at);
    ck_assert(ls_is(y));
    check_gradients(weighed(y));
    ck_assert_int_eq(count_op(LS_OP_ATTENTION_GRAD), 1);
    graph_close();
}

START_TEST(gradients_match_differences)
{
    LsShape q = SHAPE(2, 4, 3, 5), k = SHAPE(2, 2, 6, 5), v = SHAPE(2, 2, 6, 3);
    graph_open();
    check_row(q, k, v, (LsValueId){0}, plain(0.6, 0));
    graph_open();
    LsAttr at = plain(1.3, LS_Q_BY_TOKEN | LS_V_BY_TOKEN);
    at.attention.causal = true;
    at.attention.past = 1;
    check_row(SHAPE(1, 5, 2, 4), SHAPE(1, 2, 6, 4), SHAPE(1, 6, 2, 3), constant(SHAPE(1, 2, 1, 6)),
              at);
    graph_open();
    uint8_t *bits = ls_arena_alloc(cx.arena, 18, 1);
    for (int i = 0; i < 18; i++)
        bits[i] = i % 3 != 1;
    LsValueId mask = ls_const_add(&cx, g, LS_BOOL, &SHAPE(1, 1, 3, 6), bits);
    at = plain(0.5, 0);
    at.attention.keep = true;
    at.attention.fill = 0.25;
    check_row(q, k, v, mask, at);
}
END_TEST

START_TEST(shapes_that_do_not_fit_are_named)
{
    LsAttr at = plain(1, 0);
    graph_open();
    LsValueId q = param("q", SHAPE(1, 3, 4, 8)), k = param("k", SHAPE(1, 2, 6, 8)),
              v = param("v", SHAPE(1, 3, 6, 8)), w = param("w", SHAPE(1, 3, 5, 8)),
              m = param("m", SHAPE(1, 1, 4, 5));
    refused(LS_OP_ATTENTION, 3, (LsValueId[]){q, k, k}, &at, LS_E_SHAPE, "heads do not fit");
    refused(LS_OP_ATTENTION, 3, (LsValueId[]){q, v, w}, &at, LS_E_SHAPE, "do not fit");
    refused(LS_OP_ATTENTION, 4, (LsValueId[]){q, v, v, m}, &at, LS_E_SHAPE,
            "the mask is 1x1x4x5, the scores are 1x3x4x6");
    graph_close();
}
END_TEST

START_TEST(work_counts_the_scores_that_are_seen)
{
    graph_open();
    LsValueId in[] = {param("q", SHAPE(2, 3, 4, 8)), param("k", SHAPE(2, 3, 6, 8)),
                      param("v", SHAPE(2, 3, 6, 5))};
    LsAttr at = plain(1, 0);
    const LsValueId y = ls_append(&cx, g, LS_OP_ATTENTION, 3, in, &at);
    LsNodeId n = g->value[y.i].def;
    ck_assert_double_eq(ls_attention_scores(g, n), 6 * 24);
    ck_assert_double_eq(ls_op[LS_OP_ATTENTION]->flops(g, n), 6 * 24 * (16 + 10 + 14));
    g->node[n.i].attr.attention.causal = true;
    ck_assert_double_eq(ls_attention_scores(g, n), 6 * (1 + 2 + 3 + 4));
    g->node[n.i].attr.attention.past = 3;
    ck_assert_double_eq(ls_attention_scores(g, n), 6 * (4 + 5 + 6 + 6));
    graph_close();
}
END_TEST

/* ---- spellings ---- */
enum { N = 2, H = 3, T = 5, D = 4 };

typedef enum { BARE, ADDED, ADDED_FUTURE, WHERE, WHERE_FUTURE, BOTH } MaskForm;
typedef struct Form {
    MaskForm mask;
    int scale;              /* 0: scores times, 1: scores over, 2: q times, 3: q and k times */
    bool by_token;          /* heads are moved before tokens and back */
    unsigned want;          /* by_token of the node */
} Form;

/* True above the diagonal. */
static LsValueId future_bits(void)
{
    uint8_t *bits = ls_arena_alloc(cx.arena, T * T, 1);
    for (int i = 0; i < T * T; i++)
        bits[i] = i % T > i / T;
    return ls_const_add(&cx, g, LS_BOOL, &SHAPE(1, 1, T, T), bits);
}

static LsValueId future_added(double low)
{
    float *m = ls_arena_alloc(cx.arena, T * T, sizeof *m);
    for (int i = 0; i < T * T; i++)
        m[i] = i % T > i / T ? (float)low : 0;
    return ls_const_add(&cx, g, LS_REAL, &SHAPE(T, T), m);
}

/* Bits that come with the batch. */
static LsValueId given_bits(void)
{
    return ls_value_add(&cx, g, LS_V_INPUT, "mask", LS_BOOL, &SHAPE(N, 1, 1, T), NULL);
}

static LsValueId put_mask(LsValueId s, MaskForm form)
{
    LsValueId low = num(-1e9);
    switch (form) {
    case ADDED: return op2(LS_OP_ADD, constant(SHAPE(H, T, T)), s);
    case ADDED_FUTURE: return op2(LS_OP_ADD, s, future_added(-INFINITY));
    case WHERE: return ls_append3(&cx, g, LS_OP_WHERE, given_bits(), s, low, NULL);
    case WHERE_FUTURE: return ls_append3(&cx, g, LS_OP_WHERE, future_bits(), low, s, NULL);
    case BOTH: return op2(LS_OP_ADD, put_mask(s, WHERE_FUTURE), constant(SHAPE(N, 1, 1, T)));
    default: return s;
    }
}

static LsValueId heads_of(const char *name, const Form *f)
{
    LsValueId x = param(name, f->by_token ? SHAPE(N, T, H, D) : SHAPE(N, H, T, D));
    LsAttr swap = {.perm = {{0, 2, 1, 3}}};
    return f->by_token ? ls_append1(&cx, g, LS_OP_TRANSPOSE, x, &swap) : x;
}

static LsValueId turned_keys(const Form *f)
{
    LsValueId x = param("k", f->by_token ? SHAPE(N, T, H, D) : SHAPE(N, H, T, D));
    LsAttr by_token = {.perm = {{0, 2, 3, 1}}}, by_head = {.perm = {{0, 1, 3, 2}}};
    return ls_append1(&cx, g, LS_OP_TRANSPOSE, x, f->by_token ? &by_token : &by_head);
}

static LsValueId written_out(const Form *f)
{
    LsValueId q = heads_of("q", f), kt = turned_keys(f), v = heads_of("v", f);
    LsAttr product = {.gemm = {.alpha = 1}}, swap = {.perm = {{0, 2, 1, 3}}};
    if (f->scale >= 2)
        q = op2(LS_OP_MUL, q, num(f->scale == 2 ? 0.5 : sqrt(0.5)));
    if (f->scale == 3)
        kt = op2(LS_OP_MUL, kt, num(sqrt(0.5)));
    LsValueId s = ls_append2(&cx, g, LS_OP_MATMUL, q, kt, &product);
    if (f->scale < 2)
        s = op2(f->scale == 0 ? LS_OP_MUL : LS_OP_DIV, s, num(f->scale == 0 ? 0.5 : 2));
    s = ls_append1(&cx, g, LS_OP_SOFTMAX, put_mask(s, f->mask), &(LsAttr){.axis = {3}});
    LsValueId y = ls_append2(&cx, g, LS_OP_MATMUL, s, v, &product);
    return f->by_token ? ls_append1(&cx, g, LS_OP_TRANSPOSE, y, &swap) : y;
}

static double *value_of(LsValueId v)
{
    Eval e = eval_new(g);
    for (uint32_t i = 1; i < g->nvalue; i++)        /* the given mask: every third is hidden */
        for (int k = 0; g->value[i].kind == LS_V_INPUT && k < N * T; k++)
            e.v[i][k] = k % 3 != 1;
    eval_run(&e, 1, g->nnode);
    return e.v[v.i];
}

static uint32_t nodes_left(void)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op != LS_OP_NOP && g->node[i].op != LS_OP_RESHAPE;
    return n;
}

static LsNodeId attention_node(void)
{
    uint32_t i = 1;
    while (i < g->nnode && g->node[i].op != LS_OP_ATTENTION)
        i++;
    ck_assert_uint_lt(i, g->nnode);
    return (LsNodeId){i};
}

static void set_output(LsValueId y)
{
    g->output = ls_arena_alloc(cx.arena, 1, sizeof *g->output);
    g->output[0] = y;
    g->noutput = 1;
}

static void check_form(const Form *f)
{
    graph_open();
    LsValueId y = written_out(f);
    set_output(y);
    double *before = value_of(y);
    ck_assert(ls_patterns(&cx, g));
    ck_assert_uint_eq(nodes_left(), 1);
    const LsAttentionAttr *at = &g->node[attention_node().i].attr.attention;
    bool future = f->mask == ADDED_FUTURE || f->mask == WHERE_FUTURE || f->mask == BOTH;
    bool other = f->mask == ADDED || f->mask == WHERE || f->mask == BOTH;
    ck_assert_uint_eq(at->by_token, f->want);
    ck_assert_double_eq_tol(at->scale, 0.5, 1e-7);
    ck_assert(at->causal == future);
    ck_assert_int_eq(g->node[attention_node().i].nin, other ? 4 : 3);
    double *after = value_of(g->output[0]);
    for (int i = 0; i < N * H * T * D; i++)
        ck_assert_double_eq_tol(before[i], after[i], 1e-7);
    graph_close();
}

START_TEST(every_spelling_becomes_one_node_with_the_same_result)
{
    for (MaskForm mask = BARE; mask <= BOTH; mask++)
        for (int scale = 0; scale < 4; scale++) {
            check_form(&(Form){mask, scale, false, 0});
            /* q's transpose is found through its factor */
            check_form(&(Form){mask, scale, true, 15});
        }
}
END_TEST

START_TEST(stacks_of_matrices_need_no_batch_axis)
{
    graph_open();
    LsAttr product = {.gemm = {.alpha = 1}}, swap = {.perm = {{1, 0, 2}}};
    LsValueId q = ls_append1(&cx, g, LS_OP_TRANSPOSE, param("q", SHAPE(T, H, D)), &swap);
    LsValueId k = param("k", SHAPE(H, D, T)), v = param("v", SHAPE(H, T, D));
    LsValueId s = ls_append2(&cx, g, LS_OP_MATMUL, q, k, &product);
    s = ls_append1(&cx, g, LS_OP_SOFTMAX, s, &(LsAttr){.axis = {2}});
    LsValueId y = ls_append2(&cx, g, LS_OP_MATMUL, s, v, &product);
    y = ls_append1(&cx, g, LS_OP_TRANSPOSE, y, &swap);
    set_output(y);
    double *before = value_of(y);
    ck_assert(ls_patterns(&cx, g));
    ck_assert_uint_eq(nodes_left(), 2);         /* k, stored as kT, must be transposed */
    ck_assert_uint_eq(g->node[attention_node().i].attr.attention.by_token,
                      LS_Q_BY_TOKEN | LS_Y_BY_TOKEN);
    ck_assert(ls_shape_same(ls_shape(g, g->output[0]), &SHAPE(T, H, D)));
    double *after = value_of(g->output[0]);
    for (int i = 0; i < H * T * D; i++)
        ck_assert_double_eq_tol(before[i], after[i], 1e-9);
    graph_close();
}
END_TEST

/* [N,G,T,D] as [N,H,T,D], each head R times. */
static LsValueId repeated(LsValueId x, int64_t times)
{
    LsShape s = *ls_shape(g, x);
    LsShape thin = {5, {s.dim[0], s.dim[1], 1, s.dim[2], s.dim[3]}}, wide = thin, to = s;
    wide.dim[2] = times;
    to.dim[1] *= times;
    x = ls_append1(&cx, g, LS_OP_EXPAND, ls_reshape(&cx, g, x, &thin), &(LsAttr){.shape = {wide}});
    return ls_reshape(&cx, g, x, &to);
}

START_TEST(keys_that_heads_share_are_not_repeated)
{
    LsAttr product = {.gemm = {.alpha = 1}}, swap = {.perm = {{0, 2, 1, 3}}},
           turn = {.perm = {{0, 1, 3, 2}}};
    graph_open();
    LsValueId q = param("q", SHAPE(N, 6, T, D));
    LsValueId k = ls_append1(&cx, g, LS_OP_TRANSPOSE, param("k", SHAPE(N, T, 2, D)), &swap);
    LsValueId v = ls_append1(&cx, g, LS_OP_TRANSPOSE, param("v", SHAPE(N, T, 2, D)), &swap);
    LsValueId kt = ls_append1(&cx, g, LS_OP_TRANSPOSE, repeated(k, 3), &turn);
    LsValueId s = ls_append2(&cx, g, LS_OP_MATMUL, q, kt, &product);
    s = ls_append1(&cx, g, LS_OP_SOFTMAX, s, &(LsAttr){.axis = {3}});
    LsValueId y = ls_append2(&cx, g, LS_OP_MATMUL, s, repeated(v, 3), &product);
    set_output(y);
    double *before = value_of(y);
    ck_assert(ls_patterns(&cx, g));
    ck_assert_uint_eq(nodes_left(), 1);
    ck_assert_uint_eq(g->node[attention_node().i].attr.attention.by_token,
                      LS_K_BY_TOKEN | LS_V_BY_TOKEN);
    ck_assert_int_eq(ls_attention_size(g, attention_node()).groups, 2);
    double *after = value_of(g->output[0]);
    for (int i = 0; i < N * 6 * T * D; i++)
        ck_assert_double_eq_tol(before[i], after[i], 1e-9);
    graph_close();
}
END_TEST

/* Scores below the diagonal, by comparing a stored triangle of ones with 0. */
static void check_triangle(bool trained, bool causal)
{
    graph_open();
    LsAttr product = {.gemm = {.alpha = 1}};
    float *ones = ls_arena_alloc(cx.arena, T * T, sizeof *ones);
    for (int i = 0; i < T * T; i++)
        ones[i] = i % T <= i / T;
    LsValueId tri = ls_value_add(&cx, g, LS_V_PARAM, "tri", LS_REAL, &SHAPE(1, 1, T, T), ones);
    LsValueId q = param("q", SHAPE(N, H, T, D)), k = param("k", SHAPE(N, H, D, T)),
              v = param("v", SHAPE(N, H, T, D));
    LsValueId s = ls_append2(&cx, g, LS_OP_MATMUL, q, k, &product);
    LsValueId bits = op2(LS_OP_EQUAL, tri, num(0));
    s = ls_append3(&cx, g, LS_OP_WHERE, bits, num(-INFINITY), s, NULL);
    s = ls_append1(&cx, g, LS_OP_SOFTMAX, s, &(LsAttr){.axis = {3}});
    LsValueId y = ls_append2(&cx, g, LS_OP_MATMUL, s, v, &product);
    if (trained)
        y = op2(LS_OP_ADD, y, ls_append1(&cx, g, LS_OP_REDUCE_SUM, tri,
                                         &(LsAttr){.reduce = {.axes = 8, .keep = true}}));
    set_output(y);
    ck_assert(ls_patterns(&cx, g));
    ck_assert(g->node[attention_node().i].attr.attention.causal == causal);
    ck_assert_int_eq(g->node[attention_node().i].nin, causal ? 3 : 4);
    graph_close();
}

START_TEST(a_stored_triangle_is_a_mask_unless_it_is_trained)
{
    check_triangle(false, true);
    check_triangle(true, false);
}
END_TEST

/* The pattern is left alone. */
static void check_left(LsValueId y)
{
    set_output(y);
    ck_assert(ls_patterns(&cx, g));
    ck_assert_uint_eq(count_op(LS_OP_ATTENTION), 0);
    ck_assert_uint_eq(count_op(LS_OP_SOFTMAX), 1);
    graph_close();
}

START_TEST(what_must_be_kept_is_left_alone)
{
    LsAttr product = {.gemm = {.alpha = 1}}, last = {.axis = {3}}, drop = {.scalar = {.a = 0.1}};
    for (int what = 0; what < 4; what++) {
        graph_open();
        LsValueId q = param("q", SHAPE(N, H, T, D)), k = param("k", SHAPE(N, H, D, T)),
                  v = param("v", SHAPE(N, H, T, D));
        LsValueId s = ls_append2(&cx, g, LS_OP_MATMUL, q, k, &product);
        if (what == 0)                          /* a trained bias needs a gradient */
            s = op2(LS_OP_ADD, s, param("bias", SHAPE(H, T, T)));
        LsValueId p = ls_append1(&cx, g, LS_OP_SOFTMAX, s, &last);
        if (what == 1)
            p = ls_append1(&cx, g, LS_OP_DROPOUT, p, &drop);
        if (what == 3)                          /* along the wrong axis */
            p = ls_append1(&cx, g, LS_OP_SOFTMAX, s, &(LsAttr){.axis = {2}});
        LsValueId y = ls_append2(&cx, g, LS_OP_MATMUL, p, v, &product);
        if (what == 2)                          /* the weights are read */
            y = op2(LS_OP_ADD, ls_append1(&cx, g, LS_OP_REDUCE_SUM, p,
                                          &(LsAttr){.reduce = {.axes = 8, .keep = true}}), y);
        check_left(y);
    }
}
END_TEST

START_TEST(a_mask_that_hides_something_else_is_read)
{
    graph_open();
    LsAttr product = {.gemm = {.alpha = 1}};
    LsValueId q = param("q", SHAPE(N, H, T, D)), k = param("k", SHAPE(N, H, D, T)),
              v = param("v", SHAPE(N, H, T, D));
    LsValueId s = ls_append2(&cx, g, LS_OP_MATMUL, q, k, &product);
    s = op2(LS_OP_ADD, s, future_added(-50));   /* not low enough to be certain */
    s = ls_append1(&cx, g, LS_OP_SOFTMAX, s, &(LsAttr){.axis = {3}});
    set_output(ls_append2(&cx, g, LS_OP_MATMUL, s, v, &product));
    ck_assert(ls_patterns(&cx, g));
    ck_assert(!g->node[attention_node().i].attr.attention.causal);
    ck_assert_int_eq(g->node[attention_node().i].nin, 4);
    graph_close();
}
END_TEST

/* ---- ONNX ---- */
START_TEST(onnx_attention_takes_heads_as_an_axis_or_joined)
{
    graph_open();
    Node n = {0};
    LsValueId in[] = {param("q", SHAPE(2, 6, 4, 8)), param("k", SHAPE(2, 3, 5, 8)),
                      param("v", SHAPE(2, 3, 5, 7))};
    node_int(&n, "is_causal", 1);
    LsValueId y = node_one(&n, "Attention", 23, 3, in);
    ck_assert(ls_shape_same(ls_shape(g, y), &SHAPE(2, 6, 4, 7)));
    const LsAttentionAttr *at = &g->node[attention_node().i].attr.attention;
    ck_assert(at->causal && at->past == 0);
    ck_assert_double_eq_tol(at->scale, 1 / sqrt(8), 1e-6);
    graph_close();

    graph_open();
    Node joined = {0};
    LsValueId rows[] = {param("q", SHAPE(2, 4, 48)), param("k", SHAPE(2, 5, 24)),
                        param("v", SHAPE(2, 5, 21)), constant(SHAPE(4, 3))};
    node_int(&joined, "q_num_heads", 6);
    node_int(&joined, "kv_num_heads", 3);
    node_float(&joined, "scale", 0.25f);
    y = node_one(&joined, "Attention", 23, 4, rows);        /* the mask lacks two columns */
    ck_assert(ls_shape_same(ls_shape(g, y), &SHAPE(2, 4, 42)));
    at = &g->node[attention_node().i].attr.attention;
    ck_assert_uint_eq(at->by_token, 15);
    ck_assert_double_eq(at->scale, 0.25);
    graph_close();
}
END_TEST

START_TEST(a_mask_that_is_trained_gets_its_gradient)
{
    graph_open();
    Node n = {0};
    LsValueId in[] = {param("q", SHAPE(1, 4, 3, 2)), param("k", SHAPE(1, 2, 5, 2)),
                      param("v", SHAPE(1, 2, 5, 2)), param("m", SHAPE(4, 3, 5))};
    LsValueId y = node_one(&n, "Attention", 23, 4, in);
    check_gradients(weighed(y));
    ck_assert_uint_eq(g->ngrad, 4);
    graph_close();
}
END_TEST

START_TEST(what_does_not_fit_is_named)
{
    graph_open();
    LsValueId q = param("q", SHAPE(1, 2, 3, 4)), flat = param("f", SHAPE(1, 3, 8));
    LsValueId in[] = {q, q, q, {0}, q, q}, joined[] = {flat, flat, flat};
    node_fails(&(Node){0}, "Attention", 23, 5, in, LS_E_NAME,
               "only one of past_key and past_value is given");
    Node stage = {0};
    node_int(&stage, "qk_matmul_output_mode", 4);
    node_fails(&stage, "Attention", 23, 3, in, LS_E_ATTR, "qk_matmul_output_mode is 4, not 0 to 3");
    node_fails(&(Node){0}, "Attention", 23, 3, joined, LS_E_SHAPE, "q_num_heads is 0");
    graph_close();
}
END_TEST

/* ---- heads side by side ---- */

/* The columns from..to of x, by heads. */
static LsValueId columns(LsValueId x, int64_t from, int64_t to, int64_t step, int64_t heads)
{
    const LsShape s = *ls_shape(g, x);
    LsAttr at = {
        .slice = {.start = {0, 0, from}, .step = {1, 1, step}, .stop = {s.dim[0], s.dim[1], to}}};
    LsValueId part = ls_append1(&cx, g, LS_OP_SLICE, x, &at);
    int64_t wide = ls_shape(g, part)->dim[2] / heads;
    return ls_reshape(&cx, g, part, &SHAPE(s.dim[0], s.dim[1], heads, wide));
}

enum { GROUPS = 2, HEADS = 4, WIDE = 8 };     /* E; D is 4 */

/* Attention over slices of one tensor whose columns are k's, q's and v's from there on. */
static LsValueId over_slices(int64_t q, int64_t k, int64_t v, int64_t all, unsigned by_token)
{
    LsValueId x = param("qkv", SHAPE(N, T, all)), in[4];
    LsAttr at = plain(0.6, by_token);
    in[0] = columns(x, q, q + HEADS * 4, 1, HEADS);
    in[1] = columns(x, k, k + GROUPS * 4, 1, GROUPS);
    in[2] = columns(x, v, v + GROUPS * WIDE, 1, GROUPS);
    in[3] = constant(SHAPE(N, 1, 1, T));
    for (int i = 0; i < 3; i++)
        if (!(by_token & 1u << i))
            in[i] = ls_transpose(&cx, g, in[i], (int[]){0, 2, 1, 3});
    at.attention.causal = true;
    return ls_append(&cx, g, LS_OP_ATTENTION, 4, in, &at);
}

enum { ALL_COLUMNS = HEADS * 4 + GROUPS * (4 + WIDE) };

START_TEST(heads_are_read_where_they_lie_side_by_side)
{
    for (unsigned y_by_token = 0; y_by_token < 2; y_by_token++) {
        graph_open();
        LsValueId y = over_slices(0, 16, 24, ALL_COLUMNS, 7 | (y_by_token ? LS_Y_BY_TOKEN : 0));
        set_output(y);
        double *before = value_of(y);
        int64_t n = ls_count(ls_shape(g, y));
        ck_assert(ls_heads(&cx, g));
        ck_assert_uint_eq(nodes_left(), 1);
        ck_assert_uint_eq(count_op(LS_OP_ATTENTION_JOINT), 1);
        double *after = value_of(g->output[0]);
        for (int64_t i = 0; i < n; i++)
            ck_assert_double_eq(before[i], after[i]);
        check_gradients(weighed(g->output[0]));
        ck_assert_int_eq(count_op(LS_OP_ATTENTION_JOINT_GRAD), 1);
        ck_assert_int_eq(count_op(LS_OP_SLICE) + count_op(LS_OP_CONCAT), 0);
        graph_close();
    }
}
END_TEST

START_TEST(heads_that_lie_otherwise_are_sliced)
{
    static const struct { int64_t q, k, v, all; unsigned by_token; } other[] = {
        {8, 0, 24, ALL_COLUMNS, 7},             /* k first */
        {0, 16, 24, ALL_COLUMNS + 4, 7},        /* more behind them */
        {0, 16, 16, ALL_COLUMNS - 8, 7},        /* k and v overlap */
        {0, 16, 24, ALL_COLUMNS, 5},            /* k with heads before tokens */
    };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        graph_open();
        set_output(
            over_slices(other[i].q, other[i].k, other[i].v, other[i].all, other[i].by_token));
        ck_assert(ls_heads(&cx, g));
        ck_assert_uint_eq(count_op(LS_OP_ATTENTION), 1);
        ck_assert_uint_eq(count_op(LS_OP_ATTENTION_JOINT), 0);
        graph_close();
    }
}
END_TEST

START_TEST(rows_that_hold_no_such_heads_are_named)
{
    LsAttr at = plain(1, 7);
    at.attention.heads = 2, at.attention.groups = 2, at.attention.depth = at.attention.width = 4;
    graph_open();
    LsValueId x = param("x", SHAPE(2, 5, 23)), whole = param("y", SHAPE(2, 5, 24));
    refused(LS_OP_ATTENTION_JOINT, 1, &x, &at, LS_E_SHAPE, "does not hold heads side by side");
    at.attention.by_token = 6;
    refused(LS_OP_ATTENTION_JOINT, 1, &whole, &at, LS_E_SHAPE, "does not hold heads side by side");
    graph_close();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("attention");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, gradients_match_differences);
    tcase_add_test(tc, shapes_that_do_not_fit_are_named);
    tcase_add_test(tc, work_counts_the_scores_that_are_seen);
    tcase_add_test(tc, every_spelling_becomes_one_node_with_the_same_result);
    tcase_add_test(tc, stacks_of_matrices_need_no_batch_axis);
    tcase_add_test(tc, keys_that_heads_share_are_not_repeated);
    tcase_add_test(tc, a_stored_triangle_is_a_mask_unless_it_is_trained);
    tcase_add_test(tc, what_must_be_kept_is_left_alone);
    tcase_add_test(tc, a_mask_that_hides_something_else_is_read);
    tcase_add_test(tc, onnx_attention_takes_heads_as_an_axis_or_joined);
    tcase_add_test(tc, a_mask_that_is_trained_gets_its_gradient);
    tcase_add_test(tc, what_does_not_fit_is_named);
    tcase_add_test(tc, heads_are_read_where_they_lie_side_by_side);
    tcase_add_test(tc, heads_that_lie_otherwise_are_sliced);
    tcase_add_test(tc, rows_that_hold_no_such_heads_are_named);
    return run_tests("attention", tc);
}
