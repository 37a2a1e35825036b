/* tests/compiler/test_ops_group_query.c -- GroupQueryAttention of com.microsoft beside
 * RotaryEmbedding and Attention of ai.onnx: the same numbers; gradients against differences;
 * refusals. */
#include "tests/support/fused_node.h"
#include "tests/support/suite.h"

enum { N = 2, T = 4, H = 4, G = 2, D = 4, ROWS = 6 };

static const char *const op = MS("GroupQueryAttention");
/* A node with attributes. */
#define PLAIN_OF(n, op, ...) node_one(n, op, 1, IN(__VA_ARGS__))

typedef struct Operands { LsValueId q, k, v, cos, sin; } Operands;

static Operands operands(void)
{
    return (Operands){param("q", SHAPE(N, T, H * D)), param("k", SHAPE(N, T, G * D)),
                      param("v", SHAPE(N, T, G * D)), param("cos", SHAPE(ROWS, D / 2)),
                      param("sin", SHAPE(ROWS, D / 2))};
}

#define GROUPED(n)                                                                                 \
    Node n = {0};                                                                                  \
    node_int(&n, "num_heads", H);                                                                  \
    node_int(&n, "kv_num_heads", G)

/* By RotaryEmbedding of ai.onnx; the positions of each sample count on from `first`. */
static LsValueId rotated(const Operands *o, LsValueId x, int heads, bool interleaved,
                         const int64_t first[N])
{
    Node n = {0};
    int64_t at[N * T];
    for (int i = 0; i < N * T; i++)
        at[i] = first[i / T] + i % T;
    node_int(&n, "num_heads", heads);
    node_int(&n, "interleaved", interleaved);
    return node_one(&n, "RotaryEmbedding", 23, IN(x, o->cos, o->sin, ints_of(SHAPE(N, T), at)));
}

/* Attention of ai.onnx over [N,T,H*D]. */
static LsValueId attended(LsValueId q, LsValueId k, LsValueId v, LsValueId mask, bool causal,
                          double scale, double cap)
{
    Node n = {0};
    node_int(&n, "q_num_heads", H);
    node_int(&n, "kv_num_heads", G);
    node_int(&n, "is_causal", causal);
    node_float(&n, "scale", (float)scale);
    node_float(&n, "softcap", (float)cap);
    return node_one(&n, "Attention", 23, IN(q, k, v, mask));
}

static const int64_t start[N];

/* ---- the forms that builders write ---- */
START_TEST(packed_operands_are_split_and_rotated)
{
    Operands o = operands();
    GROUPED(n);
    node_int(&n, "do_rotary", 1);
    node_int(&n, "rotary_interleaved", _i);
    Node concat = {0};
    node_int(&concat, "axis", 2);
    LsValueId all = node_one(&concat, "Concat", 13, IN(o.q, o.k, o.v));
    LsValueId y = node_one(&n, op, 1, IN(all, NONE, NONE, NONE, NONE, NONE, NONE, o.cos, o.sin));
    expect_fused(y, attended(rotated(&o, o.q, H, _i, start), rotated(&o, o.k, G, _i, start), o.v,
                             NONE, true, 0.5, 0));
    /* the same as three operands */
    expect_equal(node_one(&n, op, 1, IN(o.q, o.k, o.v, NONE, NONE, NONE, NONE, o.cos, o.sin)), y);
}
END_TEST

START_TEST(empty_caches_are_none_and_present_ones_are_the_keys_and_values)
{
    Operands o = operands();
    GROUPED(n);
    node_int(&n, "do_rotary", 1);
    LsValueId past = reals_of(SHAPE(N, G, 0, D), (float[]){0}), out[3];
    LsValueId last = ints_of(SHAPE(N), (int64_t[]){T - 1, T - 1}), total = INTS(T);
    ck_assert(node_build(&n, op, 1, IN(o.q, o.k, o.v, past, past, last, total, o.cos, o.sin), 3,
                         out, NULL));
    LsValueId k = rotated(&o, o.k, G, false, start);
    expect_equal(out[0], attended(rotated(&o, o.q, H, false, start), k, o.v, NONE, true, 0.5, 0));
    expect_equal(out[1], turned(reshaped(k, SHAPE(N, T, G, D)), LIST(0, 2, 1, 3)));
    expect_equal(out[2], turned(reshaped(o.v, SHAPE(N, T, G, D)), LIST(0, 2, 1, 3)));
}
END_TEST

START_TEST(positions_count_on_from_the_first_one)
{
    Operands o = operands();
    GROUPED(n);
    static const int64_t first[N] = {2, 1};
    node_int(&n, "do_rotary", 1);
    LsValueId ids = ints_of(SHAPE(N, T), (int64_t[]){2, 3, 4, 5, 1, 0, 0, 0}), out[3];
    ck_assert(node_build(&n, op, 1,
                         IN(o.q, o.k, o.v, NONE, NONE, NONE, NONE, o.cos, o.sin, ids), 3, out,
                         NULL));
    LsValueId k = rotated(&o, o.k, G, false, first);
    expect_equal(out[1], turned(reshaped(k, SHAPE(N, T, G, D)), LIST(0, 2, 1, 3)));
    expect_fused(out[0], attended(rotated(&o, o.q, H, false, first), k, o.v, NONE, true, 0.5, 0));
}
END_TEST

