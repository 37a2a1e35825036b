/* tests/dataset/test_pack_fuzz.c -- damaged sources of data sets, and damaged data sets, are read
 * or refused with a reason: no crash, no byte read outside the file, no memory beyond what the file
 * justifies. */
#include "dataset/array_file.h"
#include "dataset/packed_writer.h"
#include "dataset/picture.h"
#include "dataset/table_columns.h"
#include "runtime/base/checksum.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/data/data_facts.h"
#include "runtime/data/dataset.h"
#include "tests/support/fuzz_target.h"
#include "tests/support/picture_files.h"
#include "tests/support/suite.h"

#include <unistd.h>

enum { ROUNDS = 1500 };

static LsError e;
static LsFile victim;           /* what the file of that name has now */
static bool was_read;           /* some file was */

bool __real_ls_file_map(LsFile *f, const char *path, LsError *error);
bool __wrap_ls_file_map(LsFile *f, const char *path, LsError *error);
void __real_ls_file_unmap(LsFile *f);
void __wrap_ls_file_unmap(LsFile *f);

bool __wrap_ls_file_map(LsFile *f, const char *path, LsError *error)
{
    if (!victim.path || strcmp(path, victim.path) != 0)
        return __real_ls_file_map(f, path, error);
    *f = (LsFile){path, victim.data, victim.size};
    return true;
}

void __wrap_ls_file_unmap(LsFile *f)
{
    if (f->data != victim.data)
        __real_ls_file_unmap(f);
}

static LsFile begin(const char *path, const unsigned char *bytes, size_t n, size_t room)
{
    e = (LsError){0};
    fuzz_allow(room);
    return victim = (LsFile){path, bytes, n};
}

static void end(bool ok, uint64_t round)
{
    fuzz_allow(0);
    was_read |= ok;
    ck_assert_msg(ok || (e.text[0] && e.code != LS_EXIT_FAIL), "round %d: code %d, '%s'",
                  (int)round, e.code, e.text);
    victim = (LsFile){0};
}

/* ---- packed data sets: from the file to the batch ---- */

static const LsInput pictures[] = {
    {.t = {.name = "image", .channels_last = true, .rank = 4, .dim = {2, 3, 2, 2},
           .at = {LS_AT_INPUT, 0}}},
    {.t = {.name = "label", .type = LS_DT_I64, .rank = 1, .dim = {2}, .at = {LS_AT_INPUT, 1}},
     .is_label = true}};
static const LsInput texts[] = {
    {.t = {.name = "x", .type = LS_DT_I64, .rank = 2, .dim = {2, 4}, .at = {LS_AT_INPUT, 0}},
     .high = 40},
    {.t = {.name = "label", .type = LS_DT_I32, .rank = 2, .dim = {2, 4}, .at = {LS_AT_INPUT, 1}},
     .is_label = true}};

static void le(unsigned char *p, int n, uint64_t v)
{
    for (int k = 0; k < n; k++)
        p[k] = (unsigned char)(v >> 8 * k);
}

static uint64_t number(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int k = n; k-- > 0;)
        v = v << 8 | p[k];
    return v;
}

/* Checksums and length become right, so that damage comes to the parts behind them. */
static void repair(unsigned char *b, size_t n)
{
    if (n < LS_DATA_ALIGN)
        return;
    const uint64_t at = number(b + 16, 8), len = number(b + 24, 8), sums = number(b + 40, 8);
    le(b + 32, 8, n);
    if (at <= n && len <= n - at)
        le(b + 12, 4, ls_crc32(0, b + at, len));
    if (at <= n && sums <= at)
        le(b + 48, 4, ls_crc32(0, b + sums, at - sums));
    le(b + 60, 4, ls_crc32(0, b, 60));
}

static bool read_samples(const LsDataset *d)
{
    bool ok = true;
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        char batch[512];
        for (int64_t s = 0; ok && s < d->samples; s = s < 8 || s == d->samples - 1 ? s + 1
                                                                                   : d->samples - 1)
            ok = ls_dataset_read(d, k, s, s % 2, batch, &e);
    }
    return ok;
}

