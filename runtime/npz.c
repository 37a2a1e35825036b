/* runtime/npz.c -- ZIP archives of stored members (PKWARE's APPNOTE 6.3), with ZIP64 when
 * reading. */
#include "runtime/checksum.h"
#include "runtime/npy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LOCAL = 30, CENTRAL = 46, END = 22, END64 = 56, END64_AT = 20 };
enum { CHECK_UP_TO = 1 << 26 };     /* bytes of members whose CRC is checked when they are opened */

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

/* The end record is the last one in the file, before a comment of at most 64 KiB. */
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
        if (start > at)
            break;
        *dir = (LsZipDir){(size_t)start, at, entries};
        return true;
    }
    return ls_fail(e, LS_EXIT_DATA, "%s: truncated or damaged: the archive has no directory",
                   f->path);
}

typedef struct LsZipMember {
    const char *name; size_t name_len;
    uint64_t bytes, packed, at;     /* at: of the local header */
    uint32_t crc; int method;
} LsZipMember;

/* ZIP64: fields that do not fit 32 bits stand in an extra field, in this order. */
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

/* Reads the entry at dir->at and moves on to the next one. */
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

static bool open_member(const LsFile *f, const LsZipMember *m, LsArray *a, LsError *e)
{
    char what[512];
    snprintf(what, sizeof what, "%s: member %.*s", f->path, (int)m->name_len, m->name);
    if (m->method != 0 || m->packed != m->bytes)
        return ls_fail(e, LS_EXIT_DATA, "%s is compressed; save with numpy.savez, not "
                       "savez_compressed", what);
    if (m->at > f->size || f->size - m->at < LOCAL)
        return ls_fail(e, LS_EXIT_DATA, "%s lies outside the file (truncated?)", what);
    const unsigned char *p = f->data + m->at;
    size_t skip = LOCAL + le(p + 26, 2) + le(p + 28, 2), room = f->size - m->at;
    if (memcmp(p, "PK\3\4", 4) != 0 || room < skip || room - skip < m->bytes)
        return ls_fail(e, LS_EXIT_DATA, "%s is damaged or truncated", what);
    if (m->bytes <= CHECK_UP_TO && ls_crc32(0, p + skip, m->bytes) != m->crc)
        return ls_fail(e, LS_EXIT_DATA, "%s is damaged: its checksum is wrong", what);
    return ls_npy_read(a, p + skip, m->bytes, what, e);
}

bool ls_npz_find(const LsFile *f, const char *name, LsArray *a, bool *found, LsError *e)
{
    LsZipDir dir;
    LsZipMember m;
    size_t len = strlen(name);
    *found = false;
    if (!find_directory(f, &dir, e))
        return false;
    for (uint64_t k = 0; k < dir.entries; k++) {
        if (!next_member(f, &dir, &m, e))
            return false;
        if (m.name_len == len + 4 && memcmp(m.name, name, len) == 0
            && memcmp(m.name + len, ".npy", 4) == 0) {
            *found = true;
            return open_member(f, &m, a, e);
        }
    }
    return true;
}

uint32_t ls_npz_count(const LsFile *f)
{
    LsZipDir dir;
    LsError ignored = {0};
    return find_directory(f, &dir, &ignored) ? (uint32_t)dir.entries : 0;
}

bool ls_npz_at(const LsFile *f, uint32_t k, char *name, size_t n, LsArray *a, bool *found,
               LsError *e)
{
    LsZipDir dir;
    LsZipMember m = {0};
    if (!find_directory(f, &dir, e))
        return false;
    *found = k < dir.entries;
    for (uint32_t i = 0; *found && i <= k; i++)
        if (!next_member(f, &dir, &m, e))
            return false;
    if (!*found)
        return true;
    size_t len = m.name_len > 4 ? m.name_len - 4 : 0;
    snprintf(name, n, "%.*s", (int)len, m.name);
    return open_member(f, &m, a, e);
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

bool ls_npz_open(LsNpz *z, const char *path, LsNpzMember *room, uint32_t cap, LsError *e)
{
    z->member = room, z->nmember = 0, z->cap = cap;
    return ls_out_open(&z->out, path, e);
}

/* Local header and central entry share these fields; p points at "version needed". */
static void put_common(unsigned char *p, const LsNpzMember *m)
{
    memset(p, 0, 26);
    put(p, 2, 20);
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

/* Sums and sizes of a member are known once the next one starts. */
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
    char header[512];
    unsigned char local[LOCAL];
    finish_member(z);
    if (z->nmember == z->cap || z->nmember == 65535 || strlen(name) > 250)
        return ls_fail(e, LS_EXIT_FAIL, "%s: no room for member %s", z->out.path, name);
    if (z->out.at > (int64_t)UINT32_MAX)
        return ls_fail(e, LS_EXIT_FAIL, "%s: more than 4 GiB do not fit an archive", z->out.path);
    LsNpzMember *m = &z->member[z->nmember++];
    *m = (LsNpzMember){.at = (uint32_t)z->out.at};
    snprintf(m->name, sizeof m->name, "%s.npy", name);
    put_local(local, m);
    ls_out_write(&z->out, local, LOCAL);
    ls_out_write(&z->out, m->name, strlen(m->name));
    ls_npz_write(z, header, ls_npy_header(header, type, rank, dim));
    return true;
}

void ls_npz_write(LsNpz *z, const void *data, size_t n)
{
    LsNpzMember *m = &z->member[z->nmember - 1];
    m->crc = ls_crc32(m->crc, data, n);
    m->bytes += (uint32_t)n;
    ls_out_write(&z->out, data, n);
}

bool ls_npz_close(LsNpz *z, LsError *e)
{
    unsigned char entry[CENTRAL] = "PK\1\2\24", end[END] = "PK\5\6";
    finish_member(z);
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
    return ls_out_commit(&z->out, e);
}
