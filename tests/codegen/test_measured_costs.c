/* tests/codegen/test_measured_costs.c -- profiles of programs as costs: which step belongs to which
 * node. */
#include "codegen/planning/measured_costs.h"
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <unistd.h>

static LsMachine m;
static LsProblem *p;
static char path[] = "/tmp/ls-measured-XXXXXX";
static char *log_text;
static size_t log_size;

/* Three layers of two shapes: relu(x a), relu(. b), relu(. b). */
static void open_problem(void)
{
    graph_open();
    cx.log = open_memstream(&log_text, &log_size);
    ck_assert(ls_machine_find(&m, "cpu"));
    LsValueId x = param("x", SHAPE(40, 40)), b = param("b", SHAPE(40, 40));
    for (int k = 0; k < 3; k++) {
        x = ls_append2(&cx, g, LS_OP_MATMUL, x, b, NULL);
        g->node[g->value[x.i].def.i].name = "layer";
        x = ls_append1(&cx, g, LS_OP_RELU, x, NULL);
        g->node[g->value[x.i].def.i].name = k < 2 ? "act" : "last";
    }
    g->objective.loss =
        ls_append1(&cx, g, LS_OP_REDUCE_SUM, x, &(LsAttr){.reduce = {.axes = 3, .keep = true}});
    p = ls_problem_new(&cx, g, "test", &(LsTarget){.real_bytes = 4});
    ck_assert_uint_eq(p->dag.nnode, 7);
}

static void close_problem(void)
{
    unlink(path);
    fclose(cx.log);
    free(log_text);
    graph_close();
}

/* A profile with these steps. */
static void write_profile(const char *steps)
{
    strcpy(path + sizeof path - 7, "XXXXXX");
    FILE *f = fdopen(mkstemp(path), "w");
    fprintf(f, "{\"schema\":1,\"model\":\"m\",\"threads\":2,\"real_bytes\":4,\"batch\":1,"
            "\"steps\":[%s]}", steps);
    fclose(f);
}

#define STEP(node, name, op, elements, again, ns)                                                  \
    "{\"node\":" #node ",\"name\":\"" name "\",\"op\":\"" op "\",\"elements\":[" #elements         \
    "],\"again\":" #again ",\"ns\":" #ns "}"
#define LAYER(node, ns) STEP(node, "layer", "MatMul", 1600, false, ns)
#define ACT(node, ns) STEP(node, "act", "Relu", 1600, false, ns)
#define REST STEP(5, "last", "Relu", 1600, false, 60) "," STEP(6, "", "ReduceSum", 1, false, 70)
#define ALL LAYER(0, 10) "," ACT(1, 20) "," LAYER(2, 30) "," ACT(3, 40) "," LAYER(4, 50) "," REST

static const LsMeasured *price(const char *steps)
{
    static LsMeasured from;
    write_profile(steps);
    ck_assert(ls_measured_load(&cx, path, &from));
    bool ok = ls_measured_price(&cx, &from, p, &m);
    fflush(cx.log);
    return ok ? &from : NULL;
}

START_TEST(every_node_gets_its_own_time)
{
    open_problem();
    const LsMeasured *from = price(ALL);
    ck_assert_ptr_nonnull(from);
    ck_assert_uint_eq(from->matched, 7);
    ck_assert_uint_eq(from->nodes, 7);
    ck_assert_int_eq(from->threads, 2);
    for (uint32_t i = 0; i < 7; i++)
        ck_assert_double_eq(p->dag.node[i].cost, 10 * (i + 1));
    close_problem();
}
END_TEST

START_TEST(recomputations_count_with_the_first_run)
{
    open_problem();
    ck_assert_ptr_nonnull(price(ALL "," STEP(1, "act again", "Relu", 1600, true, 30) ","
                                STEP(1, "act again", "Relu", 1600, true, 40)));
    ck_assert_double_eq(p->dag.node[1].cost, 30);
    ck_assert_double_eq(p->dag.node[3].cost, 40);
    close_problem();
}
END_TEST

