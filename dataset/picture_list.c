/* dataset/picture_list.c -- see the header. */
#include "dataset/picture_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* The folders above one, against links that lead in a circle. */
typedef struct Above {
    dev_t device;
    ino_t number;
    const struct Above *above;
} Above;

typedef struct Walk {
    LsPictureList *l;
    const LsPackOptions *o;
    LsError *e;
    int root;
    int32_t class;
} Walk;

static bool no_memory(LsError *e)
{
    return ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

static bool is_picture(const char *name)
{
    static const char *const ending[] = {".jpg", ".jpeg", ".jpe", ".jfif", ".png"};
    const char *dot = strrchr(name, '.');
    for (size_t k = 0; dot != NULL && k < sizeof ending / sizeof *ending; k++)
        if (strcasecmp(dot, ending[k]) == 0)
            return true;
    return false;
}

/* Grows a list to hold one more; sizes are powers of two. */
static bool one_more(void *list, int64_t n, size_t each)
{
    void **to = list;
    if (n > 0 && (n & (n - 1)) != 0)
        return true;
    void *p = realloc(*to, (size_t)(n > 0 ? 2 * n : 1) * each);
    if (p != NULL)
        *to = p;
    return p != NULL;
}

/* ---- one folder ---- */

typedef struct Entry {
    char *name;
    unsigned char type;         /* DT_... */
} Entry;

typedef struct Entries {
    Entry *of;
    int64_t n;
} Entries;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const Entry *)a)->name, ((const Entry *)b)->name);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void entries_free(Entries *in)
{
    while (in->n > 0)
        free(in->of[--in->n].name);
    free(in->of);
}

