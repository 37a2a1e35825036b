/* tests/runtime/test_dataset.c -- files of every format end up as the batches a program reads. */
#include "tests/support/npz_util.h"
#include "runtime/data/dataset.h"

#include <math.h>
#include <string.h>

/* x [2, 3, 2, 2] images, channels-last or not; label [2] integers. */
static LsInput input[2];
static LsProgram p;
static LsDataset d;
static LsError e;

static void program(bool channels_last)
{
    input[0] = (LsInput){{.name = "x",
                          .channels_last = channels_last,
                          .rank = 4,
                          .dim = {2, 3, 2, 2},
                          .at = {LS_AT_INPUT, 0}},
                         false,
                         0,
                         0,
                         LS_USUAL_NONE};
    input[1] = (LsInput){{.name = "label", .type = LS_DT_I64, .rank = 1, .dim = {2},
                          .at = {LS_AT_INPUT, 1}}, true, 0, 0, LS_USUAL_NONE};
    p = (LsProgram){.about.model = "m.onnx",
                    .real_bytes = 4,
                    .division.samples = 2,
                    .input = input,
                    .ninput = 2,
                    .target.classes = 10};
}

static bool opens(LsDataOptions o)
{
    e = (LsError){0};
    return ls_dataset_open(&d, &p, &o, &e);
}

#define OPEN(...) ck_assert_msg(opens((LsDataOptions){__VA_ARGS__}), "%s", e.text)
#define REFUSED(wanted, part, ...) do { \
    ck_assert(!opens((LsDataOptions){__VA_ARGS__})); \
    ls_dataset_close(&d); \
    ck_assert_int_eq(e.code, wanted); \
    ck_assert_msg(strstr(e.text, part) != NULL, "no '%s' in: %s", part, e.text); } while (0)

static void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

static float real[64];
static int64_t whole[64];

static void read_sample(int64_t sample, int64_t place)
{
    ck_assert_msg(ls_dataset_read(&d, 0, sample, place, real, &e), "%s", e.text);
    ck_assert_msg(ls_dataset_read(&d, 1, sample, place, whole, &e), "%s", e.text);
}

/* Image k has bytes 12 k .. 12 k + 11 in N, C, H, W; its label is k. */
static void write_idx(int n)
{
    unsigned char image[20 + 64 * 12] = {0, 0, 8, 4, 0, 0, 0, (unsigned char)n, 0, 0, 0, 3,
                                         0, 0, 0, 2, 0, 0, 0, 2};
    unsigned char label[8 + 64] = {0, 0, 8, 1, 0, 0, 0, (unsigned char)n};
    for (int k = 0; k < 12 * n; k++)
        image[20 + k] = (unsigned char)k;
    for (int k = 0; k < n; k++)
        label[8 + k] = (unsigned char)k;
    write_bytes("images", image, (size_t)(20 + 12 * n));
    write_bytes("labels", label, (size_t)(8 + n));
}

START_TEST(idx_bytes_are_scaled_and_labels_are_not)
{
    program(false);
    write_idx(5);
    OPEN(.data = "images,labels");
    ck_assert_int_eq(d.samples, 5);
    read_sample(4, 1);
    for (int k = 0; k < 12; k++)
        ck_assert_float_eq(real[12 + k], (float)(48 + k) / 255.0f);
    ck_assert_int_eq(whole[1], 4);
    ls_dataset_close(&d);
}
END_TEST

START_TEST(channels_last_inputs_are_transposed_on_the_way)
{
    program(true);
    write_idx(3);
    OPEN(.data = "label=labels,x=images", .scale = "2");
    read_sample(2, 1);
    for (int c = 0; c < 3; c++)
        for (int s = 0; s < 4; s++)
            ck_assert_float_eq(real[12 + s * 3 + c], (float)(2 * (24 + c * 4 + s)));
    ls_dataset_close(&d);
}
END_TEST

START_TEST(mean_and_std_are_per_channel)
{
    for (int last = 0; last < 2; last++) {
        program(last);
        write_idx(2);
        OPEN(.data = "images,labels", .scale = "1", .mean = "1,2,3", .std = "2,4,8");
        read_sample(1, 0);
        for (int c = 0; c < 3; c++)
            for (int s = 0; s < 4; s++)
                ck_assert_float_eq(real[last ? s * 3 + c : c * 4 + s],
                                   (float)(12 + c * 4 + s - (c + 1)) / (float)(2 << c));
        ls_dataset_close(&d);
    }
    REFUSED(LS_EXIT_USAGE, "3 channels", .data = "images,labels", .mean = "1,2");
    REFUSED(LS_EXIT_USAGE, "must not be 0", .data = "images,labels", .std = "0");
    REFUSED(LS_EXIT_USAGE, "a number other than 0", .data = "images,labels", .scale = "big");
}
END_TEST

START_TEST(doubles_keep_what_floats_lose)
{
    double wide[12];
    program(false);
    p.real_bytes = 8;
    write_idx(2);
    OPEN(.data = "images,labels");
    ck_assert(ls_dataset_read(&d, 0, 1, 0, wide, &e));
    for (int k = 0; k < 12; k++)
        ck_assert_double_eq(wide[k], (12 + k) / 255.0);
    ls_dataset_close(&d);
}
END_TEST

