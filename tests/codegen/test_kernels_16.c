/* tests/codegen/test_kernels_16.c -- kernels that read and write 16 bits give the bits of the same
 * kernels between widened and rounded copies: loss, outputs and gradients of whole networks. So do
 * products of bfloat16 by every unit of runtime/kernels/ls_dot16.h. */
#include "scheduler/plan/planner.h"
#include "tests/support/compiled_model.h"
#include "tests/support/dot16_orders.h"
#include "tests/support/less.h"
#include "tests/support/named_number.h"
#include "tests/support/run_graph.h"

typedef struct Net { const char *line; int64_t batch; } Net;
static const Net net[] = {
    {"gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=19", 2},
    {"unet --size=16 --width=4 --depth=1 --classes=3", 2},
    {"densenet121 --width=4 --classes=4 --size=32", 2},
    {"resnet18 --width=4 --size=32 --classes=5", 3},
};

typedef struct Made { LsCtx cx; const LsGraph *g; LsRunGraph *run; } Made;

static void fill(const Made *m, LsValueId v)
{
    const LsValue *x = &m->g->value[v.i];
    bool positive = strstr(x->name, "var") != NULL;
    for (int64_t i = 0; i < ls_count(&x->shape); i++) {
        double r = number(x->name, i);
        ls_run_graph_set(m->run, v, i,
                         x->type != LS_REAL ? floor((r + 1) * 1.4)
                         : positive         ? 1.5 + r
                                            : r / 2);
    }
}

static void make(Made *m, const Net *n, LsType type, bool copies, const char *flags)
{
    const LsTarget target = ls_target_cpu(4);
    LsPlan plan;
    *m = (Made){.cx = {.arena = ls_arena_new()}};
    m->g = compiled_with(&m->cx, n->line, n->batch, (LsOptimizerOptions){.kind = LS_OPT_NONE},
                         (LsPrecision){.compute = type, .copies = copies});
    LsProblem *problem = ls_problem_new(&m->cx, m->g, "test", &target);
    ck_assert(ls_plan_none(m->cx.arena, &problem->dag, &plan));
    m->run = ls_run_graph_plan(&m->cx, problem, &plan, flags);
    ck_assert_msg(m->run != NULL, "%s does not build", n->line);
    for (uint32_t i = 1; i < m->g->nvalue; i++)
        if (m->g->value[i].kind == LS_V_PARAM || m->g->value[i].kind == LS_V_STATE)
            fill(m, (LsValueId){i});
    for (uint32_t k = 0; k < m->g->ninput; k++)
        fill(m, m->g->input[k]);
}

/* Whether some element is not 0: small gradients vanish in f16. */
static bool same(const Made *a, LsValueId va, const Made *b, LsValueId vb, const Net *n)
{
    ls_run_graph_until(a->run, va);
    ls_run_graph_until(b->run, vb);
    double most = 0;
    for (int64_t i = 0; i < ls_count(ls_shape(a->g, va)); i++) {
        double x = ls_run_graph_get(a->run, va, i), y = ls_run_graph_get(b->run, vb, i);
        most = fmax(most, fabs(x));
        ck_assert_msg(x == y, "%s: %s[%d]: %.9g, not %.9g", n->line, a->g->value[va.i].name, (int)i,
                      x, y);
    }
    ck_assert_msg(isfinite(most), "%s: %s is not finite", n->line, a->g->value[va.i].name);
    return most > 0;
}

static uint32_t narrow_values(const LsGraph *g)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nvalue; i++)
        n += ls_is_16(g->value[i].type);
    return n;
}

static void discard(Made *m)
{
    ls_run_graph_free(m->run);
    ls_arena_free(m->cx.arena);
}

static void compare(const Made *a, const Made *b, const Net *n)
{
    uint32_t some = 0;
    ck_assert_uint_eq(a->g->ngrad, b->g->ngrad);
    ck_assert(same(a, a->g->objective.loss, b, b->g->objective.loss, n));
    for (uint32_t k = 0; k < a->g->noutput; k++)
        ck_assert(same(a, a->g->output[k], b, b->g->output[k], n));
    for (uint32_t k = 0; k < a->g->ngrad; k++)
        some += same(a, a->g->grad[k].grad, b, b->g->grad[k].grad, n);
    ck_assert_msg(2 * some > a->g->ngrad, "%s: most gradients are zeros", n->line);
}

static void check(const Net *n, LsType type)
{
    Made own, copies;
    make(&own, n, type, false, NULL);
    make(&copies, n, type, true, NULL);
    ck_assert_uint_gt(narrow_values(own.g), 10);
    ck_assert_uint_lt(own.g->nnode, copies.g->nnode);
    compare(&own, &copies, n);
    discard(&own);
    discard(&copies);
}

enum { NETS = sizeof net / sizeof *net, FEW = 2 };

/* One type for each network: all of them in whole sets, else the first. */
START_TEST(kernels_give_the_bits_of_widened_copies)
{
    check(&net[_i], _i % 2 == 0 ? LS_BF16 : LS_F16);
}
END_TEST

#define PAIRS_OF "-DLS_DOT16_TILES=0 -DLS_DOT16_UNIT="
#define TILES_OF "-DLS_DOT16_TILES=1 -DLS_DOT16_UNIT="
static const char *const unit[ORDERS][4] = {
    {"-O1 " PAIRS_OF "0", "-O1 " PAIRS_OF "2", "-O1 -march=native " PAIRS_OF "0",
     "-O1 -march=native " PAIRS_OF "1"},
    {"-O1 " TILES_OF "0", "-O1 " TILES_OF "2", "-O1 -march=native " TILES_OF "0",
     "-O1 -march=native " TILES_OF "3"}};

/* Words against f32; and, if the processor has them, its dot products against multiply-adds. */
START_TEST(units_of_dot_products_agree)
{
    Made a, b;
    const int order = _i % ORDERS;
    const Net *n = &net[_i / ORDERS];
    const bool native = has_last_unit(order);
    if (!native)
        printf("this processor has no %s: skipped\n",
               order == TILES ? "AMX tiles" : "dot products of bfloat16");
    for (int k = 0; k <= native; k++) {
        make(&a, n, LS_BF16, false, unit[order][2 * k]);
        make(&b, n, LS_BF16, false, unit[order][2 * k + 1]);
        compare(&a, &b, n);
        discard(&a);
        discard(&b);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernels_16");
    if (mkdtemp(dir) == NULL)
        return perror(dir), 1;
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, kernels_give_the_bits_of_widened_copies, 0,
                        tests_do_all() ? NETS : FEW);
    tcase_add_loop_test(t, units_of_dot_products_agree, 0, tests_do_all() ? ORDERS * NETS : ORDERS);
    return run_models("kernels_16", t);
}
