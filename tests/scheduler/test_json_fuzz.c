/* tests/scheduler/test_json_fuzz.c -- damaged graphs and plans are read or refused with a reason:
 * no crash, and no memory beyond what the file justifies. A graph that is read can be planned, a
 * plan that is read can be audited. */
#include "tests/support/dag_tools.h"
#include "tests/support/fuzz_target.h"
#include "tests/support/suite.h"

#include "scheduler/plan/plan_audit.h"
#include "scheduler/report/plan_diff_text.h"
#include "scheduler/plan/plan_json.h"
#include "scheduler/report/plan_view.h"

#include <ftw.h>

enum { ROUNDS = 3000, NODES = 6 };

static LsArena *a;
static LsDag *g;
static LsPlan plan;
static LsPlanReport report;
static char why[300];

static void open_arena(void)
{
    LsPlanOptions o = {.strategy = "chen", .effort = 4, .unproven = true};
    a = ls_arena_new();
    g = dag_make(a, NODES, 1);
    ck_assert(ls_plan(a, g, &o, &plan, &report));
}

__attribute__((unused)) static void close_arena(void) { ls_arena_free(a); }

/* The text of what a writer prints; free it. */
#define TEXT(text, write) do { \
    size_t n_ = 0; \
    FILE *to = open_memstream(&(text), &n_); \
    write; \
    fclose(to); } while (0)

/* The bytes as text: a file's reader ends it with a zero. */
static char *begin(const unsigned char *bytes, size_t n)
{
    char *text = malloc(n + 1);
    memcpy(text, bytes, n);
    text[n] = '\0';
    why[0] = '\0';
    fuzz_allow((1 << 17) + 64 * n);
    return text;
}

static void end(bool ok, uint64_t round)
{
    fuzz_allow(0);
    ck_assert_msg(ok || why[0], "refused without a word in round %d", (int)round);
}

/* The cheapest strategy plans it, for two budgets; what comes out passes the audit. */
static void plan_it(LsArena *own, const LsDag *dag, uint64_t round)
{
    LsPlan out;
    LsPlanReport r;
    LsPlanOptions o = {.strategy = "none", .effort = 1, .unproven = true};
    for (int k = 0; k < 2; k++, o.budget.bytes = r.none_arena / 2 + 1)
        if (ls_plan(own, dag, &o, &out, &r))
            ck_assert_msg(ls_audit(dag, &out, why, sizeof why), "round %d: %s", (int)round, why);
        else
            ck_assert_msg(r.error != NULL, "no plan, without a word in round %d", (int)round);
}

static void try_graph(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    LsArena *own = ls_arena_new();
    char *text = begin(bytes, n), *once = NULL, *twice = NULL;
    LsDag *back = ls_dag_parse(own, text, why, sizeof why);
    end(back != NULL, round);
    if (back != NULL) {
        TEXT(once, ls_dag_write(to, back));
        LsDag *same = ls_dag_parse(own, once, why, sizeof why);
        ck_assert_msg(same != NULL, "round %d: what was read is written, but not read again: %s",
                      (int)round, why);
        TEXT(twice, ls_dag_write(to, same));
        ck_assert_str_eq(once, twice);
        if (roll(d, 4) == 0)
            plan_it(own, back, round);
    }
    free(text);
    free(once);
    free(twice);
    ls_arena_free(own);
}

static void try_plan(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    LsArena *own = ls_arena_new();
    LsPlan back;
    char *text = begin(bytes, n), *written = NULL;
    bool ok = ls_plan_parse(own, g, text, &back, why, sizeof why);
    end(ok, round);
    (void)d;
    if (ok && !ls_audit(g, &back, why, sizeof why)) {
        ck_assert_msg(why[0] != '\0', "the audit finds a fault without a word in round %d",
                      (int)round);
    } else if (ok) {
        TEXT(written, ls_plan_write(to, g, &back, NULL));
        ck_assert_msg(ls_plan_parse(own, g, written, &back, why, sizeof why)
                      && ls_audit(g, &back, why, sizeof why), "round %d: %s", (int)round, why);
    }
    free(text);
    free(written);
    ls_arena_free(own);
}