START_TEST(npz_members_are_found_by_name_and_then_by_in_name)
{
    float x[48], other[48] = {0};
    int32_t label[4] = {3, 2, 1, 0};
    for (int k = 0; k < 48; k++)
        x[k] = (float)k;
    program(false);
    write_npz("a.npz", 3, (NpzItem[]){{"in/x", LS_F32, 4, {4, 3, 2, 2}, other},
                                      {"x", LS_F32, 4, {4, 3, 2, 2}, x},
                                      {"in/label", LS_I32, 1, {4}, label}});
    OPEN(.data = "a.npz");
    read_sample(3, 0);
    ck_assert_float_eq(real[0], 36);
    ck_assert_int_eq(whole[0], 0);
    ls_dataset_close(&d);
    write_npz("b.npz", 1, (NpzItem[]){{"y", LS_F32, 1, {4}, x}});
    REFUSED(LS_EXIT_DATA, "nothing for input 'x' (2x3x2x2); members: y", .data = "b.npz");
}
END_TEST

START_TEST(members_of_16_bits_are_inputs_and_labels)
{
    uint16_t half[48], brain[4] = {0x4040, 0x4000, 0x3f80, 0}, part = 0x3fc0;     /* 3 2 1 0; 1.5 */
    for (int k = 0; k < 48; k++)
        half[k] = (uint16_t)(0x6400 + k);       /* 1024 + k */
    program(false);
    write_npz("a.npz", 2,
              (NpzItem[]){{"x", LS_F16, 4, {4, 3, 2, 2}, half}, {"label", LS_BF16, 1, {4}, brain}});
    OPEN(.data = "a.npz");
    read_sample(3, 0);
    ck_assert_float_eq(real[0], 1024 + 36);
    ck_assert_int_eq(whole[0], 0);
    read_sample(0, 0);
    ck_assert_int_eq(whole[0], 3);
    ls_dataset_close(&d);
    OPEN(.data = "a.npz", .scale = "0.5");
    read_sample(3, 0);
    ck_assert_float_eq(real[0], 512 + 18);
    ls_dataset_close(&d);
    brain[2] = part;
    write_npz("a.npz", 2,
              (NpzItem[]){{"x", LS_F16, 4, {4, 3, 2, 2}, half}, {"label", LS_BF16, 1, {4}, brain}});
    OPEN(.data = "a.npz");
    ck_assert(!ls_dataset_read(&d, 1, 2, 0, whole, &e)
              && strstr(e.text, "1.5 is not an integer") != NULL);
    ls_dataset_close(&d);
}
END_TEST

START_TEST(one_number_stands_for_a_whole_target)
{
    float x[24] = {0}, t = 0.25f;
    program(false);
    input[1].t = (LsTensor){.name = "label", .rank = 2, .dim = {2, 5}};
    write_npz("a.npz", 2,
              (NpzItem[]){{"x", LS_F32, 4, {2, 3, 2, 2}, x}, {"label", LS_F32, 0, {0}, &t}});
    OPEN(.data = "a.npz");
    ck_assert(ls_dataset_read(&d, 1, 1, 1, real, &e));
    for (int k = 5; k < 10; k++)
        ck_assert_float_eq(real[k], 0.25f);
    ls_dataset_close(&d);
}
END_TEST

START_TEST(an_input_can_be_its_own_target)
{
    float t[24];
    program(true);
    input[1].t = (LsTensor){.name = "label", .rank = 4, .dim = {2, 3, 2, 2}};
    write_idx(2);
    OPEN(.data = "images", .label_from = "x", .mean = "0.5");
    ck_assert(ls_dataset_read(&d, 0, 1, 0, real, &e) && ls_dataset_read(&d, 1, 1, 0, t, &e));
    for (int c = 0; c < 3; c++)
        for (int s = 0; s < 4; s++)
            ck_assert_float_eq(real[s * 3 + c], t[c * 4 + s]);
    ls_dataset_close(&d);
    REFUSED(LS_EXIT_USAGE, "no such input", .data = "images", .label_from = "z");
}
END_TEST

START_TEST(several_rows_may_belong_to_one_sample)
{
    int64_t rows[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7};
    float x[48] = {0};
    program(false);
    input[1].t.dim[0] = 6;      /* three labels for each of two samples */
    write_npz("a.npz", 2,
              (NpzItem[]){{"x", LS_F32, 4, {4, 3, 2, 2}, x}, {"label", LS_I64, 1, {12}, rows}});
    OPEN(.data = "a.npz");
    read_sample(2, 1);
    ck_assert(whole[3] == 6 && whole[4] == 7 && whole[5] == 8);
    ls_dataset_close(&d);
    write_npz("a.npz", 2,
              (NpzItem[]){{"x", LS_F32, 4, {4, 3, 2, 2}, x}, {"label", LS_I64, 2, {4, 3}, rows}});
    OPEN(.data = "a.npz");
    read_sample(2, 1);
    ck_assert(whole[3] == 6 && whole[4] == 7 && whole[5] == 8);
    ls_dataset_close(&d);
}
END_TEST

START_TEST(tables_give_the_inputs_column_by_column)
{
    program(false);
    input[0].t = (LsTensor){.name = "x", .rank = 2, .dim = {2, 3}};
    write_text("t.csv", "a,b,c,y\n1,2,3,4\r\n-1, 2.5,\"3\",0\n\n");
    OPEN(.data = "t.csv");
    ck_assert_int_eq(d.samples, 2);
    read_sample(1, 0);
    ck_assert(real[0] == -1 && real[1] == 2.5f && real[2] == 3 && whole[0] == 0);
    ls_dataset_close(&d);
    write_text("t.csv", "1,2,3,4\n1,2,3\n");
    REFUSED(LS_EXIT_DATA, "t.csv:2: fewer than the 4 columns", .data = "t.csv");
    write_text("t.csv", "1,2,3,4,5\n");
    REFUSED(LS_EXIT_DATA, "t.csv:1: more than the 4 columns", .data = "t.csv");
    write_text("t.csv", "1,2,3,4\n1,2,x,4\n");
    REFUSED(LS_EXIT_DATA, "t.csv:2: column 3 is not a number", .data = "t.csv");
    write_text("t.csv", "1,2,3,0.5\n");
    OPEN(.data = "t.csv");
    ck_assert(!ls_dataset_read(&d, 1, 0, 0, whole, &e));
    ck_assert_ptr_nonnull(strstr(e.text, "0.5 is not an integer"));
    ls_dataset_close(&d);
}
END_TEST