START_TEST(nodes_are_told_apart_by_order_when_numbers_moved)
{
    open_problem();
    ck_assert_ptr_nonnull(price(LAYER(10, 10) "," LAYER(12, 30) "," LAYER(14, 50) ","
                                ACT(13, 40) "," ACT(11, 20)));
    ck_assert_double_eq(p->dag.node[0].cost, 10);
    ck_assert_double_eq(p->dag.node[2].cost, 30);
    ck_assert_double_eq(p->dag.node[4].cost, 50);
    ck_assert_double_eq(p->dag.node[1].cost, 20);
    ck_assert_double_eq(p->dag.node[3].cost, 40);
    close_problem();
}
END_TEST

START_TEST(unknown_nodes_cost_what_their_class_says)
{
    open_problem();
    double relu = p->dag.node[5].cost, sum = p->dag.node[6].cost;
    double modelled = 3 * p->dag.node[0].cost + 2 * relu;
    const LsMeasured *from = price(LAYER(0, 5) "," LAYER(2, 5) "," LAYER(4, 5) "," ACT(1, 7) ","
                                   ACT(3, 9));
    ck_assert_ptr_nonnull(from);
    ck_assert_uint_eq(from->matched, 5);
    ck_assert_double_eq_tol(p->dag.node[5].cost, relu * 16 / (2 * relu), 1e-9);
    ck_assert_double_eq_tol(p->dag.node[6].cost, sum * 31 / modelled, 1e-9);
    close_problem();
}
END_TEST

/* In the problem, the result of the first act has 16 bits. */
START_TEST(nodes_are_told_apart_by_types_of_16_bits)
{
#define TYPED(type, ns)                                                                            \
    "{\"node\":1,\"name\":\"act\",\"op\":\"Relu\",\"elements\":[1600],\"types\":[\"" type          \
    "\"],\"ns\":" #ns "}"
    static const struct { const char *step; double ns; } cases[] = {
        {TYPED("bf16", 20), 20}, {TYPED("f16", 20), -1}, {TYPED("f32", 20), -1}, {ACT(1, 20), -1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        LsMeasured from;
        open_problem();
        g->value[ls_out(g, p->node_of[1], 0).i].type = LS_BF16;
        write_profile(cases[k].step);
        ck_assert(ls_measured_load(&cx, path, &from));
        ck_assert_double_eq(ls_measured_find(&cx, &from, p)[1], cases[k].ns);
        close_problem();
    }
}
END_TEST

START_TEST(the_profile_of_another_model_is_refused)
{
    open_problem();
    ck_assert_ptr_null(price(LAYER(0, 5) "," STEP(1, "act", "Relu", 3200, false, 9) ","
                             STEP(2, "layer", "Relu", 1600, false, 9)));
    ck_assert_ptr_nonnull(strstr(log_text, "1 of 7 nodes"));
    ck_assert_int_eq(cx.last, LS_E_OPTION);
    close_problem();
}
END_TEST

START_TEST(another_precision_or_batch_is_refused)
{
    open_problem();
    LsMeasured from;
    write_profile(ALL);
    ck_assert(ls_measured_load(&cx, path, &from));
    from.real_bytes = 8;
    ck_assert(!ls_measured_price(&cx, &from, p, &m));
    fflush(cx.log);
    ck_assert_ptr_nonnull(strstr(log_text, "measured with f64, this is f32"));
    from.real_bytes = 4;
    from.batch = 5;
    ck_assert(!ls_measured_price(&cx, &from, p, &m));
    fflush(cx.log);
    ck_assert_ptr_nonnull(strstr(log_text, "measured with batch 5, this is 1"));
    close_problem();
}
END_TEST

START_TEST(what_is_no_profile_is_refused)
{
    static const char *const bad[] = {
        "", "[]", "{", "{}", "{\"schema\":2,\"steps\":[]}", "{\"schema\":1}",
        "{\"schema\":1,\"steps\":[1]}", "{\"schema\":1,\"steps\":[{}]}",
        "{\"schema\":1,\"steps\":[" STEP(-1, "a", "b", 1, false, 1) "]}",
        "{\"schema\":1,\"steps\":[" STEP(1, "a", "b", 1, false, -1) "]}",
        "{\"schema\":1,\"steps\":[" STEP(1, "a", "b", 1, false, 1e300) "]}",
        "{\"schema\":1,\"steps\":[" STEP(1, "a", "b", 1, false, "x") "]}",
        "{\"schema\":1,\"steps\":[" STEP(1e99, "a", "b", 1, false, 1) "]}",
    };
    open_problem();
    LsMeasured from;
    write_profile("");
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        FILE *f = fopen(path, "w");
        fputs(bad[k], f);
        fclose(f);
        ck_assert_msg(!ls_measured_load(&cx, path, &from), "'%s' was taken", bad[k]);
    }
    ck_assert(!ls_measured_load(&cx, "/nonexistent", &from));
    ck_assert_int_eq(cx.last, LS_E_IO);
    ck_assert(!ls_measured_load(&cx, "/", &from));
    close_problem();
}
END_TEST