static void try_packed(const unsigned char *bytes, size_t n, uint64_t round, Dice *dice)
{
    const LsInput *input = roll(dice, 3) ? pictures : texts;
    LsProgram p = {.about.model = "m.onnx", .real_bytes = 4, .division.samples = 2,
                   .input = input, .ninput = 2, .target = {.classes = 40}};
    LsDataOptions o = {.data = "v.lsd", .mean = roll(dice, 3) ? NULL : "auto",
                       .std = roll(dice, 3) ? NULL : "auto"};
    const LsAlphabet none = {0};
    LsDataset d;
    char *facts = NULL;
    unsigned char *copy = malloc(n);
    memcpy(copy, bytes, n);
    if (roll(dice, 8))
        repair(copy, n);
    if (input == texts)
        o.mean = o.std = NULL;
    begin("v.lsd", copy, n, (1 << 14) + 64 * n);
    const bool ok = ls_dataset_open(&d, &p, &o, &e) && ls_dataset_number(&d, &none, &e)
                    && ls_facts_of(&d, &facts, &e) && ls_facts_apply(&d, facts, &e)
                    && read_samples(&d);
    free(facts);
    ls_dataset_close(&d);
    end(ok, round);
    LsFile f = {"v.lsd", copy, n};
    LsDataFile file;
    e = (LsError){0};
    if (ls_data_file_open(&file, &f, &e))
        for (int64_t k = 0; k < file.fields; k++)
            ls_blocks_check(&file, &file.field[k], &e);
    ls_data_file_close(&file);
    free(copy);
}

/* ---- facts of a checkpoint ---- */

static void try_facts(const unsigned char *bytes, size_t n, uint64_t round, Dice *dice)
{
    LsProgram p = {.about.model = "m.onnx", .real_bytes = 4, .division.samples = 2,
                   .input = pictures, .ninput = 2, .target = {.classes = 40}};
    LsDataOptions o = {.data = "p.lsd", .mean = "auto", .std = "auto"};
    LsDataset d;
    char *text = malloc(n + 1);
    (void)dice;
    memcpy(text, bytes, n);
    text[n] = '\0';
    e = (LsError){0};
    ck_assert_msg(ls_dataset_open(&d, &p, &o, &e), "%s", e.text);
    begin("", bytes, n, (1 << 14) + 64 * n);
    const bool ok = ls_facts_apply(&d, text, &e);
    free(text);
    ls_dataset_close(&d);
    end(ok, round);
}

/* ---- pictures ---- */

static void try_picture(const unsigned char *bytes, size_t n, uint64_t round, Dice *dice)
{
    LsPicture p;
    const bool mask = roll(dice, 4) == 0;
    ls_picture_pixels = 1 << 18;
    LsFile f = begin("v", bytes, n, 1 << 20);
    const bool ok =
        mask ? ls_mask_read(&p, &f, &e) : ls_picture_read(&p, &f, roll(dice, 2) ? 1 : 3, &e);
    if (ok && (ls_picture_resize(&p, 9, 7, mask, "v", &e)))
        ls_picture_crop(&p, 5, 6);
    if (ok)
        ls_picture_free(&p);
    end(ok, round);
}

/* ---- tables ---- */

static void try_table(const unsigned char *bytes, size_t n, uint64_t round, Dice *dice)
{
    static const char *const missing[] = {NULL, "mean", "drop", "0"};
    const char *const source[] = {"v.csv"};
    const LsPackOptions o = {.source = source, .sources = 1, .missing = missing[roll(dice, 4)],
                             .label_column = roll(dice, 2) ? "1" : NULL,
                             .categories = roll(dice, 3) ? NULL : "2"};
    LsTable t;
    bool stop = false, drop;
    double v;
    begin("v.csv", bytes, n, (1 << 16) + 400 * n);
    bool ok = ls_table_open(&t, &o, NULL, &e) && ls_table_begin(&t, 0, &e);
    while (ok && (ok = ls_table_row(&t, &stop, &drop, &e)) && !stop)
        for (int k = 0; k < t.columns && ok && !drop; k++)
            ok = ls_table_value(&t, k, &v, &e);
    ls_table_close(&t);
    end(ok, round);
}

/* ---- arrays ---- */

static void read_rows(const LsArrayFile *a)
{
    unsigned char room[1 << 12];
    const LsArray *x = &a->array;
    if (x->rank == 0 || x->dim[0] == 0 || x->count == 0)
        return;
    const int64_t each = x->count / x->dim[0] * ls_element_bytes(x->type);
    if (each > (int64_t)sizeof room)
        return;
    for (int64_t s = 0; s < x->dim[0] && s < 50; s++)
        ls_array_file_rows(a, s, 1, room);
    ls_array_file_rows(a, x->dim[0] - 1, 1, room);
}