static bool entries_read(Entries *in, const char *path, LsError *e)
{
    *in = (Entries){0};
    DIR *d = opendir(path);
    if (d == NULL)
        return ls_fail(e, LS_EXIT_DATA, "%s: cannot read: %s", path, strerror(errno));
    bool ok = true;
    errno = 0;
    for (struct dirent *x; ok && (x = readdir(d)) != NULL; errno = 0) {
        if (x->d_name[0] == '.')
            continue;
        ok = one_more(&in->of, in->n, sizeof *in->of)
             && (in->of[in->n].name = strdup(x->d_name)) != NULL;
        if (ok)
            in->of[in->n++].type = x->d_type;
    }
    const int why = ok ? errno : 0;
    closedir(d);
    if (!ok)
        return no_memory(e);
    if (why != 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: cannot read: %s", path, strerror(why));
    if (in->n > 0)
        qsort(in->of, (size_t)in->n, sizeof *in->of, by_name);
    return true;
}

static char *join(const char *folder, const char *name)
{
    const size_t n = strlen(folder) + strlen(name) + 2;
    char *path = malloc(n);
    if (path != NULL)
        snprintf(path, n, "%s/%s", folder, name);
    return path;
}

/* Whether the entry is a folder, or a link to one. What cannot be looked at is none. */
static bool is_folder(const char *path, const Entry *x)
{
    struct stat st;
    if (x->type != DT_UNKNOWN && x->type != DT_LNK)
        return x->type == DT_DIR;
    char *at = join(path, x->name);
    const bool is = at != NULL && stat(at, &st) == 0 && S_ISDIR(st.st_mode);
    free(at);
    return is;
}

static bool add_picture(Walk *w, const char *name, int32_t folder)
{
    LsPictureList *l = w->l;
    const int64_t n = (int64_t)strlen(name) + 1;
    if (l->used + n > l->room) {
        const int64_t room = 2 * l->room + n + 4096;
        char *more = realloc(l->names, (size_t)room);
        if (more == NULL)
            return false;
        l->names = more;
        l->room = room;
    }
    if (!one_more(&l->item, l->n, sizeof *l->item))
        return false;
    memcpy(l->names + l->used, name, (size_t)n);
    l->item[l->n++] = (LsPictureName){l->used, folder, w->class};
    l->used += n;
    return true;
}

static bool is_circle(const Above *above, const struct stat *st)
{
    for (; above != NULL; above = above->above)
        if (above->device == st->st_dev && above->number == st->st_ino)
            return true;
    return false;
}

static bool walk(Walk *w, const char *path, const Above *above);

/* What lies in a folder: pictures first, then folders. */
static bool take_entries(Walk *w, const char *path, const Entries *in, const Above *here)
{
    LsPictureList *l = w->l;
    const int32_t folder = (int32_t)l->folders;
    if (!one_more(&l->folder, l->folders, sizeof *l->folder)
        || (l->folder[l->folders].path = strdup(path)) == NULL)
        return no_memory(w->e);
    l->folder[l->folders++].root = w->root;
    for (int64_t k = 0; k < in->n; k++) {
        if (is_folder(path, &in->of[k]))
            continue;
        if (!is_picture(in->of[k].name))
            l->others++;
        else if (!add_picture(w, in->of[k].name, folder))
            return no_memory(w->e);
    }
    for (int64_t k = 0; k < in->n; k++) {
        if (!is_folder(path, &in->of[k]))
            continue;
        char *at = join(path, in->of[k].name);
        const bool ok = at != NULL ? walk(w, at, here) : no_memory(w->e);
        free(at);
        if (!ok)
            return false;
    }
    return true;
}

static bool walk(Walk *w, const char *path, const Above *above)
{
    Entries in;
    struct stat st;
    if (stat(path, &st) != 0)
        return ls_fail(w->e, LS_EXIT_DATA, "%s: cannot read: %s", path, strerror(errno));
    if (is_circle(above, &st))
        return ls_fail(w->e, LS_EXIT_DATA, "%s: leads back to a folder above it", path);
    const Above here = {st.st_dev, st.st_ino, above};
    const bool ok = entries_read(&in, path, w->e) && take_entries(w, path, &in, &here);
    entries_free(&in);
    return ok;
}

/* ---- classes ---- */

static int32_t class_of(const LsTexts *classes, const char *name)
{
    for (int64_t k = 0; k < classes->n; k++)
        if (strcmp(classes->text[k], name) == 0)
            return (int32_t)k;
    return -1;
}

static bool add_class(LsTexts *classes, const char *name)
{
    if (class_of(classes, name) >= 0)
        return true;
    if (!one_more(&classes->text, classes->n, sizeof *classes->text)
        || (classes->text[classes->n] = strdup(name)) == NULL)
        return false;
    classes->n++;
    return true;
}

/* The folders of a source; pictures beside them would have no class. */
static bool find_classes(LsPictureList *l, const char *source, const Entries *in, LsError *e)
{
    const char *picture = NULL;
    int64_t folders = 0;
    for (int64_t k = 0; k < in->n; k++) {
        const Entry *x = &in->of[k];
        if (!is_folder(source, x)) {
            picture = is_picture(x->name) ? x->name : picture;
            continue;
        }
        if (!ls_is_utf8(x->name))
            return ls_fail(e, LS_EXIT_DATA,
                           "%s/%s: the class's name is no UTF-8; rename the folder", source,
                           x->name);
        if (!add_class(&l->classes, x->name))
            return no_memory(e);
        folders++;
    }
    if (folders > 0 && picture != NULL)
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: pictures (%s) beside folders of classes: they have no class", source,
                       picture);
    return true;
}

static bool all_classes(LsPictureList *l, const LsPackOptions *o, LsError *e)
{
    for (int k = 0; k < o->sources; k++) {
        Entries in;
        const bool ok = entries_read(&in, o->source[k], e) && find_classes(l, o->source[k], &in, e);
        entries_free(&in);
        if (!ok)
            return false;
    }
    if (l->classes.n > 0)
        qsort(l->classes.text, (size_t)l->classes.n, sizeof *l->classes.text, by_bytes);
    return true;
}

