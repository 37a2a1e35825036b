/* tests/scheduler/test_dag_json.c -- graphs come back as written; invalid graphs are refused with a
 * reason. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/dag_tools.h"
#include "tests/support/suite.h"

static LsArena *a;
static char why[300];
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

static char *text_of(const LsDag *g)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    ls_dag_write(f, g);
    fclose(f);
    char *kept = ls_arena_strdup(a, text);
    free(text);
    return kept;
}

START_TEST(a_graph_written_and_read_is_written_the_same)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        LsDag *made = dag_make(a, 8, seed);
        uint32_t *pass = ls_arena_alloc(a, made->nnode, sizeof *pass);
        for (uint32_t v = 0; v < made->nnode; v++)
            pass[v] = v / 3;
        made->pass = seed % 2 ? pass : NULL;
        char *text = text_of(made);
        LsDag *g = ls_dag_parse(a, text, why, sizeof why);
        ck_assert_msg(g != NULL, "%s", why);
        ck_assert((g->pass != NULL) == (made->pass != NULL));
        ck_assert_str_eq(text_of(g), text);
    }
}
END_TEST

START_TEST(a_truncated_graph_is_an_error_and_no_crash)
{
    char *text = text_of(dag_make(a, 6, 1));
    for (size_t n = strlen(text) - 2; n > 0; n -= n > 37 ? 37 : n) {
        text[n] = '\0';
        ck_assert_ptr_null(ls_dag_parse(a, text, why, sizeof why));
    }
}
END_TEST

#define HEAD "{\"format\": \"lowerset-graph\", \"version\": 1, \"name\": \"g\", "
#define TENSORS \
    "\"tensors\": [{\"id\": 0, \"bytes\": 4, \"persistent\": true}, {\"id\": 1, \"bytes\": 8}], "
#define NODE(rest) \
    HEAD TENSORS "\"nodes\": [{\"id\": 0, \"kind\": \"forward\", \"cost\": 1" rest "}]}"

START_TEST(what_is_no_graph_is_refused_with_the_reason)
{
    static const struct { const char *text, *says;
    } bad[] = {
        {"[]", "not a JSON object"},
        {"{\"format\": \"lowerset-graph\", \"version\": 2}", "version 1"},
        {HEAD "\"tensors\": {}, \"nodes\": []}", "must be lists"},
        {HEAD "\"tensors\": [{\"id\": 1, \"bytes\": 4}], \"nodes\": []}",
         "tensor 0: ids must be 0, 1, 2"},
        {HEAD "\"tensors\": [{\"id\": 0, \"bytes\": -4}], \"nodes\": []}", "negative bytes"},
        {HEAD "\"tensors\": [{\"id\": 0, \"bytes\": 1.5}], \"nodes\": []}", "not an integer"},
        {HEAD "\"tensors\": [{\"id\": 0, \"bytes\": 9007199254740992}, {\"id\": 1, \"bytes\": "
              "9007199254740992}], \"alignment\": 0, \"nodes\": []}",
         "alignment"},
        {HEAD TENSORS "\"nodes\": [], \"outputs\": [5]}", "'outputs' has 5"},
        {HEAD TENSORS "\"nodes\": [], \"outputs\": [1]}", "has no producer"},
        {NODE(", \"kind\": 3, \"inputs\": [1]"), "reads tensor 1 that no earlier node makes"},
        {NODE(", \"inputs\": [7]"), "not an id below 2"},
        {NODE(", \"inputs\": [-1]"), "not an id"},
        {NODE(", \"inputs\": [0, 0]"), "twice"},
        {NODE(", \"outputs\": [0]"), "outputs persistent tensor 0"},
        {NODE(", \"updates\": [1]"), "not persistent"},
        {NODE(", \"outputs\": [1], \"inputs\": [0], \"inplace\": [[1, 0]]"),
         "[own output, own input]"},
        {NODE(", \"outputs\": [1], \"inplace\": [[1]]"), "[output, input]"},
        {NODE(", \"workspace\": -1"), "not a byte count"},
        {NODE(", \"workspace\": 140737488355329"),
         "workspace of node 0: a size of 140737488355329"},
        {NODE(", \"workspace\": 1e999"), "not an integer"},
        {HEAD "\"tensors\": [{\"id\": 0, \"bytes\": 140737488355329}], \"nodes\": []}",
         "tensor 0: a size of 140737488355329 bytes; it must be from 0 to 140737488355328"},
        {HEAD "\"tensors\": [{\"id\": 0, \"bytes\": 1e999}], \"nodes\": []}", "not an integer"},
        {HEAD "\"tensors\": [{\"id\": 0, \"bytes\": NaN}], \"nodes\": []}", "not a JSON object"},
        {HEAD "\"alignment\": 1e999, \"tensors\": [], \"nodes\": []}", "not an integer"},
        {HEAD TENSORS "\"nodes\": [{\"id\": 0, \"kind\": \"forward\", \"cost\": 1e999}]}",
         "the cost is not a number"},
        {HEAD TENSORS "\"nodes\": [{\"id\": 0, \"kind\": \"forward\", \"cost\": 6e29}, "
                      "{\"id\": 1, \"kind\": \"forward\", \"cost\": 6e29}]}",
         "node 1: the costs up to here are above 1e+30 ns"},
        {NODE(", \"once\": 3"), "neither true nor false"},
        {NODE(", \"of\": 9"), "'of' is not a node"},
        {NODE(", \"pass\": -1"), "'pass' is not the number of a pass"},
        {HEAD TENSORS "\"nodes\": [{\"id\": 0, \"kind\": \"sideways\", \"cost\": 1}]}",
         "none of forward"},
        {HEAD TENSORS "\"nodes\": [{\"id\": 0, \"kind\": \"forward\", \"cost\": -1}]}",
         "not a number from 0"},
        {HEAD TENSORS
         "\"nodes\": [{\"id\": 0, \"kind\": \"forward\", \"cost\": 1, \"outputs\": [1]}, "
         "{\"id\": 1, \"kind\": \"forward\", \"cost\": 1, \"outputs\": [1]}]}",
         "already has a producer"},
        {HEAD TENSORS
         "\"nodes\": [{\"id\": 0, \"kind\": \"optimizer\", \"cost\": 1, \"updates\": [0]}, "
         "{\"id\": 1, \"kind\": \"forward\", \"cost\": 1, \"inputs\": [0]}]}",
         "listed after an update"},
        {HEAD TENSORS
         "\"nodes\": [{\"id\": 0, \"kind\": \"optimizer\", \"cost\": 1, \"updates\": [0]}, "
         "{\"id\": 1, \"kind\": \"optimizer\", \"cost\": 1, \"updates\": [0]}]}",
         "node 1: tensor 0 is updated twice"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        ck_assert_msg(ls_dag_parse(a, bad[k].text, why, sizeof why) == NULL, "took %s",
                      bad[k].text);
        ck_assert_msg(strstr(why, bad[k].says) != NULL, "case %zu says '%s', not '%s'", k, why,
                      bad[k].says);
    }
    ck_assert_ptr_null(ls_dag_read(a, "/no/such/file", why, sizeof why));
    ck_assert_str_eq(why, "No such file or directory");
}
END_TEST

/* `tensors` tensors of `bytes` each, then `nodes` nodes with workspaces of `work` bytes. */
static bool is_taken(uint32_t tensors, int64_t bytes, uint32_t nodes, int64_t work,
                     int64_t alignment)
{
    LsDag g = {.name = "many", .alignment = alignment, .ntensor = tensors, .nnode = nodes};
    g.tensor = ls_arena_alloc(a, tensors + 1u, sizeof *g.tensor);
    g.node = ls_arena_alloc(a, nodes + 1u, sizeof *g.node);
    for (uint32_t t = 0; t < tensors; t++)
        g.tensor[t] = (LsDagTensor){.name = "t", .bytes = bytes, .persistent = true};
    for (uint32_t v = 0; v < nodes; v++)
        g.node[v] = (LsDagNode){.name = "n", .op = "N", .of = -1, .workspace = work};
    bool taken = ls_dag_check(&g, why, sizeof why);
    ck_assert(taken || strstr(why, "all sizes together are above 144115188075855871") != NULL);
    return taken;
}

