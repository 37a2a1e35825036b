/* compiler/onnx_external.c -- tensor data in files beside the model.
 *
 * The location comes from whoever wrote the model: it may name only files inside the model's
 * folder, neither by an absolute path, nor through "..", nor by a symbolic link that leads out. */
#include "compiler/onnx_tensor.h"

#include "compiler/onnx_wire.h"

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
} Place; /* length -1: not said */

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
                        "tensor '%s' lies in an external file, which is not named",
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

/* Follows links: the file it ends at must still be below the folder. */
static bool links_out(const char *dir, const char *path)
{
    char folder[PATH_MAX], file[PATH_MAX];
    if (realpath(dir, folder) == NULL || realpath(path, file) == NULL)
        return false;           /* open will say what is wrong */
    size_t n = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    return strncmp(folder, file, n) != 0 || file[n] != '/';
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

static const unsigned char *read_at(LsCtx *cx, LsWhere at, const char *name, int fd,
                                    const char *path, const Place *p, size_t bytes)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        ls_error(cx, at, LS_E_DATA, NULL, "tensor '%s': %s is not a regular file", name, path);
        return NULL;
    }
    if (p->offset > st.st_size || bytes > (uint64_t)(st.st_size - p->offset)) {
        ls_error(cx, at, LS_E_DATA, NULL,
                 "tensor '%s' needs %zu bytes at offset %" PRId64 " of %s, "
                 "which has %" PRId64,
                 name, bytes, p->offset, path, (int64_t)st.st_size);
        return NULL;
    }
    unsigned char *data = ls_arena_alloc(cx->arena, bytes + 1, 1);
    if (!read_all(fd, data, bytes, p->offset)) {
        ls_error(cx, at, LS_E_IO, NULL, "cannot read %s: %s", path, strerror(errno));
        return NULL;
    }
    return data;
}

const unsigned char *ls_external_data(LsCtx *cx, LsWhere at, LsDataFolder *from,
                                      const Onnx__TensorProto *t, size_t bytes)
{
    Place p;
    const char *name = ls_text(t->name);
    if (from == NULL)
        ls_error(cx, at, LS_E_UNSUPPORTED,
                 "save the model with external data for initializers only",
                 "tensor '%s' of an attribute has its data in another file", name);
    if (from == NULL || !read_place(cx, at, t, &p))
        return NULL;
    const char *dir = from->dir;
    const char *path = ls_arena_printf(cx->arena, "%s/%s", dir, p.location);
    if (leaves_folder(p.location) || links_out(dir, path)) {
        ls_error(cx, at, LS_E_DATA, "external data is read from the model's own folder only",
                 "tensor '%s' lies outside the model's folder: '%s'", name, p.location);
        return NULL;
    }
    if (p.length >= 0 && (uint64_t)p.length != bytes) {
        ls_error(cx, at, LS_E_DATA, NULL,
                 "tensor '%s' needs %zu bytes of data, its external data has %" PRId64,
                 name, bytes, p.length);
        return NULL;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno != ENOENT) {
        ls_error(cx, at, LS_E_DATA, NULL, "tensor '%s': cannot open %s: %s", name, path,
                 strerror(errno));
    } else if (fd < 0 && from->nmissing++ == 0) {
        from->tensor = name;
        from->file = path;
    }
    if (fd < 0)
        return NULL;
    const unsigned char *data = read_at(cx, at, name, fd, path, &p, bytes);
    close(fd);
    return data;
}
