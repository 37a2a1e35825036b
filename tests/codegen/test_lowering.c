/* tests/codegen/test_lowering.c -- the passes behind the compiler's, in their order, without a
 * command line. */
#include "codegen/fusion/fused_alternatives.h"
#include "codegen/fusion/gradient_in_update.h"
#include "codegen/planning/plan_problem.h"
#include "codegen/program/lowering.h"
#include "codegen/program/state_layout.h"
#include "compiler/fold/append.h"
#include "scheduler/graph/dag_read.h"
#include "tests/support/compiled_model.h"

static const LsTarget cpu = {.kind = LS_TARGET_CPU, .real_bytes = 4};
static const LsTarget gpu = {.kind = LS_TARGET_CUDA, .real_bytes = 4};
static LsCtx cx;

/* Both graphs of a network, lowered as `how` says. */
static LsLowering lowered(const char *line, int64_t batch, LsLowering how)
{
    cx = (LsCtx){.arena = ls_arena_new()};
    how.name = "net";
    how.train = compiled(&cx, line, batch);
    LsPipelineOptions eval = {.import = {.batch = batch, .weightless = true},
                              .loss = {.kind = LS_LOSS_CE}, .like = how.train};
    how.eval = ls_pipeline(&cx, in_dir("net.onnx"), &eval);
    ck_assert_ptr_nonnull(how.eval);
    ck_assert(ls_lower(&cx, &how));
    return how;
}

static uint32_t count_alternatives(const LsGraph *g)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += ls_is_alternative(g, (LsNodeId){i});
    return n;
}

static uint32_t count_nodes(const LsGraph *g, LsOpCode op)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == op;
    return n;
}

START_TEST(both_graphs_get_problems_that_can_be_planned)
{
    char why[256];
    const LsLowering l = lowered("mlp --width=523 --depth=3", 19, (LsLowering){.target = &cpu});
    ck_assert_ptr_eq(l.train_problem->g, l.train);
    ck_assert_ptr_eq(l.eval_problem->g, l.eval);
    ck_assert_msg(ls_dag_check(&l.train_problem->dag, why, sizeof why), "%s", why);
    ck_assert_msg(ls_dag_check(&l.eval_problem->dag, why, sizeof why), "%s", why);
    ck_assert_uint_gt(count_alternatives(l.train), 0);
    ck_assert_uint_eq(count_alternatives(l.eval), 0);
    ck_assert_uint_gt(ls_applied(l.train), 0);
    ls_arena_free(cx.arena);
}
END_TEST

START_TEST(what_is_switched_off_is_not_done)
{
    const char *line = "mlp --width=523 --depth=3";
    LsLowering l = lowered(line, 19, (LsLowering){.target = &cpu, .store_gradients = true});
    ck_assert_uint_eq(ls_applied(l.train), 0);
    ck_assert_uint_gt(count_alternatives(l.train), 0);
    ls_arena_free(cx.arena);
    l = lowered(line, 19, (LsLowering){.target = &cpu, .no_alternatives = true});
    ck_assert_uint_gt(ls_applied(l.train), 0);
    ck_assert_uint_eq(count_alternatives(l.train), 0);
    ls_arena_free(cx.arena);
}
END_TEST

START_TEST(what_is_named_is_made_in_any_case)
{
    const char *line = "densenet121 --width=4 --classes=4 --size=32", *all = "*";
    LsLowering l = lowered(line, 2, (LsLowering){.target = &cpu});
    uint32_t left = count_nodes(l.train, LS_OP_CONCAT), eval = count_nodes(l.eval, LS_OP_CONCAT);
    ls_arena_free(cx.arena);
    l = lowered(line, 2, (LsLowering){.target = &cpu, .made = &all, .nmade = 1});
    ck_assert_uint_gt(count_nodes(l.train, LS_OP_CONCAT), left);
    ck_assert_uint_gt(count_nodes(l.eval, LS_OP_CONCAT), eval);
    ls_arena_free(cx.arena);
}
END_TEST

/* The number of products with an epilogue. */
static uint32_t count_epilogues(const LsGraph *g)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == LS_OP_MATMUL && g->node[i].attr.gemm.then != LS_THEN_NOTHING;
    return n;
}

