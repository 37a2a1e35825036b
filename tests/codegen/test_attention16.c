/* tests/codegen/test_attention16.c -- attention with factors of bfloat16: it rounds where its model
 * does and nowhere else, has the same bits by every unit of runtime/kernels/ls_dot16.h and with
 * vectors of other lengths, and results in 16 bits are those of f32, rounded. */
#include "tests/support/attention16_reference.h"
#include "tests/support/attention_cases.h"
#include "tests/support/dot16_orders.h"
#include "tests/support/suite.h"

/* Sizes around tiles, pairs and vectors, besides those of attention_cases.h. */
static const Case odd[] = {
    {1, 2, 2, 1, 1, 64, 64, 15, true, 0, NO_MASK, {0}, 0, 0, 0},
    {1, 2, 1, 7, 65, 20, 80, 15, true, 58, NO_MASK, {0}, 0, 0, 0},
    {1, 4, 2, 33, 33, 80, 20, 15, true, 0, NO_MASK, {0}, 0, 0, 0},
    {2, 2, 1, 65, 65, 64, 64, 0, true, 0, NO_MASK, {0}, 0, 0, 0},
    {1, 1, 1, 65, 257, 33, 31, 0, false, 0, NO_MASK, {0}, 0, 0, 0},
    {1, 2, 2, 97, 97, 16, 48, 15, true, 0, ADDED, {4, {1, 1, 97, 97}}, 0, 0, 0},
    {1, 2, 1, 130, 130, 20, 20, 15, true, 0, NO_MASK, {0}, 0, 0, 33},
    {1, 1, 1, 34, 70, 330, 40, 0, false, 0, BOOLS, {0}, true, -1e9, 0},
    {1, 1, 1, 20, 100, 130, 140, 0, true, 80, NO_MASK, {0}, 0, 0, 0},
    {1, 14, 2, 40, 40, 64, 64, 15, true, 0, NO_MASK, {0}, 0, 0, 0},
};
enum { ODD = sizeof odd / sizeof *odd, ALL = ODD + NCASES };

/* Sizes that every unit runs: the odd ones, and every sixth other one. */
static bool is_chosen(int i) { return tests_do_all() || i < ODD || i % 6 == 0; }

/* How factors and results lie in memory. */
enum { WIDE, MIXED, NARROW };

/* Makes all values that are factors numbers of bfloat16, and stores them so where asked. */
static void narrow_factor(Rig *r, LsValueId v, bool stored)
{
    LsValue *x = &r->g->value[v.i];
    const int64_t n = ls_count(&x->shape);
    if (!ls_is(v) || x->type != LS_REAL)
        return;
    double *each = malloc((size_t)n * sizeof *each);
    for (int64_t i = 0; i < n; i++)
        each[i] = brain_of(rig_get(r, v, i));
    if (stored) {
        free(r->buffer[v.i]);
        x->type = LS_BF16;
        rig_buffer(r, v);
    }
    for (int64_t i = 0; i < n; i++)
        rig_set(r, v, i, each[i]);
    free(each);
}

static void narrow_result(Rig *r, LsValueId v)
{
    free(r->buffer[v.i]);
    r->g->value[v.i].type = LS_BF16;
    rig_buffer(r, v);
}

static void add_case(Rig *r, const Case *c, int memory, int serial)
{
    LsAttr at;
    LsValueId in[5] = {{0}};
    const LsNodeId n = forward(r, c, in, &at), back = backward(r, n, in, &at);
    const int nq = ls_attention_is_joint(r->g, n) ? 1 : 3;
    for (int k = 0; k < nq; k++)
        narrow_factor(r, in[k], memory == NARROW || (memory == MIXED && (serial + k) % 2 == 0));
    narrow_factor(r, ls_in(r->g, back, 0), memory != WIDE);
    r->g->node[n.i].rounds = r->g->node[back.i].rounds = LS_BF16;
    if (memory != NARROW)
        return;
    narrow_result(r, ls_out(r->g, n, 0));
    for (int k = 0; k < nq; k++)
        narrow_result(r, ls_out(r->g, back, k));
}

static Rig rig_of(int memory, const char *flags, bool chosen)
{
    Rig r;
    rig_open(&r, 4);
    r.products = true;
    r.flags = flags;
    for (int i = 0; i < ALL; i++)
        if (!chosen || is_chosen(i))
            add_case(&r, i < ODD ? &odd[i] : &cases[i - ODD], memory, i);
    rig_dirty = 1 << 20;
    char *start = rig_snapshot(&r, rig_snapshot(&r, NULL));
    free(rig_run_cpu(&r, start));
    free(start);
    return r;
}

