/* tests/compiler/test_ops_recurrent.c -- LSTM, GRU and RNN against ONNX's equations in plain loops,
 * over all attributes, and their gradients against differences. */
#include "tests/support/onnx_node.h"
#include "tests/support/suite.h"

enum { T = 3, N = 2, I = 2, H = 2, MAX_FUNCTIONS = 6 };
enum { OPERANDS = 8, OF_X = 0, OF_W, OF_R, OF_B, OF_LENS, OF_H, OF_C, OF_P };

typedef struct Case {
    const char *op, *direction; /* NULL: left out */
    const char *has;            /* of "bhcp": the optional operands that are given */
    const char *act[MAX_FUNCTIONS];     /* NULL first: left out */
    float alpha[MAX_FUNCTIONS], beta[MAX_FUNCTIONS];
    int nalpha, nbeta;
    const int32_t *lens;
    bool lens_at_run_time;      /* an input, not a constant */
    bool batch_first, linear, input_forget;
    float clip;
} Case;

/* ---- the reference ---- */

static double function(const char *f, double a, double b, double x)
{
    switch (f[0]) {
    case 'A': return a * x + b;
    case 'E': return x < 0 ? a * expm1(x) : x;
    case 'H': return fmin(fmax(a * x + b, 0), 1);
    case 'L': return x < 0 ? a * x : x;
    case 'R': return fmax(x, 0);
    }
    if (strcmp(f, "ScaledTanh") == 0)
        return a * tanh(b * x);
    if (strcmp(f, "Sigmoid") == 0)
        return 1 / (1 + exp(-x));
    if (strcmp(f, "Softplus") == 0)
        return log1p(exp(x));
    if (strcmp(f, "Softsign") == 0)
        return x / (1 + fabs(x));
    return strcmp(f, "Tanh") == 0 ? tanh(x) : x > a ? x : 0;
}

typedef struct Ref {
    const Case *c;
    const double *in[OPERANDS]; /* NULL: left out */
    int gates, functions, ndir;
    double y[T][2][N][H], h[2][N][H], cell[2][N][H];
} Ref;

static double x_at(const Ref *r, int t, int n, int i)
{
    return r->in[OF_X][r->c->batch_first ? (n * T + t) * I + i : (t * N + n) * I + i];
}

static double start(const Ref *r, int k, int d, int n, int j)
{
    if (r->in[k] == NULL)
        return 0;
    return r->in[k][r->c->batch_first ? (n * r->ndir + d) * H + j : (d * N + n) * H + j];
}

static double bias(const Ref *r, int d, int row)
{
    return r->in[OF_B] != NULL ? r->in[OF_B][d * 2 * r->gates * H + row] : 0;
}

static double w_x(const Ref *r, int d, int gate, int j, int t, int n)
{
    double s = bias(r, d, gate * H + j);
    for (int i = 0; i < I; i++)
        s += r->in[OF_W][((d * r->gates + gate) * H + j) * I + i] * x_at(r, t, n, i);
    return s;
}

static double r_h(const Ref *r, int d, int gate, int j, const double h[H])
{
    double s = bias(r, d, (r->gates + gate) * H + j);
    for (int i = 0; i < H; i++)
        s += r->in[OF_R][((d * r->gates + gate) * H + j) * H + i] * h[i];
    return s;
}

/* Function `which` of f, g, h; gates clip what they take. */
static double apply(const Ref *r, int d, int which, bool gate, double x)
{
    static const char *const by_default[] = {"Sigmoid", "Tanh", "Tanh"};
    int k = d * r->functions + which;
    const char *f = r->functions == 1 ? "Tanh" : by_default[which];
    if (gate && r->c->clip > 0)
        x = fmin(fmax(x, -(double)r->c->clip), r->c->clip);
    if (r->c->act[0] != NULL)
        f = r->c->act[k];
    return function(f, r->c->alpha[k], r->c->beta[k], x);
}

static double peep(const Ref *r, int d, int gate, int j, double c)
{
    return r->in[OF_P] != NULL ? r->in[OF_P][d * 3 * H + gate * H + j] * c : 0;
}

