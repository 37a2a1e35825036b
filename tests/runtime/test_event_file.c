/* tests/runtime/test_event_file.c -- files of events, read by a reader of their own: records with
 * checksums, events, scalars; what a run writes to them. */
#include "tests/support/tiny_run.h"
#include "runtime/base/checksum.h"
#include "runtime/watch/event_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- the reader ---- */

enum { MOST = 4000 };
typedef struct Scalar { int64_t step; char tag[64]; float value; } Scalar;
typedef struct Events {
    Scalar at[MOST]; int n;
    int records;                /* whole ones */
    int64_t start;              /* step of the session's start; -1: none */
    bool versioned, rest;       /* rest: a piece of a record follows */
} Events;
static Events read_events;

/* CRC-32C bit by bit, and TensorFlow's mask. */
static uint32_t mask_of(const unsigned char *p, size_t n)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static uint64_t little(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int k = n; k-- > 0;)
        v = v << 8 | p[k];
    return v;
}

static uint64_t varint(const unsigned char **p)
{
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        v |= (uint64_t)(**p & 127) << shift;
        if (*(*p)++ < 128)
            return v;
    }
}

static void read_value(Events *to, int64_t step, const unsigned char *p, const unsigned char *end)
{
    Scalar *s = &to->at[to->n++];
    ck_assert_int_lt(to->n, MOST);
    *s = (Scalar){.step = step};
    while (p < end) {
        const uint64_t tag = varint(&p);
        if (tag == (1 << 3 | 2)) {
            const uint64_t n = varint(&p);
            ck_assert(n < sizeof s->tag);
            memcpy(s->tag, p, n);
            p += n;
        } else {
            ck_assert_uint_eq(tag, 2 << 3 | 5);
            const uint32_t bits = (uint32_t)little(p, 4);
            memcpy(&s->value, &bits, 4);
            p += 4;
        }
    }
    ck_assert(p == end && s->tag[0] != '\0');
}

static void read_event(Events *to, const unsigned char *p, const unsigned char *end)
{
    int64_t step = 0;
    double when = 0;
    while (p < end) {
        const uint64_t tag = varint(&p);
        if (tag == (1 << 3 | 1)) {
            const uint64_t bits = little(p, 8);
            memcpy(&when, &bits, 8);
            p += 8;
        } else if (tag == 2 << 3) {
            step = (int64_t)varint(&p);
        } else {
            const uint64_t n = varint(&p);
            const unsigned char *in = p;
            p += n;
            if (tag == (3 << 3 | 2)) {
                to->versioned = n == 13 && memcmp(in, "brain.Event:2", 13) == 0;
            } else if (tag == (7 << 3 | 2)) {
                ck_assert(n == 2 && in[0] == 1 << 3 && in[1] == 1);
                to->start = step;
            } else {
                ck_assert_uint_eq(tag, 5 << 3 | 2);
                ck_assert_uint_eq(varint(&in), 1 << 3 | 2);
                const uint64_t m = varint(&in);
                ck_assert(in + m == p);
                read_value(to, step, in, in + m);
            }
        }
    }
    ck_assert(p == end && when > 1e9);
}

/* Reads records until one is not whole. */
static const Events *decode(const unsigned char *p, size_t n)
{
    Events *to = &read_events;
    *to = (Events){.start = -1};
    while (n >= 12 && little(p + 8, 4) == mask_of(p, 8)) {
        const uint64_t length = little(p, 8);
        if (length + 16 > n || little(p + 12 + length, 4) != mask_of(p + 12, length))
            break;
        read_event(to, p + 12, p + 12 + length);
        to->records++;
        p += length + 16;
        n -= length + 16;
    }
    to->rest = n > 0;
    return to;
}

static const Events *decode_file(const char *path)
{
    LsFile f;
    LsError e = {0};
    ck_assert_msg(ls_file_map(&f, path, &e), "%s", e.text);
    decode(f.data, f.size);
    ls_file_unmap(&f);
    return &read_events;
}

