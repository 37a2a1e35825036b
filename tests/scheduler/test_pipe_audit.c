/* tests/scheduler/test_pipe_audit.c -- the auditor of stages refuses every kind of broken layout,
 * and says why. */
#include <check.h>
#include <string.h>

#include "scheduler/pipeline/stage_audit.h"
#include "scheduler/pipeline/message_lifetimes.h"
#include "scheduler/pipeline/stage_plan.h"
#include "tests/support/dag_tools.h"
#include "tests/support/suite.h"

/* Stage 1 makes y of x and w, stage 2 z of y and v. B: stage 2 makes dy of z, which it sends, and
 * dv; stage 1 makes s of y, before dy is needed, then dx and dw of all of them. */
enum { X, W, Y, V, Z, DY, DV, S, DX, DW, NT };
enum { F, G, BZ, GV, SQ, BF, GW, UV, UW, NN };
enum { MICROS = 4 };

static LsArena *a;
static LsDag g;
static LsDagTensor tensor[NT];
static LsDagNode node[NN];
static LsPipeCut cut;
static LsPipeFlow flow[2];
static LsPipePlan plan[2];
static char why[400];

static void make_graph(void)
{
    static const uint32_t in[] = {X, W, Y, V, Z, Z, DY, Y, Y, DY, Y, S, DY, Y, DX, DV, V, DW, W};
    static const uint32_t out[] = {Y, Z, DY, DV, S, DX, DW}, upd[] = {V, W};
    memcpy(tensor,
           (LsDagTensor[]){{"x", 8, true, false},
                           {"w", 8, true, false},
                           {"y", 16, false, false},
                           {"v", 8, true, false},
                           {"z", 24, false, true},
                           {"dy", 16, false, false},
                           {"dv", 8, false, false},
                           {"s", 16, false, false},
                           {"dx", 32, false, true},
                           {"dw", 8, false, false}},
           sizeof tensor);
    memcpy(node,
           (LsDagNode[]){{.name = "f",
                          .op = "",
                          .cost = 10,
                          .in = in,
                          .nin = 2,
                          .out = out,
                          .nout = 1,
                          .of = -1},
                         {.name = "g",
                          .op = "",
                          .cost = 10,
                          .in = in + 2,
                          .nin = 2,
                          .out = out + 1,
                          .nout = 1,
                          .of = -1},
                         {.name = "bz",
                          .op = "",
                          .kind = LS_DAG_BACKWARD,
                          .cost = 10,
                          .in = in + 4,
                          .nin = 1,
                          .out = out + 2,
                          .nout = 1,
                          .of = G},
                         {.name = "gv",
                          .op = "",
                          .kind = LS_DAG_BACKWARD,
                          .cost = 1,
                          .in = in + 5,
                          .nin = 3,
                          .out = out + 3,
                          .nout = 1,
                          .of = G},
                         {.name = "sq",
                          .op = "",
                          .kind = LS_DAG_BACKWARD,
                          .cost = 9,
                          .in = in + 8,
                          .nin = 1,
                          .out = out + 4,
                          .nout = 1,
                          .of = F},
                         {.name = "bf",
                          .op = "",
                          .kind = LS_DAG_BACKWARD,
                          .cost = 1,
                          .in = in + 9,
                          .nin = 3,
                          .out = out + 5,
                          .nout = 1,
                          .of = F,
                          .workspace = 8},
                         {.name = "gw",
                          .op = "",
                          .kind = LS_DAG_BACKWARD,
                          .cost = 1,
                          .in = in + 12,
                          .nin = 3,
                          .out = out + 6,
                          .nout = 1,
                          .of = F},
                         {.name = "uv",
                          .op = "",
                          .kind = LS_DAG_OPTIMIZER,
                          .cost = 1,
                          .in = in + 15,
                          .nin = 2,
                          .upd = upd,
                          .nupd = 1,
                          .of = G},
                         {.name = "uw",
                          .op = "",
                          .kind = LS_DAG_OPTIMIZER,
                          .cost = 1,
                          .in = in + 17,
                          .nin = 2,
                          .upd = upd + 1,
                          .nupd = 1,
                          .of = F}},
           sizeof node);
    g = (LsDag){.name = "small",
                .alignment = 8,
                .tensor = tensor,
                .ntensor = NT,
                .node = node,
                .nnode = NN};
    ck_assert_msg(ls_dag_check(&g, why, sizeof why), "%s", why);
}

static void expect_sound(uint32_t stage)
{
    ck_assert_msg(ls_pipe_audit(&plan[stage].graph, &cut, stage, &plan[stage].layout, &flow[stage],
                                why, sizeof why),
                  "%s", why);
}

