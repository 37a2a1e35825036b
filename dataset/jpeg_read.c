/* dataset/jpeg_read.c -- JPEG files by libjpeg: grey, colours, CMYK and YCCK. */
#include "dataset/picture.h"

#ifdef LS_HAVE_JPEG
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

/* libjpeg's errors leave by the jump; a warning (what is missing is made up) is an error here. */
typedef struct Errors {
    struct jpeg_error_mgr of;
    jmp_buf leave;
    char text[JMSG_LENGTH_MAX];
} Errors;

static _Noreturn void leave(j_common_ptr j)
{
    Errors *e = (Errors *)j->err;
    e->of.format_message(j, e->text);
    longjmp(e->leave, 1);
}

/* level -1: the data are damaged, and libjpeg would make up what is missing. */
static void warn(j_common_ptr j, int level)
{
    static const int harmless[] = {JWRN_EXTRANEOUS_DATA, JWRN_JFIF_MAJOR, JWRN_ADOBE_XFORM,
                                   JWRN_TOO_MUCH_DATA};
    for (size_t k = 0; k < sizeof harmless / sizeof *harmless; k++)
        if (j->err->msg_code == harmless[k])
            return;
    if (level < 0)
        leave(j);
}

/* As PIL's conversion of CMYK; Adobe's files have the complements. */
static void colours_of(unsigned char *to, const unsigned char *from, int n, bool complement)
{
    for (int k = 0; k < n; k++, from += 4, to += 3) {
        const int invert = complement ? 255 : 0, white = 255 - (from[3] ^ invert);
        for (int c = 0; c < 3; c++) {
            const int t = (from[c] ^ invert) * white + 128;
            const int v = white - ((t + (t >> 8)) >> 8);
            to[c] = (unsigned char)(v < 0 ? 0 : v);
        }
    }
}

typedef struct Reading {
    struct jpeg_decompress_struct j;
    Errors errors;
    unsigned char *line; /* of CMYK */
    LsPicture *p;
    const char *path;
    LsError *e;
} Reading;

static bool start(Reading *r)
{
    struct jpeg_decompress_struct *j = &r->j;
    jpeg_read_header(j, TRUE);
    const bool four = j->num_components == 4;
    if (!four && j->num_components != 1 && j->num_components != 3)
        return ls_fail(r->e, LS_EXIT_DATA, "%s: a JPEG of %d components is not read", r->path,
                       j->num_components);
    j->out_color_space = four ? JCS_CMYK : j->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    if (!ls_picture_room(r->p, r->path, j->image_width, j->image_height,
                         j->num_components == 1 ? 1 : 3, r->e))
        return false;
    if (four && (r->line = malloc(4 * (size_t)j->image_width)) == NULL)
        return ls_fail(r->e, LS_EXIT_FAIL, "out of memory");
    return true;
}

static bool decode(Reading *r)
{
    struct jpeg_decompress_struct *j = &r->j;
    if (setjmp(r->errors.leave) != 0)
        return ls_fail(r->e, LS_EXIT_DATA, "%s: damaged or truncated JPEG: %s", r->path,
                       r->errors.text);
    if (!start(r))
        return false;
    jpeg_start_decompress(j);
    while (j->output_scanline < j->output_height) {
        unsigned char *row =
            r->p->data + (size_t)j->output_scanline * (size_t)r->p->width * (size_t)r->p->channels;
        JSAMPROW at = r->line ? r->line : row;
        jpeg_read_scanlines(j, &at, 1);
        if (r->line)
            colours_of(row, r->line, r->p->width, j->saw_Adobe_marker);
    }
    jpeg_finish_decompress(j);
    return true;
}

bool ls_jpeg_read(LsPicture *p, const LsFile *f, LsError *e)
{
    Reading r = {.p = p, .path = f->path, .e = e};
    r.j.err = jpeg_std_error(&r.errors.of);
    r.errors.of.error_exit = leave;
    r.errors.of.emit_message = warn;
    jpeg_create_decompress(&r.j);
    r.j.mem->max_memory_to_use = 1 << 30;
    jpeg_mem_src(&r.j, f->data, f->size);
    const bool ok = decode(&r);
    jpeg_destroy_decompress(&r.j);
    free(r.line);
    return ok;
}
#else
bool ls_jpeg_read(LsPicture *p, const LsFile *f, LsError *e)
{
    (void)p;
    return ls_fail(e, LS_EXIT_DEVICE,
                   "%s: this lowerset was built without libjpeg, so it reads no "
                   "JPEG; build it where libjpeg is installed, or save PNG",
                   f->path);
}
#endif
