/* runtime/file.h -- files read as a whole through mmap, and files that appear complete or not at
 * all. */
#ifndef LS_RUNTIME_FILE_H
#define LS_RUNTIME_FILE_H

#include "runtime/error.h"

#include <stddef.h>
#include <stdint.h>

enum { LS_PATH = 4096 };

typedef struct LsFile { const char *path; const unsigned char *data; size_t size; } LsFile;

/* Maps a regular file; the path must outlive it. An unreadable or empty file is an LS_EXIT_DATA
 * error. */
bool ls_file_map(LsFile *f, const char *path, LsError *e);
void ls_file_unmap(LsFile *f);

/* Writes PATH.tmp; ls_out_commit syncs it and renames it to PATH. Errors stick and are told by the
 * commit, which then removes the temporary file. */
typedef struct LsOut {
    char path[LS_PATH], tmp[LS_PATH + 8];
    int fd, err;
    int64_t at;                 /* bytes written so far */
    size_t fill;
    unsigned char buf[1 << 16];
} LsOut;

bool ls_out_open(LsOut *o, const char *path, LsError *e);
void ls_out_write(LsOut *o, const void *data, size_t n);
/* Overwrites n bytes written before. */
void ls_out_patch(LsOut *o, int64_t at, const void *data, size_t n);
bool ls_out_commit(LsOut *o, LsError *e);

#endif