/* File k of a folder, by name. Returns their number. */
static int file_of(const char *folder, int k, char path[LS_PATH])
{
    struct dirent **of;
    const int n = scandir(folder, &of, NULL, alphasort);
    int files = 0;
    for (int i = 0; i < n; i++) {
        if (of[i]->d_name[0] != '.' && files++ == k)
            snprintf(path, LS_PATH, "%s/%s", folder, of[i]->d_name);
        free(of[i]);
    }
    free(of);
    return files;
}

/* ---- the file ---- */

static LsEvents events;

START_TEST(the_checksum_is_castagnolis)
{
    ck_assert_uint_eq(ls_crc32c(0, "123456789", 9), 0xe3069283u);
    ck_assert_uint_eq(ls_crc32c(ls_crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
    ck_assert_uint_eq(ls_crc32(0, "123456789", 9), 0xcbf43926u);
}
END_TEST

static void write_some(int n)
{
    for (int k = 1; k <= n; k++)
        ls_events_scalar(&events, k * 1000, k % 2 ? "odd" : "even", 1.5 * k);
}

/* A file that ends anywhere, as a killed run leaves it, has all the records before its end, and no
 * other. */
START_TEST(a_file_is_good_wherever_it_ends)
{
    static unsigned char text[1 << 14];
    LsError e = {0};
    ck_assert_msg(ls_events_open(&events, "dir", 7, &e), "%s", e.text);
    write_some(100);
    ck_assert(ls_events_close(&events, &e));
    const int fd = open(events.path, O_RDONLY);
    const ssize_t n = read(fd, text, sizeof text);
    close(fd);
    ck_assert(n > 0 && n < (ssize_t)sizeof text);
    int before = 0;
    for (ssize_t k = 0; k <= n; k++) {
        const Events *of = decode(text, (size_t)k);
        ck_assert(of->records == before || (of->records == before + 1 && !of->rest));
        before = of->records;
        for (int i = 0; i < of->n; i++) {
            ck_assert_int_eq(of->at[i].step, (i + 1) * 1000);
            ck_assert_str_eq(of->at[i].tag, i % 2 == 0 ? "odd" : "even");
            ck_assert_float_eq(of->at[i].value, 1.5f * (float)(i + 1));
        }
    }
    ck_assert(before == 102 && read_events.versioned && read_events.start == 7);
}
END_TEST

/* Behind a limit of the file's size, as on a full disk: whole records stay, and the error names the
 * file. */
START_TEST(a_full_disk_leaves_whole_records)
{
    LsError e = {0};
    struct rlimit all, few;
    ck_assert(getrlimit(RLIMIT_FSIZE, &all) == 0);
    few = all;
    few.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert(ls_events_open(&events, "full", 1, &e));
    write_some(5);
    ls_events_flush(&events);
    ck_assert(setrlimit(RLIMIT_FSIZE, &few) == 0);
    write_some(100);
    ls_events_flush(&events);
    write_some(100);
    const bool ok = ls_events_close(&events, &e);
    setrlimit(RLIMIT_FSIZE, &all);
    ck_assert(!ok && e.code == LS_EXIT_FAIL);
    ck_assert_msg(strstr(e.text, events.path) != NULL && strstr(e.text, "cannot write") != NULL,
                  "%s", e.text);
    const Events *of = decode_file(events.path);
    ck_assert(of->records == 7 && !of->rest);
    e = (LsError){0};
    write_bytes("file", "x", 1);
    ck_assert(!ls_events_open(&events, "file", 1, &e));
    ck_assert(strstr(e.text, "file") != NULL);
}
END_TEST

/* ---- what a run writes ---- */

static float value_at(const char *tag, int64_t step)
{
    float found = NAN;
    int n = 0;
    for (int k = 0; k < read_events.n; k++)
        if (strcmp(read_events.at[k].tag, tag) == 0 && read_events.at[k].step == step) {
            found = read_events.at[k].value;
            n++;
        }
    ck_assert_msg(n == 1, "%d values of %s at step %d", n, tag, (int)step);
    return found;
}

/* Field `name` of the log's line of that step that has it. */
static double logged(const char *log, int64_t step, const char *name)
{
    char at[40], field[40];
    snprintf(at, sizeof at, "{\"step\":%d,", (int)step);
    snprintf(field, sizeof field, "\"%s\":", name);
    for (const char *p = log; (p = strstr(p, at)) != NULL; p++) {
        const char *v = strstr(p, field), *end = strchr(p, '\n');
        if (v != NULL && v < end)
            return strtod(v + strlen(field), NULL);
    }
    ck_abort_msg("no %s of step %d", name, (int)step);
    return 0;
}

START_TEST(a_run_writes_what_its_log_has)
{
    static char log[1 << 16];
    static const struct { const char *tag, *name; int64_t every; } of[] = {
        {"train/loss", "loss", 1},
        {"train/rate", "lr", 1},
        {"train/grad_norm", "grad_norm", 1},
        {"val/loss", "val_loss", 3},
        {"val/accuracy", "val_accuracy", 3}};
    char path[LS_PATH];
    make_data(SAMPLES);
    MUST(0, "--data data.npz --val data.npz --epochs 3 --schedule linear --log log "
            "--log-grad-norm --tensorboard tb --save ck --save-every 2 --steps 6");
    MUST(0, "--data data.npz --val data.npz --epochs 3 --schedule linear --log rest "
            "--log-grad-norm --tensorboard tb --resume ck/step-000000004.safetensors");
    ck_assert_int_eq(file_of("tb", 0, path), 2);
    for (int file = 0; file < 2; file++) {
        const int64_t first = file == 0 ? 1 : 5, last = file == 0 ? 6 : 9;
        file_of("tb", file, path);
        tiny_read(file == 0 ? "log" : "rest", log, sizeof log);
        const Events *e = decode_file(path);
        ck_assert(e->versioned && !e->rest && e->start == first);
        for (size_t k = 0; k < sizeof of / sizeof *of; k++)
            for (int64_t step = first; step <= last; step++)
                if (step % of[k].every == 0)
                    ck_assert_double_eq_tol(value_at(of[k].tag, step),
                                            logged(log, step, of[k].name), 1e-6);
        ck_assert(value_at("train/samples_per_second", first) > 0);
    }
}
END_TEST

static double squares(const char *name)
{
    LsFile f;
    LsArray a;
    LsError e = {0};
    bool found;
    double sum = 0;
    ck_assert(ls_file_map(&f, "last.npz", &e) && ls_npz_find(&f, name, &a, &found, &e) && found);
    for (int64_t i = 0; i < a.count; i++)
        sum += ls_array_real(&a, i) * ls_array_real(&a, i);
    ls_file_unmap(&f);
    return sum;
}

/* Of all gradients together, as --dump has them, also where they carry a loss scale. */
START_TEST(the_norm_is_that_of_the_gradients)
{
    static char log[1 << 16];
    LsProgram p = _i == 0 ? tiny_program(1) : tiny_scaled(1);
    make_data(SAMPLES);
    ck_assert_int_eq(
        run_program(&p, "--data data.npz --epochs 2 --log log --log-grad-norm --dump last.npz"), 0);
    tiny_read("log", log, sizeof log);
    const double want = sqrt(squares("grad/w") + squares("grad/b"));
    ck_assert(want > 0);
    ck_assert_double_eq_tol(logged(log, 6, "grad_norm"), want, 1e-5 * want);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("event_file");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, enter_new_folder, leave_folder);
    tcase_add_test(t, the_checksum_is_castagnolis);
    tcase_add_test(t, a_file_is_good_wherever_it_ends);
    tcase_add_test(t, a_full_disk_leaves_whole_records);
    tcase_add_test(t, a_run_writes_what_its_log_has);
    tcase_add_loop_test(t, the_norm_is_that_of_the_gradients, 0, 2);
    return run_tests("event_file", t);
}