START_TEST(lines_of_a_table_are_counted_as_an_editor_does)
{
    static const struct { const char *text; int line, column; } bad[] = {
        {"1,2,3,4\n\n\n1,2,x,4\n", 4, 3},
        {"\n\n1,2,3,4\n1,y,3,4", 4, 2},
        {"\na,b,c,d\n1,2,3,4\n   \nz,2,3,4\n", 5, 1},
        {"\"first\nname\",\"b\"\"\n\"\"\",c,d\n1,2,3,4\n1,2,3,x\n", 5, 4},
        {"a,b,c,d\r\n1,2,3,4\r\n\r\n1,2,,4\r\n", 4, 3},
        {"1,2,3,4\r1,2,3,4\r1,2,x,4\r", 3, 3},
        {"\xef\xbb\xbf" "1,2,3,4\nx,2,3,4\n", 2, 1},
        {"1,2,3,4\n1,2,3,4 5\n", 2, 4},
        {"1,2,3,4\n1,2,3,\n", 2, 4},
    };
    program(false);
    input[0].t = (LsTensor){.name = "x", .rank = 2, .dim = {2, 3}};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        char part[64];
        snprintf(part, sizeof part, "t.csv:%d: column %d is not a number", bad[k].line,
                 bad[k].column);
        write_text("t.csv", bad[k].text);
        REFUSED(LS_EXIT_DATA, part, .data = "t.csv");
    }
    write_text("t.csv", "\n1,2,3,4\n\n1,2,3\n");
    REFUSED(LS_EXIT_DATA, "t.csv:4: fewer than", .data = "t.csv");
    write_text("t.csv", "a,b\n\n  \n");
    REFUSED(LS_EXIT_DATA, "t.csv: no rows", .data = "t.csv");
}
END_TEST

START_TEST(no_row_of_a_table_is_lost)
{
    static const char *const text[] = {
        "1,2,3,4\n5,6,7,8\n",
        "\n\n1,2,3,4\n\n5,6,7,8",
        "1;2;3;4\r5;6;7;8\r",
        "1,2,3,4\r\n5,6,7,8\r\n",
        "\xef\xbb\xbf"
        "1,2,3,4\n5,6,7,8\n",
        "\xef\xbb\xbf"
        "a,b,c,d\n1,2,3,4\n5,6,7,8\n",
        "\"a\n,\",b,c,d\n1,2,3,4\n5,6,7,8\n",
        "\n\"a\",b,c,d\n\n1,2,3,4\n \n5,6,\"7\",8\n\n",
        "\"1,2,3,4\n5,6,7,8\n",
        "5\" wide,b,c,d\n\"1\",2,3,4\n\"5\",6,7,8\n",
        "1,2,3,4\n5.000000000000000000000000000000000000000000000000000000000000000000000000,6,7,"
        "8\n",
    };
    program(false);
    input[0].t = (LsTensor){.name = "x", .rank = 2, .dim = {2, 3}};
    for (size_t k = 0; k < sizeof text / sizeof text[0]; k++) {
        write_text("t.csv", text[k]);
        OPEN(.data = "t.csv");
        ck_assert_msg(d.samples == 2, "%s: %lld rows", text[k], (long long)d.samples);
        read_sample(0, 0);
        read_sample(1, 1);
        for (int i = 0; i < 3; i++)
            ck_assert(real[i] == (float)(1 + i) && real[3 + i] == (float)(5 + i));
        ck_assert(whole[0] == 4 && whole[1] == 8);
        ls_dataset_close(&d);
    }
}
END_TEST

START_TEST(no_samples_of_a_size_that_no_number_holds_are_refused)
{
    const int64_t huge[] = {0, 7, 5270498306774157605};     /* 7 times that is 3, but for 2^65 */
    char npy[512];
    program(false);
    input[0].t = (LsTensor){.name = "x", .rank = 2, .dim = {2, 3}};
    write_bytes("x.npy", npy, ls_npy_header(npy, LS_F32, 3, huge));
    REFUSED(LS_EXIT_DATA, "shape 0x7x5270498306774157605 does not fit input 'x'", .data = "x.npy");
}
END_TEST

