/* runtime/data/npz.c -- ZIP archives of stored members (PKWARE's APPNOTE 6.3), with ZIP64 when
 * reading. */
#include "runtime/base/checksum.h"
#include "runtime/data/npz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCAL = 30, CENTRAL = 46, END = 22, END64 = 56, END64_AT = 20 };
enum { CHECK_UP_TO = 1 << 26 };     /* most bytes of a member whose CRC is checked when it is
                                     * opened */

static uint64_t le(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int k = n; k-- > 0;)
        v = v << 8 | p[k];
    return v;
}

static void put(unsigned char *p, int n, uint64_t v)
{
    for (int k = 0; k < n; k++)
        p[k] = (unsigned char)(v >> 8 * k);
}

typedef struct LsZipDir { size_t at, end; uint64_t entries; } LsZipDir;

/* Finds the directory: the end record is the last one in the file, before a comment of at most 64
 * KiB. */
static bool find_directory(const LsFile *f, LsZipDir *dir, LsError *e)
{
    size_t low = f->size > END + 65535 ? f->size - END - 65535 : 0;
    for (size_t at = f->size >= END ? f->size - END + 1 : 0; at-- > low;) {
        const unsigned char *p = f->data + at;
        if (memcmp(p, "PK\5\6", 4) != 0)
            continue;
        uint64_t entries = le(p + 10, 2), start = le(p + 16, 4);
        if (at >= END64_AT && memcmp(p - END64_AT, "PK\6\7", 4) == 0) {
            uint64_t at64 = le(p - END64_AT + 8, 8);
            if (f->size < END64 || at64 > f->size - END64
                || memcmp(f->data + at64, "PK\6\6", 4) != 0)
                break;
            entries = le(f->data + at64 + 32, 8);
            start = le(f->data + at64 + 48, 8);
        }
        if (start > at || entries > (at - start) / CENTRAL)
            break;
        *dir = (LsZipDir){(size_t)start, at, entries};
        return true;
    }
    return ls_fail(e, LS_EXIT_DATA, "%s: truncated or damaged: the archive has no directory",
                   f->path);
}

typedef struct LsZipMember {
    const char *name; size_t name_len;
    uint64_t bytes, packed, at;     /* at: offset of the local header */
    uint32_t crc; int method;
} LsZipMember;

/* ZIP64: fields that exceed 32 bits are in an extra field, in this order. */
static void read_extra(LsZipMember *m, const unsigned char *p, size_t n)
{
    uint64_t *field[] = {&m->bytes, &m->packed, &m->at};
    while (n >= 4) {
        size_t len = le(p + 2, 2), at = 4;
        if (len > n - 4)
            return;
        for (int k = 0; le(p, 2) == 1 && k < 3; k++)
            if (*field[k] == UINT32_MAX && at + 8 <= 4 + len) {
                *field[k] = le(p + at, 8);
                at += 8;
            }
        p += 4 + len;
        n -= 4 + len;
    }
}

