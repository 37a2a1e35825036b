/* dataset/picture.c -- see the header. */
#include "dataset/picture.h"

#include <stdlib.h>
#include <string.h>

int64_t ls_picture_pixels = INT64_C(1) << 27;

void ls_picture_free(LsPicture *p)
{
    free(p->data);
    p->data = NULL;
}

bool ls_picture_room(LsPicture *p, const char *path, int64_t width, int64_t height, int channels,
                     LsError *e)
{
    if (width <= 0 || height <= 0 || width > LS_PICTURE_MOST || height > LS_PICTURE_MOST
        || width * height > ls_picture_pixels)
        return ls_fail(e, LS_EXIT_DATA, "%s: %lld x %lld pixels are more than are read", path,
                       (long long)width, (long long)height);
    *p = (LsPicture){(int)width, (int)height, channels, NULL, false, false};
    p->data = malloc((size_t)(width * height * channels));
    return p->data != NULL || ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

LsPictureFormat ls_picture_format(const LsFile *f)
{
    if (f->size >= 3 && memcmp(f->data, "\xff\xd8\xff", 3) == 0)
        return LS_FILE_JPEG;
    if (f->size >= 8 && memcmp(f->data, "\x89PNG\r\n\x1a\n", 8) == 0)
        return LS_FILE_PNG;
    return LS_FILE_OTHER;
}

/* Grey of a colour, as PIL's convert("L"): ITU-R 601 in 16 bits. */
static void to_grey(LsPicture *p)
{
    const int64_t n = (int64_t)p->width * p->height;
    for (int64_t k = 0; k < n; k++) {
        const unsigned char *c = p->data + 3 * k;
        p->data[k] =
            (unsigned char)((c[0] * 19595u + c[1] * 38470u + c[2] * 7471u + 0x8000u) >> 16);
    }
    p->channels = 1;
}

static bool to_colours(LsPicture *p, const char *path, LsError *e)
{
    LsPicture to;
    if (!ls_picture_room(&to, path, p->width, p->height, 3, e))
        return false;
    const int64_t n = (int64_t)p->width * p->height;
    for (int64_t k = 0; k < n; k++)
        memset(to.data + 3 * k, p->data[k], 3);
    to.rounded = p->rounded;
    to.had_alpha = p->had_alpha;
    free(p->data);
    *p = to;
    return true;
}

static bool is_empty(const LsFile *f, LsError *e)
{
    return ls_fail(e, LS_EXIT_DATA, "%s: neither JPEG nor PNG", f->path);
}

bool ls_picture_read(LsPicture *p, const LsFile *f, int channels, LsError *e)
{
    const LsPictureFormat format = ls_picture_format(f);
    *p = (LsPicture){0};
    bool ok = format == LS_FILE_JPEG  ? ls_jpeg_read(p, f, e)
              : format == LS_FILE_PNG ? ls_png_read(p, f, e)
                                      : is_empty(f, e);
    if (ok && format == LS_FILE_JPEG)
        ok = ls_picture_turn(p, ls_exif_orientation(f), f->path, e);
    if (ok && p->channels == 3 && channels == 1)
        to_grey(p);
    else if (ok && p->channels == 1 && channels == 3)
        ok = to_colours(p, f->path, e);
    if (!ok)
        ls_picture_free(p);
    return ok;
}

bool ls_mask_read(LsPicture *p, const LsFile *f, LsError *e)
{
    *p = (LsPicture){0};
    if (ls_picture_format(f) == LS_FILE_JPEG)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: JPEG changes values, so that it holds no classes; "
                       "save masks as PNG",
                       f->path);
    if (ls_picture_format(f) != LS_FILE_PNG)
        return ls_fail(e, LS_EXIT_DATA, "%s: masks are PNG files", f->path);
    if (ls_png_read_mask(p, f, e))
        return true;
    ls_picture_free(p);
    return false;
}
