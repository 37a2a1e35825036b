/* cli/report/output.c -- see output.h. */
#include "cli/report/output.h"

#include "runtime/base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool tell(const LsError *e)
{
    fprintf(stderr, "lowerset: %s\n", e->text);
    return false;
}

bool ls_output_check(const char *path)
{
    LsError e = {0};
    return path == NULL || ls_out_check(path, &e) || tell(&e);
}

bool ls_output_write(const char *path, void (*put)(FILE *to, void *user), void *user)
{
    LsError e = {0};
    LsOut o;
    if (!ls_out_open(&o, path, &e))
        return tell(&e);
    o.quick = true;
    int fd = dup(o.fd);
    FILE *to = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (to != NULL) {
        put(to, user);
        o.err = ferror(to) ? EIO : 0;
        o.err = fclose(to) != 0 && o.err == 0 ? errno : o.err;
    } else {
        o.err = errno;
    }
    return ls_out_commit(&o, &e) || tell(&e);
}

const char *ls_output_part(LsArena *arena, const char *path)
{
    LsError e = {0};
    LsOut o;
    return ls_out_place(&o, path, &e) && !o.through ? ls_arena_strdup(arena, o.tmp) : path;
}

static bool copy(const char *from, const char *path, LsError *e)
{
    LsFile f;
    LsOut o;
    if (!ls_file_map(&f, from, e))
        return false;
    bool ok = ls_out_open(&o, path, e);
    if (ok) {
        ls_out_write(&o, f.data, f.size);
        ok = ls_out_commit(&o, e);
    }
    ls_file_unmap(&f);
    return ok;
}

bool ls_output_take(const char *part, const char *path, bool ok)
{
    LsError e = {0};
    LsOut o;
    if (!ok || strcmp(part, path) == 0) {
        if (!ok && strcmp(part, path) != 0)
            unlink(part);
        return ok;
    }
    ok = ls_out_place(&o, path, &e);
    if (ok && !o.through)
        ok = rename(part, o.path) == 0
             || ls_fail(&e, LS_EXIT_FAIL, "%s: cannot write: %s", path, strerror(errno));
    else if (ok)
        ok = copy(part, path, &e);
    unlink(part);
    return ok || tell(&e);
}

bool ls_output_copy(const char *from, const char *path)
{
    LsError e = {0};
    return copy(from, path, &e) || tell(&e);
}

static int failed(const char *path)
{
    fprintf(stderr, "lowerset: cannot write '%s': %s\n", path, strerror(errno));
    return LS_EXIT_FAIL;
}

/* Whether the folder of `path` is writable; else errno has the reason. */
static bool takes_files(const char *path)
{
    char folder[PATH_MAX] = ".";
    struct stat st;
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
    if (n >= sizeof folder)
        return errno = ENAMETOOLONG, false;
    if (slash != NULL)
        memcpy(folder, path, n);
    folder[n] = '\0';
    if (stat(folder, &st) != 0)
        return false;
    if (!S_ISDIR(st.st_mode))
        return errno = ENOTDIR, false;
    return access(folder, W_OK | X_OK) == 0;
}

int ls_output_folder(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == ENOENT && takes_files(path) ? 0 : failed(path);
    if (!S_ISDIR(st.st_mode))
        return errno = ENOTDIR, failed(path);
    return access(path, W_OK | X_OK) == 0 ? 0 : failed(path);
}

const char *ls_temporary_folder(LsArena *arena)
{
    const char *tmp = getenv("TMPDIR");
    const char *dir =
        mkdtemp(ls_arena_printf(arena, "%s/lowerset-XXXXXX", tmp != NULL && *tmp ? tmp : "/tmp"));
    if (dir == NULL)
        fprintf(stderr, "lowerset: cannot make a temporary folder: %s\n", strerror(errno));
    return dir;
}
