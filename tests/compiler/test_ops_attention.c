/* tests/compiler/test_ops_attention.c -- Attention and RotaryEmbedding against their definitions in
 * plain loops, with lengths and positions that are known only at run time, and their gradients
 * against differences. */
#include "tests/support/onnx_node.h"
#include "tests/support/suite.h"

enum { N = 2, H = 2, T = 3, S = 4, D = 2 };

typedef struct Case {
    bool causal, filled, past;  /* filled: nonpad_kv_seqlen at run time; past: the first column
                                 * comes from a cache */
    char mask;                  /* 'b' bools, 'r' reals; 0: none */
    int left, right;            /* of the window; -1: no end */
    double cap;
    int stage;                  /* of the scores that are a result; -1: they are not */
} Case;

static const int64_t lens[N] = {4, 2};
static const uint8_t keep[T * S] = {1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 1};  /* row 1 sees nothing */

static const Case cases[] = {
    {.left = -1, .right = -1, .stage = -1, .causal = true, .filled = true},
    {.left = -1, .right = -1, .stage = -1, .filled = true, .mask = 'b'},
    {.left = -1, .right = -1, .stage = -1, .filled = true, .mask = 'r', .causal = true},
    {.left = 1, .right = -1, .stage = -1, .past = true},
    {.left = 1, .right = 1, .stage = 2, .filled = true, .mask = 'r'},
    {.left = -1, .right = -1, .stage = -1, .past = true, .causal = true},
    {.left = -1, .right = -1, .stage = 0, .past = true, .causal = true, .mask = 'r', .cap = 0.5},
    {.left = -1, .right = -1, .stage = 1, .cap = 0.3, .mask = 'b'},
    {.left = -1, .right = -1, .stage = 2, .causal = true, .mask = 'r'},
    {.left = -1, .right = -1, .stage = 3, .causal = true, .mask = 'b', .cap = 2},
    {.left = -1, .right = 0, .stage = -1, .cap = 2, .filled = true},
};

typedef struct Built { LsValueId q, k, v, mask, pk, pv, out[4]; } Built;

static LsValueId mask_of(const Case *c)
{
    if (c->mask == 'b')
        return ls_const_add(&cx, g, LS_BOOL, &SHAPE(T, S), keep);
    return c->mask == 'r' ? constant(SHAPE(T, S)) : NONE;
}

static void build(Built *b, const Case *c)
{
    Node n = {0};
    node_int(&n, "is_causal", c->causal);
    node_int(&n, "left_window_size", c->left);
    node_int(&n, "right_window_size", c->right);
    node_int(&n, "qk_matmul_output_mode", c->stage < 0 ? 0 : c->stage);
    node_float(&n, "softcap", (float)c->cap);
    int64_t own = S - c->past;
    b->q = param("q", SHAPE(N, H, T, D));
    b->k = param("k", SHAPE(N, H, own, D));
    b->v = param("v", SHAPE(N, H, own, D));
    b->mask = mask_of(c);
    b->pk = c->past ? param("pk", SHAPE(N, H, 1, D)) : NONE;
    b->pv = c->past ? param("pv", SHAPE(N, H, 1, D)) : NONE;
    LsValueId filled =
        c->filled ? ls_value_add(&cx, g, LS_V_INPUT, "lens", LS_I64, &SHAPE(N), lens) : NONE;
    int nout = c->stage >= 0 ? 4 : c->past ? 3 : 1;
    ck_assert(node_build(&n, "Attention", 25, IN(b->q, b->k, b->v, b->mask, b->pk, b->pv, filled),
                         nout, b->out, NULL));
}

typedef struct Ref { const double *q, *k, *v, *pk, *pv, *mask; } Ref;

/* Element d of token j, from the cache or after it. */
static double token(const double *past, const double *own, int head, int j, int d)
{
    if (past == NULL)
        return own[(head * S + j) * D + d];
    return j == 0 ? past[head * D + d] : own[(head * (S - 1) + j - 1) * D + d];
}

static bool sees(const Case *c, int sample, int i, int j)
{
    int pos = i + (c->past ? 1 : 0) + (c->filled ? (int)lens[sample] - T : 0);
    return !((c->filled && j >= lens[sample]) || (c->causal && j > pos)
             || (c->left >= 0 && j < pos - c->left) || (c->right >= 0 && j > pos + c->right)
             || (c->mask == 'b' && !keep[i * S + j]));
}

/* Scores of one row at the stage that is a result, and the weights of the values. */
static void row(const Case *c, const Ref *r, int head, int i, double weight[S], double stage[S])
{
    double most = -INFINITY, sum = 0;
    for (int j = 0; j < S; j++) {
        double s = 0;
        for (int d = 0; d < D; d++)
            s += r->q[(head * T + i) * D + d] * token(r->pk, r->k, head, j, d) / sqrt(D);
        stage[j] = s;
        s = c->cap > 0 ? c->cap * tanh(s / c->cap) : s;
        stage[j] = c->stage == 1 ? s : stage[j];
        s = sees(c, head / H, i, j) ? s + (r->mask != NULL ? r->mask[i * S + j] : 0) : -INFINITY;
        stage[j] = c->stage == 2 ? s : stage[j];
        weight[j] = s;
        most = fmax(most, s);
    }
    for (int j = 0; j < S; j++)
        sum += weight[j] = most > -INFINITY ? exp(weight[j] - most) : 0;
    for (int j = 0; j < S; j++) {
        weight[j] = sum > 0 ? weight[j] / sum : 0;
        stage[j] = c->stage == 3 ? weight[j] : stage[j];
    }
}

