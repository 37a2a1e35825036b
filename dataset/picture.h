/* dataset/picture.h -- pictures of bytes, and the readers of files that hold one. */
#ifndef LS_DATASET_PICTURE_H
#define LS_DATASET_PICTURE_H

#include "runtime/base/file.h"

/* Rows from top to bottom; the channels of a pixel lie side by side. */
typedef struct LsPicture {
    int width, height, channels;
    unsigned char *data; /* on the heap */
    bool rounded;        /* the file has 16 bits for a value */
    bool had_alpha;      /* which was left out */
} LsPicture;

enum { LS_PICTURE_MOST = 1 << 16 }; /* pixels of a side */
extern int64_t ls_picture_pixels;   /* most of a picture: 2^27; tests take less */

void ls_picture_free(LsPicture *p);
/* Room for the pixels; an error names `path`. */
bool ls_picture_room(LsPicture *p, const char *path, int64_t width, int64_t height, int channels,
                     LsError *e);

typedef enum { LS_FILE_OTHER, LS_FILE_JPEG, LS_FILE_PNG } LsPictureFormat;
LsPictureFormat ls_picture_format(const LsFile *f);

/* Reads a JPEG or PNG file with `channels` 1 (grey) or 3 (red, green, blue), upright, without
 * alpha. On an error nothing is left to be freed. */
bool ls_picture_read(LsPicture *p, const LsFile *f, int channels, LsError *e);
/* The numbers of a PNG's pixels, of a palette or grey: classes. */
bool ls_mask_read(LsPicture *p, const LsFile *f, LsError *e);

/* ---- readers: jpeg_read.c, png_read.c ---- */
/* Pixels as PIL's: grey or colours as they are in the file, 1 or 3 channels, CMYK as colours. */
bool ls_jpeg_read(LsPicture *p, const LsFile *f, LsError *e);
bool ls_png_read(LsPicture *p, const LsFile *f, LsError *e);
bool ls_png_read_mask(LsPicture *p, const LsFile *f, LsError *e);

/* exif_turn.c: the orientation that a JPEG's EXIF data give, 1..8; 1: none. */
int ls_exif_orientation(const LsFile *f);
/* Turns and mirrors the picture to that orientation's upright. */
bool ls_picture_turn(LsPicture *p, int orientation, const char *path, LsError *e);

/* picture_size.c: resampling as PIL's Image.resize: BILINEAR with its antialiasing, byte for byte,
 * or NEAREST. The picture is replaced. */
bool ls_picture_resize(LsPicture *p, int width, int height, bool nearest, const char *path,
                       LsError *e);
/* The centre, as torchvision's CenterCrop; the picture is at least that large. */
void ls_picture_crop(LsPicture *p, int width, int height);

#endif