/* ---- against the model ---- */

static double *values(const Rig *r, LsValueId v, bool filled, bool rounded)
{
    const int64_t n = ls_is(v) ? ls_count(ls_shape(r->g, v)) : 0;
    double *x = calloc((size_t)n + 1, sizeof *x);
    for (int64_t i = 0; i < n && filled; i++)
        x[i] = rounded ? brain_of(rig_get(r, v, i)) : rig_get(r, v, i);
    return ls_is(v) ? x : (free(x), NULL);
}

/* Operands, and results of the model, which rounds, or of the formulas, which do not. */
typedef struct Values { double *in[8], *out[3]; } Values;

static Values model_of(const Rig *r, LsNodeId n, bool rounds)
{
    const LsGraph *g = r->g;
    const bool back = ls_attention_is_back(g, n), joint = ls_attention_is_joint(g, n);
    const int first = back ? 3 : 0, nq = joint ? 1 : 3;
    Values x = {{0}, {0}};
    for (int k = 0; k < g->node[n.i].nin; k++)
        x.in[k] = values(r, ls_in(g, n, k), true,
                         (k >= first && k < first + nq) || (back && k < 2));
    for (int k = 0; k < g->node[n.i].nout; k++)
        x.out[k] = values(r, ls_out(g, n, k), false, false);
    AttentionData d = {.g = g, .n = n, .q = x.in[first], .k = x.in[first + (joint ? 0 : 1)],
                       .v = x.in[first + (joint ? 0 : 2)], .mask = x.in[first + nq],
                       .spans = x.in[first + nq + 1],
                       .dy = back ? x.in[0] : NULL, .y = back ? x.in[1] : x.out[0],
                       .lse = back ? x.in[2] : x.out[1]};
    if (back)
        d.dq = x.out[0], d.dk = x.out[joint ? 0 : 1], d.dv = x.out[joint ? 0 : 2];
    (rounds ? attention16_reference : attention_reference)(&d);
    return x;
}

static void values_free(Values *x)
{
    for (int k = 0; k < 8; k++)
        free(x->in[k]);
    for (int k = 0; k < 3; k++)
        free(x->out[k]);
}

/* Root of the mean square of the differences from `from`, or of the numbers themselves. */
static double distance(const double *x, const double *from, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (x[i] - (from != NULL ? from[i] : 0)) * (x[i] - (from != NULL ? from[i] : 0));
    return sqrt(sum / (double)n);
}

/* A weight at the middle of two numbers may be rounded either way: few are. */
static void check_rounding(const Rig *r, LsNodeId n)
{
    Values model = model_of(r, n, true), formulas = model_of(r, n, false);
    for (int k = 0; k < r->g->node[n.i].nout; k++) {
        const LsValueId v = ls_out(r->g, n, k);
        const int64_t count = ls_count(ls_shape(r->g, v));
        double *got = values(r, v, true, false);
        const double size = distance(model.out[k], NULL, count),
                     effect = distance(model.out[k], formulas.out[k], count),
                     error = distance(got, model.out[k], count);
        if (!(error <= 0.1 * effect + 1e-6 * size + 1e-7))
            ck_abort_msg("node %u, result %d: error %g, rounding changes %g, numbers are %g",
                         n.i, k, error, effect, size);
        free(got);
    }
    values_free(&model);
    values_free(&formulas);
}

START_TEST(weights_and_gradients_of_scores_are_rounded_and_nothing_else)
{
    static const int memory[] = {WIDE, MIXED};
    Rig r = rig_of(memory[_i], "-O1 -march=native -DLS_DOT16=2", _i > 0);
    for (uint32_t i = 1; i < r.g->nnode; i++)
        check_rounding(&r, (LsNodeId){i});
    rig_close(&r);
}
END_TEST

/* ---- bits ---- */

static void same(const Rig *a, const Rig *b, const char *what, bool rounded)
{
    ck_assert_uint_eq(a->g->nvalue, b->g->nvalue);
    for (uint32_t i = 1; i < a->g->nnode; i++)
        for (int k = 0; k < a->g->node[i].nout; k++) {
            const LsValueId v = ls_out(a->g, (LsNodeId){i}, k);
            const bool narrow = rounded && b->g->value[v.i].type == LS_BF16;
            for (int64_t j = 0; j < ls_count(ls_shape(a->g, v)); j++) {
                const double x = rig_get(a, v, j), y = rig_get(b, v, j);
                if ((narrow ? brain_of(x) : x) != y)
                    ck_abort_msg("%s: node %u, result %d, element %" PRId64 ": %a, not %a", what, i,
                                 k, j, y, x);
            }
        }
}