static void near(double got, double want, const char *what)
{
    ck_assert_msg(got == want || fabs(got - want) <= 1e-6, "%s: %.9g, not %.9g", what, got, want);
}

static void compare(const Case *c, const Built *b, const Ref *r, const Eval *e)
{
    for (int head = 0; head < N * H; head++)
        for (int i = 0; i < T; i++) {
            double weight[S], stage[S];
            row(c, r, head, i, weight, stage);
            for (int d = 0; d < D; d++) {
                double y = 0;
                for (int j = 0; j < S; j++)
                    y += weight[j] * token(r->pv, r->v, head, j, d);
                near(e->v[b->out[0].i][(head * T + i) * D + d], y, "Y");
            }
            for (int j = 0; j < S && c->stage >= 0; j++)
                near(e->v[b->out[3].i][(head * T + i) * S + j], stage[j], "scores");
        }
}

START_TEST(each_form_of_attention_follows_its_definition_and_has_right_gradients)
{
    const Case *c = &cases[_i];
    Built b;
    build(&b, c);
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    Ref r = {e.v[b.q.i],
             e.v[b.k.i],
             e.v[b.v.i],
             c->past ? e.v[b.pk.i] : NULL,
             c->past ? e.v[b.pv.i] : NULL,
             c->mask == 'r' ? e.v[b.mask.i] : NULL};
    compare(c, &b, &r, &e);
    LsValueId loss = weighed(b.out[0]);
    if (c->stage >= 0 && c->stage != 2)     /* hidden scores are minus infinity */
        loss = ls_append2(&cx, g, LS_OP_ADD, loss, weighed(b.out[3]), NULL);
    if (c->past)
        loss = ls_append2(&cx, g, LS_OP_ADD, loss, weighed(b.out[1]), NULL);
    check_gradients(loss);
}
END_TEST

START_TEST(attention_refuses_what_does_not_fit)
{
    Node n = {0}, stage = {0}, window = {0};
    LsValueId q = param("q", SHAPE(N, H, T, D)), k = param("k", SHAPE(N, H, S, D)),
              cache = param("c", SHAPE(N, S, D));
    LsValueId lengths = INTS(1, 2, 3), five = param("m", SHAPE(1, 1, 1, T, S));
    node_fails(&n, "Attention", 23, IN(q, k, k, NONE, k), LS_E_NAME,
               "only one of past_key and past_value");
    node_fails(&n, "Attention", 24, IN(q, k, k, NONE, k, k, INTS(1, 2)), LS_E_NAME,
               "give one of them");
    node_fails(&n, "Attention", 23, IN(q, k, k, NONE, cache, cache), LS_E_SHAPE,
               "give reals as [N,H,S,D]");
    node_fails(&n, "Attention", 24, IN(q, k, k, NONE, NONE, NONE, lengths), LS_E_SHAPE,
               "the batch has 2 samples");
    node_fails(&n, "Attention", 24, IN(q, k, k, NONE, NONE, NONE, k), LS_E_TYPE, "not integers");
    node_fails(&n, "Attention", 23, IN(q, k, k, five), LS_E_SHAPE, "it has one axis to four");
    node_int(&stage, "qk_matmul_output_mode", 4);
    node_fails(&stage, "Attention", 23, IN(q, k, k), LS_E_ATTR, "not 0 to 3");
    node_int(&window, "left_window_size", -2);
    node_fails(&window, "Attention", 25, IN(q, k, k), LS_E_ATTR, "a window ends");
}
END_TEST

/* ---- RotaryEmbedding ---- */
enum { POSITIONS = 5, DEEP = 6 };

typedef struct Turn { bool joined, interleaved, ids; int rotated; } Turn;   /* joined: [N,T,H*D] */

static const Turn turns[] = {
    {.rotated = 0}, {.interleaved = true, .ids = true}, {.joined = true, .ids = true, .rotated = 4},
    {.joined = true, .interleaved = true, .rotated = 2},
};
static const int64_t ids[N * T] = {4, 0, 2, 1, 1, 3};

static void rotate(const Turn *t, const double *x, const double *cos, const double *sin, double *y)
{
    int half = (t->rotated > 0 ? t->rotated : DEEP) / 2;
    memcpy(y, x, DEEP * sizeof *y);
    for (int p = 0; p < half; p++) {
        int a = t->interleaved ? 2 * p : p, b = t->interleaved ? a + 1 : p + half;
        y[a] = x[a] * cos[p] - x[b] * sin[p];
        y[b] = x[a] * sin[p] + x[b] * cos[p];
    }
}

