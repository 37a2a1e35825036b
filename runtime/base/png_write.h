/* runtime/base/png_write.h -- writes 8-bit images: uncompressed PNG, or PPM. */
#ifndef LS_RUNTIME_BASE_PNG_WRITE_H
#define LS_RUNTIME_BASE_PNG_WRITE_H

#include "runtime/base/file.h"

/* rgb: height * width * 3 bytes. PPM when the path ends in .ppm, else PNG. */
bool ls_picture_write(const char *path, const unsigned char *rgb, int64_t width, int64_t height,
                      LsError *e);

typedef enum { LS_PNG_RGB, LS_PNG_GREY, LS_PNG_CLASSES } LsPngKind;
/* PNG. pixels: height * width numbers, three times as many of RGB. LS_PNG_CLASSES: numbers of
 * classes, with a palette. Several pictures may be one result: it need not be on the disk yet. */
bool ls_png_write(const char *path, const unsigned char *pixels, LsPngKind kind, int64_t width,
                  int64_t height, LsError *e);

#endif
