/* dataset/png_read.c -- PNG files by libpng: grey, palette, colours, with alpha and of 16 bits. */
#include "dataset/picture.h"

#ifdef LS_HAVE_PNG
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

typedef struct Reading {
    LsPicture *p;
    const LsFile *f;
    size_t at; /* bytes read */
    png_structp png;
    png_infop info;
    unsigned char **row;
    bool mask;
    char text[200];
    LsError *e;
} Reading;

static _Noreturn void leave(png_structp png, const char *text)
{
    Reading *r = png_get_error_ptr(png);
    snprintf(r->text, sizeof r->text, "%s", text);
    png_longjmp(png, 1);
}

static void pass(png_structp png, const char *text)
{
    (void)png, (void)text;
}

static void take(png_structp png, png_bytep to, size_t n)
{
    Reading *r = png_get_io_ptr(png);
    if (n > r->f->size - r->at)
        png_error(png, "the file ends too early");
    memcpy(to, r->f->data + r->at, n);
    r->at += n;
}

/* A mask keeps its numbers; anything else becomes 8 bits of grey or colours. */
static bool set_form(Reading *r, int type, int depth)
{
    if (r->mask) {
        if (type != PNG_COLOR_TYPE_PALETTE && type != PNG_COLOR_TYPE_GRAY)
            return ls_fail(r->e, LS_EXIT_DATA,
                           "%s: colours%s, which are no classes: save the mask "
                           "with a palette or in grey",
                           r->f->path, type & PNG_COLOR_MASK_ALPHA ? " or alpha" : "");
        if (depth == 16)
            return ls_fail(r->e, LS_EXIT_DATA, "%s: a mask of 16 bits; classes are 0 to 255",
                           r->f->path);
        png_set_packing(r->png);
        return true;
    }
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(r->png);
    if (type == PNG_COLOR_TYPE_GRAY && depth < 8)
        png_set_expand_gray_1_2_4_to_8(r->png);
    if (depth == 16)
        png_set_scale_16(r->png);
    if (type & PNG_COLOR_MASK_ALPHA || png_get_valid(r->png, r->info, PNG_INFO_tRNS))
        png_set_strip_alpha(r->png);
    return true;
}

static bool decode(Reading *r)
{
    if (setjmp(png_jmpbuf(r->png)) != 0)
        return ls_fail(r->e, LS_EXIT_DATA, "%s: damaged or truncated PNG: %s", r->f->path, r->text);
    png_set_user_limits(r->png, LS_PICTURE_MOST, LS_PICTURE_MOST);
    png_read_info(r->png, r->info);
    const int type = png_get_color_type(r->png, r->info),
              depth = png_get_bit_depth(r->png, r->info);
    if (!set_form(r, type, depth))
        return false;
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    const int channels = png_get_channels(r->png, r->info);
    if (!ls_picture_room(r->p, r->f->path, png_get_image_width(r->png, r->info),
                         png_get_image_height(r->png, r->info), channels, r->e))
        return false;
    r->p->rounded = depth == 16;
    r->p->had_alpha = type & PNG_COLOR_MASK_ALPHA || png_get_valid(r->png, r->info, PNG_INFO_tRNS);
    const size_t bytes = (size_t)r->p->width * (size_t)channels;
    if ((channels != 1 && channels != 3) || png_get_rowbytes(r->png, r->info) != bytes)
        return ls_fail(r->e, LS_EXIT_DATA, "%s: a form of PNG that is not read", r->f->path);
    if ((r->row = malloc((size_t)r->p->height * sizeof *r->row)) == NULL)
        return ls_fail(r->e, LS_EXIT_FAIL, "out of memory");
    for (int k = 0; k < r->p->height; k++)
        r->row[k] = r->p->data + (size_t)k * bytes;
    png_read_image(r->png, r->row);
    png_read_end(r->png, NULL);
    return true;
}

static bool read_png(LsPicture *p, const LsFile *f, bool mask, LsError *e)
{
    Reading r = {.p = p, .f = f, .mask = mask, .e = e};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, leave, pass);
    r.info = r.png != NULL ? png_create_info_struct(r.png) : NULL;
    bool ok = r.info != NULL || ls_fail(e, LS_EXIT_FAIL, "out of memory");
    if (ok) {
        png_set_read_fn(r.png, &r, take);
        ok = decode(&r);
    }
    png_destroy_read_struct(&r.png, &r.info, NULL);
    free(r.row);
    return ok;
}

bool ls_png_read(LsPicture *p, const LsFile *f, LsError *e)
{
    return read_png(p, f, false, e);
}
bool ls_png_read_mask(LsPicture *p, const LsFile *f, LsError *e)
{
    return read_png(p, f, true, e);
}
#else
static bool none(const LsFile *f, LsError *e)
{
    return ls_fail(e, LS_EXIT_DEVICE,
                   "%s: this lowerset was built without libpng, so it reads no "
                   "PNG; build it where libpng is installed",
                   f->path);
}

bool ls_png_read(LsPicture *p, const LsFile *f, LsError *e)
{
    (void)p;
    return none(f, e);
}

bool ls_png_read_mask(LsPicture *p, const LsFile *f, LsError *e)
{
    (void)p;
    return none(f, e);
}
#endif