/* Sums of tensors, workspaces and rounding stay below 2^57. */
START_TEST(sizes_that_are_too_large_together_are_refused)
{
    const int64_t large = INT64_C(1) << 46;
    ck_assert(is_taken(2047, large, 0, 0, 1));
    ck_assert(!is_taken(2048, large, 0, 0, 1));
    ck_assert(is_taken(0, 0, 2047, large, 1));
    ck_assert(!is_taken(0, 0, 2048, large, 1));
    ck_assert(is_taken(1023, large, 1024, large, 1));
    ck_assert(!is_taken(1024, large, 1024, large, 1));
    ck_assert(is_taken(1000, 0, 1000, 0, large));
    ck_assert(!is_taken(1024, 0, 1024, 0, large));
    ck_assert(!is_taken(2048, 0, 0, 0, large));
    ck_assert(!is_taken(1, large, 0, 0, INT64_MAX));
    ck_assert(!is_taken(70000, large, 0, 0, 1));        /* beyond what 64 bits hold */
}
END_TEST

/* The sum may be at most 2^57 - 1: here 1023 workspaces or tensors and the rest up to the limit. */
START_TEST(the_largest_sum_is_exact)
{
    const int64_t large = INT64_C(1) << 47, most = INT64_MAX / 64;
    for (int kind = 0; kind < 2; kind++)
        for (int over = 0; over < 2; over++) {
            LsDag g = {.name = "many", .alignment = 1, .ntensor = 1, .nnode = 1};
            uint32_t *n = kind == 0 ? &g.ntensor : &g.nnode;
            *n = 1024;
            g.tensor = ls_arena_alloc(a, g.ntensor, sizeof *g.tensor);
            g.node = ls_arena_alloc(a, g.nnode, sizeof *g.node);
            for (uint32_t t = 0; t < g.ntensor; t++)
                g.tensor[t] = (LsDagTensor){.name = "t", .persistent = true,
                                            .bytes = kind == 0 && t < 1023 ? large : 0};
            for (uint32_t v = 0; v < g.nnode; v++)
                g.node[v] = (LsDagNode){.name = "n", .op = "N", .of = -1,
                                        .workspace = kind == 1 && v < 1023 ? large : 0};
            int64_t rest = most - 1023 * large - 1025 + over;      /* 1025: alignment of each */
            if (kind == 0)
                g.tensor[1023].bytes = rest;
            else
                g.node[1023].workspace = rest;
            ck_assert_int_eq(ls_dag_check(&g, why, sizeof why), over == 0);
        }
}
END_TEST

