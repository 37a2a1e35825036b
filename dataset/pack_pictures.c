/* dataset/pack_pictures.c -- folders of pictures, by classes or with masks. Threads read pictures
 * and bring them to their size; they are written in the order of the list, so the file does not
 * depend on the number of threads. */
#include "dataset/ordered_work.h"
#include "dataset/picture.h"
#include "dataset/picture_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A chunk of pictures, as they are made. */
typedef struct Slot {
    unsigned char *pixels, *masks;
    int64_t *label;
    LsError *error; /* of each picture; code 0: none */
    bool *rounded, *had_alpha;
} Slot;

typedef struct Figures {
    uint64_t n, sum[4], squares[4];
} Figures;

typedef struct Packing {
    const LsPackOptions *o;
    LsPack *pack;
    LsPackResult *r;
    LsError *e;
    LsPictureList list;
    LsFile like_file;
    LsDataFile like;
    int channels, width, height; /* of all samples */
    bool sized;                  /* by the options; else all pictures have this size */
    int64_t chunk;               /* pictures of one */
    Slot *slot;
    int slots;
    LsColumn *image, *mask, *label;
    Figures figures;
    double mean[4], std[4];
    int64_t rounded, had_alpha;
} Packing;

/* ---- one picture ---- */

static bool bring_to_size(const Packing *k, LsPicture *p, bool nearest, const char *path,
                          LsError *e)
{
    const LsPackOptions *o = k->o;
    int width = o->width, height = o->height;
    if (o->side > 0) { /* as torchvision's Resize: the long side is rounded down */
        const bool wide = p->width > p->height;
        const int64_t length =
            (int64_t)o->side * (wide ? p->width : p->height) / (wide ? p->height : p->width);
        width = wide ? (int)(length > INT32_MAX ? INT32_MAX : length) : o->side;
        height = wide ? o->side : (int)(length > INT32_MAX ? INT32_MAX : length);
    }
    if (width > 0 && !ls_picture_resize(p, width, height, nearest, path, e))
        return false;
    if (k->sized && (p->width < k->width || p->height < k->height))
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: %d x %d pixels are fewer than the centre of %d x %d "
                       "that --crop keeps (height x width)",
                       path, p->height, p->width, k->height, k->width);
    if (k->sized)
        ls_picture_crop(p, k->width, k->height);
    if (p->width == k->width && p->height == k->height)
        return true;
    return ls_fail(e, LS_EXIT_DATA,
                   "%s: %d x %d pixels (height x width), but the first picture "
                   "has %d x %d: --size HxW or N brings all to one size",
                   path, p->height, p->width, k->height, k->width);
}

/* The mask of picture `path`: the same name below the folder of masks, as PNG. */
static bool mask_path(const Packing *k, const char *path, int64_t item, char to[LS_PATH],
                      LsError *e)
{
    const LsPictureList *l = &k->list;
    const char *root = k->o->source[l->folder[l->item[item].folder].root];
    const char *inside = path + strlen(root), *dot = strrchr(inside, '.');
    const int n = snprintf(to, LS_PATH, "%s%.*s.png", k->o->masks, (int)(dot - inside), inside);
    if (n >= LS_PATH)
        return ls_fail(e, LS_EXIT_DATA, "%.200s...: the path is too long", to);
    return access(to, F_OK) == 0 || ls_fail(e, LS_EXIT_DATA, "%s: has no mask %s", path, to);
}

static bool read_mask(const Packing *k, const char *path, int64_t item, int width, int height,
                      unsigned char *to, LsError *e)
{
    char at[LS_PATH];
    LsFile f;
    LsPicture p;
    if (!mask_path(k, path, item, at, e) || !ls_file_map(&f, at, e))
        return false;
    bool ok = ls_mask_read(&p, &f, e);
    if (ok && (p.width != width || p.height != height))
        ok = ls_fail(e, LS_EXIT_DATA, "%s: %d x %d pixels, but %s has %d x %d (height x width)", at,
                     p.height, p.width, path, height, width);
    ok = ok && bring_to_size(k, &p, true, at, e);
    if (ok)
        memcpy(to, p.data, (size_t)p.width * (size_t)p.height);
    ls_picture_free(&p);
    ls_file_unmap(&f);
    return ok;
}

