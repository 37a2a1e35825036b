/* tests/runtime/test_serve_fuzz.c -- lines of standard input that are anything: a sample is read as
 * it is meant, or refused with a reason; a prompt likewise; and lines come one by one, however they
 * arrive. */
#include "tests/support/fuzz_target.h"
#include "tests/support/npz_util.h"
#include "runtime/predict/line_reader.h"
#include "runtime/predict/serve_line.h"

#include <math.h>
#include <unistd.h>

enum { ROUNDS = 6000, X = 12, MASK = 4 };

static const LsLineInput input[] = {{"x", 3, {2, 3, 2}, X, true},
                                    {"mask", 1, {MASK}, MASK, false},
                                    {"one", 0, {0}, 1, false}};

static void end(bool ok, const LsError *e, uint64_t round)
{
    fuzz_allow(0);
    ck_assert_msg(ok || (e->text[0] && e->code == LS_EXIT_DATA), "round %d: code %d, '%s'",
                  (int)round, e->code, e->text);
}

/* An identifier is a piece of JSON of its own. */
static void check_id(const char *id)
{
    LsJson j = {id, id + strlen(id)};
    ck_assert_msg(id[0] == '\0' || (ls_json_skip(&j) && j.p == j.end), "the id %s", id);
}

static void try_sample(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    /* room with an end that sanitizers guard */
    double *value[] = {malloc(X * sizeof(double)), malloc(MASK * sizeof(double)),
                       malloc(sizeof(double))};
    bool given[3];
    LsLine line = {input, 3, value, given, ""};
    LsError e = {0};
    (void)d;
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < input[k].count; i++)
            value[k][i] = NAN;
    fuzz_allow(1 << 14);
    const bool ok = ls_line_sample(&line, (const char *)bytes, n, &e);
    for (int k = 0; ok && k < 3; k++)
        for (int64_t i = 0; given[k] && i < input[k].count; i++)
            ck_assert_msg(isfinite(value[k][i]), "round %d: '%s' is not whole", (int)round,
                          input[k].name);
    ck_assert(!ok || given[0]);
    check_id(line.id);
    end(ok, &e, round);
    for (int k = 0; k < 3; k++)
        free(value[k]);
}

static char said[1 << 17];
static size_t nsaid;

static void keep(void *to, const void *data, size_t n)
{
    (void)to;
    n = n < sizeof said - nsaid ? n : sizeof said - nsaid;
    memcpy(said + nsaid, data, n);
    nsaid += n;
}

/* What is taken is printed as one piece of JSON, on one line. */
static void try_prompt(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    char *room = malloc(n + 1), id[LS_LINE_ID], part[256];
    const char *text;
    size_t length;
    LsError e = {0};
    (void)d;
    fuzz_allow(1 << 14);
    const bool ok = ls_line_prompt((const char *)bytes, n, room, &text, &length, id, &e);
    LsText t = {part, 0, sizeof part, keep, NULL};
    nsaid = 0;
    if (ok && length < sizeof said / 8) {
        ls_line_put_text(&t, text, length);
        ls_text_flush(&t);
        LsJson j = {said, said + nsaid};
        ck_assert(ls_json_skip(&j) && j.p == j.end && memchr(said, '\n', nsaid) == NULL);
    }
    check_id(id);
    end(ok, &e, round);
    free(room);
}

/* The lines of a pipe are those of its bytes. */
static void try_reader(const unsigned char *bytes, size_t n, uint64_t round, Dice *d)
{
    enum { LONGEST = 40, PIPE = 60000 };
    static volatile sig_atomic_t none;
    LsLineReader r;
    const char *line;
    size_t length, at = 0;
    int fd[2];
    bool too_long;
    (void)d;
    if (n > PIPE || pipe(fd) != 0)
        return;
    const bool wrote = write(fd[1], bytes, n) == (ssize_t)n;
    close(fd[1]);
    ls_lines_open(&r, fd[0], LONGEST, &none);
    while (wrote && ls_lines_next(&r, &line, &length, &too_long)) {
        const unsigned char *stop = memchr(bytes + at, '\n', n - at);
        const size_t want = stop != NULL ? (size_t)(stop - bytes) - at : n - at;
        ck_assert_msg(at < n && too_long == (want > LONGEST), "round %d: a line of %zu bytes",
                      (int)round, want);
        ck_assert(too_long || (length == want && memcmp(line, bytes + at, want) == 0));
        at += want + (stop != NULL);
    }
    ck_assert(!wrote || (at == n && !r.failed));
    ls_lines_close(&r);
    close(fd[0]);
}

static const char *const sample[] = {
    "{\"x\": [[[1,2],[3,4],[5,6]],[[7,8],[9,1e1],[-1.5,0]]], \"id\": \"a\\\"b\", \"one\": 3}",
    "{\"id\":17,\"mask\":[1,1,0,0],\"x\":[1,2,3,4,5,6,7,8,9,10,11,12]}",
    "[[[1,2],[3,4],[5,6]],[[7,8],[9,1e1],[-1.5,0]]]", "1,2,3,4,5,6,7,8,9,10,11,12"};
