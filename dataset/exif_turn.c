/* dataset/exif_turn.c -- the orientation in a JPEG's EXIF data (a TIFF directory in its APP1
 * segment), and pictures turned to it. */
#include "dataset/picture.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a TIFF, in its order. */
typedef struct Tiff {
    const unsigned char *p;
    size_t n;
    bool big;
} Tiff;

static uint32_t number(const Tiff *t, size_t at, int bytes)
{
    uint32_t v = 0;
    for (int k = 0; k < bytes; k++)
        v |= (uint32_t)t->p[at + (size_t)k] << 8 * (t->big ? bytes - 1 - k : k);
    return v;
}

static int orientation_in(const Tiff *t)
{
    enum { TAG = 0x0112, ENTRY = 12 };
    if (t->n < 8 || number(t, 2, 2) != 42)
        return 1;
    const size_t at = number(t, 4, 4);
    if (at > t->n - 2)
        return 1;
    const size_t entries = number(t, at, 2);
    for (size_t k = 0; k < entries && at + 2 + (k + 1) * ENTRY <= t->n; k++) {
        const size_t entry = at + 2 + k * ENTRY;
        const uint32_t v = number(t, entry + 8, 2);
        if (number(t, entry, 2) == TAG)
            return number(t, entry + 2, 2) == 3 && v >= 1 && v <= 8 ? (int)v : 1;
    }
    return 1;
}

int ls_exif_orientation(const LsFile *f)
{
    for (size_t at = 2; at + 4 <= f->size && f->data[at] == 0xff;) {
        const unsigned char *p = f->data + at;
        const size_t n = (size_t)p[2] << 8 | p[3];
        if (p[1] == 0xff) {
            at++; /* a byte that fills up */
            continue;
        }
        if (p[1] == 0xda || n < 2 || n > f->size - at - 2)
            return 1;
        if (p[1] == 0xe1 && n >= 16 && memcmp(p + 4, "Exif\0", 6) == 0
            && (memcmp(p + 10, "II", 2) == 0 || memcmp(p + 10, "MM", 2) == 0)) {
            const Tiff t = {p + 10, n - 8, p[10] == 'M'};
            return orientation_in(&t);
        }
        at += 2 + n;
    }
    return 1;
}

bool ls_picture_turn(LsPicture *p, int orientation, const char *path, LsError *e)
{
    LsPicture to;
    const bool swapped = orientation >= 5; /* rows become columns */
    if (orientation <= 1)
        return true;
    if (!ls_picture_room(&to, path, swapped ? p->height : p->width, swapped ? p->width : p->height,
                         p->channels, e))
        return false;
    const bool flip_x =
        orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool flip_y =
        orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    for (int y = 0; y < to.height; y++)
        for (int x = 0; x < to.width; x++) {
            /* of the stored picture: columns and rows as the eight forms define them */
            int sx = swapped ? y : x, sy = swapped ? x : y;
            sx = flip_x ? p->width - 1 - sx : sx;
            sy = flip_y ? p->height - 1 - sy : sy;
            memcpy(to.data + ((size_t)y * (size_t)to.width + (size_t)x) * (size_t)p->channels,
                   p->data + ((size_t)sy * (size_t)p->width + (size_t)sx) * (size_t)p->channels,
                   (size_t)p->channels);
        }
    free(p->data);
    *p = to;
    return true;
}