static void lstm(const Ref *r, int d, int t, int n, double h[H], double c[H])
{
    double z[4][H];
    for (int k = 0; k < 4; k++)
        for (int j = 0; j < H; j++)
            z[k][j] = w_x(r, d, k, j, t, n) + r_h(r, d, k, j, h);
    for (int j = 0; j < H; j++) {
        double i = apply(r, d, 0, true, z[0][j] + peep(r, d, 0, j, c[j]));
        double f = apply(r, d, 0, true, z[2][j] + peep(r, d, 2, j, c[j]));
        c[j] = (r->c->input_forget ? 1 - i : f) * c[j] + i * apply(r, d, 1, true, z[3][j]);
        h[j] = apply(r, d, 0, true, z[1][j] + peep(r, d, 1, j, c[j])) * apply(r, d, 2, false, c[j]);
    }
}

static void gru(const Ref *r, int d, int t, int n, double h[H])
{
    double z[H], reset[H], rh[H], next[H];
    for (int j = 0; j < H; j++) {
        z[j] = apply(r, d, 0, true, w_x(r, d, 0, j, t, n) + r_h(r, d, 0, j, h));
        reset[j] = apply(r, d, 0, true, w_x(r, d, 1, j, t, n) + r_h(r, d, 1, j, h));
        rh[j] = reset[j] * h[j];
    }
    for (int j = 0; j < H; j++) {
        double from = r->c->linear ? reset[j] * r_h(r, d, 2, j, h) : r_h(r, d, 2, j, rh);
        next[j] = (1 - z[j]) * apply(r, d, 1, true, w_x(r, d, 2, j, t, n) + from) + z[j] * h[j];
    }
    memcpy(h, next, sizeof next);
}

static void rnn(const Ref *r, int d, int t, int n, double h[H])
{
    double next[H];
    for (int j = 0; j < H; j++)
        next[j] = apply(r, d, 0, true, w_x(r, d, 0, j, t, n) + r_h(r, d, 0, j, h));
    memcpy(h, next, sizeof next);
}

static void walk(Ref *r, int d, int n)
{
    bool back = d == 1 || (r->c->direction != NULL && r->c->direction[0] == 'r');
    int len = r->c->lens != NULL ? r->c->lens[n] : T;
    double *h = r->h[d][n], *c = r->cell[d][n];
    for (int j = 0; j < H; j++) {
        h[j] = start(r, OF_H, d, n, j);
        c[j] = start(r, OF_C, d, n, j);
    }
    for (int s = 0; s < len; s++) {
        int t = back ? len - 1 - s : s;
        if (r->gates == 4)
            lstm(r, d, t, n, h, c);
        else if (r->gates == 3)
            gru(r, d, t, n, h);
        else
            rnn(r, d, t, n, h);
        memcpy(r->y[t][d][n], h, sizeof r->y[t][d][n]);
    }
}

/* ---- a case ---- */

typedef struct Built { Ref r; LsValueId in[OPERANDS], out[3]; } Built;

static LsValueId lengths_of(const Case *c)
{
    LsShape s = SHAPE(N);
    return c->lens_at_run_time ? ls_value_add(&cx, g, LS_V_INPUT, "lens", LS_I32, &s, c->lens)
                               : ls_const_add(&cx, g, LS_I32, &s, c->lens);
}

static void make_operands(Built *b, const Case *c)
{
    int64_t d = b->r.ndir, wide = b->r.gates * H;
    bool f = c->batch_first;
    const LsShape state = f ? SHAPE(N, d, H) : SHAPE(d, N, H);
    b->in[OF_X] = param("x", f ? SHAPE(N, T, I) : SHAPE(T, N, I));
    b->in[OF_W] = param("w", SHAPE(d, wide, I));
    b->in[OF_R] = param("r", SHAPE(d, wide, H));
    if (strchr(c->has, 'b') != NULL)
        b->in[OF_B] = param("b", SHAPE(d, 2 * wide));
    if (c->lens != NULL)
        b->in[OF_LENS] = lengths_of(c);
    if (strchr(c->has, 'h') != NULL)
        b->in[OF_H] = param("h", state);
    if (strchr(c->has, 'c') != NULL)
        b->in[OF_C] = param("c", state);
    if (strchr(c->has, 'p') != NULL)
        b->in[OF_P] = param("p", SHAPE(d, 3 * H));
}

