/* runtime/data/npz.h -- NumPy's archives: NPZ with uncompressed members. */
#ifndef LS_RUNTIME_DATA_NPZ_H
#define LS_RUNTIME_DATA_NPZ_H

#include "runtime/data/npy.h"

/* Finds member NAME.npy. *found = false when it is missing (no error). */
bool ls_npz_find(const LsFile *f, const char *name, LsArray *a, bool *found, LsError *e);
/* The same for a name that begins with `folder`: "in/" or "". */
bool ls_npz_find_in(const LsFile *f, const char *folder, const char *name, LsArray *a, bool *found,
                    LsError *e);
/* Number of members; 0 when the file is no archive. */
uint32_t ls_npz_count(const LsFile *f);
/* Member k in file order, with its name without ".npy": *len bytes in the file. *found = false
 * behind the last member. */
bool ls_npz_at(const LsFile *f, uint32_t k, const char **name, size_t *len, LsArray *a, bool *found,
               LsError *e);
/* A member's bytes as they lie in the file. */
typedef struct LsNpzEntry {
    const char *name; size_t len;       /* without ".npy" */
    const unsigned char *data;
    uint64_t packed, bytes;     /* in the file; of the NPY */
    uint32_t crc; int method;   /* 0: stored; 8: deflated */
} LsNpzEntry;
/* Member k, compressed or not, its checksum unchecked. *found = false behind the last one. */
bool ls_npz_entry(const LsFile *f, uint32_t k, LsNpzEntry *to, bool *found, LsError *e);
/* Writes the member names, comma-separated, as many as fit. */
void ls_npz_names(const LsFile *f, char *text, size_t n);

/* An archive written member by member. All sizes are known in advance, so only the directory is
 * kept in memory. */
typedef struct LsNpzMember { char *name; uint32_t crc, bytes, at; } LsNpzMember;
typedef struct LsNpz {
    LsOut out;
    LsNpzMember *member;        /* the caller's array for the directory */
    uint32_t nmember, cap;
} LsNpz;

bool ls_npz_open(LsNpz *z, const char *path, LsNpzMember *room, uint32_t cap, LsError *e);
bool ls_npz_begin(LsNpz *z, const char *name, LsElement type, int rank, const int64_t *dim,
                  LsError *e);
/* The same with `folder` as a prefix of the name. */
bool ls_npz_begin_in(LsNpz *z, const char *folder, const char *name, LsElement type, int rank,
                     const int64_t *dim, LsError *e);
void ls_npz_write(LsNpz *z, const void *data, size_t n);
bool ls_npz_close(LsNpz *z, LsError *e);

#endif
