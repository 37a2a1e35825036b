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
static void put_lines(LsPng *g, const unsigned char *rgb, size_t line, int64_t height)
{
    uint32_t sum = 1;
    put(g, "\x78\x01", 2);
    for (int64_t y = 0; y < height; y++) {
        size_t n = line + 1;
        unsigned char head[6] = {y == height - 1, (unsigned char)n, (unsigned char)(n >> 8),
                                 (unsigned char)~n, (unsigned char)(~n >> 8), 0};
        put(g, head, 6);
        put(g, rgb + (size_t)y * line, line);
        sum = ls_adler32(ls_adler32(sum, head + 5, 1), rgb + (size_t)y * line, line);
    }
    put32(g, sum);
}

static void write_png(LsPng *g, const unsigned char *rgb, int64_t width, int64_t height)
{
    size_t line = (size_t)width * 3;
    put(g, "\x89PNG\r\n\x1a\n", 8);
    begin_chunk(g, "IHDR", 13);
    put32(g, (uint32_t)width);
    put32(g, (uint32_t)height);
    put(g, "\10\2\0\0\0", 5);       /* 8 bits, RGB */
    end_chunk(g);
    begin_chunk(g, "IDAT", 2 + (size_t)height * (line + 6) + 4);
    put_lines(g, rgb, line, height);
    end_chunk(g);
    begin_chunk(g, "IEND", 0);
    end_chunk(g);
}

bool ls_picture_write(const char *path, const unsigned char *rgb, int64_t width, int64_t height,
                      LsError *e)
{
    LsPng g = {.crc = 0};
    char head[64];
    size_t n = strlen(path);
    bool ppm = n >= 4 && strcmp(path + n - 4, ".ppm") == 0;
    if (width <= 0 || width > 21000 || height <= 0 || height > 21000)
        return ls_fail(e, LS_EXIT_FAIL, "%s: a picture of %" PRId64 " x %" PRId64 " is too large",
                       path, width, height);
    if (!ls_out_open(&g.out, path, e))
        return false;
    if (ppm) {
        int len = snprintf(head, sizeof head, "P6\n%" PRId64 " %" PRId64 "\n255\n", width, height);
        ls_out_write(&g.out, head, (size_t)len);
        ls_out_write(&g.out, rgb, (size_t)(width * height * 3));
    } else {
        write_png(&g, rgb, width, height);
    }
    return ls_out_commit(&g.out, e);
}
