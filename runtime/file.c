/* runtime/file.c -- see file.h. */
#include "runtime/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool ls_file_map(LsFile *f, const char *path, LsError *e)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *f = (LsFile){.path = path};
    if (fd < 0 || fstat(fd, &st) != 0) {
        ls_fail(e, LS_EXIT_DATA, "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (!S_ISREG(st.st_mode) || st.st_size == 0) {
        close(fd);
        return ls_fail(e, LS_EXIT_DATA, "%s: %s", path,
                       S_ISREG(st.st_mode) ? "the file is empty" : "not a regular file");
    }
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return ls_fail(e, LS_EXIT_DATA, "%s: %s", path, strerror(errno));
    f->data = map;
    f->size = (size_t)st.st_size;
    return true;
}

void ls_file_unmap(LsFile *f)
{
    if (f->data)
        munmap((void *)f->data, f->size);
    f->data = NULL;
}

bool ls_out_open(LsOut *o, const char *path, LsError *e)
{
    o->fd = -1, o->err = 0, o->at = 0, o->fill = 0;
    if (strlen(path) >= sizeof o->path)
        return ls_fail(e, LS_EXIT_FAIL, "%s: path too long", path);
    snprintf(o->path, sizeof o->path, "%s", path);
    snprintf(o->tmp, sizeof o->tmp, "%s.tmp", path);
    o->fd = open(o->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (o->fd < 0)
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", o->tmp, strerror(errno));
    return true;
}

static void put(LsOut *o, const unsigned char *data, size_t n)
{
    while (n > 0 && !o->err) {
        ssize_t done = write(o->fd, data, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            o->err = errno;
            return;
        }
        data += done;
        n -= (size_t)done;
    }
}

static void flush(LsOut *o)
{
    put(o, o->buf, o->fill);
    o->fill = 0;
}

void ls_out_write(LsOut *o, const void *data, size_t n)
{
    o->at += (int64_t)n;
    if (n > sizeof o->buf - o->fill)
        flush(o);
    if (n > sizeof o->buf) {
        put(o, data, n);
        return;
    }
    memcpy(o->buf + o->fill, data, n);
    o->fill += n;
}

void ls_out_patch(LsOut *o, int64_t at, const void *data, size_t n)
{
    flush(o);
    if (!o->err && pwrite(o->fd, data, n, at) != (ssize_t)n)
        o->err = errno ? errno : EIO;
}

/* The rename itself must survive a crash too: sync the directory that holds the name. */
static void sync_folder(const char *path)
{
    char folder[LS_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

bool ls_out_commit(LsOut *o, LsError *e)
{
    flush(o);
    if (!o->err && fsync(o->fd) != 0)
        o->err = errno;
    if (close(o->fd) != 0 && !o->err)
        o->err = errno;
    if (!o->err && rename(o->tmp, o->path) != 0)
        o->err = errno;
    if (o->err) {
        unlink(o->tmp);
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", o->path, strerror(o->err));
    }
    sync_folder(o->path);
    return true;
}