/* The earlier plan of --against: a schedule or a summary. */
static void try_earlier(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    LsArena *own = ls_arena_new();
    LsEarlier then;
    char *text = NULL, *markdown = NULL;
    FILE *f = fopen("v.json", "wb");
    ck_assert(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    free(begin(bytes, n));
    bool ok = ls_earlier_read(own, "v.json", &then, why, sizeof why);
    end(ok, round);
    (void)d;
    if (ok) {
        const LsPlanDiff diff = ls_earlier_compare(own, &then, g, &plan, &report, 0.01);
        const LsDiffFacts facts = {"g.onnx", "v.json", "cpu", NULL, false};
        TEXT(text, ls_plan_diff_print(to, &diff));
        TEXT(markdown, ls_plan_diff_markdown(to, &diff, &facts));
        ck_assert(text[0] != '\0' && markdown[0] == '#');
        ck_assert(ls_plan_diff_json(own, &diff)[0] == '{');
    }
    free(text);
    free(markdown);
    ls_arena_free(own);
}

static void write_json(void)
{
    FILE *graph = fopen("graph.json", "w"), *schedule = fopen("plan.json", "w"),
         *summary = fopen("view.json", "w");
    ck_assert(graph != NULL && schedule != NULL && summary != NULL);
    open_arena();
    ls_dag_write(graph, g);
    ls_plan_write(schedule, g, &plan, &report);
    ls_view_json(summary, g, &plan, &report);
    fclose(graph);
    fclose(schedule);
    fclose(summary);
}

const FuzzTarget fuzz_target[] = {
    {"graph", try_graph, write_json, {"graph.json"}}, {"plan", try_plan, write_json, {"plan.json"}},
    {"earlier", try_earlier, write_json, {"plan.json", "view.json"}}, {.name = NULL}};

#ifndef LS_LIBFUZZER
START_TEST(texts_that_broke_a_reader_once)
{
    char dir[] = "/tmp/lowerset-test-XXXXXX";
    ck_assert(mkdtemp(dir) != NULL && chdir(dir) == 0);
    for (const FuzzTarget *t = fuzz_target; t->name != NULL; t++)
        fuzz_replay(t);
    unlink("v.json");
    ck_assert(chdir("/") == 0 && rmdir(dir) == 0);
}
END_TEST

START_TEST(texts_that_end_at_any_byte)
{
    char dir[] = "/tmp/lowerset-test-XXXXXX";
    ck_assert(mkdtemp(dir) != NULL && chdir(dir) == 0);
    write_json();
    for (const FuzzTarget *t = fuzz_target; t->name != NULL; t++)
        fuzz_truncate(t);
    const char *const made[] = {"v.json", "graph.json", "plan.json", "view.json"};
    for (int k = 0; k < 4; k++)
        unlink(made[k]);
    ck_assert(chdir("/") == 0 && rmdir(dir) == 0);
}
END_TEST

START_TEST(damaged_graphs)
{
    char *text = NULL;
    TEXT(text, ls_dag_write(to, g));
    fuzz(text, strlen(text), ROUNDS, try_graph);
    free(text);
}
END_TEST

START_TEST(damaged_plans)
{
    char *text = NULL;
    TEXT(text, ls_plan_write(to, g, &plan, &report));
    fuzz(text, strlen(text), ROUNDS, try_plan);
    free(text);
}
END_TEST

START_TEST(damaged_earlier_plans)
{
    char *text = NULL, dir[] = "/tmp/lowerset-test-XXXXXX";
    ck_assert(mkdtemp(dir) != NULL && chdir(dir) == 0);
    TEXT(text, ls_plan_write(to, g, &plan, &report));
    fuzz(text, strlen(text), ROUNDS / 2, try_earlier);
    free(text);
    TEXT(text, ls_view_json(to, g, &plan, &report));
    fuzz(text, strlen(text), ROUNDS / 2, try_earlier);
    free(text);
    unlink("v.json");
    ck_assert(chdir("/") == 0 && rmdir(dir) == 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("json_fuzz");
    const TTest *const test[] = {damaged_graphs, damaged_plans, damaged_earlier_plans,
                                 texts_that_broke_a_reader_once, texts_that_end_at_any_byte};
    tcase_set_timeout(tc, 600);
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("json_fuzz", tc);
}
#endif
