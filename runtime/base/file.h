/* runtime/base/file.h -- files mapped as a whole, and files that appear complete or not at all. */
#ifndef LS_RUNTIME_BASE_FILE_H
#define LS_RUNTIME_BASE_FILE_H

#include "runtime/base/run_error.h"

#include <stddef.h>
#include <stdint.h>

enum { LS_PATH = 4096 };

typedef struct LsFile { const char *path; const unsigned char *data; size_t size; } LsFile;

/* Maps a regular file; the path must outlive the mapping. An unreadable or empty file is an
 * LS_EXIT_DATA error. */
bool ls_file_map(LsFile *f, const char *path, LsError *e);
void ls_file_unmap(LsFile *f);

/* An output. A regular or new file is written as PATH.tmp; ls_out_commit syncs it and renames it to
 * PATH, with links resolved. Anything else (a device, a pipe, this process's own stdout and stderr
 * wherever they go) is never replaced: it gets the bytes at the commit, and until then they lie in
 * an unnamed file. The first error is kept; the commit reports it and removes the temporary
 * file. */
typedef struct LsOut {
    char path[LS_PATH], tmp[LS_PATH + 8];
    bool through;               /* the bytes go to the existing file, device or pipe */
    bool quick;                 /* no sync: the file need not survive a crash of the machine */
    bool in_memory;             /* the bytes go to `to`, as many as it has room for */
    unsigned char *to; size_t room;
    int fd, err;
    int64_t at;                 /* bytes written so far */
    size_t fill;
    unsigned char buf[1 << 16];
} LsOut;

/* Finds the file's place without changing anything: sets path, tmp and through. */
bool ls_out_place(LsOut *o, const char *path, LsError *e);
/* Whether the file could be written now: the folder exists and is writable. */
bool ls_out_check(const char *path, LsError *e);
/* Whether no other process that called this for the same file or folder holds it. Held until the
 * descriptor is closed, or the process ends in whatever way. True, too, where the file system has
 * no locks. */
bool ls_file_hold(int fd);

/* A descriptor for a log, which is written line by line while others read it: from the start, or at
 * the end. -1 with errno, EWOULDBLOCK if another process writes that log. */
int ls_out_follow(const char *path, bool append);
bool ls_out_open(LsOut *o, const char *path, LsError *e);
/* An output into the caller's memory; its commit fails if that has too little room. room 0: the
 * bytes are only counted. */
void ls_out_open_memory(LsOut *o, void *to, size_t room);
void ls_out_write(LsOut *o, const void *data, size_t n);
/* Overwrites n bytes written before. */
void ls_out_patch(LsOut *o, int64_t at, const void *data, size_t n);
bool ls_out_commit(LsOut *o, LsError *e);
/* Commits two regular files of one folder, of which the second needs the first: at no time is there
 * a second one beside a first that is not its own. An older pair is given up for that just before
 * both names get their new files, which are complete by then. */
bool ls_out_commit_both(LsOut *first, LsOut *second, LsError *e);

#endif