/* A part of each head is rotated where the tables are narrow. */
START_TEST(tables_say_how_much_of_a_head_is_rotated)
{
    Operands o = operands();
    GROUPED(n);
    Node part = {0};
    o.cos = param("c", SHAPE(T, 1));
    o.sin = param("s", SHAPE(T, 1));
    node_int(&n, "do_rotary", 1);
    node_int(&part, "rotary_embedding_dim", 2);
    LsValueId ids = ints_of(SHAPE(N, T), (int64_t[]){0, 1, 2, 3, 0, 1, 2, 3}), x[2];
    for (int k = 0; k < 2; k++) {
        LsValueId v = turned(reshaped(k == 0 ? o.q : o.k, SHAPE(N, T, k == 0 ? H : G, D)),
                             LIST(0, 2, 1, 3));
        v = turned(node_one(&part, "RotaryEmbedding", 23, IN(v, o.cos, o.sin, ids)),
                   LIST(0, 2, 1, 3));
        x[k] = reshaped(v, SHAPE(N, T, (k == 0 ? H : G) * D));
    }
    expect_fused(node_one(&n, op, 1, IN(o.q, o.k, o.v, NONE, NONE, NONE, NONE, o.cos, o.sin)),
                 attended(x[0], x[1], o.v, NONE, true, 0.5, 0));
}
END_TEST

/* ---- masks, a cap ---- */
/* Row i sees `window` columns, its own the last. */
static LsValueId band(int window)
{
    bool sees[T][T];
    for (int i = 0; i < T; i++)
        for (int j = 0; j < T; j++)
            sees[i][j] = j <= i && i - j < window;
    bool *data = ls_arena_alloc(cx.arena, sizeof sees, 1);
    memcpy(data, sees, sizeof sees);
    return ls_const_add(&cx, g, LS_BOOL, &SHAPE(1, 1, T, T), data);
}

START_TEST(a_window_has_so_many_columns)
{
    Operands o = operands();
    GROUPED(n);
    node_int(&n, "local_window_size", _i);
    expect_fused(PLAIN_OF(&n, op, o.q, o.k, o.v),
                 attended(o.q, o.k, o.v, band(_i), false, 0.5, 0));
}
END_TEST

START_TEST(scores_are_scaled_capped_and_biased)
{
    Operands o = operands();
    GROUPED(n);
    LsValueId bias = param("b", SHAPE(1, H, T, T));
    node_float(&n, "scale", 0.7F);
    node_float(&n, "softcap", 0.3F);
    expect_fused(PLAIN_OF(&n, op, o.q, o.k, o.v),
                 attended(o.q, o.k, o.v, NONE, true, 0.7, 0.3));
    expect_fused(PLAIN_OF(&n, op, o.q, o.k, o.v, NONE, NONE, NONE, NONE, NONE, NONE, NONE, bias),
                 attended(o.q, o.k, o.v, bias, true, 0.7, 0.3));
    GROUPED(narrow);
    node_int(&narrow, "local_window_size", 2);
    LsValueId hidden = node_one(&(Node){0}, "Where", 16, IN(band(2), bias, scalar(-INFINITY)));
    expect_equal(
        PLAIN_OF(&narrow, op, o.q, o.k, o.v, NONE, NONE, NONE, NONE, NONE, NONE, NONE, bias),
        attended(o.q, o.k, o.v, hidden, false, 0.5, 0));
}
END_TEST

/* Without a causal mask columns behind the end of a sample are hidden. */
START_TEST(lengths_hide_columns_where_nothing_is_causal)
{
    Operands o = operands();
    GROUPED(n);
    node_int(&n, "causal", 0);
    LsValueId last = int_input("l", SHAPE(N), (int32_t[]){1, 3});
    static const bool sees[N][T] = {{1, 1, 0, 0}, {1, 1, 1, 1}};
    LsValueId mask = ls_const_add(&cx, g, LS_BOOL, &SHAPE(N, 1, 1, T), (void *)sees);
    expect_fused(PLAIN_OF(&n, op, o.q, o.k, o.v, NONE, NONE, last),
                 attended(o.q, o.k, o.v, mask, false, 0.5, 0));
    expect_equal(PLAIN_OF(&n, op, o.q, o.k, o.v), attended(o.q, o.k, o.v, NONE, false, 0.5, 0));
}
END_TEST

