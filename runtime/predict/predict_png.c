/* runtime/predict/predict_png.c -- predictions as a folder of pictures, 0.png, 1.png, ... with as
 * many zeros in front as keep their order.
 *
 * Class scores of a picture: a mask, whose pixels are numbers of classes. Pictures of one or three
 * channels: values from 0 to 1 as 0 to 255; what lies outside is cut off. The folder is written
 * under another name, and gets its own when all pictures are in it. */
#include "runtime/base/png_write.h"
#include "runtime/predict/predict_file.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Pictures {
    char folder[LS_PATH], tmp[LS_PATH];
    int digits;
    bool made;
    LsPngKind kind;
    int64_t channels, height, width;
    unsigned char *pixels;
} Pictures;

/* Removes the pictures of a run that was ended, and the folder itself. */
static void clear(const char *folder)
{
    char path[LS_PATH + 300];
    DIR *d = opendir(folder);
    for (struct dirent *x; d != NULL && (x = readdir(d)) != NULL;) {
        const size_t n = strlen(x->d_name), digits = strspn(x->d_name, "0123456789");
        if (digits > 0 && n >= digits + 4 && strncmp(x->d_name + digits, ".png", 4) == 0) {
            snprintf(path, sizeof path, "%s/%s", folder, x->d_name);
            unlink(path);
        }
    }
    if (d != NULL)
        closedir(d);
    rmdir(folder);
}

static bool is_empty(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *x; d != NULL && (x = readdir(d)) != NULL;)
        n += strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0;
    if (d != NULL)
        closedir(d);
    return n == 0;
}

/* The sizes of a picture; false: the output has none. */
static bool look(LsPredictFile *f, Pictures *a)
{
    const LsOutput *out = &f->outputs->output[0];
    const int axis = f->outputs->seen.g->p->target.class_axis;
    int64_t dim[LS_TENSOR_RANK];
    const int rank = ls_output_dims(out, dim);
    if (out->rows != 1 || out->t.type != LS_DT_REAL)
        return false;
    a->channels = 1;
    if (out->scores && rank == 3) {     /* the class axis is one of the three */
        const int c = axis - 1;
        a->height = dim[c == 0 ? 1 : 0];
        a->width = dim[c == 2 ? 1 : 2];
        a->channels = dim[c];
        a->kind = LS_PNG_CLASSES;
        return a->channels <= 256;
    }
    if (rank == 3)
        a->channels = dim[0];
    a->height = rank >= 2 ? dim[rank - 2] : 0;
    a->width = rank >= 2 ? dim[rank - 1] : 0;
    a->kind = a->channels == 3 ? LS_PNG_RGB : LS_PNG_GREY;
    return !out->scores && (rank == 2 || rank == 3) && (a->channels == 1 || a->channels == 3);
}

static bool take_folder(LsPredictFile *f, Pictures *a, LsError *e)
{
    struct stat st;
    size_t n = strlen(f->path);
    while (n > 1 && f->path[n - 1] == '/')
        n--;
    if (snprintf(a->folder, sizeof a->folder, "%.*s", (int)n, f->path) >= (int)sizeof a->folder
        || snprintf(a->tmp, sizeof a->tmp, "%.*s.tmp", (int)n, f->path) >= (int)sizeof a->tmp)
        return ls_fail(e, LS_EXIT_USAGE, "--predict: the name is too long");
    if (stat(a->folder, &st) == 0 && (!S_ISDIR(st.st_mode) || !is_empty(a->folder)))
        return ls_fail(e, LS_EXIT_USAGE,
                       "--predict=%s: %s; give the name of a new folder for the pictures", f->path,
                       S_ISDIR(st.st_mode) ? "the folder is not empty" : "there is a file already");
    clear(a->tmp);
    if (mkdir(a->tmp, 0777) != 0)
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot make the folder: %s", a->tmp, strerror(errno));
    a->made = true;
    return true;
}

static bool png_open(LsPredictFile *f, LsError *e)
{
    Pictures *a = f->own = calloc(1, sizeof *a);
    if (a == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --predict");
    if (f->outputs->n != 1)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--predict: pictures are of one output; choose it with --predict-outputs");
    if (!look(f, a))
        return ls_fail(e, LS_EXIT_USAGE,
                       "--predict: output '%s' is no picture, of 1 or 3 channels or with the "
                       "scores of at most 256 classes for every pixel: write FILE.npz",
                       f->outputs->output[0].name);
    a->pixels = malloc((size_t)f->outputs->output[0].count + 1);
    if (a->pixels == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --predict");
    a->digits = snprintf(NULL, 0, "%" PRId64, f->samples > 0 ? f->samples - 1 : 0);
    return take_folder(f, a, e);
}

static unsigned char shade(double v)
{
    return (unsigned char)(255 * (v > 0 ? v < 1 ? v : 1 : 0) + 0.5);
}

static void paint(LsPredictFile *f, Pictures *a)
{
    const int64_t area = a->height * a->width;
    if (a->kind != LS_PNG_CLASSES) {
        for (int64_t c = 0; c < a->channels; c++)
            for (int64_t i = 0; i < area; i++) {
                const double v = f->reals[c * area + i];
                a->pixels[i * a->channels + c] = shade(f->bits ? 1 / (1 + exp(-v)) : v);
            }
        return;
    }
    for (int64_t i = 0; i < area; i++) {        /* probabilities [area][classes] */
        const double *p = f->reals + i * a->channels;
        int64_t best = 0;
        for (int64_t c = 1; c < a->channels; c++)
            best = p[c] > p[best] ? c : best;
        a->pixels[i] = (unsigned char)best;
    }
}

static bool png_put(LsPredictFile *f, int64_t in_batch, LsError *e)
{
    Pictures *a = f->own;
    char path[LS_PATH + 40];
    if (a->kind == LS_PNG_CLASSES)
        ls_output_probabilities(f->outputs, 0, in_batch, f->reals);
    else
        ls_output_reals(f->outputs, 0, in_batch, f->reals);
    paint(f, a);
    snprintf(path, sizeof path, "%s/%0*" PRId64 ".png", a->tmp, a->digits, f->done);
    return ls_png_write(path, a->pixels, a->kind, a->width, a->height, e);
}

static bool png_close(LsPredictFile *f, bool whole, LsError *e)
{
    Pictures *a = f->own;
    bool ok = whole && a->made;
    if (ok && rename(a->tmp, a->folder) != 0)
        ok = ls_fail(e, LS_EXIT_FAIL, "%s: cannot be renamed to %s: %s", a->tmp, a->folder,
                     strerror(errno));
    if (!ok && a->made)
        clear(a->tmp);
    free(a->pixels);
    free(a);
    return ok;
}

const LsPredictKind ls_predict_png = {"png", png_open, png_put, png_close};