static void open_pipe(void)
{
    static const bool reads[2] = {true, true};
    static LsStageTimes of[2][LS_PIPE_PLANS] = {{{.ns = {10, 11, 1}}}, {{.ns = {10, 11, 1}}}};
    a = ls_arena_new();
    make_graph();
    const LsProb *p = ls_prob_new(a, &g, true);
    const LsStageOptions o = {.stages = 2, .micros = MICROS, .order = LS_ORDER_GPIPE};
    LsStages s;
    ck_assert_msg(ls_stages_in_file_order(a, p, &o, &s, why, sizeof why), "%s", why);
    ck_assert_msg(ls_pipe_cut(a, p, &s, false, &cut, why, sizeof why), "%s", why);
    ls_pipe_flow(a, &cut, LS_ORDER_GPIPE, MICROS, reads, flow);
    ls_pipe_holds(&cut, LS_ORDER_GPIPE, MICROS, of, (LsLinkSpeed){0, 0});
    ck_assert_uint_eq(cut.nmove, 2);
    for (uint32_t k = 0; k < 2; k++) {
        const LsPipeWish wish = {.flow = &flow[k],
                                 .plan = {.unproven = true, .effort = 1},
                                 .hints.recompute = LS_RECOMPUTE_NONE};
        ck_assert(ls_pipe_plan(a, &cut, k, &wish, &plan[k], why, sizeof why));
        expect_sound(k);
    }
}

static void close_pipe(void) { ls_arena_free(a); }

static void expect(uint32_t stage, const char *what)
{
    ck_assert_msg(!ls_pipe_audit(&plan[stage].graph, &cut, stage, &plan[stage].layout, &flow[stage],
                                 why, sizeof why),
                  "accepted; should say: %s", what);
    ck_assert_msg(strstr(why, what) != NULL, "says '%s', not '%s'", why, what);
}

static LsPipeRuns *runs(uint32_t stage) { return &plan[stage].layout.of[LS_PIPE_USUAL]; }

/* The step that makes the tensor first. */
static LsPlanStep *maker(uint32_t stage, uint32_t t, uint32_t *result)
{
    LsPlan *of = &runs(stage)->plan;
    for (uint32_t s = 0; s < of->nstep; s++) {
        const LsDagNode *n = of->step[s].free ? NULL : &plan[stage].graph.dag.node[of->step[s].id];
        for (uint32_t k = 0; n != NULL && k < n->nout; k++)
            if (n->out[k] == t) {
                *result = k;
                return &of->step[s];
            }
    }
    ck_abort_msg("nothing makes %u", t);
    return NULL;
}

static int64_t *offset(uint32_t stage, uint32_t t)
{
    uint32_t k;
    const LsPlanStep *s = maker(stage, t, &k);
    return &runs(stage)->plan.offset[s->offset + k];
}

static LsPipeMove *message(uint32_t t)
{
    uint32_t k = 0;
    while (cut.move[k].tensor != t)
        k++;
    return &cut.move[k];
}

static LsPipeRegion *region_of(uint32_t stage, uint32_t t)
{
    LsPipeLayout *l = &plan[stage].layout;
    uint32_t r = l->nregion - 1;
    while (r > 0 && l->region[r].at > *offset(stage, t))
        r--;
    return &l->region[r];
}

static void swap(LsPlanStep *x, LsPlanStep *y)
{
    const LsPlanStep was = *x;
    *x = *y;
    *y = was;
}

/* Exchanges two neighbours among the runs: x comes first. */
static void exchange(uint32_t stage, uint32_t x, uint32_t y)
{
    uint32_t k;
    LsPlanStep *first = maker(stage, x, &k), *second = maker(stage, y, &k);
    ck_assert(first < second);
    swap(first, second);
}

START_TEST(a_workspace_on_a_live_value_is_refused)
{
    uint32_t k;
    LsPlanStep *bf = maker(0, DX, &k), *gw = maker(0, DW, &k);
    if (gw < bf)
        swap(bf, gw), bf = maker(0, DX, &k);
    expect_sound(0);
    bf->workspace_offset = *offset(0, Y);
    expect(0, "'gw' reads 'y', which was overwritten");
}
END_TEST

START_TEST(a_result_on_a_live_value_is_refused)
{
    *offset(0, S) = *offset(0, Y);
    expect(0, "reads 'y', which was overwritten");
}
END_TEST

START_TEST(a_copy_too_few_is_refused)
{
    LsPipeRegion *r = region_of(0, Y);
    ck_assert_uint_eq(r->copies, MICROS);
    r->copies = MICROS - 1;
    expect(0, "micro-batch 0: 'sq' reads 'y', which was overwritten");
}
END_TEST

START_TEST(a_place_outside_its_region_is_refused)
{
    LsPipeRegion *r = region_of(0, Y);
    r->bytes -= 8;
    expect(0, "y lies outside its region");
}
END_TEST

START_TEST(copies_beyond_the_arena_are_refused)
{
    plan[0].layout.arena -= region_of(0, Y)->bytes;
    expect(0, "y lies outside the copies of its region");
}
END_TEST

START_TEST(a_message_overwritten_on_its_way_is_refused)
{
    LsPipeMove *dy = message(DY);
    ck_assert_uint_lt(region_of(1, DY)->copies, MICROS);
    dy->lag = LS_TO_THE_END;
    expect(1, "'dy' may be overwritten by 'bz' of micro-batch");
    ck_assert_ptr_nonnull(strstr(why, "before stage 1 has it"));
}
END_TEST