START_TEST(text_gives_the_next_character)
{
    program(false);
    input[0].t = input[1].t = (LsTensor){.name = "x", .type = LS_DT_I64, .rank = 2, .dim = {2, 3}};
    input[1].t.name = "label";
    write_text("t.txt", "banana band");    /* blank a b d n = 0 1 2 3 4 */
    OPEN(.data = "t.txt");
    ck_assert(ls_dataset_number(&d, &(LsAlphabet){0}, &e));
    ck_assert_int_eq(d.samples, 3);
    int64_t x[6], y[6], want_x[] = {1, 4, 1}, want_y[] = {4, 1, 0};
    ck_assert(ls_dataset_read(&d, 0, 1, 1, x, &e) && ls_dataset_read(&d, 1, 1, 1, y, &e));
    ck_assert_int_eq(memcmp(x + 3, want_x, sizeof want_x), 0);
    ck_assert_int_eq(memcmp(y + 3, want_y, sizeof want_y), 0);
    const LsAlphabet known = d.alphabet;
    ls_dataset_close(&d);
    write_text("v.txt", "nab");
    REFUSED(LS_EXIT_DATA, "a sample takes 4 characters", .data = "v.txt");
    write_text("v.txt", "nabn");
    OPEN(.data = "v.txt");
    ck_assert(ls_dataset_number(&d, &known, &e));
    ck_assert(ls_dataset_read(&d, 0, 0, 0, x, &e) && ls_dataset_read(&d, 1, 0, 0, y, &e));
    ck_assert(x[0] == 4 && x[1] == 1 && x[2] == 2 && y[2] == 4);
    ls_dataset_close(&d);
    write_text("v.txt", "nabx");
    OPEN(.data = "v.txt");
    ck_assert(!ls_dataset_number(&d, &known, &e));
    ck_assert_str_eq(e.text, "v.txt: character 'x' (120) is not among the 5 that the model was "
                             "trained on");
    ls_dataset_close(&d);
    OPEN(.data = "t.txt");
    p.target.classes = 4;
    ck_assert(!ls_dataset_number(&d, &(LsAlphabet){0}, &e));
    ck_assert_str_eq(e.text, "t.txt: 5 different characters, but the model has 4 classes");
    ls_dataset_close(&d);
}
END_TEST

/* Inputs x, attention_mask, position_ids, segments and label, all 2 x 4. */
static LsInput row[5];
static void program_of_rows(void)
{
    static const char *const name[] = {"x", "attention_mask", "position_ids", "segments", "label"};
    for (uint32_t k = 0; k < 5; k++)
        row[k] = (LsInput){{.name = name[k],
                            .type = k == 3 ? LS_DT_I32 : LS_DT_I64,
                            .rank = 2,
                            .dim = {2, 4},
                            .at = {LS_AT_INPUT, k}},
                           k == 4,
                           0,
                           k == 0 ? 90 : 0};
    p = (LsProgram){.about.model = "m.onnx",
                    .real_bytes = 4,
                    .division.samples = 2,
                    .input = row,
                    .ninput = 5,
                    .segments = 4,
                    .target = {.classes = 90, .has_ignore = true, .ignore = -1}};
}

/* Input k of a row has these four numbers. */
static void row_is(uint32_t k, int64_t sample, int64_t a, int64_t b, int64_t c, int64_t last)
{
    const int64_t want[] = {a, b, c, last};
    union { int64_t wide[8]; int32_t narrow[8]; } got = {{0}};
    ck_assert_msg(ls_dataset_read(&d, k, sample, 1, &got, &e), "%s", e.text);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(k == 3 ? got.narrow[4 + i] : got.wide[4 + i], want[i]);
}

START_TEST(a_stream_of_tokens_is_read_in_windows)
{
    static const uint16_t token[] = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 90};
    program_of_rows();
    write_bytes("t.bin", token, sizeof token);
    OPEN(.data = "t.bin");
    ck_assert_int_eq(d.samples, 2);     /* tokens 8 .. 10 are too few */
    row_is(0, 1, 14, 15, 16, 17);
    row_is(1, 1, 1, 1, 1, 1);
    row_is(2, 1, 0, 1, 2, 3);
    row_is(3, 1, 0, 0, 0, 0);
    row_is(4, 1, 15, 16, 17, 18);
    ls_dataset_close(&d);
    OPEN(.data = "t.bin", .stride = 3);
    ck_assert_int_eq(d.samples, 3);
    row_is(0, 2, 16, 17, 18, 19);
    ck_assert(!ls_dataset_read(&d, 4, 2, 0, whole, &e));
    ck_assert_str_eq(e.text, "t.bin: token 10: label 90 is not one of the model's 90 classes");
    ls_dataset_close(&d);
    OPEN(.data = "t.bin", .stride = 1);
    ck_assert_int_eq(d.samples, 7);
    ls_dataset_close(&d);
    write_bytes("t.bin", token, 8);
    REFUSED(LS_EXIT_DATA, "takes 4 tokens and the one behind them, the file has 4",
            .data = "t.bin");
    REFUSED(LS_EXIT_DATA, "nothing for", .data = "x=t.bin", .raw = "uint16");   /* is no stream */
}
END_TEST

static void write_stream(uint32_t magic, uint32_t version, uint32_t said, const void *token,
                         size_t n)
{
    unsigned char bytes[1024 + 64] = {0};
    memcpy(bytes, (uint32_t[]){magic, version, said}, 12);
    memcpy(bytes + 1024, token, n);
    write_bytes("t.bin", bytes, 1024 + n);
}

