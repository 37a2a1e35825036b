/* tests/codegen/test_fused_alternatives.c -- alternatives of the zoo's kernels: which alternatives
 * exist, and that each gives the bits of the node that it replaces. */
#include "codegen/fusion/fused_alternatives.h"
#include "codegen/fusion/gradient_in_update.h"
#include "codegen/fusion/implicit_concat.h"
#include "codegen/fusion/implicit_pad.h"
#include "compiler/passes/fuse.h"
#include "compiler/pipeline.h"
#include "scheduler/graph/dag_read.h"
#include "scheduler/plan/plan_audit.h"
#include "scheduler/plan/plan_json.h"
#include "tests/support/less.h"
#include "tests/support/shared_file.h"
#include "tests/support/model_util.h"
#include "tests/support/run_graph.h"

/* The training graph of a generated network after all passes. */
static LsGraph *compiled(LsCtx *cx, const char *line, int64_t batch)
{
    LsPipelineOptions o = {.import = {.batch = batch, .training = true},
                           .loss = {.kind = LS_LOSS_CE},
                           .optimizer = {.kind = LS_SGD, .hyper.momentum = 0.9}};
    ck_assert_msg(run(line, in_dir("net.onnx")) == 0, "%s: %s", line, complaint());
    cx->model = "net.onnx";
    cx->log = stdout;
    LsGraph *g = ls_pipeline(cx, in_dir("net.onnx"), &o);
    ck_assert_msg(g != NULL && cx->nerror == 0, "%s is not compiled", line);
    return g;
}

static uint32_t count_alternatives(const LsGraph *g)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += ls_is_alternative(g, (LsNodeId){i});
    return n;
}

/* ---- a plan that runs every node, then each of its alternatives, and overwrites nothing ---- */
static int64_t place(LsPlan *p, int64_t bytes)
{
    int64_t at = p->arena;
    p->arena += ls_align(bytes, LS_ALIGNMENT);
    return at;
}

static void add_run(const LsDag *d, LsPlan *p, uint32_t n)
{
    const LsDagNode *node = &d->node[n];
    LsPlanStep *s = &p->step[p->nstep++];
    *s = (LsPlanStep){.id = n, .offset = p->noffset, .workspace_offset = -1};
    for (uint32_t k = 0; k < node->nout; k++)
        p->offset[p->noffset++] = place(p, d->tensor[node->out[k]].bytes);
    if (node->workspace > 0)
        s->workspace_offset = place(p, node->workspace);
    p->cost += node->cost;
    p->base_cost += node->alternative ? 0 : node->cost;
}

static LsPlan every_alternative(LsArena *a, const LsDag *d)
{
    LsPlan p = {.strategy = "test"};
    uint32_t room = 1;
    for (uint32_t i = 0; i < d->nnode; i++)
        room += 1 + d->node[i].nout;
    p.step = ls_arena_alloc(a, room, sizeof *p.step);
    p.offset = ls_arena_alloc(a, room, sizeof *p.offset);
    for (uint32_t i = 0; i < d->nnode; i++) {
        for (uint32_t k = 0; d->node[i].alternative && k < d->node[i].nout; k++)
            p.step[p.nstep++] = (LsPlanStep){.free = true, .id = d->node[i].out[k]};
        add_run(d, &p, i);
    }
    return p;
}

/* The auditor counts the peak; here its result only has to pass. */
static void check_audit(const LsDag *d, LsPlan *p)
{
    char why[256];
    ck_assert(!ls_audit(d, p, why, sizeof why));
    const char *is = strstr(why, "it is ");
    ck_assert_msg(is != NULL && strstr(why, "live peak") != NULL, "%s", why);
    p->live_peak = atoll(is + 6);
    if (!ls_audit(d, p, why, sizeof why)) {     /* its arena may end before the last alignment */
        is = strstr(why, "it is ");
        ck_assert_msg(is != NULL && strstr(why, "arena") != NULL, "%s", why);
        p->arena = atoll(is + 6);
        ck_assert_msg(ls_audit(d, p, why, sizeof why), "%s", why);
    }
}

static void fill_inputs(LsRunGraph *r)
{
    uint64_t random = 1;
    for (uint32_t k = 0; k < r->g->ninput; k++)
        for (int64_t i = 0; i < ls_count(ls_shape(r->g, r->g->input[k])); i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bool real = ls_type(r->g, r->g->input[k]) == LS_REAL;
            ls_run_graph_set(r, r->g->input[k], i, real ? (double)(random >> 40) / (1 << 23) - 1
                                                        : (double)(random >> 62));
        }
}

static bool any_nan(const char *bytes, int64_t n)
{
    bool nan = false;
    for (int64_t i = 0; i < n / 4; i++) {
        float x;
        memcpy(&x, bytes + 4 * i, 4);
        nan |= x != x;
    }
    return nan;
}