static void set_attributes(Node *n, const Case *c, int functions)
{
    node_int(n, "hidden_size", H);
    if (c->direction != NULL)
        node_string(n, "direction", c->direction);
    if (c->act[0] != NULL)
        node_strings(n, "activations", (size_t)functions, c->act);
    float list[2][MAX_FUNCTIONS];
    for (int k = 0, a = 0, b = 0; k < functions; k++) {
        if (a < c->nalpha && c->alpha[k] != 0)
            list[0][a++] = c->alpha[k];
        if (b < c->nbeta && c->beta[k] != 0)
            list[1][b++] = c->beta[k];
    }
    if (c->nalpha > 0)
        node_floats(n, "activation_alpha", (size_t)c->nalpha,
                    memcpy(ls_arena_alloc(cx.arena, 1, sizeof list[0]), list[0], sizeof list[0]));
    if (c->nbeta > 0)
        node_floats(n, "activation_beta", (size_t)c->nbeta,
                    memcpy(ls_arena_alloc(cx.arena, 1, sizeof list[1]), list[1], sizeof list[1]));
    if (c->batch_first)
        node_int(n, "layout", 1);
    if (c->linear)
        node_int(n, "linear_before_reset", 1);
    if (c->input_forget)
        node_int(n, "input_forget", 1);
    if (c->clip > 0)
        node_float(n, "clip", c->clip);
}

static void build(Built *b, const Case *c)
{
    int lstm = strcmp(c->op, "LSTM") == 0, gru = strcmp(c->op, "GRU") == 0;
    Node n = {0};
    *b = (Built){.r = {.c = c, .gates = lstm ? 4 : gru ? 3 : 1, .functions = lstm ? 3 : gru ? 2 : 1,
                       .ndir = c->direction != NULL && c->direction[0] == 'b' ? 2 : 1}};
    make_operands(b, c);
    set_attributes(&n, c, b->r.functions * b->r.ndir);
    ck_assert(node_build(&n, c->op, 22, lstm ? 8 : 6, b->in, lstm ? 3 : 2, b->out, NULL));
}

static void near(double got, double want, const char *what)
{
    ck_assert_msg(fabs(got - want) <= 1e-6, "%s: %.9g, not %.9g", what, got, want);
}

/* The results against the reference's. */
static void compare(Built *b)
{
    Ref *r = &b->r;
    Eval e = eval_new(g);
    int d = r->ndir;
    bool f = r->c->batch_first;
    eval_run(&e, 1, g->nnode);
    for (int k = 0; k < OPERANDS; k++)
        r->in[k] = ls_is(b->in[k]) ? e.v[b->in[k].i] : NULL;
    for (int i = 0; i < d * N; i++)
        walk(r, i / N, i % N);
    expect_shape(b->out[0], f ? SHAPE(N, T, d, H) : SHAPE(T, d, N, H));
    expect_shape(b->out[1], f ? SHAPE(N, d, H) : SHAPE(d, N, H));
    for (int t = 0; t < T; t++)
        for (int k = 0; k < d; k++)
            for (int n = 0; n < N; n++)
                for (int j = 0; j < H; j++) {
                    int at = f ? ((n * T + t) * d + k) * H + j : ((t * d + k) * N + n) * H + j;
                    int end = f ? (n * d + k) * H + j : (k * N + n) * H + j;
                    near(e.v[b->out[0].i][at], r->y[t][k][n][j], "Y");
                    near(e.v[b->out[1].i][end], r->h[k][n][j], "Y_h");
                    if (r->gates == 4)
                        near(e.v[b->out[2].i][end], r->cell[k][n][j], "Y_c");
                }
}

