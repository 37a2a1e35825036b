/* tests/dataset/test_pictures.c -- files of pictures of every kind have the pixels that were
 * written; sizes are those of an independent resampling in doubles. */
#include "dataset/picture.h"
#include "tests/support/picture_files.h"
#include "tests/support/suite.h"

#include <math.h>
#include <unistd.h>

static LsError e;

static void enter_folder(void)
{
    char dir[] = "/tmp/ls_picturesXXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
}

static bool read_file(LsPicture *p, const char *path, int channels)
{
    LsFile f;
    e = (LsError){0};
    ck_assert_msg(ls_file_map(&f, path, &e), "%s", e.text);
    const bool ok = ls_picture_read(p, &f, channels, &e);
    ls_file_unmap(&f);
    return ok;
}

static LsPicture read_well(const char *path, int channels, int w, int h)
{
    LsPicture p;
    ck_assert_msg(read_file(&p, path, channels), "%s", e.text);
    ck_assert_int_eq(p.width, w);
    ck_assert_int_eq(p.height, h);
    ck_assert_int_eq(p.channels, channels);
    return p;
}

enum { W = 16, H = 12, SEED = 1 };

/* A pixel's channels as `want` gives them, up to `slack`. */
static void has_pixels(const char *path, int channels, int slack, int (*want)(int x, int y, int c))
{
    LsPicture p = read_well(path, channels, W, H);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < channels; c++) {
                const int v = p.data[(y * W + x) * channels + c], w = want(x, y, c);
                ck_assert_msg(abs(v - w) <= slack, "%s: (%d, %d) channel %d is %d, not %d", path, x,
                              y, c, v, w);
            }
    ls_picture_free(&p);
}

static int colour(int x, int y, int c) { return pixel(x, y, c, SEED); }
static int first(int x, int y, int c) { return (void)c, pixel(x, y, 0, SEED); }
static int bit(int x, int y, int c) { return (void)c, pixel(x, y, 0, SEED) & 1 ? 255 : 0; }
/* 256 v + 0x90 of 65535 */
static int of16(int x, int y, int c)
{
    return (int)((pixel(x, y, c, SEED) * 256 + 0x90) * 255.0 / 65535 + 0.5);
}
static int grey16(int x, int y, int c) { return (void)c, of16(x, y, 0); }
static int paletted(int x, int y, int c)
{
    const int k = pixel(x, y, 0, SEED) & 15;
    return c == 0 ? k : c == 1 ? 2 * k : 255 - k;
}
static int luma(int x, int y, int c)
{
    (void)c;
    return (int)(0.299 * pixel(x, y, 0, SEED) + 0.587 * pixel(x, y, 1, SEED)
                 + 0.114 * pixel(x, y, 2, SEED) + 0.5);
}

START_TEST(png_files_have_their_pixels)
{
    enter_folder();
    const struct { int type, depth, channels; int (*want)(int, int, int); int slack; } row[] = {
        {PNG_COLOR_TYPE_RGB, 8, 3, colour, 0},       {PNG_COLOR_TYPE_RGBA, 8, 3, colour, 0},
        {PNG_COLOR_TYPE_RGB, 16, 3, of16, 0},        {PNG_COLOR_TYPE_GRAY, 8, 3, first, 0},
        {PNG_COLOR_TYPE_GRAY, 8, 1, first, 0},       {PNG_COLOR_TYPE_GRAY, 16, 1, grey16, 0},
        {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 1, first, 0}, {PNG_COLOR_TYPE_GRAY, 1, 3, bit, 0},
        {PNG_COLOR_TYPE_PALETTE, 8, 3, paletted, 0}, {PNG_COLOR_TYPE_PALETTE, 4, 3, paletted, 0},
        {PNG_COLOR_TYPE_RGB, 8, 1, luma, 1},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        write_png("p.png", row[k].type, row[k].depth, W, H, SEED);
        has_pixels("p.png", row[k].channels, row[k].slack, row[k].want);
    }
}
END_TEST

/* K is 0 there, so that the three channels of an Adobe file are red, green and blue. */
START_TEST(jpeg_files_have_nearly_their_pixels)
{
    enter_folder();
    write_jpeg("p.jpg", JCS_RGB, 0, W, H, SEED, 0, 0);
    has_pixels("p.jpg", 3, 4, colour);
    has_pixels("p.jpg", 1, 4, luma);
    write_jpeg("p.jpg", JCS_GRAYSCALE, 0, W, H, SEED, 0, 0);
    has_pixels("p.jpg", 3, 3, first);
    write_jpeg("p.jpg", JCS_CMYK, 0, W, H, SEED, 0, 0);
    has_pixels("p.jpg", 3, 4, colour);
    write_jpeg("p.jpg", JCS_CMYK, 1, W, H, SEED, 0, 0);
    has_pixels("p.jpg", 3, 6, colour);
}
END_TEST

/* Where pixel (x, y) of the upright picture is stored, for the eight orientations of TIFF 6.0: what
 * the stored row 0 and column 0 are. */
static void stored_at(int orientation, int x, int y, int w, int h, int *sx, int *sy)
{
    const int right = w - 1 - x, down = h - 1 - y;
    const int column[] = {x, right, right, x, y, y, down, down},
              row[] = {y, y, down, down, x, right, right, x};
    *sx = column[orientation - 1];
    *sy = row[orientation - 1];
}