START_TEST(headers_of_streams_say_what_their_tokens_are)
{
    static const uint16_t narrow[] = {1, 2, 3, 4, 5, 6};
    static const uint32_t wide[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    program_of_rows();
    write_stream(20240520, 1, 6, narrow, sizeof narrow);
    OPEN(.data = "t.bin");
    row_is(4, 0, 2, 3, 4, 5);
    ls_dataset_close(&d);
    REFUSED(LS_EXIT_USAGE, "has a header", .data = "t.bin", .raw = "uint16");
    write_stream(20240801, 7, 6, wide, 24);
    OPEN(.data = "t.bin");
    row_is(4, 0, 2, 3, 4, 5);
    ls_dataset_close(&d);
    write_stream(20240801, 1, 6, wide, 24);
    REFUSED(LS_EXIT_DATA, "t.bin: tokens of version 1; version 7 is read", .data = "t.bin");
    write_stream(20240520, 1, 7, narrow, sizeof narrow);
    REFUSED(LS_EXIT_DATA, "announces 7 tokens, 6 are there", .data = "t.bin");
    ck_assert_int_eq(truncate("t.bin", 700), 0);
    REFUSED(LS_EXIT_DATA, "the header has 1024 bytes, 700 are there", .data = "t.bin");
    write_bytes("t.bin", wide, sizeof wide);
    REFUSED(LS_EXIT_DATA, "every second token is 0", .data = "t.bin");
    OPEN(.data = "t.bin", .raw = "uint32");
    row_is(0, 1, 5, 6, 7, 8);
    ls_dataset_close(&d);
    REFUSED(LS_EXIT_USAGE, "tokens are uint16, uint32", .data = "t.bin", .raw = "float32");
    ck_assert_int_eq(truncate("t.bin", 35), 0);
    REFUSED(LS_EXIT_DATA, "35 bytes are not a multiple of the 4 of a token", .data = "t.bin",
            .raw = "uint32");
}
END_TEST

START_TEST(lines_of_samples_become_rows)
{
    program_of_rows();
    write_text("s.jsonl", "{\"input_ids\": [5, 6, 7], \"prompt_length\": 2}\n\n"
                          "{\"labels\":[3,-100],\"input_ids\":[8,9],\"text\":\"{\\\"\"}\r\n"
                          "{\"input_ids\": [1], \"attention_mask\": [1], \"score\": -1.5e3}");
    OPEN(.data = "s.jsonl");
    ck_assert_int_eq(d.samples, 3);
    row_is(0, 0, 5, 6, 7, 0);
    row_is(1, 0, 1, 1, 1, 0);
    row_is(2, 0, 0, 1, 2, 0);
    row_is(3, 0, 0, 0, 0, 1);
    row_is(4, 0, -1, 7, -1, -1);        /* the prompt's second token has no label */
    row_is(4, 1, -1, -1, -1, -1);       /* -100 of the file is what the program ignores */
    ls_dataset_close(&d);
    OPEN(.data = "s.jsonl", .pack = true);
    ck_assert_int_eq(d.samples, 2);     /* the third sample fits behind the first */
    row_is(0, 0, 5, 6, 7, 1);
    row_is(1, 0, 1, 1, 1, 1);
    row_is(2, 0, 0, 1, 2, 0);
    row_is(3, 0, 0, 0, 0, 1);
    row_is(4, 0, -1, 7, -1, -1);
    row_is(0, 1, 8, 9, 0, 0);
    row_is(2, 1, 0, 1, 0, 1);
    row_is(3, 1, 0, 0, 1, 1);
    ls_dataset_close(&d);
    write_text("s.jsonl", "{\"input_ids\": [5, 6], \"labels\": [5, 6]}\n{\"input_ids\": [1, 89]}");
    OPEN(.data = "s.jsonl", .pack = true);
    row_is(4, 0, 6, -1, 89, -1);
    ls_dataset_close(&d);
}
END_TEST

START_TEST(wrong_lines_are_refused_with_their_number)
{
    static const struct { const char *line, *why; } wrong[] = {
        {"{\"input_ids\": [1, 2, 3, 4, 5]}", "5 tokens, but a row of the program has 4"},
        {"{\"input_ids\": []}", "'input_ids' is empty"},
        {"{\"text\": \"a\"}", "no 'input_ids'"},
        {"{}", "no JSON object"},
        {"[1, 2]", "no JSON object"},
        {"{\"input_ids\": [1, 2}", "'input_ids' does not end"},
        {"{\"input_ids\": [1, 2]", "the JSON object does not end"},
        {"{\"input_ids\": [1, 2.5]}", "number 1 of 'input_ids' is no integer"},
        {"{\"input_ids\": [1, 3000000000]}", "number 1 of 'input_ids' is no integer of 32 bits"},
        {"{\"input_ids\": 7}", "'input_ids' is no list"},
        {"{\"input_ids\": [1], \"input_ids\": [2]}", "'input_ids' twice"},
        {"{\"input_ids\": [1, 2], \"labels\": [1]}", "2 tokens and 1 labels"},
        {"{\"input_ids\": [1, 2], \"attention_mask\": [1]}", "2 tokens and 1 numbers in"},
        {"{\"input_ids\": [1, 2], \"attention_mask\": [1, 0]}", "leave padding out"},
        {"{\"input_ids\": [1, 2], \"prompt_length\": 3}", "is more than the tokens"},
        {"{\"input_ids\": [1, 2], \"prompt_length\": -1}", "no integer from 0 on"},
        {"{\"input_ids\": [1], \"labels\": [1], \"prompt_length\": 1}", "one says which"},
        {"{\"input_ids\": [1]} {\"input_ids\": [2]}", "more than one JSON object"},
    };
    char text[200], want[120];
    program_of_rows();
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        snprintf(text, sizeof text, "{\"input_ids\": [1]}\n%s\n", wrong[k].line);
        snprintf(want, sizeof want, "s.jsonl:2: ");
        write_text("s.jsonl", text);
        REFUSED(LS_EXIT_DATA, want, .data = "s.jsonl");
        ck_assert_msg(strstr(e.text, wrong[k].why) != NULL, "%s: no '%s'", e.text, wrong[k].why);
    }
    write_text("s.jsonl", "\n\n{\"input_ids\": [1, 91]}");
    OPEN(.data = "s.jsonl");
    ck_assert(!ls_dataset_read(&d, 0, 0, 0, whole, &e));
    ck_assert_str_eq(e.text, "s.jsonl:3: 91 for 'x' does not lie in 0..89");
    ls_dataset_close(&d);
    write_text("s.jsonl", " \n");
    REFUSED(LS_EXIT_DATA, "s.jsonl: no samples", .data = "s.jsonl");
    p.segments = 0;
    REFUSED(LS_EXIT_USAGE, "compile it with --segments", .data = "s.jsonl", .pack = true);
    p.segments = 4, p.privacy.expected = 2;
    REFUSED(LS_EXIT_USAGE, "private training", .data = "s.jsonl", .pack = true);
    p.privacy.expected = 0, p.target.has_ignore = false;
    REFUSED(LS_EXIT_DATA, "--ignore-index -100", .data = "s.jsonl");
}
END_TEST