START_TEST(results_in_16_bits_are_those_of_f32_rounded)
{
    const char *flags = "-O1 -march=native -DLS_DOT16=2";
    Rig wide = rig_of(WIDE, flags, true), narrow = rig_of(NARROW, flags, true);
    same(&wide, &narrow, "stored in 16 bits", true);
    rig_close(&wide);
    rig_close(&narrow);
}
END_TEST

/* At -O1 gcc fuses no multiply-adds, but does with this flag. */
#define FUSED "-O1 -fexpensive-optimizations -DLS_DOT16=2 -DLS_DOT16_TILES="
static const char *const units[ORDERS][4] = {
    {FUSED "0 -march=native -DLS_DOT16_UNIT=0", FUSED "0 -march=native -DLS_DOT16_UNIT=2",
     FUSED "0 -mavx2 -mfma -DLS_DOT16_UNIT=0", FUSED "0 -march=native -DLS_DOT16_UNIT=1"},
    {FUSED "1 -march=native -DLS_DOT16_UNIT=0", FUSED "1 -march=native -DLS_DOT16_UNIT=2",
     FUSED "1 -mavx2 -mfma -DLS_DOT16_UNIT=0", FUSED "1 -march=native -DLS_DOT16_UNIT=3"}};

static bool runs(int order, int unit)
{
#if defined __x86_64__
    return unit < 2 || (unit == 2 ? __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                                  : has_last_unit(order));
#else
    return (void)order, unit < 2;
#endif
}

START_TEST(every_unit_and_vector_gives_the_same_bits)
{
    const int order = _i;
    Rig first = rig_of(MIXED, units[order][0], true);
    for (int k = 1; k < 4; k++) {
        if (!runs(order, k)) {
            printf("this processor does not run %s\n", units[order][k]);
            continue;
        }
        Rig other = rig_of(MIXED, units[order][k], true);
        same(&first, &other, units[order][k], false);
        rig_close(&other);
    }
    rig_close(&first);
}
END_TEST

/* ---- batches ---- */

/* Operand v of one sample becomes the leading sample of `from`, another rig's operand. */
static void take_sample(Rig *r, LsValueId v, const Rig *many, LsValueId from)
{
    for (int64_t i = 0; ls_is(v) && i < ls_count(ls_shape(r->g, v)); i++)
        rig_set(r, v, i, rig_get(many, from, i));
}

/* The units that threads share are others in a batch of many samples. */
START_TEST(a_sample_has_the_same_bits_in_every_batch)
{
    Case c = {16, 4, 2, 200, 200, 20, 24, 15, true, 0, NO_MASK, {0}, 0, 0, 60};
    const char *flags = "-O1 -march=native -DLS_DOT16=2";
    Rig r[2];
    for (int k = 0; k < 2; k++, c.batch = 1) {
        rig_open(&r[k], 4);
        r[k].products = true;
        r[k].flags = flags;
        add_case(&r[k], &c, NARROW, 0);
    }
    for (int k = 0; k < 5; k++)
        take_sample(&r[1], ls_in(r[1].g, (LsNodeId){1}, k), &r[0],
                    ls_in(r[0].g, (LsNodeId){1}, k));
    take_sample(&r[1], ls_in(r[1].g, (LsNodeId){2}, 0), &r[0], ls_in(r[0].g, (LsNodeId){2}, 0));
    for (int k = 0; k < 2; k++) {
        char *start = rig_snapshot(&r[k], rig_snapshot(&r[k], NULL));
        free(rig_run_cpu(&r[k], start));
        free(start);
    }
    for (uint32_t n = 1; n < 3; n++)
        for (int k = 0; k < r[1].g->node[n].nout; k++) {
            const LsValueId v = ls_out(r[1].g, (LsNodeId){n}, k);
            for (int64_t i = 0; i < ls_count(ls_shape(r[1].g, v)); i++)
                if (rig_get(&r[0], v, i) != rig_get(&r[1], v, i))
                    ck_abort_msg("node %u, result %d, element %" PRId64, n, k, i);
        }
    rig_close(&r[0]);
    rig_close(&r[1]);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("attention16");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, weights_and_gradients_of_scores_are_rounded_and_nothing_else, 0, 2);
    tcase_add_test(tc, results_in_16_bits_are_those_of_f32_rounded);
    tcase_add_loop_test(tc, every_unit_and_vector_gives_the_same_bits, 0, ORDERS);
    tcase_add_test(tc, a_sample_has_the_same_bits_in_every_batch);
    return run_tests("attention16", tc);
}
