/* tests/compiler/test_machine.c -- machine files: valid files are read, and faulty files are
 * refused. */
#include "compiler/cost/machine.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static const char least[] = "lowerset-machine 1\nname x\npeak f32=10\nmemory 5\n"
                            "class other 0.5 1 1 100\n";

static char err[512];
static LsMachine m;

static bool parse(const char *text) { return ls_machine_parse(&m, text, "FILE", err, sizeof err); }

START_TEST(a_class_has_the_figures_of_its_parent)
{
    char text[512];
    snprintf(text, sizeof text, "%sclass conv 0.7 - 0.9 200   # not the others\n", least);
    ck_assert_msg(parse(text), "%s", err);
    ck_assert_double_eq(m.cost[LS_COST_CONV_DX_FEW].compute, 0.7);
    ck_assert_double_eq(m.cost[LS_COST_CONV_DX_FEW].read, 0);
    ck_assert_double_eq(m.cost[LS_COST_CONV_DW].launch, 200);
    ck_assert_double_eq(m.cost[LS_COST_REDUCE].compute, 0.5);
    ck_assert_double_eq(m.overlap, 0);
    ck_assert_double_eq(m.near, 1);
}
END_TEST

START_TEST(classes_of_16_bits_have_the_figures_of_floats_or_their_own)
{
    char text[1024], *written = NULL;
    size_t size;
    snprintf(
        text, sizeof text,
        "%sclass conv 0.7 - 0.9 200\nclass conv.bf16 1.5 1 1 300\nclass conv.dx.f16 0.4 1 1 9\n",
        least);
    ck_assert_msg(parse(text), "%s", err);
    ck_assert_double_eq(m.cost[LS_COST_CONV_DX + LS_COST_BF16].compute, 0.7);
    ck_assert_double_eq(m.cost[LS_COST_CONV + LS_COST_BF16].compute, 1.5);
    ck_assert_double_eq(m.cost[LS_COST_CONV + LS_COST_F16].launch, 300);
    ck_assert_double_eq(m.cost[LS_COST_CONV_DX + LS_COST_F16].launch, 9);
    FILE *to = open_memstream(&written, &size);
    ls_machine_write(to, &m, NULL);
    fclose(to);
    ck_assert_ptr_nonnull(strstr(written, "class    conv.bf16 "));
    ck_assert_ptr_nonnull(strstr(written, "class    conv.dx.f16 "));
    ck_assert_ptr_null(strstr(written, "conv.f16"));           /* that of conv.bf16 */
    ck_assert_ptr_null(strstr(written, "map.bf16"));
    free(written);
}
END_TEST

/* Files that calibrate wrote before these classes were dropped. */
START_TEST(classes_that_are_no_more_are_passed_over)
{
    static const char *const former[] = {"conv.dw.own", "conv.fused", "conv.fused.bf16",
                                         "conv.dw.own.f16"};
    char text[512];
    for (size_t k = 0; k < sizeof former / sizeof *former; k++) {
        snprintf(text, sizeof text, "%sclass %s 0.7 0.9 0.9 1\nclass conv 0.25 1 1 2\n", least,
                 former[k]);
        ck_assert_msg(parse(text), "%s", err);
        ck_assert_double_eq(m.cost[LS_COST_CONV_DW].compute, 0.25);
    }
    snprintf(text, sizeof text, "%sclass conv.fusedly 0.7 0.9 0.9 1\n", least);
    ck_assert(!parse(text));
}
END_TEST

START_TEST(mistakes_are_named_with_their_line)
{
    static const struct { const char *more, *want; } row[] = {
        {"class conv 0.7 0.9 0.9", "FILE:6: class needs"},
        {"class conv 0.7 0.9 0.9 -1", "'conv': '-1' is not a number"},
        {"class conv 0 0.9 0.9 1", "'conv': '0' is not a number"},
        {"class conv nan 0.9 0.9 1", "'conv': 'nan' is not a number"},
        {"class covn 1 1 1 1", "no class 'covn'"},
        {"class other 1 1 1 1", "is given twice"},
        {"peak f23=1", "'f23' is not one of"},
        {"peak f32=inf", "'inf' is not"},
        {"memory 0", "'0' is not"},
        {"memory 1e300", "'1e300' is not"},
        {"memory", "without a value"},
        {"overlap 2", "more than 1"},
        {"lanes 0", "'0' is not"},
        {"cache 5", "cache needs"},
        {"kind tpu", "must be cpu or gpu"},
        {"speed 5", "'speed' is not a word"},
        {"name a-name-that-is-longer-than-a-name-may-be", "'name' is not a word"},
        {"class conv 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "too many words"},
        {"lowerset-machine 2", "a version"},
    };
    char text[512];
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        snprintf(text, sizeof text, "%s%s\n", least, row[k].more);
        ck_assert_msg(!parse(text), "'%s' was taken", row[k].more);
        ck_assert_msg(strstr(err, row[k].want) != NULL && strstr(err, "FILE:6: ") == err,
                      "'%s' says '%s'", row[k].more, err);
    }
}
END_TEST