/* The number of alternatives' results that were compared with the node's results. */
static int compare_results(const LsRunGraph *r)
{
    const LsDag *d = &r->problem->dag;
    const LsPlanStep *first = NULL;
    int compared = 0;
    for (uint32_t s = 0; s < r->plan.nstep; s++) {
        const LsPlanStep *st = &r->plan.step[s];
        if (st->free)
            continue;
        const LsDagNode *n = &d->node[st->id];
        for (uint32_t k = 0; n->alternative && k < n->nout; k++, compared++) {
            const char *a = r->arena + r->plan.offset[first->offset + k];
            const char *b = r->arena + r->plan.offset[st->offset + k];
            ck_assert_msg(!any_nan(a, d->tensor[n->out[k]].bytes), "%s has NaN", n->name);
            ck_assert_msg(memcmp(a, b, (size_t)d->tensor[n->out[k]].bytes) == 0,
                          "%s: result %u has other bits", n->name, k);
        }
        first = n->alternative ? first : st;
    }
    return compared;
}

static const LsTarget cpu = {.real_bytes = 4};
static const struct { const char *line, *flags; int64_t batch; uint32_t least; } net[] = {
    {"resnet18 --stem=cifar --width=32 --classes=10 --size=24 --dropout=0.2", "-O1", 4, 80},
    {"unet --width=4 --depth=2 --classes=4 --size=20", "-O3", 2, 16},
    {"gpt --depth=1 --heads=2 --width=16 --context=16 --vocab=33 --dropout=0.1", "-O3", 2, 7},
    {"mlp --width=64 --depth=3", "-O2", 8, 3},
    {"mlp --width=523 --depth=3", "-O2", 19, 3},            /* with products applied */
    {"unet --width=16 --depth=2 --pad=valid --size=60", "-O1", 2, 30},  /* with operands inset */
    {"densenet121 --width=4 --classes=4 --size=32", "-O1", 2, 100},    /* with parts of operands */
};
enum { NNET = sizeof net / sizeof *net, APPLIED = NNET - 3, INSET = NNET - 2, PARTS = NNET - 1 };

START_TEST(every_alternative_gives_the_bits_of_its_node)
{
    LsCtx cx = {.arena = ls_arena_new()};
    char flags[128], why[256];
    LsGraph *g = ls_alternatives(&cx, compiled(&cx, net[_i].line, net[_i].batch), &cpu);
    ls_join_operands(&cx, g, &cpu, NULL, 0);
    ls_inset_operands(&cx, g, &cpu, NULL, 0);
    LsProblem *p = ls_problem_new(&cx, g, "test", &cpu);
    ck_assert_uint_ge(count_alternatives(g), net[_i].least);
    ck_assert_msg(ls_dag_check(&p->dag, why, sizeof why), "%s", why);
    LsPlan plan = every_alternative(cx.arena, &p->dag);
    check_audit(&p->dag, &plan);
    /* Of the selection a net of attention and one of products are optimised. */
    snprintf(flags, sizeof flags, "%s -march=native -fno-math-errno -fno-trapping-math",
             _i == 2 || _i == 3 || tests_do_all() ? net[_i].flags : "-O0");
    LsRunGraph *r = ls_run_graph_plan(&cx, p, &plan, flags);
    ck_assert_ptr_nonnull(r);
    fill_inputs(r);
    ls_run_graph_step(r);
    ck_assert_int_ge(compare_results(r), (int)net[_i].least);
    ls_run_graph_free(r);
    ls_arena_free(cx.arena);
}
END_TEST

/* The graph is written, read back and judged by a program that shares no code with this one. */
START_TEST(plans_that_run_alternatives_are_understood)
{
    LsCtx cx = {.arena = ls_arena_new()};
    char path[SHARED_PATH];
    const char *judge = shared_file(path, "judge/judge.py");
    ck_assert_ptr_nonnull(judge);
    LsGraph *g = ls_alternatives(&cx, compiled(&cx, net[2].line, net[2].batch), &cpu);
    LsProblem *p = ls_problem_new(&cx, g, "test", &cpu);
    LsPlan plan = every_alternative(cx.arena, &p->dag), again;
    char why[256], command[2 * SHARED_PATH];
    check_audit(&p->dag, &plan);
    FILE *graph = fopen(in_dir("graph.json"), "w"), *steps = fopen(in_dir("plan.json"), "w");
    ck_assert(graph != NULL && steps != NULL);
    ls_dag_write(graph, &p->dag);
    ls_plan_write(steps, &p->dag, &plan, NULL);
    fclose(graph);
    fclose(steps);
    size_t n;
    uint8_t *text = slurp(in_dir("plan.json"), &n);
    const LsDag *d = ls_dag_read(cx.arena, in_dir("graph.json"), why, sizeof why);
    ck_assert_msg(d != NULL, "%s", why);
    ck_assert_msg(ls_plan_parse(cx.arena, d, (char *)text, &again, why, sizeof why), "%s", why);
    ck_assert_msg(ls_audit(d, &again, why, sizeof why), "%s", why);
    free(text);
    snprintf(command, sizeof command, "python3 %s %s %s >/dev/null", judge, in_dir("graph.json"),
             in_dir("plan.json"));
    if (system("python3 -c pass >/dev/null 2>&1") != 0)
        printf("skipped: no python3 to run the judge\n");
    else
        ck_assert_int_eq(system(command), 0);
    ls_arena_free(cx.arena);
}
END_TEST

