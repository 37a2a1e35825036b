/* cli/output.c -- see output.h. */
#include "cli/output.h"

#include "compiler/diag.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int ls_output_failed(const char *path)
{
    fprintf(stderr, "lowerset: cannot write '%s': %s\n", path, strerror(errno));
    return LS_EXIT_MODEL;
}

/* Whether files can be made in the folder that `path` is in; errno says why not. */
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

int ls_output_file(const char *path)
{
    struct stat st;
    if (path == NULL)
        return 0;
    if (stat(path, &st) != 0)
        return errno == ENOENT && takes_files(path) ? 0 : ls_output_failed(path);
    if (S_ISDIR(st.st_mode))
        return errno = EISDIR, ls_output_failed(path);
    /* A program that runs cannot be written into, but replaced. */
    return access(path, W_OK) == 0 || errno == ETXTBSY ? 0 : ls_output_failed(path);
}

int ls_output_folder(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == ENOENT && takes_files(path) ? 0 : ls_output_failed(path);
    if (!S_ISDIR(st.st_mode))
        return errno = ENOTDIR, ls_output_failed(path);
    return access(path, W_OK | X_OK) == 0 ? 0 : ls_output_failed(path);
}