/* From pixels to planes of channels. */
static void put_planes(const LsPicture *p, unsigned char *to)
{
    const int64_t n = (int64_t)p->width * p->height;
    if (p->channels == 1)
        memcpy(to, p->data, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            for (int c = 0; c < 3; c++)
                to[c * n + i] = p->data[3 * i + c];
}

static bool read_one(const Packing *k, Slot *s, int64_t i, int64_t item, LsError *e)
{
    char path[LS_PATH];
    LsFile f;
    LsPicture p = {0};
    const int64_t pixels = (int64_t)k->width * k->height;
    if (!ls_picture_path(&k->list, item, path, e) || !ls_file_map(&f, path, e))
        return false;
    bool ok = ls_picture_read(&p, &f, k->channels, e);
    const int width = p.width, height = p.height;
    s->rounded[i] = p.rounded;
    s->had_alpha[i] = p.had_alpha;
    ok = ok && bring_to_size(k, &p, false, path, e);
    if (ok)
        put_planes(&p, s->pixels + i * pixels * k->channels);
    ls_picture_free(&p);
    ls_file_unmap(&f);
    s->label[i] = k->list.item[item].class;
    return ok
           && (k->mask == NULL
               || read_mask(k, path, item, width, height, s->masks + i * pixels, e));
}

/* ---- chunks ---- */

static int64_t pictures_in(const Packing *k, int64_t chunk)
{
    const int64_t left = k->list.n - chunk * k->chunk;
    return left < k->chunk ? left : k->chunk;
}

static void make(void *to, int64_t chunk, int slot)
{
    const Packing *k = to;
    Slot *s = &k->slot[slot];
    for (int64_t i = 0; i < pictures_in(k, chunk); i++) {
        s->error[i] = (LsError){0};
        read_one(k, s, i, chunk * k->chunk + i, &s->error[i]);
    }
}

/* Sums of bytes are whole numbers, so their order does not matter. */
static void add_figures(Packing *k, const unsigned char *p)
{
    const int64_t n = (int64_t)k->width * k->height;
    for (int c = 0; c < k->channels; c++, p += n) {
        uint64_t sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += p[i];
            squares += (uint64_t)p[i] * p[i];
        }
        k->figures.sum[c] += sum;
        k->figures.squares[c] += squares;
    }
    k->figures.n += (uint64_t)n;
}

static bool put_one(Packing *k, const Slot *s, int64_t i)
{
    const int64_t pixels = (int64_t)k->width * k->height;
    const unsigned char *at = s->pixels + i * pixels * k->channels;
    add_figures(k, at);
    k->rounded += s->rounded[i];
    k->had_alpha += s->had_alpha[i];
    k->pack->samples++;
    return ls_pack_append(k->pack, k->image, at, 1, k->e)
           && (k->mask == NULL || ls_pack_append(k->pack, k->mask, s->masks + i * pixels, 1, k->e))
           && (k->label == NULL || ls_pack_append(k->pack, k->label, &s->label[i], 1, k->e));
}

static bool take(void *to, int64_t chunk, int slot)
{
    Packing *k = to;
    const Slot *s = &k->slot[slot];
    for (int64_t i = 0; i < pictures_in(k, chunk); i++) {
        if (s->error[i].code == LS_EXIT_DONE) {
            if (!put_one(k, s, i))
                return false;
        } else if (k->o->skip_bad && s->error[i].code == LS_EXIT_DATA) {
            k->r->skipped++;
            ls_pack_note(k->o, "left out: %s", s->error[i].text);
        } else {
            *k->e = s->error[i];
            return false;
        }
    }
    if (k->o->progress != NULL)
        k->o->progress(k->o->progress_to, chunk * k->chunk + pictures_in(k, chunk), k->list.n);
    return true;
}

/* ---- the whole ---- */

/* The first picture that can be read says what none of the options does. */
static bool look_at_first(Packing *k, LsError *e)
{
    const LsPackOptions *o = k->o;
    k->channels = o->channels > 0 ? o->channels : 3;
    k->sized = o->side > 0 || o->width > 0 || o->crop_width > 0;
    k->width = o->crop_width > 0 ? o->crop_width : o->side > 0 ? o->side : o->width;
    k->height = o->crop_width > 0 ? o->crop_height : o->side > 0 ? o->side : o->height;
    for (int64_t i = 0; !k->sized && i < k->list.n; i++) {
        char path[LS_PATH];
        LsFile f;
        LsPicture p;
        LsError first = {0};
        bool ok = ls_picture_path(&k->list, i, path, &first) && ls_file_map(&f, path, &first);
        if (ok) {
            ok = ls_picture_read(&p, &f, k->channels, &first);
            ls_file_unmap(&f);
        }
        if (ok) {
            k->width = p.width;
            k->height = p.height;
            ls_picture_free(&p);
            return true;
        }
        if (!o->skip_bad || first.code != LS_EXIT_DATA)
            return *e = first, false;
    }
    return k->sized || ls_fail(e, LS_EXIT_DATA, "%s: no picture can be read", o->source[0]);
}

static bool columns(Packing *k, LsError *e)
{
    const LsPackOptions *o = k->o;
    char *image = (char *)(o->input_name ? o->input_name : "image"),
         *label = (char *)(o->label_name ? o->label_name : "label");
    const LsDataField picture = {.name = image,
                                 .kind = LS_FIELD_PICTURE,
                                 .type = LS_U8,
                                 .rank = 3,
                                 .dim = {k->channels, k->height, k->width}},
                      mask = {.name = label,
                              .is_label = true,
                              .type = LS_U8,
                              .rank = 2,
                              .dim = {k->height, k->width}},
                      class = {.name = label,
                               .is_label = true,
                               .type = LS_I64,
                               .classes = k->list.classes};
    k->image = ls_pack_column(k->pack, &picture, e);
    if (o->masks != NULL)
        k->mask = ls_pack_column(k->pack, &mask, e);
    else if (k->list.classes.n > 0)
        k->label = ls_pack_column(k->pack, &class, e);
    return e->code == LS_EXIT_DONE && ls_pack_begin(k->pack, k->list.n, e);
}