static const char *const prompt[] = {"{\"prompt\": \"ab\\u00e9\\ud83d\\ude00\", \"id\": 7}",
                                     "\"a \\\"b\\\" c\\n\"", "1 2, 3"};
static const char lines[] = "one\n\ntwo two two\r\na line that is too long for the room that there "
                            "is\nthe last one";

static void write_lines(void)
{
    char name[16];
    for (int k = 0; k < 4; k++) {
        snprintf(name, sizeof name, "s%d", k);
        write_bytes(name, sample[k], strlen(sample[k]));
    }
    for (int k = 0; k < 3; k++) {
        snprintf(name, sizeof name, "p%d", k);
        write_bytes(name, prompt[k], strlen(prompt[k]));
    }
    write_bytes("lines", lines, sizeof lines - 1);
}

const FuzzTarget fuzz_target[] = {{"sample", try_sample, write_lines, {"s0", "s1", "s2", "s3"}},
                                  {"prompt", try_prompt, write_lines, {"p0", "p1", "p2"}},
                                  {"pipe", try_reader, write_lines, {"lines"}},
                                  {.name = NULL}};

#ifndef LS_LIBFUZZER
START_TEST(damaged_samples)
{
    for (int k = 0; k < 4; k++)
        fuzz((const unsigned char *)sample[k], strlen(sample[k]), ROUNDS, try_sample);
}
END_TEST

START_TEST(damaged_prompts)
{
    for (int k = 0; k < 3; k++)
        fuzz((const unsigned char *)prompt[k], strlen(prompt[k]), ROUNDS, try_prompt);
}
END_TEST

START_TEST(damaged_pipes)
{
    fuzz((const unsigned char *)lines, sizeof lines - 1, ROUNDS / 4, try_reader);
}
END_TEST

START_TEST(lines_that_broke_a_reader_once_or_end_at_any_byte)
{
    for (const FuzzTarget *t = fuzz_target; t->name != NULL; t++) {
        t->open();
        fuzz_replay(t);
        fuzz_truncate(t);
    }
}
END_TEST

/* As they are: each is read, with the same numbers, or refused for its own reason. */
START_TEST(samples_are_read_as_they_are_meant)
{
    static const double want[X] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -1.5, 0};
    static const struct { const char *line, *why; } wrong[] = {
        {"{\"x\":[1,2]}", "another shape: it takes 12 numbers, 2x3x2"},
        {"{\"x\":[[1,2,3],[4,5,6],[7,8,9],[10,11,12]]}", "another shape"},
        {"{\"x\":[[[1,2],[3,4],[5,6]],[[7,8],[9,10],[11]]]}", "another shape"},
        {"{\"x\":[[[1,2],[3,4],[5,6]],7,8,9,10,11,12]}", "another shape"},
        {"{\"x\":[1,2,3,4,5,6,7,8,9,10,11,NaN]}", "a number is expected at character 31"},
        {"{\"x\":[1,2,3,4,5,6,7,8,9,10,11,0x1]}", "',' or ']' is expected"},
        {"{\"mask\":[1,1,1,1]}", "there is no 'x'"},
        {"{\"x\":[1,2,3,4,5,6,7,8,9,10,11,12],\"x\":[1]}", "'x' is there twice"},
        {"{\"z\":1}", "no input is called 'z'; there are x, mask, one"},
        {"1,2,3,4,5,6,7,8,9,10,11", "the row ends too early"},
        {"1,2,3,4,5,6,7,8,9,10,11,12,13", "the end of the line is expected"},
        {"1,2,3,4,5,6,7,8,9,10,11,1e400", "a number is too large"},
        {"", "a number is expected at character 1"}};
    double x[X], mask[MASK], scalar, *value[] = {x, mask, &scalar};
    bool given[3];
    LsLine line = {input, 3, value, given, ""};
    for (int k = 0; k < 4; k++) {
        LsError e = {0};
        ck_assert_msg(ls_line_sample(&line, sample[k], strlen(sample[k]), &e), "%s: %s", sample[k],
                      e.text);
        for (int i = 0; i < X; i++)
            ck_assert_double_eq(x[i], k % 2 == 0 ? want[i] : i + 1);
        ck_assert(given[1] == (k == 1) && given[2] == (k == 0));
        ck_assert_str_eq(line.id, k == 0 ? "\"a\\\"b\"" : k == 1 ? "17" : "");
    }
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        LsError e = {0};
        ck_assert(!ls_line_sample(&line, wrong[k].line, strlen(wrong[k].line), &e));
        ck_assert_msg(strstr(e.text, wrong[k].why) != NULL, "%s: %s", wrong[k].line, e.text);
    }
}
END_TEST

int main(void)
{
    const TTest *const test[] = {damaged_samples, damaged_prompts, damaged_pipes,
                                 lines_that_broke_a_reader_once_or_end_at_any_byte,
                                 samples_are_read_as_they_are_meant};
    return run_in_folder("serve_fuzz", sizeof test / sizeof *test, test);
}
#endif
