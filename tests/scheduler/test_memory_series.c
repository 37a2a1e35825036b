/* tests/scheduler/test_memory_series.c -- reports show the memory that the plan takes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/plan/planner.h"
#include "scheduler/report/svg_chart.h"
#include "scheduler/report/html.h"
#include "scheduler/report/memory_series.h"
#include "tests/support/dag_tools.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

/* A plan of a random graph with recomputation in it, if part is small enough. */
static LsDag *planned(uint64_t seed, int part, LsPlan *plan)
{
    LsDag *g = dag_make(a, 10, seed);
    LsPlanReport r;
    ck_assert(ls_plan_none(a, g, plan));
    LsPlanOptions o = {
        .strategy = "approx", .budget.bytes = plan->arena * part / 10, .unproven = true};
    return ls_plan(a, g, &o, plan, &r) ? g : NULL;
}

START_TEST(the_sum_over_all_owners_peaks_where_the_plan_says)
{
    uint32_t with_again = 0;
    for (uint64_t seed = 0; seed < 60; seed++)
        for (int part = 6; part <= 10; part += 2) {
            LsPlan plan;
            LsDag *g = planned(seed, part, &plan);
            if (g == NULL)
                continue;
            LsSeries *s = ls_series_new(a, g, &plan);
            int64_t most = 0, live = g->node[s->run[s->peak].node].workspace, again = 0;
            for (uint32_t k = 0; k < s->nrun; k++) {
                int64_t sum = 0;
                for (int o = 0; o < LS_NOWNERS; o++) {
                    ck_assert_int_ge(s->run[k].bytes[o], 0);
                    sum += s->run[k].bytes[o];
                }
                ck_assert_int_eq(sum, s->run[k].total);
                most = sum > most ? sum : most;
                again += s->run[k].bytes[LS_OWNER_AGAIN];
                ck_assert(k >= s->turn || s->run[k].bytes[LS_OWNER_GRADIENT] == 0);
            }
            for (uint32_t k = 0; k < s->nlive; k++)
                live += s->live[k].bytes;
            ck_assert_int_eq(most, plan.live_peak);
            ck_assert_int_eq(s->run[s->peak].total, most);
            ck_assert_int_eq(live, most);
            with_again += again > 0;
        }
    ck_assert_uint_gt(with_again, 3);
}
END_TEST

START_TEST(a_run_frees_what_the_plan_frees_behind_it)
{
    LsPlan plan;
    LsDag *g = planned(3, 10, &plan);
    ck_assert_ptr_nonnull(g);
    LsSeries *s = ls_series_new(a, g, &plan);
    uint32_t frees = 0;
    for (uint32_t k = 0; k < plan.nstep; k++)
        frees += plan.step[k].free ? 1 : plan.step[k].nreuse;
    ck_assert_uint_eq(s->nfreed, frees);
    for (uint32_t k = 0; k + 1 < s->nrun; k++)
        ck_assert_uint_eq(s->run[k].freed + s->run[k].nfreed, s->run[k + 1].freed);
}
END_TEST

/* Returns the text that `put` writes. */
static const char *written(void (*put)(FILE *, const char *), const char *text)
{
    char *buffer = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&buffer, &size);
    put(to, text);
    fclose(to);
    char *copy = ls_arena_strdup(a, buffer);
    free(buffer);
    return copy;
}

START_TEST(text_of_a_model_is_escaped)
{
    ck_assert_str_eq(written(ls_page_text, "<a href='x'>\"&"),
                     "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
    ck_assert_str_eq(written(ls_page_text, "\xc3\xa4\xe2\x82\xac"), "\xc3\xa4\xe2\x82\xac");
    ck_assert_str_eq(written(ls_page_text, NULL), "");
    ck_assert_str_eq(written(ls_page_json, "</script>\"\\\n&"),
                     "\"\\u003c/script\\u003e\\\"\\\\\\u000a\\u0026\"");
}
END_TEST

START_TEST(bytes_that_are_no_utf8_are_replaced_one_by_one)
{
    static const char *const wrong[] = {"\x80", "\xc0", "\xc3", "\xe2\x82", "\xed\xa0\x80",
                                        "\xf4\x90\x80\x80", "\xff", "\xe0\x80\x80"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        const char *out = written(ls_page_text, wrong[k]);
        ck_assert_uint_eq(strlen(out), 3 * strlen(wrong[k]));
        for (const char *at = out; *at != '\0'; at += 3)
            ck_assert_int_eq(memcmp(at, "\xef\xbf\xbd", 3), 0);
    }
}
END_TEST

START_TEST(ticks_are_round_and_enough)
{
    ck_assert_double_eq_tol(ls_chart_tick(100, 4), 20, 1e-12);
    ck_assert_double_eq_tol(ls_chart_tick(0.7, 4), 0.1, 1e-12);
    ck_assert_double_eq_tol(ls_chart_tick(23, 4), 5, 1e-12);
    ck_assert_double_eq_tol(ls_chart_tick(0, 4), 1, 1e-12);
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        the_sum_over_all_owners_peaks_where_the_plan_says,
        a_run_frees_what_the_plan_frees_behind_it,
        text_of_a_model_is_escaped,
        bytes_that_are_no_utf8_are_replaced_one_by_one,
        ticks_are_round_and_enough,
    };
    TCase *tc = tcase_create("series");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("series", tc);
}