START_TEST(products_of_gpus_do_what_follows_them)
{
    const char *line = "mlp --width=64 --depth=3";
    LsLowering l = lowered(line, 8, (LsLowering){.target = &gpu});
    ck_assert_uint_gt(count_epilogues(l.train), 0);
    ck_assert_uint_gt(count_epilogues(l.eval), 0);
    ls_arena_free(cx.arena);
    l = lowered(line, 8, (LsLowering){.target = &gpu, .no_epilogues = true});
    ck_assert_uint_eq(count_epilogues(l.train) + count_epilogues(l.eval), 0);
    ls_arena_free(cx.arena);
}
END_TEST

/* dx of a softmax y by dy, which is y or a view of y: in place, the kernel would overwrite what it
 * still reads. A gradient runs even where nothing reads it. */
START_TEST(a_tensor_read_twice_keeps_its_place_and_a_gradient_runs)
{
    for (int view = 0; view < 3; view++) {
        cx = (LsCtx){.arena = ls_arena_new()};
        LsGraph *g = ls_graph_new(&cx);
        const LsShape s = {2, {4, 6}};
        const LsAttr axis = {.axis = {1}}, same = {.shape = {.shape = s}};
        LsValueId x = ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &s, NULL);
        LsValueId y = ls_append1(&cx, g, LS_OP_SOFTMAX, x, &axis), dy = y;
        if (view == 1)
            dy = ls_append1(&cx, g, LS_OP_RESHAPE, y, &same);
        else if (view == 2)
            dy = ls_append1(&cx, g, LS_OP_SOFTMAX, x, &axis);
        LsValueId dx = ls_append2(&cx, g, LS_OP_SOFTMAX_GRAD, dy, y, &axis);
        LsGrad grad = {.param = x, .grad = dx};
        g->grad = &grad, g->ngrad = 1;
        const LsDag *d = &ls_problem_new(&cx, g, "net", &cpu)->dag;
        const LsDagNode *n = &d->node[d->nnode - 1];
        ck_assert_str_eq(n->op, ls_op[LS_OP_SOFTMAX_GRAD]->name);
        ck_assert_uint_eq(n->ninplace, view == 2 ? 2 : 0);
        ck_assert(n->required && !d->node[0].required);
        ls_arena_free(cx.arena);
    }
}
END_TEST

/* What a dump of the trainer calls each tensor, and whether a checkpoint's reader is told that it
 * was trained. */
START_TEST(state_is_a_parameter_frozen_a_statistic_or_a_moment)
{
    cx = (LsCtx){.arena = ls_arena_new()};
    LsGraph *g = ls_graph_new(&cx);
    const LsShape s = {1, {3}};
    static const struct {
        const char *name;
        LsValueKind kind;
        bool statistic, written;
        LsStateKind want;
    } row[] = {{"w", LS_V_PARAM, false, true, LS_STATE_PARAM},
               {"w.momentum", LS_V_STATE, false, true, LS_STATE_MOMENT},
               {"frozen", LS_V_STATE, false, false, LS_STATE_FROZEN},
               {"mean", LS_V_STATE, true, true, LS_STATE_STAT},
               {"frozen mean", LS_V_STATE, true, false, LS_STATE_STAT},
               {"written", LS_V_STATE, false, true, LS_STATE_STAT}}; /* by the file's own nodes */
    enum { ROWS = sizeof row / sizeof *row };
    for (int k = 0; k < ROWS; k++) {
        LsValueId v = ls_value_add(&cx, g, row[k].kind, row[k].name, LS_REAL, &s, NULL);
        g->value[v.i].statistic = row[k].statistic;
        g->value[v.i].once_written = row[k].written;
    }
    LsOnnxSlot slot = {.name = "written", .offset = 8};
    const LsOnnxForm form = {.slot = &slot, .nslot = 1};
    const LsAddresses *a = ls_addresses_new(&cx, g, 4, &form, false);
    ck_assert_uint_eq(a->nstate, ROWS);
    for (int k = 0; k < ROWS; k++) {
        ck_assert_str_eq(a->state[k].row.t.name, row[k].name);
        ck_assert_msg(a->state[k].row.kind == row[k].want, "%s", row[k].name);
    }
    ls_arena_free(cx.arena);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("lowering");
    if (mkdtemp(dir) == NULL)
        return perror(dir), 1;
    const TTest *const test[] = {
        both_graphs_get_problems_that_can_be_planned,
        what_is_switched_off_is_not_done,
        what_is_named_is_made_in_any_case,
        products_of_gpus_do_what_follows_them,
        a_tensor_read_twice_keeps_its_place_and_a_gradient_runs,
        state_is_a_parameter_frozen_a_statistic_or_a_moment,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_models("lowering", tc);
}
