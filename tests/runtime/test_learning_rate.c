/* tests/runtime/test_learning_rate.c -- learning rates follow their formulas; texts for people are
 * right. */
#include "tests/support/npz_util.h"
#include "runtime/base/json_read.h"
#include "runtime/watch/progress.h"
#include "runtime/update/learning_rate.h"

#include <math.h>
#include <string.h>

static LsRate r;
static LsError e;

static void parse(const char *text, int64_t total)
{
    e = (LsError){0};
    ck_assert_msg(ls_rate_parse(&r, text, 0.5, total, &e), "%s", e.text);
}

#define RATE(update, wanted) ck_assert_double_eq_tol(ls_rate_at(&r, update), wanted, 1e-12)

START_TEST(every_schedule_follows_its_formula)
{
    parse("constant", 10);
    RATE(1, 0.5);
    RATE(10, 0.5);
    parse("step:every=3,gamma=0.5", 10);
    RATE(3, 0.5);
    RATE(4, 0.25);
    RATE(7, 0.125);
    parse("linear", 10);
    RATE(1, 0.5);
    RATE(6, 0.25);
    parse("linear:min=0.5", 10);
    RATE(6, 0.375);
    parse("cosine", 8);
    RATE(1, 0.5);
    RATE(3, 0.25 * (1 + cos(M_PI * 2 / 8)));
    RATE(5, 0.25);
    parse("cosine:min=0.2,warmup=4", 12);
    RATE(9, 0.5 * (0.2 + 0.8 * 0.5));
    RATE(13, 0.1);
}
END_TEST

START_TEST(warm_up_rises_to_the_full_rate)
{
    parse("constant:warmup=4", 10);
    RATE(1, 0.125);
    RATE(4, 0.5);
    RATE(5, 0.5);
    parse("cosine:warmup=100", 50);
    RATE(50, 0.25);
}
END_TEST

START_TEST(schedules_that_make_no_sense_are_refused)
{
    static const char *const bad[] = {"",
                                      "cos",
                                      "cosine:",
                                      "cosine:warmup",
                                      "cosine:warmup=x",
                                      "linear:gamma=1",
                                      "step",
                                      "step:every=0",
                                      "step:every=2,",
                                      "cosine:min=2",
                                      "constant:min=0.1",
                                      "cosine:warmup=-1",
                                      "cosine:warmup=nan",
                                      "cosine:warmup=1e300",
                                      "step:every=1.5",
                                      "step:every=2,gamma=inf"};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        e = (LsError){0};
        ck_assert_msg(!ls_rate_parse(&r, bad[k], 0.5, 10, &e), "'%s'", bad[k]);
        ck_assert_int_eq(e.code, LS_EXIT_USAGE);
    }
}
END_TEST

START_TEST(learning_rates_are_finite_and_not_negative)
{
    static const char *const bad[] = {"", "abc", "nan", "inf", "-0.1", "1e39", "0.1x"};
    double lr = 0.5;
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        ck_assert_msg(!ls_rate_parse_lr(bad[k], &lr) && lr == 0.5, "'%s'", bad[k]);
    ck_assert(ls_rate_parse_lr("0", &lr) && lr == 0);
    ck_assert(ls_rate_parse_lr("1e-3", &lr) && lr == 1e-3);
}
END_TEST

START_TEST(sizes_are_written_in_binary_units)
{
    char text[32];
    ck_assert_str_eq(ls_progress_bytes(512, text), "512 B");
    ck_assert_str_eq(ls_progress_bytes(1536, text), "1.5 KiB");
    ck_assert_str_eq(ls_progress_bytes((int64_t)2 << 30, text), "2.0 GiB");
    ck_assert_str_eq(ls_progress_bytes(700000000, text), "668 MiB");
}
END_TEST

static char gathered[8192];
static size_t ngathered;

static void gather(void *to, const void *data, size_t n)
{
    (void)to;
    ck_assert_uint_le(ngathered + n, sizeof gathered);
    memcpy(gathered + ngathered, data, n);
    ngathered += n;
}

START_TEST(json_strings_come_back)
{
    char text[256], back[64];
    static const char odd[] = "a\"b\\c\n\x01 \xc3\xa9/";
    LsText t = {text, 0, sizeof text, gather, NULL};
    ls_text_string(&t, odd);
    ck_assert_uint_eq(t.n, 25);
    ck_assert_int_eq(memcmp(text, "\"a\\\"b\\\\c\\u000a\\u0001 \xc3\xa9/\"", t.n), 0);
    LsJson j = {text, text + t.n};
    ck_assert(ls_json_string(&j, back, sizeof back));
    ck_assert_str_eq(back, odd);
    j = (LsJson){text, text + t.n};
    ck_assert(!ls_json_string(&j, back, 5));    /* no room */
    j = (LsJson){"\"w\\u0000x\"", NULL};     /* else it would be taken for "w" */
    j.end = j.p + 10;
    ck_assert(!ls_json_string(&j, back, sizeof back));
}
END_TEST