static const int32_t short_lens[] = {3, 2}, no_step[] = {1, 0};

static const Case cases[] = {
    {.op = "RNN", .has = ""},
    {.op = "RNN", .direction = "bidirectional", .has = "bh", .act = {"Relu", "LeakyRelu"},
     .alpha = {0, 0.3f}, .nalpha = 1},
    {.op = "RNN", .direction = "reverse", .has = "b", .act = {"Affine"}, .alpha = {0.5f},
     .beta = {0.2f}, .nalpha = 1, .nbeta = 1, .lens = short_lens, .batch_first = true},
    {.op = "RNN", .direction = "bidirectional", .has = "b", .act = {"Softsign", "Softplus"},
     .lens = no_step, .lens_at_run_time = true},
    {.op = "RNN", .direction = "bidirectional", .has = "bh", .act = {"ThresholdedRelu", "Elu"},
     .alpha = {0.1f, 0.7f}, .nalpha = 2, .clip = 0.9f},
    {.op = "GRU", .has = ""},
    {.op = "GRU", .has = "b", .linear = true},
    {.op = "GRU", .direction = "bidirectional", .has = "bh", .lens = short_lens,
     .lens_at_run_time = true, .batch_first = true},
    {.op = "GRU", .direction = "bidirectional", .has = "bh", .lens = short_lens, .linear = true,
     .clip = 0.3f},
    {.op = "GRU", .direction = "reverse", .has = "bh", .act = {"HardSigmoid", "ScaledTanh"},
     .alpha = {0.3f, 1.5f}, .beta = {0.4f, 0.6f}, .nalpha = 2, .nbeta = 2},
    {.op = "LSTM", .has = ""},
    {.op = "LSTM", .has = "bc", .input_forget = true, .batch_first = true},
    {.op = "LSTM", .direction = "bidirectional", .has = "bhcp", .lens = short_lens},
    {.op = "LSTM", .direction = "bidirectional", .has = "bhcp", .lens = no_step,
     .lens_at_run_time = true, .batch_first = true, .clip = 0.4f},
    {.op = "LSTM", .direction = "reverse", .has = "bhcp", .input_forget = true,
     .act = {"Sigmoid", "Softsign", "Tanh"}},
};

START_TEST(each_form_follows_onnx_equations_and_has_right_gradients)
{
    Built b;
    build(&b, &cases[_i]);
    compare(&b);
    LsValueId loss = weighed(b.out[0]);
    for (int k = 1; k < (b.r.gates == 4 ? 3 : 2); k++)
        loss = ls_append2(&cx, g, LS_OP_ADD, loss, weighed(b.out[k]), NULL);
    check_gradients(loss);
}
END_TEST

START_TEST(weights_meet_the_inputs_of_all_steps_in_one_product)
{
    Built b;
    build(&b, &(Case){.op = "LSTM", .has = "b"});
    ck_assert_uint_eq(count_op(LS_OP_MATMUL), 1 + T - 1);    /* the first step starts from zeros */
}
END_TEST

/* ---- what is refused ---- */

static void fails(const char *op, void (*set)(Node *), LsValueId x, LsValueId lens, LsErrId id,
                  const char *text)
{
    Node n = {0};
    int64_t wide = (strcmp(op, "LSTM") == 0 ? 4 : strcmp(op, "GRU") == 0 ? 3 : 1) * H;
    set(&n);
    node_fails(&n, op, 14,
               IN(x, param("w", SHAPE(1, wide, I)), param("r", SHAPE(1, wide, H)), NONE, lens), id,
               text);
}