START_TEST(rotary_turns_pairs_by_the_angle_of_the_position)
{
    const Turn *t = &turns[_i];
    Node n = {0};
    int half = (t->rotated > 0 ? t->rotated : DEEP) / 2;
    node_int(&n, "interleaved", t->interleaved);
    node_int(&n, "rotary_embedding_dim", t->rotated);
    node_int(&n, "num_heads", t->joined ? H : 0);
    LsValueId x = param("x", t->joined ? SHAPE(N, T, H * DEEP) : SHAPE(N, H, T, DEEP)), out;
    LsShape table = t->ids ? SHAPE(POSITIONS, half) : SHAPE(N, T, half);
    LsValueId cos = param("c", table), sin = param("s", table);
    LsValueId at =
        t->ids ? ls_value_add(&cx, g, LS_V_INPUT, "ids", LS_I64, &SHAPE(N, T), ids) : NONE;
    ck_assert(node_build(&n, "RotaryEmbedding", 23, IN(x, cos, sin, at), 1, &out, NULL));
    ck_assert(ls_shape_same(ls_shape(g, out), ls_shape(g, x)));
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    for (int k = 0; k < N * T * H; k++) {   /* sample, token, head */
        int sample = k / (T * H), token = k / H % T, head = k % H;
        int from = t->joined ? k : (sample * H + head) * T + token;
        int64_t line = t->ids ? ids[sample * T + token] : sample * T + token;
        double want[DEEP];
        rotate(t, e.v[x.i] + from * DEEP, e.v[cos.i] + line * half, e.v[sin.i] + line * half, want);
        for (int d = 0; d < DEEP; d++)
            near(e.v[out.i][from * DEEP + d], want[d], "Y");
    }
    check_gradients(weighed(out));
}
END_TEST

START_TEST(rotary_refuses_what_does_not_fit)
{
    Node n = {0}, odd = {0}, heads = {0};
    LsValueId x = param("x", SHAPE(N, H, T, DEEP)), flat = param("f", SHAPE(N, T, H * DEEP));
    LsValueId own = param("c", SHAPE(N, T, 3)), rows = param("r", SHAPE(POSITIONS, 3));
    LsValueId far = ints_of(SHAPE(N, T), (int64_t[]){0, 1, 2, 3, 4, 5});
    node_fails(&n, "RotaryEmbedding", 23, IN(x, own, own, far), LS_E_SHAPE,
               "two axes with position_ids");
    node_fails(&n, "RotaryEmbedding", 23, IN(x, rows, rows), LS_E_SHAPE, "three without");
    node_fails(&n, "RotaryEmbedding", 23, IN(x, rows, rows, far), LS_E_SHAPE, "index 5 is outside");
    node_fails(&n, "RotaryEmbedding", 23, IN(flat, own, own), LS_E_SHAPE,
               "[N,T,H*D] and num_heads");
    node_fails(&n, "RotaryEmbedding", 23, IN(x, own, param("w", SHAPE(N, T, 2))), LS_E_SHAPE,
               "one angle for each pair");
    node_int(&odd, "rotary_embedding_dim", 3);
    node_fails(&odd, "RotaryEmbedding", 23, IN(x, own, own), LS_E_SHAPE, "would be rotated");
    node_int(&heads, "num_heads", 5);
    node_fails(&heads, "RotaryEmbedding", 23, IN(flat, own, own), LS_E_SHAPE, "num_heads is 5");
}
END_TEST

/* ---- com.microsoft ---- */
START_TEST(fused_operators_of_onnxruntime_are_read)
{
    Node n = {0}, mha = {0};
    LsValueId x = param("x", SHAPE(N, T, 4)), k = param("k", SHAPE(N, S, 4)), out[4];
    node_int(&mha, "num_heads", H);
    ck_assert(node_build(&mha, LS_MICROSOFT "MultiHeadAttention", 1, IN(x, k, k), 1, out, NULL));
    expect_shape(out[0], SHAPE(N, T, 4));
    check_gradients(weighed(out[0]));
    LsValueId y = node_one(&n, LS_MICROSOFT "BiasGelu", 1, IN(REALS(0, 1), REALS(0, -1)));
    EXPECT(y, 0, 0);
    node_int(&mha, "unidirectional", 1);
    node_fails(&mha, LS_MICROSOFT "MultiHeadAttention", 1, IN(x, k, k), LS_E_UNSUPPORTED,
               "as many new keys");
    node_fails(&n, LS_MICROSOFT "MultiHeadAttention", 1, IN(x), LS_E_UNSUPPORTED,
               "operand 1 is missing");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_loop_test(tc, each_form_of_attention_follows_its_definition_and_has_right_gradients,
                        0, sizeof cases / sizeof *cases);
    tcase_add_test(tc, attention_refuses_what_does_not_fit);
    tcase_add_loop_test(tc, rotary_turns_pairs_by_the_angle_of_the_position, 0,
                        sizeof turns / sizeof *turns);
    tcase_add_test(tc, rotary_refuses_what_does_not_fit);
    tcase_add_test(tc, fused_operators_of_onnxruntime_are_read);
    return run_tests("ops_attention", tc);
}