/* A file of these bytes. */
static void write_file(const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f != NULL && fwrite(bytes, 1, n, f) == n);
    fclose(f);
}

START_TEST(a_cut_file_is_refused_wherever_it_ends)
{
    open_problem();
    LsMeasured from;
    char text[2048] = "";
    write_profile(ALL);
    FILE *f = fopen(path, "r");
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    for (size_t cut = 0; cut < n; cut += 5) {
        write_file(text, cut);
        ck_assert_msg(!ls_measured_load(&cx, path, &from), "the first %zu of %zu bytes do", cut, n);
        char was = text[cut];
        text[cut] = 0;                          /* zeros, as after a crash */
        write_file(text, n);
        ck_assert_msg(!ls_measured_load(&cx, path, &from), "byte %zu may be 0", cut);
        text[cut] = was;
    }
    ck_assert_int_eq(cx.last, LS_E_OPTION);
    write_file(text, n);
    ck_assert(ls_measured_load(&cx, path, &from));
    close_problem();
}
END_TEST

/* Files are read in pieces of 64 KiB and more: spaces before the last bracket bring them to a
 * length. */
START_TEST(files_of_every_length_are_read_whole)
{
    static const size_t length[] = {65535, 65536, 65537, 131071, 131072, 131073, 300000};
    static char text[300000];
    open_problem();
    LsMeasured from;
    write_profile(ALL);
    FILE *f = fopen(path, "r");
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    for (size_t k = 0; k < sizeof length / sizeof *length; k++) {
        memset(text + n - 1, ' ', length[k] - n);
        text[length[k] - 1] = '}';
        write_file(text, length[k]);
        ck_assert_msg(ls_measured_load(&cx, path, &from), "%zu bytes", length[k]);
        ck_assert_uint_eq(from.nrow, 7);
        write_file(text, length[k] - 1);
        ck_assert_msg(!ls_measured_load(&cx, path, &from), "%zu bytes without the end", length[k]);
    }
    close_problem();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("measured");
    const TTest *const tests[] = {every_node_gets_its_own_time,
                                  recomputations_count_with_the_first_run,
                                  nodes_are_told_apart_by_order_when_numbers_moved,
                                  unknown_nodes_cost_what_their_class_says,
                                  nodes_are_told_apart_by_types_of_16_bits,
                                  the_profile_of_another_model_is_refused,
                                  another_precision_or_batch_is_refused,
                                  what_is_no_profile_is_refused,
                                  a_cut_file_is_refused_wherever_it_ends,
                                  files_of_every_length_are_read_whole};
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("measured", tc);
}