START_TEST(text_longer_than_its_buffer_arrives_whole)
{
    char part[40], name[5001], want[5100];
    LsText t = {part, 0, sizeof part, gather, NULL};
    for (int k = 0; k < 5000; k++)
        name[k] = (char)('a' + k % 26);
    name[5000] = '\0';
    ngathered = 0;
    ls_text_put(&t, "{\"model\":");
    ls_text_string(&t, name);
    ls_text_put(&t, ",\"step\":%d,\"loss\":", 7);
    ls_text_number(&t, 0.1, 17);
    ls_text_flush(&t);
    snprintf(want, sizeof want, "{\"model\":\"%s\",\"step\":7,\"loss\":0.10000000000000001", name);
    ck_assert_uint_eq(ngathered, strlen(want));
    ck_assert_int_eq(memcmp(gathered, want, ngathered), 0);
}
END_TEST

START_TEST(json_that_is_cut_or_too_deep_is_refused)
{
    static const char whole[] = "{\"a\":[1,{\"b\":\"x\\u00e9\"},true],\"c\":null}";
    char deep[100];
    for (size_t n = 0; n <= strlen(whole); n++) {
        LsJson j = {whole, whole + n};
        ck_assert_int_eq(ls_json_skip(&j), n == strlen(whole));
    }
    memset(deep, '[', sizeof deep);
    LsJson j = {deep, deep + sizeof deep};
    ck_assert(!ls_json_skip(&j));
}
END_TEST

START_TEST(json_escapes_of_other_writers_are_read)
{
    static const char text[] = " \"a\\u0041\\u00e9\\u20AC\\/\\n\" ", broken[] = "\"\\u12";
    static const char *const no[] = {"\"\\u0000\"", "\"\\u12g4\"", "\"\\x\"",
                                     "\"abcdefghijklmnop\""};
    char to[16];
    LsJson j = {text, text + sizeof text - 1};
    ck_assert(ls_json_string(&j, to, sizeof to));
    ck_assert_str_eq(to, "aA\xc3\xa9\xe2\x82\xac/\n");
    for (size_t n = 0; n < sizeof broken; n++) {
        j = (LsJson){broken, broken + n};
        ck_assert(!ls_json_string(&j, to, sizeof to));
    }
    for (size_t k = 0; k < sizeof no / sizeof *no; k++) {
        j = (LsJson){no[k], no[k] + strlen(no[k])};
        ck_assert_msg(!ls_json_string(&j, to, sizeof to), "%s", no[k]);
    }
}
END_TEST

/* One line, as after `done` batches in the hour since the last one. */
static const char *line_of(int mode, int64_t done, const double *losses, int64_t nlosses)
{
    static char line[512];
    LsProgress g;
    ls_progress_open(&g, "none", 2048, 4096);
    g.mode = mode;
    g.utf8 = false;
    g.last_ns -= (int64_t)3600 * 1000000000;
    memset(line, 0, sizeof line);
    g.to = fmemopen(line, sizeof line, "w");
    ls_progress_show(&g, &(LsProgressAt){"epoch 1/2", done, 4, 2, 0.5, losses, nlosses, 0, 0});
    ls_progress_clear(&g);
    fclose(g.to);
    return line;
}

START_TEST(progress_says_what_is_left_and_how_members_differ)
{
    char *s = strdup(line_of(LS_PROGRESS_PLAIN, 1, (const double[]){0.5, 0.25, 2}, 3));
    ck_assert_msg(strncmp(s, "epoch 1/2 1/4 loss 0.5 (0.25 .. 2) ", 35) == 0, "%s", s);
    ck_assert_msg(strstr(s, " 2.0 KiB/4.0 KiB ETA 2:00:") != NULL, "%s", s);
    free(s);
    s = strdup(line_of(LS_PROGRESS_PLAIN, 4, NULL, 0));
    ck_assert_msg(strncmp(s, "epoch 1/2 4/4 loss 0.5 ", 23) == 0, "%s", s);
    ck_assert_msg(strstr(s, " ETA 30:") != NULL && strchr(s, '(') == NULL, "%s", s);
    free(s);
    s = strdup(line_of(LS_PROGRESS_BAR, 4, NULL, 0));
    ck_assert_msg(strncmp(s, "\repoch 1/2 [###", 15) == 0, "%s", s);
    free(s);
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        every_schedule_follows_its_formula, warm_up_rises_to_the_full_rate,
        schedules_that_make_no_sense_are_refused, learning_rates_are_finite_and_not_negative,
        sizes_are_written_in_binary_units, json_strings_come_back,
        text_longer_than_its_buffer_arrives_whole, json_that_is_cut_or_too_deep_is_refused,
        json_escapes_of_other_writers_are_read, progress_says_what_is_left_and_how_members_differ,
    };
    return run_in_folder("rate", sizeof test / sizeof test[0], test);
}