START_TEST(what_is_no_machine_file_is_refused)
{
    ck_assert(!parse(""));
    ck_assert_ptr_nonnull(strstr(err, "begins with 'lowerset-machine 1'"));
    ck_assert(!parse("{\"schema\": 1}\n"));
    ck_assert(!parse("lowerset-machine 1\nname x\nmemory 5\nclass other 1 1 1 1\n"));
    ck_assert_ptr_nonnull(strstr(err, "ends without 'peak f32='"));
    ck_assert(!parse("lowerset-machine 1\nname x\nmemory 5\npeak f64=1\nclass other 1 1 1 1\n"));
    char *line = malloc(5000);
    memset(line, 'x', 4999);
    line[4999] = '\0';
    ck_assert(!parse(line));
    ck_assert_ptr_nonnull(strstr(err, "a line of more than"));
    free(line);
    ck_assert(!ls_machine_load(&m, "/nonexistent/machine", err, sizeof err));
    ck_assert_ptr_nonnull(strstr(err, "No such file"));
    ck_assert(!ls_machine_load(&m, "/", err, sizeof err));
}
END_TEST

START_TEST(no_damage_to_a_file_does_harm)
{
    char text[4096];
    size_t n = strlen(ls_machine_builtin(0));
    ck_assert_uint_lt(n, sizeof text);
    for (size_t i = 0; i < n; i++) {
        memcpy(text, ls_machine_builtin(0), n + 1);
        text[i] = '\0';                 /* cut off here */
        parse(text);
        for (const char *c = "\n #=-9\xff"; *c != '\0'; c++) {
            memcpy(text, ls_machine_builtin(0), n + 1);
            text[i] = *c;
            if (parse(text))
                ck_assert(m.memory > 0 && m.peak[LS_PEAK_F32] > 0 && m.lanes > 0 && m.near > 0);
        }
    }
}
END_TEST

START_TEST(a_machine_that_is_written_reads_the_same)
{
    for (size_t k = 0; ls_machine_builtin(k) != NULL; k++) {
        char *text = NULL, *again = NULL;
        size_t size;
        ck_assert_msg(parse(ls_machine_builtin(k)), "%s", err);
        FILE *to = open_memstream(&text, &size);
        ls_machine_write(to, &m, "a note");
        fclose(to);
        LsMachine first = m;
        ck_assert_msg(parse(text), "%s", err);
        ck_assert_str_eq(m.what, first.what);
        ck_assert_int_eq(m.gpu, first.gpu);
        ck_assert_double_eq(m.probe_product, first.probe_product);
        ck_assert_double_eq(m.probe_pass, first.probe_pass);
        for (int c = 0; c < LS_NCOSTS; c++)
            ck_assert_mem_eq(&m.cost[c], &first.cost[c], sizeof m.cost[c]);
        to = open_memstream(&again, &size);
        ls_machine_write(to, &m, "a note");
        fclose(to);
        ck_assert_str_eq(text, again);
        free(text);
        free(again);
    }
}
END_TEST

START_TEST(what_a_probe_reads_grows_with_threads)
{
    static const char *const name[] = {"cpu", "cpu-amx"};
    for (int k = 0; k < 2; k++) {
        ck_assert(ls_machine_find(&m, name[k]));
        const LsMachine four = ls_machine_with_threads(&m, 2 * m.threads);
        ck_assert_double_gt(m.probe_product, 0);
        ck_assert_double_eq(four.probe_product, 2 * m.probe_product);
        ck_assert_double_eq(four.probe_pass, 2 * m.probe_pass);
        ck_assert_double_gt(four.peak[LS_PEAK_F32], 1.5 * m.peak[LS_PEAK_F32]);
        ck_assert_double_lt(four.peak[LS_PEAK_F32], 2 * m.peak[LS_PEAK_F32]);
        ck_assert_double_lt(four.memory / m.memory, four.peak[LS_PEAK_F32] / m.peak[LS_PEAK_F32]);
    }
}
END_TEST

START_TEST(five_gpus_and_a_cpu_are_known_by_name)
{
    static const char *const name[] = {"cpu", "h200", "h100", "a100", "l4", "rtx4090"};
    for (size_t k = 0; k < sizeof name / sizeof *name; k++) {
        ck_assert(ls_machine_find(&m, name[k]));
        ck_assert_str_eq(m.name, name[k]);
        ck_assert_int_eq(m.gpu, k > 0);
    }
    ck_assert(!ls_machine_find(&m, "abacus"));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("machine");
    const TTest *const tests[] = {a_class_has_the_figures_of_its_parent,
                                  classes_of_16_bits_have_the_figures_of_floats_or_their_own,
                                  classes_that_are_no_more_are_passed_over,
                                  mistakes_are_named_with_their_line,
                                  what_is_no_machine_file_is_refused,
                                  no_damage_to_a_file_does_harm,
                                  a_machine_that_is_written_reads_the_same,
                                  what_a_probe_reads_grows_with_threads,
                                  five_gpus_and_a_cpu_are_known_by_name};
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("machine", tc);
}
