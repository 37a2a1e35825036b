/* runtime/data/weight_files.c -- see weight_files.h. */
#include "runtime/data/weight_files.h"

#include "runtime/base/json_read.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const size_t HEADER_MAX = 100 << 20;     /* limit of the format's own reader */
static const char INDEX[] = "model.safetensors.index.json", MODEL[] = "model.safetensors";

static bool damaged(const LsFile *f, const char *why, LsError *e)
{
    return ls_fail(e, LS_EXIT_DATA, "%s: damaged safetensors file: %s", f->path, why);
}

static bool no_memory(LsError *e) { return ls_fail(e, LS_EXIT_FAIL, "out of memory"); }

/* Room for text that lives as long as the files; NULL: no memory. */
static char *take_text(LsWeightFiles *w, size_t bytes)
{
    char **more = realloc(w->text, (size_t)(w->ntext + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    w->text = more;
    char *text = malloc(bytes);
    if (text != NULL)
        w->text[w->ntext++] = text;
    return text;
}

/* ---- the header ---- */

typedef struct Reading {
    LsWeightFiles *w;
    const LsFile *f;
    const unsigned char *data;
    int64_t bytes, room;        /* of the data; of items */
    char *names;                /* the next name goes here */
    char *key;                  /* room for any string of the header */
    size_t cap;
} Reading;

static void set_type(LsWeight *t)
{
    static const struct { const char *dtype; LsElement type; } of[] = {
        {"F32", LS_F32}, {"F64", LS_F64}, {"F16", LS_F16}, {"BF16", LS_BF16}};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        if (strcmp(t->dtype, of[k].dtype) == 0) {
            t->is_real = true;
            t->array.type = of[k].type;
        }
}

static bool read_shape(LsWeight *t, LsJson *j)
{
    t->rank = 0;
    t->array.count = 1;
    if (!ls_json_char(j, '['))
        return false;
    if (ls_json_char(j, ']'))
        return true;
    do {
        int64_t dim;
        if (!ls_json_int(j, &dim) || __builtin_mul_overflow(t->array.count, dim, &t->array.count))
            return false;
        if (t->rank < LS_WEIGHT_RANK)
            t->dim[t->rank] = dim;
        t->rank += t->rank <= LS_WEIGHT_RANK;
    } while (ls_json_char(j, ','));
    return ls_json_char(j, ']');
}

/* Reads one tensor's entry; its place in the data must hold its elements. */
static bool read_entry(const Reading *r, LsWeight *t, LsJson *j)
{
    int64_t from = -1, to = -1, bytes;
    bool shaped = false;
    if (!ls_json_char(j, '{'))
        return false;
    do {
        if (!ls_json_string(j, r->key, r->cap) || !ls_json_char(j, ':'))
            return false;
        const bool ok =
            strcmp(r->key, "dtype") == 0         ? ls_json_string(j, t->dtype, sizeof t->dtype)
            : strcmp(r->key, "shape") == 0       ? (shaped = read_shape(t, j))
            : strcmp(r->key, "data_offsets") == 0
                ? ls_json_char(j, '[') && ls_json_int(j, &from) && ls_json_char(j, ',')
                      && ls_json_int(j, &to) && ls_json_char(j, ']')
                : ls_json_skip(j);
        if (!ok)
            return false;
    } while (ls_json_char(j, ','));
    set_type(t);
    if (!ls_json_char(j, '}') || !shaped || from < 0 || to < from || to > r->bytes)
        return false;
    t->array.data = r->data + from;
    return !t->is_real
           || (!__builtin_mul_overflow(t->array.count, ls_element_bytes(t->array.type), &bytes)
               && bytes == to - from);
}

static bool add_item(Reading *r, const LsWeight *t, LsError *e)
{
    LsWeightFiles *w = r->w;
    if (w->n == r->room) {
        const int64_t room = r->room > 0 ? 2 * r->room : 16;
        LsWeight *more = realloc(w->item, (size_t)room * sizeof *more);
        if (more == NULL)
            return no_memory(e);
        w->item = more;
        r->room = room;
    }
    w->item[w->n++] = *t;
    return true;
}

static bool read_header(Reading *r, LsJson *j, LsError *e)
{
    if (!ls_json_char(j, '{'))
        return damaged(r->f, "its header cannot be read", e);
    if (ls_json_char(j, '}'))
        return true;
    do {
        LsWeight t = {.name = r->names, .file = r->w->nfile};
        if (!ls_json_string(j, r->names, r->cap) || !ls_json_char(j, ':'))
            return damaged(r->f, "its header cannot be read", e);
        const bool meta = strcmp(r->names, "__metadata__") == 0;
        if (meta ? !ls_json_skip(j) : !read_entry(r, &t, j)) {
            char why[120];
            snprintf(why, sizeof why, "what it says of '%.80s'", r->names);
            return damaged(r->f, why, e);
        }
        if (!meta && !add_item(r, &t, e))
            return false;
        const size_t n = meta ? 0 : strlen(r->names) + 1;
        r->names += n;          /* no name is longer than its text in the header */
        r->cap -= n;
    } while (ls_json_char(j, ','));
    return ls_json_char(j, '}') || damaged(r->f, "its header cannot be read", e);
}

bool ls_weights_read(LsWeightFiles *w, const LsFile *f, LsError *e)
{
    uint64_t length = 0;
    for (int k = 8; k-- > 0 && f->size >= 8;)
        length = length << 8 | f->data[k];
    if (f->size < 8 || length > HEADER_MAX)
        return damaged(f, "it does not begin with the length of a header", e);
    if (length > f->size - 8)
        return damaged(f, "it ends in its header (truncated?)", e);
    const char *head = (const char *)f->data + 8;
    LsJson j = {head, head + length};
    Reading r = {.w = w,
                 .f = f,
                 .data = f->data + 8 + length,
                 .bytes = (int64_t)(f->size - 8 - length),
                 .room = w->n,
                 .cap = (size_t)length + 1};
    r.names = take_text(w, r.cap);
    r.key = malloc(r.cap);
    const bool ok = r.names != NULL && r.key != NULL ? read_header(&r, &j, e) : no_memory(e);
    free(r.key);
    return ok;
}

/* ---- files ---- */

static bool open_file(LsWeightFiles *w, const char *path, LsError *e)
{
    LsFile *more = realloc(w->file, (size_t)(w->nfile + 1) * sizeof *more);
    char *own = take_text(w, strlen(path) + 1);
    w->file = more != NULL ? more : w->file;
    if (more == NULL || own == NULL)
        return no_memory(e);
    LsFile *f = &w->file[w->nfile];
    if (!ls_file_map(f, strcpy(own, path), e))
        return false;
    const bool ok = ls_weights_read(w, f, e);
    w->nfile++;
    return ok;
}

static int by_name(const void *a, const void *b)
{
    const LsWeight *x = a, *y = b;
    return strcmp(x->name, y->name);
}

LsWeight *ls_weights_find(const LsWeightFiles *w, const char *name)
{
    const LsWeight key = {.name = name};
    return w->n > 0 ? bsearch(&key, w->item, (size_t)w->n, sizeof key, by_name) : NULL;
}

static bool sort(LsWeightFiles *w, LsError *e)
{
    if (w->n > 0)
        qsort(w->item, (size_t)w->n, sizeof *w->item, by_name);
    for (int64_t k = 1; k < w->n; k++)
        if (strcmp(w->item[k - 1].name, w->item[k].name) == 0)
            return ls_fail(e, LS_EXIT_DATA, "%s: '%s' is there twice%s%s",
                           w->file[w->item[k].file].path, w->item[k].name,
                           w->item[k].file != w->item[k - 1].file ? ", the other in " : "",
                           w->item[k].file != w->item[k - 1].file
                               ? w->file[w->item[k - 1].file].path : "");
    return true;
}

/* ---- indices and folders ---- */

/* Calls take for each tensor of "weight_map", with the name of its file. */
static bool each_of_index(const LsFile *f, char *key, char *value, size_t cap,
                          bool (*take)(void *, const char *, const char *, LsError *), void *to,
                          LsError *e)
{
    LsJson j = {(const char *)f->data, (const char *)f->data + f->size};
    bool ok = ls_json_char(&j, '{'), found = false;
    while (ok) {
        ok = ls_json_string(&j, key, cap) && ls_json_char(&j, ':');
        const bool map = ok && strcmp(key, "weight_map") == 0;
        found |= map;
        if (map) {
            ok = ls_json_char(&j, '{');
            while (ok) {
                ok = ls_json_string(&j, key, cap) && ls_json_char(&j, ':')
                     && ls_json_string(&j, value, cap);
                if (ok && !take(to, key, value, e))
                    return false;
                if (!ok || !ls_json_char(&j, ','))
                    break;
            }
            ok = ok && ls_json_char(&j, '}');
        } else {
            ok = ok && ls_json_skip(&j);
        }
        if (!ok || !ls_json_char(&j, ','))
            break;
    }
    return (ok && found)
           || ls_fail(e, LS_EXIT_DATA, "%s: no index of safetensors files: it has no weight_map",
                      f->path);
}

typedef struct Shards { LsWeightFiles *w; const LsFile *index; } Shards;

static bool shard_path(char path[LS_PATH], const char *index, const char *shard, LsError *e)
{
    const char *slash = strrchr(index, '/');
    const int folder = slash != NULL ? (int)(slash - index) + 1 : 0;
    return (strchr(shard, '/') == NULL
            && snprintf(path, LS_PATH, "%.*s%s", folder, index, shard) < LS_PATH)
           || ls_fail(e, LS_EXIT_DATA, "%s: '%.80s' is no name of a file beside it", index, shard);
}

static bool open_shard(void *self, const char *name, const char *shard, LsError *e)
{
    const Shards *s = self;
    char path[LS_PATH];
    (void)name;
    if (!shard_path(path, s->index->path, shard, e))
        return false;
    for (int k = 0; k < s->w->nfile; k++)
        if (strcmp(s->w->file[k].path, path) == 0)
            return true;
    return open_file(s->w, path, e);
}

static bool has_tensor(void *self, const char *name, const char *shard, LsError *e)
{
    const Shards *s = self;
    const LsWeight *of = ls_weights_find(s->w, name);
    char path[LS_PATH];
    return (of != NULL && shard_path(path, s->index->path, shard, e)
            && strcmp(s->w->file[of->file].path, path) == 0)
           || ls_fail(e, LS_EXIT_DATA, "%s: '%.120s' is not in %.80s", s->index->path, name, shard);
}

static bool open_index(LsWeightFiles *w, const char *path, LsError *e)
{
    LsFile f;
    if (!ls_file_map(&f, path, e))
        return false;
    Shards s = {w, &f};
    char *text = malloc(2 * (f.size + 1));
    const bool ok = text != NULL
                        ? each_of_index(&f, text, text + f.size + 1, f.size + 1, open_shard, &s, e)
                              && sort(w, e)
                              && each_of_index(&f, text, text + f.size + 1, f.size + 1, has_tensor,
                                               &s, e)
                        : no_memory(e);
    free(text);
    ls_file_unmap(&f);
    return ok;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The index of a folder, its model.safetensors, or its only file. */
static bool in_folder(char path[LS_PATH], const char *folder, LsError *e)
{
    const char *const first[] = {INDEX, MODEL};
    char only[300] = "";
    int n = 0;
    for (int k = 0; k < 2; k++)
        if (snprintf(path, LS_PATH, "%s/%s", folder, first[k]) < LS_PATH && access(path, F_OK) == 0)
            return true;
    DIR *d = opendir(folder);
    for (struct dirent *f; d != NULL && (f = readdir(d)) != NULL;)
        if (ends_with(f->d_name, ".safetensors")) {
            n++;
            snprintf(only, sizeof only, "%s", f->d_name);
        }
    if (d != NULL)
        closedir(d);
    if (n != 1 || snprintf(path, LS_PATH, "%s/%s", folder, only) >= LS_PATH)
        return ls_fail(e, LS_EXIT_DATA, "%s: the folder has %d safetensors files%s", folder, n,
                       n > 1 ? " and no index: name one of them" : "");
    return true;
}

bool ls_weights_open(LsWeightFiles *w, const char *path, LsError *e)
{
    struct stat st;
    char found[LS_PATH];
    *w = (LsWeightFiles){0};
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        if (!in_folder(found, path, e))
            return false;
        path = found;
    }
    return ends_with(path, ".json") ? open_index(w, path, e) : open_file(w, path, e) && sort(w, e);
}

void ls_weights_close(LsWeightFiles *w)
{
    for (int k = 0; k < w->nfile; k++)
        ls_file_unmap(&w->file[k]);
    for (int k = 0; k < w->ntext; k++)
        free(w->text[k]);
    free(w->file);
    free(w->text);
    free(w->item);
    *w = (LsWeightFiles){0};
}