/* dy of a micro-batch is on its way until B of the next one, whose F comes in between. */
START_TEST(a_workspace_on_a_message_is_refused)
{
    uint32_t k;
    LsPlanStep *makes_z = maker(1, Z, &k);
    for (uint32_t m = 0; m < MICROS; m++)
        for (uint8_t phase = LS_PHASE_F; phase <= LS_PHASE_B; phase++)
            flow[1].turn[2 * m + phase] = (LsPipeTurn){phase, LS_PIPE_USUAL, m};
    message(DY)->until = LS_PHASE_B;
    message(DY)->lag = 1;
    plan[1].graph.dag.node[makes_z->id].workspace = 8;
    expect_sound(1);
    makes_z->workspace_offset = *offset(1, DY);
    expect(1, "'dy' may be overwritten by 'g' of micro-batch");
}
END_TEST

START_TEST(a_message_overwritten_before_it_leaves_is_refused)
{
    *offset(1, DV) = *offset(1, DY);
    expect(1, "micro-batch 0: 'dy' for stage 1 was overwritten before it left");
}
END_TEST

START_TEST(a_message_that_its_phase_does_not_make_is_refused)
{
    runs(0)->phase_at[LS_PHASE_B] = 0;
    expect(0, "micro-batch 0: 'y' for stage 2 was not made in its phase");
}
END_TEST

START_TEST(a_write_to_where_a_message_arrives_is_refused)
{
    *offset(0, S) = *offset(0, DY);
    expect(0, "micro-batch 0: 'sq' writes to where 'dy' arrives from stage 2");
}
END_TEST

/* Of two messages in one place one is lost. */
START_TEST(a_message_on_another_is_refused)
{
    uint32_t k;
    LsPlanStep *begins = maker(0, DY, &k);
    LsDagNode *n = &plan[0].graph.dag.node[begins->id];
    LsPipeMove *more = ls_arena_alloc(a, 3, sizeof *more);
    LsPlan *of = &runs(0)->plan;
    uint32_t *out = ls_arena_alloc(a, 2, sizeof *out);
    int64_t *at = ls_arena_alloc(a, of->noffset + 2u, sizeof *at);
    memcpy(more, cut.move, 2 * sizeof *more);
    more[2] = *message(DY);
    more[2].tensor = out[1] = DV;           /* arrives, too */
    out[0] = DY;
    at[of->noffset] = at[of->noffset + 1] = *offset(0, DY);
    memcpy(at, of->offset, of->noffset * sizeof *at);
    cut.move = more;
    cut.nmove = 3;
    n->out = out;
    n->nout = 2;
    begins->offset = of->noffset;
    of->offset = at;
    expect(0, "reads 'dy', which was overwritten");
}
END_TEST

START_TEST(a_read_before_the_message_is_refused)
{
    exchange(1, Y, Z);          /* y is made by what begins the phase */
    expect(1, "micro-batch 0: 'g' reads 'y', which is not there yet");
}
END_TEST

START_TEST(a_read_before_the_maker_is_refused)
{
    const LsPipeTurn first = flow[1].turn[0];
    flow[1].turn[0] = flow[1].turn[MICROS];
    flow[1].turn[MICROS] = first;
    expect(1, "micro-batch 0: '(phase B)' reads 'z', which is not there yet");
}
END_TEST

START_TEST(a_state_without_a_copy_is_refused)
{
    cut.stage[UW] = 1;
    expect(0, "'f' reads 'w', which stage 2 changes, and gets no copy of it");
    LsPipeCopy copy = {W, 1, 1, 8};             /* another stage's copy */
    cut.copy = &copy;
    cut.ncopy = 1;
    expect(0, "'f' reads 'w', which stage 2 changes, and gets no copy of it");
    copy.to = 0;
    expect_sound(0);
}
END_TEST

START_TEST(a_plan_that_does_not_exist_is_refused)
{
    flow[0].turn[0].plan = LS_PIPE_KEPT;
    expect(0, "micro-batch 0 has plan 1 of 1");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pipe_audit");
    tcase_add_checked_fixture(t, open_pipe, close_pipe);
    tcase_add_test(t, a_workspace_on_a_live_value_is_refused);
    tcase_add_test(t, a_result_on_a_live_value_is_refused);
    tcase_add_test(t, a_copy_too_few_is_refused);
    tcase_add_test(t, a_place_outside_its_region_is_refused);
    tcase_add_test(t, copies_beyond_the_arena_are_refused);
    tcase_add_test(t, a_message_overwritten_on_its_way_is_refused);
    tcase_add_test(t, a_workspace_on_a_message_is_refused);
    tcase_add_test(t, a_message_overwritten_before_it_leaves_is_refused);
    tcase_add_test(t, a_message_that_its_phase_does_not_make_is_refused);
    tcase_add_test(t, a_write_to_where_a_message_arrives_is_refused);
    tcase_add_test(t, a_message_on_another_is_refused);
    tcase_add_test(t, a_read_before_the_message_is_refused);
    tcase_add_test(t, a_read_before_the_maker_is_refused);
    tcase_add_test(t, a_state_without_a_copy_is_refused);
    tcase_add_test(t, a_plan_that_does_not_exist_is_refused);
    return run_tests("pipe_audit", t);
}