START_TEST(an_alphabet_comes_back_from_the_metadata_of_a_model)
{
    static unsigned char file[16 + 2 * (LS_ALPHABET_TEXT + 64)];
    LsAlphabet some = {0}, all, back;
    ls_alphabet_add(&some, 0);
    ls_alphabet_add(&some, 64);
    ls_alphabet_add(&some, 255);
    memset(&all, 0xff, sizeof all);
    const LsAlphabet *const a[] = {&some, &all};
    for (int k = 0; k < 2; k++) {
        memcpy(file, "\x08\x08\x3a\x03" "abc\x25\1\2\3\4", 12);     /* other fields before it */
        size_t n = 12 + ls_alphabet_metadata(a[k], file + 12);
        ls_alphabet_of_onnx(&back, file, n);
        ck_assert(ls_alphabet_same(&back, a[k]));
        for (size_t cut = 0; cut < n; cut++) {
            unsigned char *copy = malloc(cut + 1);      /* sanitizers see reads beyond it */
            memcpy(copy, file, cut);
            ls_alphabet_of_onnx(&back, copy, cut);
            ck_assert_int_eq(ls_alphabet_count(&back), 0);
            free(copy);
        }
    }
    static const char *const wrong[] = {"",    "1,",  ",1",  "2,1",
                                        "1,1", "256", "1 2", "99999999999999999999"};
    for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++)
        ck_assert_msg(!ls_alphabet_parse(&back, wrong[k], strlen(wrong[k])), "%s", wrong[k]);
}
END_TEST

START_TEST(raw_files_have_as_many_samples_as_bytes)
{
    float x[36];
    unsigned char label[3] = {1, 2, 3};
    for (int k = 0; k < 36; k++)
        x[k] = (float)k;
    program(false);
    write_bytes("x.bin", x, sizeof x);
    write_bytes("y.npy", "", 0);
    write_npz("y.npz", 1, (NpzItem[]){{"label", LS_U8, 1, {3}, label}});
    OPEN(.data = "x.bin,y.npz");
    read_sample(2, 0);
    ck_assert(real[0] == 24 && whole[0] == 3);
    ls_dataset_close(&d);
    write_bytes("x.bin", x, sizeof x - 4);
    REFUSED(LS_EXIT_DATA, "not a multiple of the 48", .data = "x.bin,y.npz");
    REFUSED(LS_EXIT_USAGE, "element types are", .data = "x.bin,y.npz", .raw = "float");
}
END_TEST

START_TEST(what_does_not_fit_is_refused_with_both_shapes)
{
    float x[64] = {0};
    int64_t label[4] = {0};
    program(false);
    const NpzItem l = {"label", LS_I64, 1, {4}, label};
    write_npz("a.npz", 2, (NpzItem[]){{"x", LS_F32, 4, {4, 2, 2, 3}, x}, l});
    REFUSED(LS_EXIT_DATA, "shape 4x2x2x3 does not fit input 'x', which for one batch is 2x3x2x2",
            .data = "a.npz");
    write_npz("a.npz", 2, (NpzItem[]){{"x", LS_F32, 4, {3, 3, 2, 2}, x}, l});
    REFUSED(LS_EXIT_DATA, "has 4 samples for 'label', but", .data = "a.npz");
    write_npz("a.npz", 2, (NpzItem[]){{"x", LS_F32, 4, {0, 3, 2, 2}, x},
                                      {"label", LS_I64, 1, {0}, label}});
    REFUSED(LS_EXIT_DATA, "no samples", .data = "a.npz");
    write_idx(5);
    ck_assert_int_eq(truncate("images", 60), 0);
    REFUSED(LS_EXIT_DATA, "images: truncated: 5x3x2x2 values announced, 40 are there",
            .data = "images,labels");
    write_idx(5);
    REFUSED(LS_EXIT_DATA, "nothing for the target 'label' (2); --data IMAGES,LABELS gives both",
            .data = "x=images");
    REFUSED(LS_EXIT_DATA, "--data IMAGES,LABELS gives both", .data = "images");
    REFUSED(LS_EXIT_DATA, "nothing for input 'x' (2x3x2x2); --data FILE,x=FILE gives it too",
            .data = "label=labels");
    write_npz("a.npz", 1, &(NpzItem){"x", LS_F32, 4, {4, 3, 2, 2}, x});
    REFUSED(LS_EXIT_DATA, "members: x; --data IMAGES,LABELS gives both", .data = "a.npz");
    REFUSED(LS_EXIT_DATA, "images: input 'x' has data already", .data = "x=images,x=images");
    REFUSED(LS_EXIT_DATA, "labels: no input is left for it", .data = "images,labels,labels");
    write_text("cut.npz", "nothing");
    REFUSED(LS_EXIT_DATA, "cut.npz: not a ZIP archive (truncated?)", .data = "cut.npz");
}
END_TEST

