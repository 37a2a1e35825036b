/* tests/runtime/test_image_grid.c -- pictures of a model's inputs and outputs. */
#include "tests/support/npz_util.h"
#include "runtime/base/checksum.h"
#include "runtime/watch/image_grid.h"
#include "runtime/base/png_write.h"

#include <string.h>
#include <unistd.h>
#include <zlib.h>

static LsError e;

static uint32_t be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Decodes with zlib; returns pixels without the filter bytes. */
static unsigned char *decode(const char *path, int64_t *width, int64_t *height)
{
    static unsigned char raw[1 << 22], *rgb;
    LsFile f;
    uLongf n = sizeof raw;
    ck_assert_msg(ls_file_map(&f, path, &e), "%s", e.text);
    ck_assert_int_eq(memcmp(f.data, "\x89PNG\r\n\x1a\n", 8), 0);
    for (size_t at = 8; at < f.size;) {
        uint32_t len = be32(f.data + at);
        const unsigned char *chunk = f.data + at + 4;
        ck_assert_uint_eq(be32(chunk + 4 + len), crc32(0, chunk, len + 4));
        if (memcmp(chunk, "IHDR", 4) == 0) {
            *width = be32(chunk + 4);
            *height = be32(chunk + 8);
        } else if (memcmp(chunk, "IDAT", 4) == 0) {
            ck_assert_int_eq(uncompress(raw, &n, chunk + 4, len), Z_OK);
        }
        at += len + 12;
    }
    ls_file_unmap(&f);
    size_t line = (size_t)*width * 3;
    ck_assert_uint_eq(n, (line + 1) * (size_t)*height);
    rgb = malloc(line * (size_t)*height);
    for (int64_t y = 0; y < *height; y++)
        memcpy(rgb + (size_t)y * line, raw + (size_t)y * (line + 1) + 1, line);
    return rgb;
}

START_TEST(our_sums_are_zlibs)
{
    unsigned char data[1000];
    for (int k = 0; k < 1000; k++)
        data[k] = (unsigned char)(k * k >> 3);
    ck_assert_uint_eq(ls_crc32(ls_crc32(0, data, 400), data + 400, 600), crc32(0, data, 1000));
    ck_assert_uint_eq(ls_adler32(1, data, 1000), adler32(1, data, 1000));
}
END_TEST

START_TEST(a_picture_survives_the_way_through_png)
{
    enum { W = 37, H = 11 };
    unsigned char rgb[W * H * 3];
    int64_t width, height;
    for (size_t k = 0; k < sizeof rgb; k++)
        rgb[k] = (unsigned char)(k * 7);
    ck_assert(ls_picture_write("a.png", rgb, W, H, &e));
    unsigned char *back = decode("a.png", &width, &height);
    ck_assert(width == W && height == H && memcmp(back, rgb, sizeof rgb) == 0);
    free(back);
    LsFile f;
    ck_assert(ls_picture_write("a.ppm", rgb, W, H, &e) && ls_file_map(&f, "a.ppm", &e));
    ck_assert_int_eq(memcmp(f.data, "P6\n37 11\n255\n", 13), 0);
    ck_assert_int_eq(memcmp(f.data + 13, rgb, sizeof rgb), 0);
    ls_file_unmap(&f);
}
END_TEST

/* An "autoencoder": code = the first four pixels, output = 1 - input. Batch 2, images 1x8x8. */
static void invert(LsRun *run, void *const arg[])
{
    const float *x = arg[0];
    float *y = arg[1];
    (void)run;
    for (int k = 0; k < 128; k++)
        y[k] = 1 - x[k];
}

static void encode(LsRun *run, void *const arg[])
{
    const float *x = arg[0];
    float *code = arg[1];
    (void)run;
    for (int k = 0; k < 8; k++)
        code[k] = x[k / 4 * 64 + k % 4];
}

static void check_grid(uint32_t nwatch, const char *code)
{
    static const LsInput input[] = {{{.name = "x", .rank = 4, .dim = {2, 1, 8, 8},
                                      .at = {LS_AT_INPUT, 0}}, false, 0, 0, LS_USUAL_NONE}};
    static const LsAddress address[] = {{LS_AT_INPUT, 0}, {LS_AT_ARENA, 0}, {LS_AT_INPUT, 0},
                                        {LS_AT_ARENA, 64}};
    static const int64_t count[] = {8, 128};
    static const uint8_t type[2] = {LS_DT_REAL};
    static const LsStep step[] = {
        {.run = encode, .narg = 2, .nin = 1, .nout = 1, .name = "h"},
        {.run = invert, .narg = 2, .nin = 1, .nout = 1, .arg = 2, .count = 1, .name = "y"},
    };
    const LsWatch watch[] = {
        {{.name = "y", .rank = 4, .dim = {2, 1, 8, 8}, .at = {LS_AT_ARENA, 64}},
         "out/y",
         1,
         false,
         0},
        {{.name = "h", .rank = 2, .dim = {2, 4}, .at = {LS_AT_ARENA, 0}}, code, 0, false, 0},
    };
    const LsProgram p = {.about.model = "m",
                         .real_bytes = 4,
                         .division.samples = 2,
                         .input = input,
                         .ninput = 1,
                         .argument.address = address,
                         .argument.count = count,
                         .argument.type = type,
                         .bytes.arena = 576,
                         .phase.eval = {step, 2, watch, nwatch, {0}, 0, 0, NULL, NULL, {0}}};
    float x[3 * 64];
    LsMemory m;
    LsEngine g;
    LsLoader l;
    LsDataset d;
    int64_t width, height;
    for (int k = 0; k < 3 * 64; k++)
        x[k] = (float)(k % 64) / 63;
    write_npz("a.npz", 1, (NpzItem[]){{"x", LS_F32, 3, {3, 8, 8}, x}});
    ck_assert(ls_dataset_open(&d, &p, &(LsDataOptions){.data = "a.npz"}, &e));
    ck_assert(ls_memory_open(&m, &p, &e) && ls_engine_open(&g, &p, &m, &e));
    ck_assert(ls_loader_open(&l, &p, 1, &e));
    ck_assert_msg(ls_grid_write(&g, &l, &d, "g.png", &e), "%s", e.text);
    unsigned char *rgb = decode("g.png", &width, &height);
    ck_assert(width == 4 + 3 * 100 && height == 4 + 3 * 100);
    for (int column = 0; column < 3; column++) {
        size_t left = (size_t)(4 + column * 100 + 95) * 3;
        ck_assert_int_eq(rgb[(4 + 95) * width * 3 + (int64_t)left],
                         255); /* last pixel of the input */
        ck_assert_int_eq(rgb[(104 + 95) * width * 3 + (int64_t)left],
                         255);                                            /* greatest of the code */
        ck_assert_int_eq(rgb[(204 + 95) * width * 3 + (int64_t)left], 0); /* last of the output */
    }
    free(rgb);
    ls_loader_close(&l);
    ls_engine_close(&g);
    ls_memory_close(&m);
    ls_dataset_close(&d);
}

