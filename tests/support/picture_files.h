/* tests/support/picture_files.h -- writes small JPEG and PNG files, of values that a test knows. */
#ifndef LS_TESTS_SUPPORT_PICTURE_FILES_H
#define LS_TESTS_SUPPORT_PICTURE_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

/* Channel c of pixel (x, y) of picture `seed`: smooth, so that JPEG keeps it nearly. */
static inline unsigned char pixel(int x, int y, int c, int seed)
{
    return (unsigned char)(30 + (3 * x + 2 * y + 37 * c + 11 * seed) % 180);
}

/* depth 1, 2, 4, 8, 16; type: PNG_COLOR_TYPE_... Of 16 bits the low byte is 0x90; alpha is 77; a
 * palette has the colours (k, 2k, 255 - k) for number k = pixel & 15. */
static inline void write_png(const char *path, int type, int depth, int w, int h, int seed)
{
    FILE *f = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    unsigned char *row = calloc((size_t)w, 8);
    const int colours = type & PNG_COLOR_MASK_COLOR && type != PNG_COLOR_TYPE_PALETTE ? 3 : 1;
    const int channels = colours + (type & PNG_COLOR_MASK_ALPHA ? 1 : 0);
    png_init_io(png, f);
    png_set_IHDR(png, info, (png_uint_32)w, (png_uint_32)h, depth, type, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_color colour[16];
        for (int k = 0; k < 16; k++)
            colour[k] = (png_color){(png_byte)k, (png_byte)(2 * k), (png_byte)(255 - k)};
        png_set_PLTE(png, info, colour, 16);
    }
    png_write_info(png, info);
    if (depth < 8)
        png_set_packing(png);
    for (int y = 0; y < h; y++) {
        unsigned char *to = row;
        for (int x = 0; x < w; x++)
            for (int c = 0; c < channels; c++) {
                const int v = c < colours ? pixel(x, y, c, seed) : 77;
                *to++ = (unsigned char)(type == PNG_COLOR_TYPE_PALETTE ? v & 15
                                        : depth < 8                    ? v & ((1 << depth) - 1)
                                                                       : v);
                if (depth == 16)
                    *to++ = 0x90;
            }
        png_write_row(png, row);
    }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    free(row);
    fclose(f);
}

/* space: JCS_GRAYSCALE, JCS_RGB, or JCS_CMYK, whose four channels are complements, as Adobe's.
 * ycck: stored so. orientation 0: no EXIF data; big: their byte order. */
static inline void write_jpeg(const char *path, J_COLOR_SPACE space, int ycck, int w, int h,
                              int seed, int orientation, int big)
{
    FILE *f = fopen(path, "wb");
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr e;
    const int channels = space == JCS_GRAYSCALE ? 1 : space == JCS_RGB ? 3 : 4;
    unsigned char *row = malloc((size_t)w * 4);
    j.err = jpeg_std_error(&e);
    jpeg_create_compress(&j);
    jpeg_stdio_dest(&j, f);
    j.image_width = (JDIMENSION)w;
    j.image_height = (JDIMENSION)h;
    j.input_components = channels;
    j.in_color_space = space;
    jpeg_set_defaults(&j);
    if (ycck)
        jpeg_set_colorspace(&j, JCS_YCCK);
    jpeg_set_quality(&j, 100, TRUE);
    for (int c = 0; c < j.num_components; c++)
        j.comp_info[c].h_samp_factor = j.comp_info[c].v_samp_factor = 1;
    jpeg_start_compress(&j, TRUE);
    if (orientation > 0) {
        unsigned char exif[32] = "Exif\0\0II*\0\10\0\0\0\1\0\x12\1\3\0\1\0\0\0";
        if (big)
            memcpy(exif + 6, "MM\0*\0\0\0\10\0\1\1\x12\0\3\0\0\0\1", 18);
        exif[big ? 25 : 24] = (unsigned char)orientation;
        jpeg_write_marker(&j, JPEG_APP0 + 1, exif, sizeof exif);
    }
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++)
            for (int c = 0; c < channels; c++)
                row[x * channels + c] = c == 3 ? 255 : pixel(x, y, c, seed);
        jpeg_write_scanlines(&j, (JSAMPROW[]){row}, 1);
    }
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    free(row);
    fclose(f);
}

#endif