static void try_archive(const unsigned char *bytes, size_t n, uint64_t round, Dice *dice)
{
    LsFile f = begin("v.npz", bytes, n, (1 << 16) + 16 * n);
    LsArrayFile a;
    bool found = true, ok = true;
    (void)dice;
    for (uint32_t k = 0; ok && k < 8; k++) {
        ok = ls_array_file_npz(&a, &f, k, ".", &found, &e);
        if (ok && found)
            read_rows(&a);
        ls_array_file_close(&a);
        if (!found)
            break;
    }
    end(ok, round);
    f = begin("v.npy", bytes, n, (1 << 16) + 16 * n);
    ok = ls_array_file_npy(&a, &f, &e);
    if (ok)
        read_rows(&a);
    ls_array_file_close(&a);
    end(ok, round);
}

/* ---- files to begin with ---- */

static void write_bytes_to(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fwrite(data, 1, n, f);
    fclose(f);
}

static void write_packed(const char *path, const LsDataField *field, int fields, int64_t samples)
{
    static unsigned char zero[256];
    static LsPack p;
    const char *const source[] = {"a \"b\""};
    e = (LsError){0};
    ck_assert_msg(ls_pack_open(&p, path, &e), "%s", e.text);
    p.out.quick = true;
    p.source = source;
    p.sources = 1;
    for (int k = 0; k < fields; k++)
        ck_assert_ptr_nonnull(ls_pack_column(&p, &field[k], &e));
    ck_assert(ls_pack_begin(&p, samples, &e));
    for (int k = 0; k < fields; k++)
        for (int64_t s = 0; s < samples; s++)
            ck_assert(ls_pack_append(&p, &p.column[k], zero, 1, &e));
    p.samples = samples;
    ck_assert_msg(ls_pack_end(&p, true, &e), "%s", e.text);
}

static void write_data(void)
{
    static double mean[] = {0.1, 0.2, 0.3}, std[] = {0.5, 0, 1e-3};
    static char *name[] = {"cat", "d\"o\\g"};
    static LsDataColumn column[] = {{.name = "p"}, {.name = "q", .categories = {2, name}},
                                    {.name = "r", .categories = {2, name}, .one_hot = true}};
    const LsDataField picture[] = {
        {.name = "image", .kind = LS_FIELD_PICTURE, .type = LS_U8, .rank = 3, .dim = {3, 2, 2},
         .mean = mean, .std = std, .figures = 3},
        {.name = "y", .is_label = true, .type = LS_I64, .classes = {2, name}}};
    const LsDataField table[] = {
        {.name = "image", .type = LS_F32, .rank = 1, .dim = {12}, .column = column, .columns = 3},
        {.name = "label", .is_label = true, .type = LS_I64}};
    const LsDataField tokens = {.name = "tokens", .kind = LS_FIELD_TOKENS, .type = LS_U16};
    LsDataField text = {.name = "tokens", .kind = LS_FIELD_CHARACTERS, .type = LS_U8};
    ls_alphabet_add(&text.alphabet, 0);
    ls_alphabet_add(&text.alphabet, 'a');
    write_packed("p.lsd", picture, 2, 3);
    write_packed("t.lsd", table, 2, 3);
    write_packed("s.lsd", &tokens, 1, 12);
    write_packed("c.lsd", &text, 1, 12);
    static const char facts[] =
        "{\"classes\": [\"cat\", \"d\\\"o\\\\g\"], \"inputs\": [{\"name\": \"image\", \"mean\": "
        "[0.1, 0.2, 0.3], \"std\": [1, 2, 3e-1], \"columns\": [{\"name\": \"a\"}]}]}";
    write_bytes_to("facts", facts, sizeof facts - 1);
}

static void write_pictures(void)
{
    enum { W = 9, H = 7 };
    write_png("rgb.png", PNG_COLOR_TYPE_RGB, 8, W, H, 1);
    write_png("palette.png", PNG_COLOR_TYPE_PALETTE, 4, W, H, 1);
    write_png("grey16.png", PNG_COLOR_TYPE_GRAY_ALPHA, 16, W, H, 1);
    write_jpeg("rgb.jpg", JCS_RGB, 0, W, H, 1, 6, 1);
    write_jpeg("ycck.jpg", JCS_CMYK, 1, W, H, 1, 8, 0);
    write_jpeg("grey.jpg", JCS_GRAYSCALE, 0, W, H, 1, 0, 0);
}