START_TEST(a_grid_shows_input_code_and_output) { check_grid(2, "code/h"); }
END_TEST

START_TEST(a_code_that_is_an_output_is_shown_once_above_the_reconstruction)
{
    check_grid(2, "out/h");
}
END_TEST

START_TEST(a_code_that_is_no_output_is_found) { check_grid(1, "code/h"); }
END_TEST

/* Scores of five classes for every pixel, whose greatest is that of class (pixel mod 5). */
static void score(LsRun *run, void *const arg[])
{
    float *y = arg[1];
    (void)run;
    for (int k = 0; k < 2 * 5 * 16; k++)
        y[k] = k / 16 % 5 == k % 16 % 5 ? 2 : 1;
}

/* Writes a picture of two samples of an input with these channels, whose values are all the
 * same. */
static bool draw_scores(int channels, const char *path)
{
    const LsInput input[] = {{{.name = "x", .rank = 4, .dim = {2, channels, 4, 4},
                               .at = {LS_AT_INPUT, 0}}, false, 0, 0, LS_USUAL_NONE}};
    static const LsAddress address[] = {{LS_AT_INPUT, 0}, {LS_AT_ARENA, 0}};
    static const int64_t count[] = {160};
    static const uint8_t type[1] = {LS_DT_REAL};
    static const LsStep step[] = {{.run = score, .narg = 2, .nin = 1, .nout = 1, .name = "y"}};
    static const LsWatch watch[] = {{{.name = "y", .rank = 4, .dim = {2, 5, 4, 4},
                                      .at = {LS_AT_ARENA, 0}}, "out/y", 0, false, 0}};
    const LsProgram p = {.about.model = "m", .real_bytes = 4, .division.samples = 2,
                         .input = input, .ninput = 1,
                         .argument = {.address = address, .count = count, .type = type},
                         .bytes.arena = 640,
                         .phase.eval = {step, 1, watch, 1, {0}, 0, 0, NULL, NULL, {0}}};
    const float x[64] = {[0 ... 63] = 7};
    LsMemory m;
    LsEngine g;
    LsLoader l;
    LsDataset d;
    e = (LsError){0};
    write_npz("s.npz", 1, (NpzItem[]){{"x", LS_F32, 4, {2, channels, 4, 4}, x}});
    ck_assert_msg(ls_dataset_open(&d, &p, &(LsDataOptions){.data = "s.npz"}, &e), "%s", e.text);
    ck_assert(ls_memory_open(&m, &p, &e) && ls_engine_open(&g, &p, &m, &e));
    ck_assert(ls_loader_open(&l, &p, 1, &e));
    const bool ok = ls_grid_write(&g, &l, &d, path, &e);
    ls_loader_close(&l);
    ls_engine_close(&g);
    ls_memory_close(&m);
    ls_dataset_close(&d);
    return ok;
}

START_TEST(scores_are_shown_as_the_class_of_the_greatest)
{
    int64_t width, height;
    ck_assert_msg(draw_scores(1, "s.png"), "%s", e.text);
    unsigned char *rgb = decode("s.png", &width, &height);
    ck_assert(width == 4 + 2 * 100 && height == 4 + 2 * 100);
    for (int k = 0; k < 16; k++) {
        const int64_t x = 4 + k % 4 * 24 + 12, y = 4 + k / 4 * 24 + 12;
        ck_assert_int_eq(rgb[(y * width + x) * 3], 0);          /* of one value: black */
        ck_assert_int_eq(rgb[((y + 100) * width + x) * 3], 255 * (k % 5) / 4);
    }
    free(rgb);
}
END_TEST

START_TEST(a_model_without_images_has_no_picture)
{
    ck_assert(!draw_scores(2, "none.png"));
    ck_assert_int_eq(e.code, LS_EXIT_FAIL);
    ck_assert_str_eq(e.text, "none.png: the model has no input that is an image");
    ck_assert(access("none.png", F_OK) != 0);
}
END_TEST

int main(void)
{
    const TTest *test[] = {our_sums_are_zlibs, a_picture_survives_the_way_through_png,
                           a_grid_shows_input_code_and_output, a_code_that_is_no_output_is_found,
                           a_code_that_is_an_output_is_shown_once_above_the_reconstruction,
                           scores_are_shown_as_the_class_of_the_greatest,
                           a_model_without_images_has_no_picture};
    return run_in_folder("grid", sizeof test / sizeof test[0], test);
}