/* Reads the entry at dir->at and advances to the next one. */
static bool next_member(const LsFile *f, LsZipDir *dir, LsZipMember *m, LsError *e)
{
    const unsigned char *p = f->data + dir->at;
    if (dir->end - dir->at < CENTRAL || memcmp(p, "PK\1\2", 4) != 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: damaged archive directory", f->path);
    size_t name = le(p + 28, 2), extra = le(p + 30, 2), comment = le(p + 32, 2);
    if (dir->end - dir->at - CENTRAL < name + extra + comment)
        return ls_fail(e, LS_EXIT_DATA, "%s: damaged archive directory", f->path);
    *m = (LsZipMember){(const char *)p + CENTRAL, name, le(p + 24, 4), le(p + 20, 4), le(p + 42, 4),
                       (uint32_t)le(p + 16, 4), (int)le(p + 10, 2)};
    read_extra(m, p + CENTRAL + name, extra);
    dir->at += CENTRAL + name + extra + comment;
    return true;
}

/* Where the bytes of the member begin. */
static bool find_bytes(const LsFile *f, const LsZipMember *m, const char *what,
                       const unsigned char **data, LsError *e)
{
    if (m->at > f->size || f->size - m->at < LOCAL)
        return ls_fail(e, LS_EXIT_DATA, "%s lies outside the file (truncated?)", what);
    const unsigned char *p = f->data + m->at;
    size_t skip = LOCAL + le(p + 26, 2) + le(p + 28, 2), room = f->size - m->at;
    if (memcmp(p, "PK\3\4", 4) != 0 || room < skip || room - skip < m->packed)
        return ls_fail(e, LS_EXIT_DATA, "%s is damaged or truncated", what);
    *data = p + skip;
    return true;
}

static bool open_named(const LsFile *f, const LsZipMember *m, const char *what, LsArray *a,
                       LsError *e)
{
    if (m->method != 0 || m->packed != m->bytes)
        return ls_fail(e, LS_EXIT_DATA, "%s is compressed; save with numpy.savez, not "
                       "savez_compressed, or pack it (lowerset data pack)", what);
    const unsigned char *data;
    if (!find_bytes(f, m, what, &data, e))
        return false;
    if (m->bytes <= CHECK_UP_TO && ls_crc32(0, data, m->bytes) != m->crc)
        return ls_fail(e, LS_EXIT_DATA, "%s is damaged: its checksum is wrong", what);
    return ls_npy_read(a, data, m->bytes, what, e);
}

static bool open_member(const LsFile *f, const LsZipMember *m, LsArray *a, LsError *e)
{
    size_t room = strlen(f->path) + m->name_len + 16;
    char *what = malloc(room);
    if (!what)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    snprintf(what, room, "%s: member %.*s", f->path, (int)m->name_len, m->name);
    bool ok = open_named(f, m, what, a, e);
    free(what);
    return ok;
}

/* A member's file name is FOLDER, NAME, ".npy". */
static bool is_named(const LsZipMember *m, const char *folder, const char *name)
{
    size_t n = strlen(folder), len = strlen(name);
    return m->name_len == n + len + 4 && memcmp(m->name, folder, n) == 0
           && memcmp(m->name + n, name, len) == 0 && memcmp(m->name + n + len, ".npy", 4) == 0;
}

bool ls_npz_find_in(const LsFile *f, const char *folder, const char *name, LsArray *a, bool *found,
                    LsError *e)
{
    LsZipDir dir;
    LsZipMember m;
    *found = false;
    if (!find_directory(f, &dir, e))
        return false;
    for (uint64_t k = 0; k < dir.entries; k++) {
        if (!next_member(f, &dir, &m, e))
            return false;
        if (is_named(&m, folder, name)) {
            *found = true;
            return open_member(f, &m, a, e);
        }
    }
    return true;
}

bool ls_npz_find(const LsFile *f, const char *name, LsArray *a, bool *found, LsError *e)
{
    return ls_npz_find_in(f, "", name, a, found, e);
}

uint32_t ls_npz_count(const LsFile *f)
{
    LsZipDir dir;
    LsError ignored = {0};
    return find_directory(f, &dir, &ignored) ? (uint32_t)dir.entries : 0;
}

/* Member k; *found: there is one. */
static bool find_member(const LsFile *f, uint32_t k, LsZipMember *m, bool *found, LsError *e)
{
    LsZipDir dir;
    if (!find_directory(f, &dir, e))
        return false;
    *found = k < dir.entries;
    for (uint32_t i = 0; *found && i <= k; i++)
        if (!next_member(f, &dir, m, e))
            return false;
    return true;
}

bool ls_npz_at(const LsFile *f, uint32_t k, const char **name, size_t *len, LsArray *a, bool *found,
               LsError *e)
{
    LsZipMember m = {0};
    if (!find_member(f, k, &m, found, e))
        return false;
    if (!*found)
        return true;
    *name = m.name;
    *len = m.name_len > 4 ? m.name_len - 4 : 0;
    return open_member(f, &m, a, e);
}

bool ls_npz_entry(const LsFile *f, uint32_t k, LsNpzEntry *to, bool *found, LsError *e)
{
    LsZipMember m = {0};
    char what[300];
    if (!find_member(f, k, &m, found, e))
        return false;
    if (!*found)
        return true;
    *to = (LsNpzEntry){.name = m.name, .len = m.name_len > 4 ? m.name_len - 4 : 0,
                       .packed = m.packed, .bytes = m.bytes, .crc = m.crc, .method = m.method};
    snprintf(what, sizeof what, "%.200s: member %.*s", f->path,
             m.name_len < 64 ? (int)m.name_len : 64, m.name);
    return find_bytes(f, &m, what, &to->data, e);
}

void ls_npz_names(const LsFile *f, char *text, size_t n)
{
    LsZipDir dir;
    LsZipMember m;
    LsError ignored = {0};
    size_t fill = 0;
    text[0] = '\0';
    if (!find_directory(f, &dir, &ignored))
        return;
    for (uint64_t k = 0; k < dir.entries && next_member(f, &dir, &m, &ignored); k++) {
        size_t len = m.name_len > 4 ? m.name_len - 4 : 0;
        if (fill + len + 8 > n) {
            snprintf(text + fill, n - fill, ", ...");
            return;
        }
        fill += (size_t)snprintf(text + fill, n - fill, "%s%.*s", k ? ", " : "", (int)len, m.name);
    }
}

/* ---- writing ---- */

enum { NAME_MAX_BYTES = 65535 };        /* the format has 16 bits for the length of a name */
enum { UTF8 = 1 << 11 };                /* flag: the name is UTF-8; without it readers assume
                                         * CP437 */

bool ls_npz_open(LsNpz *z, const char *path, LsNpzMember *room, uint32_t cap, LsError *e)
{
    z->member = room, z->nmember = 0, z->cap = cap;
    return ls_out_open(&z->out, path, e);
}

/* Length of the UTF-8 character with this first byte; 0: an invalid first byte. */
static int utf8_bytes(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3
           : first < 0xf5 ? 4 : 0;
}

/* Names that are not valid UTF-8 get no flag: readers refuse a false claim. */
static bool needs_utf8_flag(const char *name)
{
    bool wide = false;
    for (const unsigned char *p = (const unsigned char *)name; *p;) {
        int n = utf8_bytes(*p);
        for (int k = 1; k < n; k++)
            if ((p[k] & 0xc0) != 0x80)
                return false;
        bool long_form = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
        bool beyond = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
        if (n == 0 || long_form || beyond)
            return false;
        wide |= n > 1;
        p += n;
    }
    return wide;
}

/* Local header and central entry share these fields; p points at "version needed". */
static void put_common(unsigned char *p, const LsNpzMember *m)
{
    memset(p, 0, 26);
    put(p, 2, 20);
    put(p + 2, 2, needs_utf8_flag(m->name) ? UTF8 : 0);
    put(p + 8, 2, 0x21);        /* 1980-01-01: the same run writes the same bytes */
    put(p + 10, 4, m->crc);
    put(p + 14, 4, m->bytes);
    put(p + 18, 4, m->bytes);
    put(p + 22, 2, strlen(m->name));
}

static void put_local(unsigned char *p, const LsNpzMember *m)
{
    memcpy(p, "PK\3\4", 4);
    put_common(p + 4, m);
}

/* Writes the member's checksum and sizes, which are known when the next member starts. */
static void finish_member(LsNpz *z)
{
    unsigned char local[LOCAL];
    if (z->nmember == 0)
        return;
    LsNpzMember *m = &z->member[z->nmember - 1];
    put_local(local, m);
    ls_out_patch(&z->out, m->at, local, LOCAL);
}

bool ls_npz_begin(LsNpz *z, const char *name, LsElement type, int rank, const int64_t *dim,
                  LsError *e)
{
    return ls_npz_begin_in(z, "", name, type, rank, dim, e);
}

bool ls_npz_begin_in(LsNpz *z, const char *folder, const char *name, LsElement type, int rank,
                     const int64_t *dim, LsError *e)
{
    char header[512];
    unsigned char local[LOCAL];
    size_t n = strlen(folder) + strlen(name) + 4;
    finish_member(z);
    if (z->nmember == z->cap || z->nmember == 65535)
        return ls_fail(e, LS_EXIT_FAIL, "%s: no room for member %s", z->out.path, name);
    if (n > NAME_MAX_BYTES)
        return ls_fail(e, LS_EXIT_FAIL, "%s: a name of %zu bytes does not fit an archive: %s",
                       z->out.path, strlen(name), name);
    if (z->out.at > (int64_t)UINT32_MAX)
        return ls_fail(e, LS_EXIT_FAIL, "%s: more than 4 GiB do not fit an archive", z->out.path);
    LsNpzMember *m = &z->member[z->nmember];
    *m = (LsNpzMember){.name = malloc(n + 1), .at = (uint32_t)z->out.at};
    if (!m->name)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    z->nmember++;
    snprintf(m->name, n + 1, "%s%s.npy", folder, name);
    put_local(local, m);
    ls_out_write(&z->out, local, LOCAL);
    ls_out_write(&z->out, m->name, n);
    ls_npz_write(z, header, ls_npy_header(header, type, rank, dim));
    return true;
}

void ls_npz_write(LsNpz *z, const void *data, size_t n)
{
    LsNpzMember *m = &z->member[z->nmember - 1];
    m->crc = ls_crc32(m->crc, data, n);
    if (__builtin_add_overflow(m->bytes, n, &m->bytes))
        z->out.err = EFBIG;
    ls_out_write(&z->out, data, n);
}

static void put_directory(LsNpz *z)
{
    unsigned char entry[CENTRAL] = "PK\1\2\24", end[END] = "PK\5\6";
    int64_t start = z->out.at;
    for (uint32_t k = 0; k < z->nmember; k++) {
        const LsNpzMember *m = &z->member[k];
        put_common(entry + 6, m);
        put(entry + 42, 4, m->at);
        ls_out_write(&z->out, entry, CENTRAL);
        ls_out_write(&z->out, m->name, strlen(m->name));
    }
    put(end + 8, 2, z->nmember);
    put(end + 10, 2, z->nmember);
    put(end + 12, 4, (uint64_t)(z->out.at - start));
    put(end + 16, 4, (uint64_t)start);
    if (z->out.at > (int64_t)UINT32_MAX)
        z->out.err = EFBIG;
    ls_out_write(&z->out, end, END);
}

bool ls_npz_close(LsNpz *z, LsError *e)
{
    finish_member(z);
    put_directory(z);
    while (z->nmember > 0)
        free(z->member[--z->nmember].name);
    return ls_out_commit(&z->out, e);
}
