/* runtime/base/file.c -- see file.h. */
#include "runtime/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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

/* ---- outputs ---- */

/* The descriptor, stdout or stderr, that refers to this file; -1: none. */
static int own_stream(const struct stat *st)
{
    struct stat own;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino)
            return fd;
    return -1;
}

static bool cannot_write(const char *path, int err, LsError *e)
{
    return ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", path, strerror(err));
}

bool ls_out_place(LsOut *o, const char *path, LsError *e)
{
    struct stat st;
    char *real = NULL;
    bool there = stat(path, &st) == 0, link = lstat(path, &(struct stat){0}) == 0;
    if (!*path || (there && S_ISDIR(st.st_mode)))
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", path,
                       *path ? "it is a folder" : "it has no name");
    o->through = there ? !S_ISREG(st.st_mode) || own_stream(&st) >= 0 : link;
    if (there && !o->through)
        real = realpath(path, NULL);
    const char *to = real ? real : path;
    bool fits = strlen(to) < sizeof o->path;
    snprintf(o->path, sizeof o->path, "%s", to);
    snprintf(o->tmp, sizeof o->tmp, "%s.tmp", o->path);
    free(real);
    return fits || cannot_write(path, ENAMETOOLONG, e);
}

bool ls_out_check(const char *path, LsError *e)
{
    LsOut o;
    struct stat st;
    if (!ls_out_place(&o, path, e))
        return false;
    bool there = stat(o.path, &st) == 0;
    if (o.through && there)
        return own_stream(&st) >= 0 || access(o.path, W_OK) == 0 || cannot_write(path, errno, e);
    int fd = open(o.tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        unlink(o.tmp);
    else if (errno == EEXIST && (fd = open(o.tmp, O_WRONLY | O_CLOEXEC)) < 0 && errno == ENOENT)
        return true;                    /* another rank checked it at the same time; else a killed
                                         * run left it */
    if (fd < 0)
        return cannot_write(path, errno, e);
    close(fd);
    return true;
}

static int unnamed_file(void)
{
    FILE *f = tmpfile();
    int fd = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 0) : -1;
    if (f)
        fclose(f);
    return fd;
}

bool ls_out_open(LsOut *o, const char *path, LsError *e)
{
    o->fd = -1, o->err = 0, o->at = 0, o->fill = 0, o->quick = o->in_memory = false;
    if (!ls_out_place(o, path, e))
        return false;
    o->fd = o->through ? unnamed_file()
                       : open(o->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return o->fd >= 0 || cannot_write(o->through ? "a temporary file" : o->tmp, errno, e);
}

void ls_out_open_memory(LsOut *o, void *to, size_t room)
{
    o->fd = -1, o->err = 0, o->at = 0, o->fill = 0;
    o->in_memory = true, o->to = to, o->room = room;
}

static void put_into(const LsOut *o, int64_t at, const void *data, size_t n)
{
    if (o->room > 0 && (size_t)at + n <= o->room)
        memcpy(o->to + at, data, n);
}

static void put_to(LsOut *o, int fd, const unsigned char *data, size_t n)
{
    while (n > 0 && !o->err) {
        ssize_t done = write(fd, data, n);
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

static void put(LsOut *o, const unsigned char *data, size_t n) { put_to(o, o->fd, data, n); }

static void flush(LsOut *o)
{
    put(o, o->buf, o->fill);
    o->fill = 0;
}

void ls_out_write(LsOut *o, const void *data, size_t n)
{
    o->at += (int64_t)n;
    if (o->in_memory) {
        put_into(o, o->at - (int64_t)n, data, n);
        return;
    }
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
    if (o->in_memory) {
        put_into(o, at, data, n);
        return;
    }
    flush(o);
    if (!o->err && pwrite(o->fd, data, n, at) != (ssize_t)n)
        o->err = errno ? errno : EIO;
}

/* Syncs the folder that holds the name: the rename itself must survive a crash too. */
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

/* Opens the output's file; output to stdout goes behind the text printed so far. */
static int open_there(const char *path, int flags)
{
    struct stat st;
    int own = stat(path, &st) == 0 ? own_stream(&st) : -1;
    fflush(stdout);
    return own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 0)
                    : open(path, O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC | flags, 0666);
}

bool ls_file_hold(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

/* A log that another process writes is not emptied. */
int ls_out_follow(const char *path, bool append)
{
    struct stat st;
    const int fd = open_there(path, append ? O_APPEND : 0);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || own_stream(&st) >= 0)
        return fd;
    if (ls_file_hold(fd) && (append || ftruncate(fd, 0) == 0))
        return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static void copy_through(LsOut *o)
{
    int to = open_there(o->path, 0);
    ssize_t n = 0;
    if (to < 0) {
        o->err = errno;
        return;
    }
    for (off_t at = 0; !o->err && (n = pread(o->fd, o->buf, sizeof o->buf, at)) > 0; at += n)
        put_to(o, to, o->buf, (size_t)n);
    if ((n < 0 || close(to) != 0) && !o->err)
        o->err = errno;
}

/* The file is complete under its temporary name. */
static void finish(LsOut *o)
{
    if (!o->err && !o->quick && fsync(o->fd) != 0)
        o->err = errno;
    if (close(o->fd) != 0 && !o->err)
        o->err = errno;
}

static void replace(LsOut *o)
{
    finish(o);
    if (!o->err && rename(o->tmp, o->path) != 0)
        o->err = errno;
    if (o->err)
        unlink(o->tmp);
    else if (!o->quick)
        sync_folder(o->path);
}

bool ls_out_commit(LsOut *o, LsError *e)
{
    if (o->in_memory)
        return o->room == 0 || (size_t)o->at <= o->room
               || ls_fail(e, LS_EXIT_USAGE, "there is room for %zu bytes, and %lld are needed",
                          o->room, (long long)o->at);
    flush(o);
    if (!o->through) {
        replace(o);
    } else {
        if (!o->err)
            copy_through(o);
        close(o->fd);
    }
    return !o->err || cannot_write(o->path, o->err, e);
}

bool ls_out_commit_both(LsOut *first, LsOut *second, LsError *e)
{
    LsOut *const both[] = {first, second};
    int err = 0;
    for (int k = 0; k < 2; k++) {
        flush(both[k]);
        finish(both[k]);
        err = err ? err : both[k]->err;
    }
    /* An older second file must not be read with the new first one. */
    if (!err && access(first->path, F_OK) == 0 && unlink(second->path) != 0 && errno != ENOENT)
        err = errno;
    if (!err)
        sync_folder(second->path);
    for (int k = 0; k < 2 && !err; k++)
        err = rename(both[k]->tmp, both[k]->path) != 0 ? errno : 0;
    for (int k = 0; k < 2 && err; k++)
        unlink(both[k]->tmp);
    sync_folder(second->path);
    return !err || cannot_write((first->err ? first : second)->path, err, e);
}