static bool make_slots(Packing *k, LsError *e)
{
    enum { AIM = 1 << 20, MOST = 256 }; /* bytes and pictures of a chunk */
    enum { ALL = 1 << 28 };     /* bytes of all chunks, but for a few large ones */
    const int64_t pixels = (int64_t)k->width * k->height, each = pixels * k->channels;
    const size_t n = (size_t)(k->chunk = each >= AIM ? 1 : AIM / each < MOST ? AIM / each : MOST);
    const int64_t room = ALL / (k->chunk * each);
    k->slots = room < 4 ? 4 : room < 2 * k->o->threads ? (int)room : 2 * k->o->threads;
    bool ok = (k->slot = calloc((size_t)k->slots, sizeof *k->slot)) != NULL;
    for (int i = 0; ok && i < k->slots; i++) {
        Slot *s = &k->slot[i];
        ok = (s->pixels = malloc(n * (size_t)each))
             && (s->masks = malloc(k->mask ? n * (size_t)pixels : 1))
             && (s->label = malloc(n * sizeof *s->label))
             && (s->error = malloc(n * sizeof *s->error))
             && (s->rounded = calloc(2 * n, sizeof *s->rounded));
        s->had_alpha = ok ? s->rounded + n : NULL;
    }
    return ok
           || ls_fail(e, LS_EXIT_FAIL, "no memory for %zu pictures of %d x %d", n, k->height,
                      k->width);
}

static void close_all(Packing *k)
{
    for (int i = 0; k->slot && i < k->slots; i++) {
        free(k->slot[i].pixels);
        free(k->slot[i].masks);
        free(k->slot[i].label);
        free(k->slot[i].error);
        free(k->slot[i].rounded);
    }
    free(k->slot);
    ls_pictures_free(&k->list);
    ls_data_file_close(&k->like);
    if (k->like_file.data != NULL)
        ls_file_unmap(&k->like_file);
}

/* Mean and deviation of v / 255. */
static void set_figures(Packing *k)
{
    LsDataField *f = &k->image->field;
    const double n = (double)k->figures.n;
    for (int c = 0; c < k->channels; c++) {
        const double mean = (double)k->figures.sum[c] / n;
        const double spread = (double)k->figures.squares[c] / n - mean * mean;
        k->mean[c] = mean / 255;
        k->std[c] = sqrt(spread > 0 ? spread : 0) / 255;
    }
    f->mean = k->mean;
    f->std = k->std;
    f->figures = k->channels;
}

static void say_losses(const Packing *k)
{
    if (k->rounded > 0)
        ls_pack_note(k->o, "%lld pictures have 16 bits, which were rounded to 8",
                     (long long)k->rounded);
    if (k->had_alpha > 0)
        ls_pack_note(k->o, "%lld pictures have transparency, which was left out",
                     (long long)k->had_alpha);
    if (k->list.others > 0)
        ls_pack_note(k->o, "%lld other files were passed over", (long long)k->list.others);
}

static const LsTexts *classes_of(const LsDataFile *d)
{
    for (int64_t k = 0; k < d->fields; k++)
        if (d->field[k].is_label && d->field[k].classes.n > 0)
            return &d->field[k].classes;
    return NULL;
}

static bool open_like(Packing *k, const LsTexts **classes, LsError *e)
{
    *classes = NULL;
    if (k->o->like == NULL)
        return true;
    if (!ls_file_map(&k->like_file, k->o->like, e)
        || !ls_data_file_open(&k->like, &k->like_file, e))
        return false;
    *classes = classes_of(&k->like);
    return *classes != NULL
           || ls_fail(e, LS_EXIT_DATA, "--like=%s: its labels have no names of classes",
                      k->o->like);
}

static bool run(Packing *k, LsError *e)
{
    const LsTexts *like;
    if (!open_like(k, &like, e) || !ls_pictures_list(&k->list, k->o, like, e)
        || !look_at_first(k, e) || !columns(k, e) || !make_slots(k, e))
        return false;
    const LsOrderedWork work = {.chunks = (k->list.n + k->chunk - 1) / k->chunk,
                                .threads = k->o->threads,
                                .slots = k->slots,
                                .make = make,
                                .take = take,
                                .to = k};
    if (!ls_ordered_work(&work, e))
        return false;
    if (k->pack->samples == 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: none of %lld pictures can be read", k->o->source[0],
                       (long long)k->list.n);
    set_figures(k);
    say_losses(k);
    return true;
}

bool ls_pack_pictures(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e)
{
    Packing k = {.o = o, .pack = p, .r = r, .e = e};
    const bool ok = ls_pack_end(p, run(&k, e), e);
    close_all(&k);
    return ok;
}
