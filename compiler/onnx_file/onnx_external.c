/* compiler/onnx_file/onnx_external.c -- tensor data in files beside the model.
 *
 * The location comes from the author of the model, who is not trusted: it may name only files
 * inside the model's folder, neither by an absolute path nor through "..". A symbolic link may come
 * with the model too, and must not bring one of the user's files into the weights: its target must
 * lie inside the model's folder, or, when the model is a link itself, inside the folder of that
 * link's target. Model hubs store files so: all links of a model end in one folder. */
#include "compiler/onnx_file/onnx_tensor.h"

#include "compiler/onnx_file/onnx_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Place {
    const char *location;
    int64_t offset, length;
} Place; /* length -1: not given */

static bool decimal(const char *s, int64_t *v)
{
    char *end;
    errno = 0;
    *v = strtoll(s, &end, 10);
    return *s >= '0' && *s <= '9' && *end == '\0' && errno == 0;
}

static bool read_place(LsCtx *cx, LsWhere at, const Onnx__TensorProto *t, Place *p)
{
    const char *name = ls_text(t->name);
    *p = (Place){"", 0, -1};
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key = ls_text(t->external_data[i]->key),
                   *v = ls_text(t->external_data[i]->value);
        bool good = true;
        if (strcmp(key, "location") == 0)
            p->location = v;
        else if (strcmp(key, "offset") == 0)
            good = decimal(v, &p->offset);
        else if (strcmp(key, "length") == 0)
            good = decimal(v, &p->length);
        if (!good)
            return ls_error(cx, at, LS_E_DATA, NULL,
                            "tensor '%s': external data has %s '%s', not a number of bytes",
                            name, key, v);
    }
    if (p->location[0] == '\0')
        return ls_error(cx, at, LS_E_DATA, NULL,
                        "tensor '%s' lies in an external file without a name",
                        name);
    return true;
}

static bool leaves_folder(const char *location)
{
    if (location[0] == '/')
        return true;
    for (const char *s = location; s != NULL; s = strchr(s, '/')) {
        s += *s == '/';
        if (strncmp(s, "..", 2) == 0 && (s[2] == '/' || s[2] == '\0'))
            return true;
    }
    return false;
}

static bool is_inside(const char *folder, const char *file)
{
    size_t n = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    return strncmp(folder, file, n) == 0 && file[n] == '/';
}

/* The name with its links resolved; NULL when a link is broken, which open will explain. */
static const char *real_path(LsArena *a, const char *path)
{
    char *found = realpath(path, NULL);
    const char *copy = found != NULL ? ls_arena_strdup(a, found) : NULL;
    free(found);
    return copy;
}

/* The target of the first link on the way to the location, as " (... is a symbolic link to ...)";
 * else "". */
static const char *link_text(LsArena *a, const char *dir, const char *location)
{
    char target[PATH_MAX];
    for (size_t n = 0; location[n] != '\0';) {
        n += strspn(location + n, "/");
        n += strcspn(location + n, "/");
        const char *part = ls_arena_printf(a, "%.*s", (int)n, location);
        ssize_t len = readlink(ls_arena_printf(a, "%s/%s", dir, part), target, sizeof target - 1);
        if (len >= 0)
            return ls_arena_printf(a, " ('%s' is a symbolic link to '%.*s')", part, (int)len,
                                   target);
    }
    return "";
}

static bool read_all(int fd, unsigned char *to, size_t bytes, int64_t offset)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, to + done, bytes - done, (off_t)(offset + (int64_t)done));
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Large data are mapped: they take memory while they are read. NULL with errno. */
static const unsigned char *take(LsArena *a, int fd, size_t bytes, int64_t offset)
{
    if (bytes >= LS_ARENA_PART)
        return ls_arena_map(a, fd, offset, bytes);
    unsigned char *data = ls_arena_alloc(a, bytes + 1, 1);
    return read_all(fd, data, bytes, offset) ? data : NULL;
}