START_TEST(heads_of_q_and_k_are_normed_before_they_are_rotated)
{
    Operands o = operands();
    GROUPED(n);
    Node norm[2] = {0};
    LsValueId weight[2] = {param("qn", SHAPE(D)), param("kn", SHAPE(D))}, x[2];
    node_int(&n, "do_rotary", 1);
    node_float(&n, "qk_norm_epsilon", 0.25F);
    node_float(&n, "k_norm_epsilon", 0.5F);
    for (int k = 0; k < 2; k++) {
        int heads = k == 0 ? H : G;
        node_float(&norm[k], "epsilon", k == 0 ? 0.25F : 0.5F);
        x[k] = node_one(&norm[k], "RMSNormalization", 23,
                        IN(reshaped(k == 0 ? o.q : o.k, SHAPE(N, T, heads, D)), weight[k]));
        x[k] = rotated(&o, reshaped(x[k], SHAPE(N, T, heads * D)), heads, false, start);
    }
    expect_fused(PLAIN_OF(&n, op, o.q, o.k, o.v, NONE, NONE, NONE, NONE, o.cos, o.sin, NONE, NONE,
                          NONE, NONE, NONE, weight[0], weight[1]),
                 attended(x[0], x[1], o.v, NONE, true, 0.5, 0));
}
END_TEST

/* ---- refusals ---- */
START_TEST(what_is_not_read_is_refused)
{
    Operands o = operands();
    GROUPED(n);
    GROUPED(rotary);
    GROUPED(smooth);
    GROUPED(wide);
    GROUPED(scores);
    Node odd = {0};
    LsValueId past = param("p", SHAPE(N, G, 3, D)), one = param("o", SHAPE(1)), out[4];
    LsValueId few = param("f", SHAPE(T - 1, D / 2));
    char *log;
    node_fails(&n, op, 1, IN(o.q, o.k, o.v, past, past), LS_E_UNSUPPORTED,
               "the cache (operand 3) is 2x2x3x4");
    node_fails(&n, op, 1, IN(o.q, o.k, o.v, NONE, NONE, NONE, INTS(T + 1)), LS_E_SHAPE,
               "total_sequence_length is 5, and there are 4 tokens");
    node_fails(&n, op, 1, IN(o.q, o.k), LS_E_NAME, "only one of key and value");
    node_fails(&n, op, 1, IN(o.q, o.v, o.q), LS_E_SHAPE, "the query is 2x4x16, the key 2x4x8");
    node_fails(&n, op, 1, IN(param("w", SHAPE(N, T, 12))), LS_E_SHAPE,
               "with 4 heads and 2 heads of keys");
    node_fails(&n, op, 1,
               IN(o.q, o.k, o.v, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, one),
               LS_E_UNSUPPORTED, "8 or 4 bits");
    node_fails(&n, op, 1, IN(o.q, o.k, o.v, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, one),
               LS_E_UNSUPPORTED, "sinks of heads");
    node_int(&smooth, "smooth_softmax", 1);
    node_fails(&smooth, op, 1, IN(o.q, o.k, o.v), LS_E_UNSUPPORTED, "sinks of heads");
    node_int(&rotary, "do_rotary", 1);
    node_fails(&rotary, op, 1, IN(o.q, o.k, o.v), LS_E_NAME, "needs cos_cache and sin_cache");
    node_fails(&rotary, op, 1, IN(o.q, o.k, o.v, NONE, NONE, NONE, NONE, few, few), LS_E_SHAPE,
               "cos_cache is 3x2");
    node_int(&wide, "causal", 0);
    node_int(&wide, "local_window_size", 2);
    node_fails(&wide, op, 1, IN(o.q, o.k, o.v), LS_E_ATTR, "local_window_size needs causal");
    node_int(&odd, "num_heads", 3);
    node_int(&odd, "kv_num_heads", 2);
    node_fails(&odd, op, 1, IN(param("x", SHAPE(N, T, 12)), o.k, o.v), LS_E_SHAPE,
               "with 3 heads and 2 heads of keys");
    ck_assert(!node_build(&scores, op, 1, IN(o.q, o.k, o.v), 4, out, &log));
    ck_assert_msg(strstr(log, "output_qk is not made") != NULL, "%s", log);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_loop_test(tc, packed_operands_are_split_and_rotated, 0, 2);
    tcase_add_test(tc, empty_caches_are_none_and_present_ones_are_the_keys_and_values);
    tcase_add_test(tc, positions_count_on_from_the_first_one);
    tcase_add_test(tc, tables_say_how_much_of_a_head_is_rotated);
    tcase_add_loop_test(tc, a_window_has_so_many_columns, 1, T + 2);
    tcase_add_test(tc, scores_are_scaled_capped_and_biased);
    tcase_add_test(tc, lengths_hide_columns_where_nothing_is_causal);
    tcase_add_test(tc, heads_of_q_and_k_are_normed_before_they_are_rotated);
    tcase_add_test(tc, what_is_not_read_is_refused);
    return run_tests("ops_group_query", tc);
}