static void write_tables(void)
{
    static const char one[] = "\xef\xbb\xbf" "a,b,c\r\n1,red,\"2.5\"\r\n2,\"bl\"\"ue\r\n\",NA\r\n";
    static const char two[] = "1;2;3\n4;5;6\n\n7; 8 ;9";
    write_bytes_to("a.csv", one, sizeof one - 1);
    write_bytes_to("b.csv", two, sizeof two - 1);
}

static void put16(FILE *f, unsigned v) { fputc((int)(v & 255), f), fputc((int)(v >> 8), f); }
static void put32(FILE *f, uint32_t v) { put16(f, v & 0xffff), put16(f, v >> 16); }

/* An archive of one member, deflated in a stored block. */
static void write_archives(void)
{
    char npy[512 + 48] = {0};
    const int64_t dim[] = {3, 4};
    const size_t head = ls_npy_header(npy, LS_F32, 2, dim), n = head + 48;
    char *order = strstr(npy + 10, "False");
    memcpy(order, "True ", 5);
    write_bytes_to("f.npy", npy, n);
    FILE *f = fopen("d.npz", "wb");
    const uint32_t crc = ls_crc32(0, npy, n);
    for (int central = 0; central < 2; central++) {
        const uint32_t at = (uint32_t)ftell(f);
        put32(f, central ? 0x02014b50 : 0x04034b50);
        if (central)
            put16(f, 20);
        put16(f, 20), put16(f, 0), put16(f, 8), put32(f, 0);
        put32(f, crc), put32(f, (uint32_t)n + 5), put32(f, (uint32_t)n);
        put16(f, 5), put16(f, 0);
        if (central)
            put16(f, 0), put16(f, 0), put16(f, 0), put32(f, 0), put32(f, 0);
        fputs("x.npy", f);
        if (!central) {
            fputc(1, f), put16(f, (unsigned)n), put16(f, (unsigned)~n & 0xffff);
            fwrite(npy, 1, n, f);
        } else {
            const uint32_t size = (uint32_t)ftell(f) - at;
            put32(f, 0x06054b50), put16(f, 0), put16(f, 0), put16(f, 1), put16(f, 1);
            put32(f, size), put32(f, at), put16(f, 0);
        }
    }
    fclose(f);
}

const FuzzTarget fuzz_target[] = {
    {"packed", try_packed, write_data, {"p.lsd", "t.lsd", "s.lsd", "c.lsd"}},
    {"facts", try_facts, write_data, {"facts"}},
    {"picture", try_picture, write_pictures,
     {"rgb.png", "palette.png", "grey16.png", "rgb.jpg", "ycck.jpg", "grey.jpg"}},
    {"table", try_table, write_tables, {"a.csv", "b.csv"}},
    {"archive", try_archive, write_archives, {"d.npz", "f.npy"}},
    {.name = NULL}};

#ifndef LS_LIBFUZZER
static void enter_folder(void)
{
    char dir[] = "/tmp/ls_fuzzXXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
}

/* Every file as it is made is read. */
START_TEST(whole_files_are_read)
{
    enter_folder();
    for (const FuzzTarget *t = fuzz_target; t->name != NULL; t++) {
        t->open();
        for (int k = 0; k < 8 && t->seed[k] != NULL; k++) {
            LsFile f;
            was_read = false;
            ck_assert(__real_ls_file_map(&f, t->seed[k], &e));
            for (uint64_t roll = 1; roll < 20; roll++)  /* some options do not go with it */
                t->try(f.data, f.size, 0, &(Dice){roll * 7919});
            __real_ls_file_unmap(&f);
            ck_assert_msg(was_read, "%s is never read: %s", t->seed[k], e.text);
        }
    }
}
END_TEST

START_TEST(damaged_files_are_read_or_refused)
{
    enter_folder();
    for (const FuzzTarget *t = fuzz_target; t->name != NULL; t++) {
        t->open();
        for (int k = 0; k < 8 && t->seed[k] != NULL; k++) {
            LsFile f;
            ck_assert(__real_ls_file_map(&f, t->seed[k], &e));
            fuzz(f.data, f.size, ROUNDS, t->try);
            __real_ls_file_unmap(&f);
        }
    }
}
END_TEST

START_TEST(files_that_end_at_any_byte)
{
    enter_folder();
    for (const FuzzTarget *t = fuzz_target; t->name != NULL; t++) {
        t->open();
        fuzz_truncate(t);
        fuzz_replay(t);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pack_fuzz");
    const TTest *const tests[] = {whole_files_are_read, damaged_files_are_read_or_refused,
                                  files_that_end_at_any_byte};
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("pack_fuzz", tc);
}
#endif
