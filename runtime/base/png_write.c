/* runtime/base/png_write.c -- see png_write.h. PNG: ISO 15948; one IDAT chunk, a zlib stream of
 * stored blocks. */
#include "runtime/base/png_write.h"
#include "runtime/base/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct LsPng { LsOut out; uint32_t crc; } LsPng;

static void put(LsPng *g, const void *data, size_t n)
{
    g->crc = ls_crc32(g->crc, data, n);
    ls_out_write(&g->out, data, n);
}

static void put32(LsPng *g, uint32_t v)
{
    unsigned char b[4] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
                          (unsigned char)(v >> 8), (unsigned char)v};
    put(g, b, 4);
}

static void begin_chunk(LsPng *g, const char *type, size_t bytes)
{
    put32(g, (uint32_t)bytes);
    g->crc = 0;
    put(g, type, 4);
}

static void end_chunk(LsPng *g) { put32(g, g->crc); }

/* One stored block per row of the image: filter byte 0, then the pixels. */
static void put_lines(LsPng *g, const unsigned char *pixels, size_t line, int64_t height)
{
    uint32_t sum = 1;
    put(g, "\x78\x01", 2);
    for (int64_t y = 0; y < height; y++) {
        size_t n = line + 1;
        unsigned char head[6] = {y == height - 1, (unsigned char)n, (unsigned char)(n >> 8),
                                 (unsigned char)~n, (unsigned char)(~n >> 8), 0};
        put(g, head, 6);
        put(g, pixels + (size_t)y * line, line);
        sum = ls_adler32(ls_adler32(sum, head + 5, 1), pixels + (size_t)y * line, line);
    }
    put32(g, sum);
}

/* The colour of class c: each of its bits moves one colour far, the lowest ones farthest, so that
 * classes with near numbers look unlike. Class 0 is black. This is the palette of the VOC data. */
static void put_palette(LsPng *g)
{
    begin_chunk(g, "PLTE", 3 * 256);
    for (int c = 0; c < 256; c++) {
        unsigned char rgb[3] = {0};
        for (int bit = 0; bit < 8; bit++)
            rgb[bit % 3] |= (unsigned char)((c >> bit & 1) << (7 - bit / 3));
        put(g, rgb, 3);
    }
    end_chunk(g);
}

static void write_png(LsPng *g, const unsigned char *pixels, LsPngKind kind, int64_t width,
                      int64_t height)
{
    static const unsigned char colour[] = {[LS_PNG_RGB] = 2, [LS_PNG_GREY] = 0,
                                           [LS_PNG_CLASSES] = 3};
    const unsigned char form[5] = {8, colour[kind]};    /* bits, colours */
    size_t line = (size_t)width * (kind == LS_PNG_RGB ? 3 : 1);
    put(g, "\x89PNG\r\n\x1a\n", 8);
    begin_chunk(g, "IHDR", 13);
    put32(g, (uint32_t)width);
    put32(g, (uint32_t)height);
    put(g, form, sizeof form);
    end_chunk(g);
    if (kind == LS_PNG_CLASSES)
        put_palette(g);
    begin_chunk(g, "IDAT", 2 + (size_t)height * (line + 6) + 4);
    put_lines(g, pixels, line, height);
    end_chunk(g);
    begin_chunk(g, "IEND", 0);
    end_chunk(g);
}

/* A row is one stored block, of at most 65535 bytes. */
static bool check_size(const char *path, int64_t width, int64_t height, LsError *e)
{
    return (width > 0 && width <= 21000 && height > 0 && height <= 21000)
           || ls_fail(e, LS_EXIT_FAIL,
                      "%s: a picture of %" PRId64 " x %" PRId64 " is too large", path, width,
                      height);
}

bool ls_png_write(const char *path, const unsigned char *pixels, LsPngKind kind, int64_t width,
                  int64_t height, LsError *e)
{
    LsPng g = {.crc = 0};
    if (!check_size(path, width, height, e) || !ls_out_open(&g.out, path, e))
        return false;
    g.out.quick = true;
    write_png(&g, pixels, kind, width, height);
    return ls_out_commit(&g.out, e);
}

bool ls_picture_write(const char *path, const unsigned char *rgb, int64_t width, int64_t height,
                      LsError *e)
{
    LsPng g = {.crc = 0};
    char head[64];
    size_t n = strlen(path);
    bool ppm = n >= 4 && strcmp(path + n - 4, ".ppm") == 0;
    if (!check_size(path, width, height, e) || !ls_out_open(&g.out, path, e))
        return false;
    if (ppm) {
        int len = snprintf(head, sizeof head, "P6\n%" PRId64 " %" PRId64 "\n255\n", width, height);
        ls_out_write(&g.out, head, (size_t)len);
        ls_out_write(&g.out, rgb, (size_t)(width * height * 3));
    } else {
        write_png(&g, rgb, LS_PNG_RGB, width, height);
    }
    return ls_out_commit(&g.out, e);
}