static void set_nothing(Node *n) { node_int(n, "hidden_size", H); }
static void set_direction(Node *n) { node_string(n, "direction", "sideways"); }
static void set_hidden(Node *n) { node_int(n, "hidden_size", INT64_MAX / 2); }
static void set_clip(Node *n) { node_float(n, "clip", -1); }
static void set_layout(Node *n) { node_int(n, "layout", 2); }
static void set_unknown(Node *n) { node_strings(n, "activations", 1, (const char *[]){"Swish"}); }
static void set_few(Node *n) { node_strings(n, "activations", 1, (const char *[]){"Tanh"}); }
static void set_affine(Node *n) { node_strings(n, "activations", 1, (const char *[]){"Affine"}); }
static void set_spare(Node *n)
{
    static const float v[] = {0.1f, 0.2f};
    node_strings(n, "activations", 1, (const char *[]){"Elu"});
    node_floats(n, "activation_alpha", 2, v);
}

/* A network over an input of 6 x 4 x 3 whose first axis holds `batch` samples so far. */
static int64_t batch_behind(bool batch_first, bool transposed)
{
    enum { A = 6, B = 4 };
    Node n = {0};
    LsValueId out[3];
    LsValueId x = input(SHAPE(A, B, 3));
    g->batch = A;
    x = node_one(&(Node){0}, "Relu", 14, IN(x));
    if (transposed)
        x = ls_transpose(&cx, g, x, (int[]){1, 0, 2});
    if (batch_first)
        node_int(&n, "layout", 1);
    LsValueId in[] = {x, param("W", SHAPE(1, 4 * H, 3)), param("R", SHAPE(1, 4 * H, H))};
    ck_assert(node_build(&n, "LSTM", 14, 3, in, 3, out, NULL));
    return g->batch;
}

/* Data are shuffled along the axis of samples, which must not be that of the steps. */
START_TEST(inputs_with_the_steps_first_are_one_sample)
{
    ck_assert_int_eq(batch_behind(false, false), 1);
    ck_assert_int_eq(batch_behind(true, false), 6);
    ck_assert_int_eq(batch_behind(false, true), 6);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    static const int32_t beyond[] = {2, 4};
    LsValueId x = param("x", SHAPE(T, N, I));
    fails("LSTM", set_direction, x, NONE, LS_E_ATTR, "direction is \"sideways\"");
    fails("LSTM", set_hidden, x, NONE, LS_E_ATTR, "hidden_size is");
    fails("GRU", set_clip, x, NONE, LS_E_ATTR, "clip is -1");
    fails("GRU", set_layout, x, NONE, LS_E_ATTR, "layout is 2");
    fails("RNN", set_unknown, x, NONE, LS_E_ATTR, "activation 'Swish' is not known");
    fails("LSTM", set_few, x, NONE, LS_E_ATTR, "names 1 functions, LSTM needs 3");
    fails("RNN", set_affine, x, NONE, LS_E_ATTR, "no value for Affine");
    fails("RNN", set_spare, x, NONE, LS_E_ATTR, "has 2 values, the activations take 1");
    fails("RNN", set_nothing, x, ls_const_add(&cx, g, LS_I32, &SHAPE(N), beyond), LS_E_SHAPE,
          "the length 4, X has 3 steps");
    fails("RNN", set_nothing, x, constant(SHAPE(N)), LS_E_TYPE, "sequence_lens is float");
    fails("RNN", set_nothing, param("y", SHAPE(T, N)), NONE, LS_E_SHAPE, "both have rank 3");
    fails("RNN", set_nothing, param("z", SHAPE(T, N, I + 1)), NONE, LS_E_SHAPE,
          "W is 1x2x2, it must be 1x2x3");
    fails("RNN", set_nothing, input(SHAPE(1 << 20, N, I)), NONE, LS_E_UNSUPPORTED,
          "1048576 steps are unrolled");
}
END_TEST

int main(void)
{
    enum { NCASES = sizeof cases / sizeof *cases };
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_loop_test(tc, each_form_follows_onnx_equations_and_has_right_gradients, 0, NCASES);
    tcase_add_test(tc, weights_meet_the_inputs_of_all_steps_in_one_product);
    tcase_add_test(tc, inputs_with_the_steps_first_are_one_sample);
    tcase_add_test(tc, what_does_not_fit_is_refused);
    return run_tests("ops_recurrent", tc);
}