/* The classes become those of another data set, which has all of them. */
static bool take_like(LsPictureList *l, const LsTexts *like, const char *path, LsError *e)
{
    for (int64_t k = 0; k < l->classes.n; k++)
        if (class_of(like, l->classes.text[k]) < 0)
            return ls_fail(e, LS_EXIT_DATA, "%s has no class '%s'", path, l->classes.text[k]);
    for (int64_t k = 0; k < like->n; k++)
        if (!add_class(&l->classes, like->text[k]))
            return no_memory(e);
    /* all of them are there; now in the other's order */
    for (int64_t k = 0; k < like->n; k++)
        for (int64_t i = k; i < l->classes.n; i++)
            if (strcmp(l->classes.text[i], like->text[k]) == 0) {
                char *keep = l->classes.text[k];
                l->classes.text[k] = l->classes.text[i];
                l->classes.text[i] = keep;
            }
    return true;
}

static bool walk_class(Walk *w, const char *source, int32_t class, const Above *above)
{
    struct stat st;
    char *path = join(source, w->l->classes.text[class]);
    if (path == NULL)
        return no_memory(w->e);
    const int64_t before = w->l->n;
    w->class = class;
    bool ok = stat(path, &st) != 0 || !S_ISDIR(st.st_mode) || walk(w, path, above);
    if (ok && stat(path, &st) == 0 && w->l->n == before) {
        if (w->o->skip_bad)
            ls_pack_note(w->o, "%s: no pictures in this class", path);
        else
            ok = ls_fail(w->e, LS_EXIT_DATA,
                         "%s: no pictures (.jpg, .jpeg, .png) in this class; "
                         "remove the folder, or pass --skip-bad to keep an empty class",
                         path);
    }
    free(path);
    return ok;
}

static bool walk_source(Walk *w, const char *source)
{
    struct stat st;
    if (w->l->classes.n == 0)
        return walk(w, source, NULL);
    if (stat(source, &st) != 0)
        return ls_fail(w->e, LS_EXIT_DATA, "%s: cannot read: %s", source, strerror(errno));
    const Above here = {st.st_dev, st.st_ino, NULL};
    const int64_t before = w->l->n;
    for (int64_t c = 0; c < w->l->classes.n; c++)
        if (!walk_class(w, source, (int32_t)c, &here))
            return false;
    return w->l->n > before || w->o->skip_bad
           || ls_fail(w->e, LS_EXIT_DATA, "%s: no folders of classes, which other sources have",
                      source);
}

bool ls_pictures_list(LsPictureList *l, const LsPackOptions *o, const LsTexts *like, LsError *e)
{
    *l = (LsPictureList){0};
    Walk w = {.l = l, .o = o, .e = e, .class = -1};
    if (o->masks == NULL && !all_classes(l, o, e))
        return false;
    if (l->classes.n > 0 && like != NULL && !take_like(l, like, o->like, e))
        return false;
    for (w.root = 0; w.root < o->sources; w.root++)
        if (!walk_source(&w, o->source[w.root]))
            return false;
    if (l->n == 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: no pictures (.jpg, .jpeg, .png)", o->source[0]);
    return true;
}

void ls_pictures_free(LsPictureList *l)
{
    for (int64_t k = 0; k < l->folders; k++)
        free(l->folder[k].path);
    for (int64_t k = 0; k < l->classes.n; k++)
        free(l->classes.text[k]);
    free(l->classes.text);
    free(l->folder);
    free(l->names);
    free(l->item);
    *l = (LsPictureList){0};
}

bool ls_picture_path(const LsPictureList *l, int64_t k, char path[LS_PATH], LsError *e)
{
    const LsPictureName *x = &l->item[k];
    const int n = snprintf(path, LS_PATH, "%s/%s", l->folder[x->folder].path, l->names + x->name);
    return n < LS_PATH || ls_fail(e, LS_EXIT_DATA, "%.200s...: the path is too long", path);
}