/* Checks that the open file is readable and long enough. */
static bool check_file(LsCtx *cx, LsWhere at, const char *name, int fd, const char *path,
                       const Place *p, size_t bytes)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return ls_error(cx, at, LS_E_DATA, NULL, "tensor '%s': %s is not a regular file", name,
                        path);
    if (p->offset > st.st_size || bytes > (uint64_t)(st.st_size - p->offset))
        return ls_error(cx, at, LS_E_DATA, NULL,
                        "tensor '%s' needs %zu bytes at offset %" PRId64 " of %s, "
                        "which has %" PRId64,
                        name, bytes, p->offset, path, (int64_t)st.st_size);
    return true;
}

/* Opens the place's file; -1 after a diagnostic, or without one when the file does not exist
 * (counted in `from`). */
static int open_place(LsCtx *cx, LsWhere at, LsDataFolder *from, const char *name, const Place *p)
{
    LsArena *a = cx->arena;
    const char *path = ls_arena_printf(a, "%s/%s", from->dir, p->location);
    if (leaves_folder(p->location))
        return ls_error(cx, at, LS_E_DATA, "external data is read from the model's own folder only",
                        "tensor '%s' lies outside the model's folder: '%s'", name, p->location), -1;
    const char *folder = real_path(a, from->dir), *file = real_path(a, path);
    bool inside = folder == NULL || file == NULL || is_inside(folder, file)
        || (from->home != NULL && is_inside(from->home, file));
    if (!inside)
        return ls_error(cx, at, LS_E_DATA,
                        "copy the file beside the model: links are followed inside the model's "
                        "folder, and into the folder where a linked model itself lies",
                        "tensor '%s' lies outside the model's folder: '%s'%s", name, p->location,
                        link_text(a, from->dir, p->location)), -1;
    int fd = open(file != NULL ? file : path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno != ENOENT) {
        ls_error(cx, at, LS_E_DATA, NULL, "tensor '%s': cannot open %s: %s", name, path,
                 strerror(errno));
    } else if (fd < 0 && from->nmissing++ == 0) {
        from->tensor = name;
        from->file = ls_arena_printf(a, "%s%s", path, link_text(a, from->dir, p->location));
    }
    return fd;
}

/* Finds the data, and reads them if `to` is not NULL; false after a diagnostic, or when the file
 * does not exist. */
static bool find(LsCtx *cx, LsWhere at, LsDataFolder *from, const Onnx__TensorProto *t,
                 size_t bytes, const unsigned char **to)
{
    Place p;
    const char *name = ls_text(t->name);
    if (from == NULL)
        return ls_error(cx, at, LS_E_UNSUPPORTED,
                        "save the model with external data for initializers only",
                        "tensor '%s' of an attribute has its data in another file", name);
    if (!read_place(cx, at, t, &p))
        return false;
    if (p.length >= 0 && (uint64_t)p.length != bytes)
        return ls_error(cx, at, LS_E_DATA, NULL,
                        "tensor '%s' needs %zu bytes of data, its external data has %" PRId64,
                        name, bytes, p.length);
    int fd = open_place(cx, at, from, name, &p);
    if (fd < 0)
        return false;
    const char *path = ls_arena_printf(cx->arena, "%s/%s", from->dir, p.location);
    bool good = check_file(cx, at, name, fd, path, &p, bytes);
    if (good && to != NULL)
        good = (*to = take(cx->arena, fd, bytes, p.offset)) != NULL
            || ls_error(cx, at, LS_E_IO, NULL, "cannot read %s: %s", path, strerror(errno));
    close(fd);
    return good;
}

const unsigned char *ls_external_data(LsCtx *cx, LsWhere at, LsDataFolder *from,
                                      const Onnx__TensorProto *t, size_t bytes)
{
    const unsigned char *data = NULL;
    return find(cx, at, from, t, bytes, &data) ? data : NULL;
}

bool ls_external_check(LsCtx *cx, LsWhere at, LsDataFolder *from, const Onnx__TensorProto *t,
                       size_t bytes)
{
    return find(cx, at, from, t, bytes, NULL);
}