START_TEST(integers_that_index_are_checked)
{
    int64_t x[6] = {0, 1, 2, 3, 4, 5}, label[2] = {0, 0};
    program(false);
    input[0] = (LsInput){{.name = "x", .type = LS_DT_I64, .rank = 2, .dim = {2, 3}},
                         false,
                         -1,
                         5,
                         LS_USUAL_NONE};
    write_npz("a.npz", 2,
              (NpzItem[]){{"x", LS_I64, 2, {2, 3}, x}, {"label", LS_I64, 1, {2}, label}});
    OPEN(.data = "a.npz");
    ck_assert(ls_dataset_read(&d, 0, 0, 0, whole, &e));
    ck_assert(!ls_dataset_read(&d, 0, 1, 0, whole, &e));
    ck_assert_msg(strstr(e.text, "a.npz: sample 1: 5 for 'x' does not lie in -1..4") != NULL, "%s",
                  e.text);
    ls_dataset_close(&d);
}
END_TEST

/* Masks and positions of tokens: every sample has them, whatever the data are made of. */
static void expect_usual(LsUsual usual, const int64_t want[6])
{
    const int64_t x[6] = {7, 8, 9, 4, 5, 6}, label[3] = {1, 2, 3};
    program(false);
    input[0] = (LsInput){{.name = "x", .type = LS_DT_I64, .rank = 2, .dim = {2, 3}},
                         false,
                         0,
                         0,
                         usual};
    write_npz("a.npz", 1, (NpzItem[]){{"label", LS_I64, 1, {3}, label}});
    for (int made = 0; made < 2; made++) {
        OPEN(.data = made ? "synthetic:3" : "a.npz");
        ck_assert_int_eq(d.samples, 3);
        for (int place = 0; place < 2; place++)
            ck_assert(ls_dataset_read(&d, 0, place + 1, place, whole, &e));
        ck_assert_mem_eq(whole, want, 6 * sizeof *want);
        ls_dataset_close(&d);
    }
    write_npz("a.npz", 2,
              (NpzItem[]){{"x", LS_I64, 2, {2, 3}, x}, {"label", LS_I64, 1, {2}, label}});
    OPEN(.data = "a.npz");
    ck_assert(ls_dataset_read(&d, 0, 0, 0, whole, &e) && whole[2] == 9);
    ls_dataset_close(&d);
    input[0].usual = LS_USUAL_NONE;
    write_npz("a.npz", 1, (NpzItem[]){{"label", LS_I64, 1, {3}, label}});
    REFUSED(LS_EXIT_DATA, "nothing for input 'x'", .data = "a.npz");
}

START_TEST(inputs_that_data_lack_have_ones)
{
    expect_usual(LS_USUAL_ONES, (int64_t[]){1, 1, 1, 1, 1, 1});
}
END_TEST

START_TEST(masks_that_are_only_counted_have_their_ones_first)
{
    const int64_t x[6] = {1, 1, 0, 0, 1, 1}, label[2] = {1, 2};
    expect_usual(LS_USUAL_LENGTH, (int64_t[]){1, 1, 1, 1, 1, 1});
    write_npz("a.npz", 2,
              (NpzItem[]){{"x", LS_I64, 2, {2, 3}, x}, {"label", LS_I64, 1, {2}, label}});
    input[0].usual = LS_USUAL_LENGTH;
    OPEN(.data = "a.npz");
    ck_assert(ls_dataset_read(&d, 0, 0, 0, whole, &e));
    ck_assert(!ls_dataset_read(&d, 0, 1, 0, whole, &e));
    ck_assert_int_eq(e.code, LS_EXIT_DATA);
    ck_assert_msg(strstr(e.text, "sample 1: 'x' hides tokens before element 1") != NULL, "%s",
                  e.text);
    ls_dataset_close(&d);
}
END_TEST

START_TEST(inputs_that_data_lack_count)
{
    expect_usual(LS_USUAL_COUNT, (int64_t[]){0, 1, 2, 0, 1, 2});
}
END_TEST

START_TEST(integers_that_do_not_fit_32_bits_are_refused)
{
    enum { N = 8 };
    const int64_t x[N] = {INT32_MAX, INT32_MIN, (int64_t)INT32_MAX + 1, (int64_t)INT32_MIN - 1,
                          (int64_t)1 << 32, -1, INT64_MAX, INT64_MIN};
    const uint32_t unsigned_x[2] = {UINT32_MAX, 7};
    const int64_t label[N] = {0};
    int32_t got[2];
    char told[100];
    program(false);
    input[0] = (LsInput){.t = {.name = "x", .type = LS_DT_I32, .rank = 1, .dim = {2}}};
    write_npz("a.npz", 2, (NpzItem[]){{"x", LS_I64, 1, {N}, x}, {"label", LS_I64, 1, {N}, label}});
    OPEN(.data = "a.npz");
    for (int k = 0; k < N; k++) {
        e = (LsError){0};
        bool fits = x[k] >= INT32_MIN && x[k] <= INT32_MAX;
        ck_assert_int_eq(ls_dataset_read(&d, 0, k, 1, got, &e), fits);
        snprintf(told, sizeof told, "a.npz: sample %d: %lld does not fit 32 bits", k,
                 (long long)x[k]);
        ck_assert_str_eq(e.text, fits ? "" : told);
        ck_assert(!fits || got[1] == x[k]);
    }
    ls_dataset_close(&d);
    write_npz("a.npz", 2,
              (NpzItem[]){{"x", LS_U32, 1, {2}, unsigned_x}, {"label", LS_I64, 1, {2}, label}});
    OPEN(.data = "a.npz");
    ck_assert(!ls_dataset_read(&d, 0, 0, 0, got, &e) && e.code == LS_EXIT_DATA);
    ls_dataset_close(&d);
    program(false);                 /* the same for a target without other bounds */
    input[1].t.type = LS_DT_I32;
    p.target.classes = 0;
    float image[24] = {0};
    write_npz("a.npz", 2, (NpzItem[]){{"x", LS_F32, 4, {2, 3, 2, 2}, image},
                                      {"label", LS_I64, 1, {2}, x + 2}});
    OPEN(.data = "a.npz");
    e = (LsError){0};
    ck_assert(!ls_dataset_read(&d, 1, 0, 0, got, &e) && e.code == LS_EXIT_DATA);
    ls_dataset_close(&d);
}
END_TEST

