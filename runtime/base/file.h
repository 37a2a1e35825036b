/* runtime/base/file.h -- files read as a whole through mmap, and files that appear complete or not at
 * all. */
#ifndef LS_RUNTIME_BASE_FILE_H
#define LS_RUNTIME_BASE_FILE_H

#include "runtime/base/run_error.h"

#include <stddef.h>
#include <stdint.h>

enum { LS_PATH = 4096 };

typedef struct LsFile { const char *path; const unsigned char *data; size_t size; } LsFile;

/* Maps a regular file; the path must outlive it. An unreadable or empty file is an LS_EXIT_DATA
 * error. */
bool ls_file_map(LsFile *f, const char *path, LsError *e);
void ls_file_unmap(LsFile *f);

/* An output. A regular file, or one that is not there yet, is written as PATH.tmp; ls_out_commit
 * syncs that and renames it to PATH, behind links. Anything else (a device, a pipe, this process'
 * own stdout and stderr wherever they go) is never replaced: it gets the bytes at the commit, and
 * until then they lie in an unnamed file. Errors stick and are told by the commit, which then
 * removes the temporary file. */
typedef struct LsOut {
    char path[LS_PATH], tmp[LS_PATH + 8];
    bool through;               /* the bytes go into what is there */
    bool quick;                 /* need not survive a crash of the machine: no sync */
    int fd, err;
    int64_t at;                 /* bytes written so far */
    size_t fill;
    unsigned char buf[1 << 16];
} LsOut;

/* Finds out where it goes, and changes nothing: path, tmp and through. */
bool ls_out_place(LsOut *o, const char *path, LsError *e);
/* Whether it could be written now: the folder is there, and takes a file. */
bool ls_out_check(const char *path, LsError *e);
/* A descriptor for what is written bit by bit and followed by readers, a log: from the start, or at
 * the end. -1 with errno. */
int ls_out_follow(const char *path, bool append);
bool ls_out_open(LsOut *o, const char *path, LsError *e);
void ls_out_write(LsOut *o, const void *data, size_t n);
/* Overwrites n bytes written before. */
void ls_out_patch(LsOut *o, int64_t at, const void *data, size_t n);
bool ls_out_commit(LsOut *o, LsError *e);

#endif
