/* runtime/base/png_write.h -- writes 8-bit RGB images: uncompressed PNG, or PPM. */
#ifndef LS_RUNTIME_BASE_PNG_WRITE_H
#define LS_RUNTIME_BASE_PNG_WRITE_H

#include "runtime/base/file.h"

/* rgb: height * width * 3 bytes. PPM when the path ends in .ppm, else PNG. */
bool ls_picture_write(const char *path, const unsigned char *rgb, int64_t width, int64_t height,
                      LsError *e);

#endif