START_TEST(orientations_are_turned_upright)
{
    enter_folder();
    for (int o = 1; o <= 8; o++)
        for (int big = 0; big < 2; big++) {
            const int w = o < 5 ? W : H, h = o < 5 ? H : W;
            write_jpeg("p.jpg", JCS_RGB, 0, W, H, SEED, o, big);
            LsPicture p = read_well("p.jpg", 3, w, h);
            for (int y = 0; y < h; y++)
                for (int x = 0; x < w; x++) {
                    int sx, sy;
                    stored_at(o, x, y, w, h, &sx, &sy);
                    const int v = p.data[(y * w + x) * 3], want = pixel(sx, sy, 0, SEED);
                    ck_assert_msg(abs(v - want) <= 4, "orientation %d, (%d, %d): %d, not %d", o, x,
                                  y, v, want);
                }
            ls_picture_free(&p);
        }
}
END_TEST

/* Every beginning of a file is refused with a reason, but for PNG's and JPEG's last marks. */
static void truncate_file(const char *path, size_t spare)
{
    LsFile f;
    ck_assert(ls_file_map(&f, path, &e));
    for (size_t n = 0; n < f.size; n++) {
        unsigned char *copy = malloc(n + 1);
        LsFile part = {path, copy, n};
        LsPicture p;
        e = (LsError){0};
        memcpy(copy, f.data, n);
        const bool ok = ls_picture_read(&p, &part, 3, &e);
        ck_assert_msg(!ok || n + spare >= f.size, "%s: %zu of %zu bytes are taken for all", path, n,
                      f.size);
        ck_assert_msg(ok || (e.code == LS_EXIT_DATA && strstr(e.text, path)), "%zu: %s", n, e.text);
        if (ok)
            ls_picture_free(&p);
        free(copy);
    }
    ls_file_unmap(&f);
}

START_TEST(truncated_files_are_refused)
{
    enter_folder();
    write_png("p.png", PNG_COLOR_TYPE_RGB, 8, W, H, SEED);
    truncate_file("p.png", 0);
    write_jpeg("p.jpg", JCS_RGB, 0, W, H, SEED, 0, 0);
    truncate_file("p.jpg", 2);
}
END_TEST

/* ---- sizes ---- */

/* The weight of input i for output k: a triangle two outputs wide, or two inputs where the side
 * grows. */
static double weight(int i, int k, int in, int out)
{
    const double scale = (double)in / out, wide = scale > 1 ? scale : 1;
    const double d = fabs(i + 0.5 - (k + 0.5) * scale) / wide;
    return d < 1 ? 1 - d : 0;
}

static double resampled(const LsPicture *p, int x, int y, int c, int w, int h)
{
    double sum = 0, all = 0;
    for (int j = 0; j < p->height; j++)
        for (int i = 0; i < p->width; i++) {
            const double v = weight(i, x, p->width, w) * weight(j, y, p->height, h);
            sum += v * p->data[(j * p->width + i) * p->channels + c];
            all += v;
        }
    return sum / all;
}

static LsPicture noise(int w, int h, int channels, unsigned seed)
{
    LsPicture p;
    ck_assert(ls_picture_room(&p, "noise", w, h, channels, &e));
    for (int k = 0; k < w * h * channels; k++)
        p.data[k] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
    return p;
}

START_TEST(bilinear_sizes_are_those_of_triangles)
{
    const int size[][4] = {{40, 30, 16, 16}, {7, 9, 20, 13}, {64, 5, 9, 5}, {5, 64, 5, 9},
                           {31, 33, 30, 34}, {3, 3, 1, 1}};
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        const int *s = size[k];
        LsPicture p = noise(s[0], s[1], 3, (unsigned)k), q = noise(s[0], s[1], 3, (unsigned)k);
        ck_assert(ls_picture_resize(&p, s[2], s[3], false, "noise", &e));
        for (int y = 0; y < s[3]; y++)
            for (int x = 0; x < s[2]; x++)
                for (int c = 0; c < 3; c++) {
                    const double v = p.data[(y * s[2] + x) * 3 + c],
                                 want = resampled(&q, x, y, c, s[2], s[3]);
                    /* two roundings to bytes */
                    ck_assert_msg(fabs(v - want) <= 1.01, "case %zu: %g, not %g", k, v, want);
                }
        ls_picture_free(&p);
        ls_picture_free(&q);
    }
}
END_TEST

START_TEST(nearest_sizes_take_the_pixel_in_the_middle)
{
    LsPicture p = noise(10, 7, 1, 3), q = noise(10, 7, 1, 3);
    ck_assert(ls_picture_resize(&p, 4, 9, true, "noise", &e));
    for (int y = 0; y < 9; y++)
        for (int x = 0; x < 4; x++)
            ck_assert_int_eq(p.data[y * 4 + x],
                             q.data[(int)((y + 0.5) * 7 / 9) * 10 + (int)((x + 0.5) * 10 / 4)]);
    ls_picture_free(&p);
    ls_picture_free(&q);
}
END_TEST

/* Python's round(room / 2): a half goes to the even side. */
START_TEST(the_centre_is_torchvisions)
{
    static const int left[] = {0, 0, 1, 2, 2, 2, 3, 4};
    for (int room = 0; room < 8; room++) {
        LsPicture p = noise(3 + room, 2, 1, 5), q = noise(3 + room, 2, 1, 5);
        ls_picture_crop(&p, 3, 2);
        for (int k = 0; k < 6; k++)
            ck_assert_int_eq(p.data[k], q.data[k / 3 * (3 + room) + left[room] + k % 3]);
        ls_picture_free(&p);
        ls_picture_free(&q);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pictures");
    const TTest *const tests[] = {
        png_files_have_their_pixels, jpeg_files_have_nearly_their_pixels,
        orientations_are_turned_upright, truncated_files_are_refused,
        bilinear_sizes_are_those_of_triangles, nearest_sizes_take_the_pixel_in_the_middle,
        the_centre_is_torchvisions};
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("pictures", tc);
}