START_TEST(real_mnist_files_are_read)
{
    program(false);
    if (access(LS_SHARED "/inputs/mnist/t10k-images-idx3-ubyte.gz", R_OK) != 0) {
        printf("skipped: no MNIST files\n");
        return;
    }
    ck_assert_int_eq(system("gunzip -c " LS_SHARED "/inputs/mnist/t10k-images-idx3-ubyte.gz > i && "
                            "gunzip -c " LS_SHARED "/inputs/mnist/t10k-labels-idx1-ubyte.gz > l"),
                     0);
    static float image[1568];
    input[0].t = (LsTensor){.name = "x", .channels_last = true, .rank = 4, .dim = {2, 1, 28, 28}};
    OPEN(.data = "i,l");
    ck_assert_int_eq(d.samples, 10000);
    ck_assert(ls_dataset_read(&d, 0, 9999, 0, image, &e) &&
              ls_dataset_read(&d, 1, 0, 0, whole, &e));
    ck_assert_int_eq(whole[0], 7);      /* the first test digit */
    double sum = 0;
    for (int k = 0; k < 784; k++)
        sum += image[k];
    ck_assert(sum > 20 && sum < 400);
    ls_dataset_close(&d);
}
END_TEST

START_TEST(synthetic_samples_depend_on_seed_and_number_only)
{
    float again[12];
    program(true);
    OPEN(.data = "synthetic:7", .seed = 3);
    ck_assert_int_eq(d.samples, 7);
    read_sample(5, 0);
    memcpy(again, real, sizeof again);
    int64_t label = whole[0];
    ck_assert(label >= 0 && label < 10);
    for (int i = 0; i < 12; i++) {      /* samples one by one equal many at once */
        bool found = false;             /* at some place: channels lie last there */
        for (int k = 0; k < 12; k++)
            found |= again[k] == (float)ls_synthetic_value(&d, 0, 5, i);
        ck_assert(found);
    }
    ls_dataset_close(&d);
    OPEN(.data = "synthetic", .seed = 3);
    read_sample(5, 0);
    ck_assert_int_eq(memcmp(again, real, sizeof again), 0);
    ck_assert_int_eq(label, whole[0]);
    ls_dataset_close(&d);
}
END_TEST

START_TEST(synthetic_segments_show_in_image_and_target)
{
    static float image[2 * 3 * 16 * 16];
    static int64_t mask[2 * 16 * 16];
    int64_t inside = 0;
    double bright[2] = {0}, n[2] = {0};
    program(false);
    p.target.classes = 2;
    input[0].t = (LsTensor){.name = "x", .rank = 4, .dim = {2, 3, 16, 16}};
    input[1].t = (LsTensor){.name = "label", .type = LS_DT_I64, .rank = 3, .dim = {2, 16, 16}};
    OPEN(.data = "synthetic:8");
    for (int64_t s = 0; s < 8; s++) {
        ck_assert(ls_dataset_read(&d, 0, s, 0, image, &e) &&
                  ls_dataset_read(&d, 1, s, 0, mask, &e));
        for (int k = 0; k < 256; k++) {
            inside += mask[k];
            bright[mask[k]] += image[k];
            n[mask[k]]++;
        }
    }
    ck_assert(inside > 100 && inside < 1500);
    ck_assert_double_gt(bright[1] / n[1], bright[0] / n[0] + 0.15);
    ls_dataset_close(&d);
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        idx_bytes_are_scaled_and_labels_are_not,
        channels_last_inputs_are_transposed_on_the_way,
        mean_and_std_are_per_channel,
        doubles_keep_what_floats_lose,
        members_of_16_bits_are_inputs_and_labels,
        npz_members_are_found_by_name_and_then_by_in_name,
        one_number_stands_for_a_whole_target,
        an_input_can_be_its_own_target,
        several_rows_may_belong_to_one_sample,
        tables_give_the_inputs_column_by_column,
        lines_of_a_table_are_counted_as_an_editor_does,
        no_row_of_a_table_is_lost,
        no_samples_of_a_size_that_no_number_holds_are_refused,
        text_gives_the_next_character,
        a_stream_of_tokens_is_read_in_windows,
        headers_of_streams_say_what_their_tokens_are,
        lines_of_samples_become_rows,
        wrong_lines_are_refused_with_their_number,
        an_alphabet_comes_back_from_the_metadata_of_a_model,
        raw_files_have_as_many_samples_as_bytes,
        what_does_not_fit_is_refused_with_both_shapes,
        integers_that_index_are_checked,
        inputs_that_data_lack_have_ones,
        inputs_that_data_lack_count,
        masks_that_are_only_counted_have_their_ones_first,
        integers_that_do_not_fit_32_bits_are_refused,
        real_mnist_files_are_read,
        synthetic_samples_depend_on_seed_and_number_only,
        synthetic_segments_show_in_image_and_target,
    };
    return run_in_folder("dataset", sizeof test / sizeof test[0], test);
}