/* Errors that no reader of files lets through, in graphs made otherwise. */
static const char *refused(int64_t bytes, int64_t workspace, double cost, double more)
{
    LsDag g = {.name = "g", .alignment = 1, .ntensor = 1, .nnode = 2};
    g.tensor = &(LsDagTensor){.name = "t", .bytes = bytes, .persistent = true};
    g.node = (LsDagNode[]){{.name = "n", .op = "N", .of = -1, .workspace = workspace, .cost = cost},
                           {.name = "n", .op = "N", .of = -1, .cost = more}};
    return ls_dag_check(&g, why, sizeof why) ? "" : why;
}

START_TEST(sizes_and_costs_have_their_range)
{
    const int64_t most = INT64_C(1) << 47;
    const double dear = 1e30;
    ck_assert_str_eq(refused(most, most, dear, 0), "");
    ck_assert_ptr_nonnull(strstr(refused(most + 1, 0, 0, 0), "tensor 0: a size of"));
    ck_assert_ptr_nonnull(strstr(refused(-1, 0, 0, 0), "tensor 0: a size of -1"));
    ck_assert_ptr_nonnull(strstr(refused(0, most + 1, 0, 0), "workspace of node 0: a size of"));
    ck_assert_ptr_nonnull(strstr(refused(0, -1, 0, 0), "workspace of node 0: a size of -1"));
    ck_assert_ptr_nonnull(strstr(refused(0, 0, dear * 1.0001, 0), "node 0: the costs up to here"));
    ck_assert_ptr_nonnull(strstr(refused(0, 0, dear, dear / 1e6), "node 1: the costs up to here"));
    ck_assert_ptr_nonnull(strstr(refused(0, 0, -1, 0), "node 0: the cost is not a number"));
    ck_assert_ptr_nonnull(strstr(refused(0, 0, NAN, 0), "node 0: the cost is not a number"));
    ck_assert_ptr_nonnull(strstr(refused(0, 0, 0, INFINITY), "node 1: the cost is not a number"));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("dag_json");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_graph_written_and_read_is_written_the_same);
    tcase_add_test(tc, a_truncated_graph_is_an_error_and_no_crash);
    tcase_add_test(tc, what_is_no_graph_is_refused_with_the_reason);
    tcase_add_test(tc, sizes_that_are_too_large_together_are_refused);
    tcase_add_test(tc, the_largest_sum_is_exact);
    tcase_add_test(tc, sizes_and_costs_have_their_range);
    return run_tests("dag_json", tc);
}