/* At most twice the nodes, for any graph; without alternatives the graph is unchanged. */
START_TEST(alternatives_add_nodes_and_change_none)
{
    LsCtx cx = {.arena = ls_arena_new()};
    const LsGraph *from = compiled(&cx, net[_i].line, net[_i].batch);
    const LsGraph *g = ls_alternatives(&cx, from, &cpu);
    ck_assert_uint_le(g->nnode, 2 * from->nnode);
    ck_assert_uint_eq(g->nvalue, from->nvalue);
    uint32_t at = 0;
    for (uint32_t i = 0; i < g->nnode; i++) {
        if (i > 0 && ls_is_alternative(g, (LsNodeId){i}))
            continue;
        const LsNode *a = &from->node[at++], *b = &g->node[i];
        ck_assert(a->op == b->op && a->nin == b->nin && a->out == b->out && a->name == b->name);
        for (int k = 0; k < a->nin; k++)
            ck_assert_uint_eq(from->operand[a->in + (uint32_t)k].i,
                              g->operand[b->in + (uint32_t)k].i);
    }
    ck_assert_uint_eq(at, from->nnode);
    ls_arena_free(cx.arena);
}
END_TEST

/* Every parameter and moment after a step, in a row. */
static double *after_a_step(LsCtx *cx, const LsGraph *g, int64_t *n)
{
    LsRunGraph *r = ls_run_graph_new(cx, g, 4);
    ck_assert_ptr_nonnull(r);
    fill_inputs(r);
    ls_run_graph_step(r);
    *n = 0;
    for (uint32_t v = 1; v < g->nvalue; v++)
        *n += ls_is_state(g, (LsValueId){v}) ? ls_count(ls_shape(g, (LsValueId){v})) : 0;
    double *all = ls_arena_alloc(cx->arena, (size_t)*n, sizeof *all);
    for (uint32_t v = 1, at = 0; v < g->nvalue; v++)
        for (int64_t i = 0; ls_is_state(g, (LsValueId){v})
                            && i < ls_count(ls_shape(g, (LsValueId){v})); i++)
            all[at++] = ls_run_graph_get(r, (LsValueId){v}, i);
    ls_run_graph_free(r);
    return all;
}

static void check_same_step(int of, uint32_t least,
                            uint32_t (*change)(LsCtx *, LsGraph *, const LsTarget *,
                                               const char *const *, uint32_t))
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, net[of].line, net[of].batch);
    int64_t n, m;
    const double *before = after_a_step(&cx, g, &n);
    ck_assert_uint_ge(change(&cx, g, &cpu, NULL, 0), least);
    const double *after = after_a_step(&cx, g, &m);
    ck_assert_int_eq(n, m);
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(before[i] == after[i], "element %d: %.9g and %.9g", (int)i, before[i],
                      after[i]);
    ls_arena_free(cx.arena);
}

START_TEST(reading_parts_gives_the_bits_of_reading_the_whole)
{
    check_same_step(PARTS, 42, ls_join_operands);       /* all but of single pixels */
}
END_TEST

START_TEST(reading_operands_inset_gives_the_bits_of_spreading_them)
{
    check_same_step(INSET, 4, ls_inset_operands);       /* a border and a pooling of each level */
}
END_TEST

START_TEST(applying_products_gives_the_bits_of_storing_gradients)
{
    check_same_step(APPLIED, 2, ls_apply_products);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("alternative");
    if (mkdtemp(dir) == NULL)
        return perror(dir), 1;
    tcase_set_timeout(tc, 200);
    /* The deep net's program takes as long to compile as all others, the first one's with
     * sanitizers, too. */
    tcase_add_loop_test(tc, every_alternative_gives_the_bits_of_its_node, tests_do_less(),
                        tests_part(NNET, PARTS));
    tcase_add_test(tc, plans_that_run_alternatives_are_understood);
    if (!tests_do_less())
        tcase_add_test(tc, reading_parts_gives_the_bits_of_reading_the_whole);
    tcase_add_test(tc, reading_operands_inset_gives_the_bits_of_spreading_them);
    tcase_add_test(tc, applying_products_gives_the_bits_of_storing_gradients);
    tcase_add_loop_test(tc, alternatives_add_nodes_and_change_none, 0, NNET);
    return run_models("alternative", tc);
}
