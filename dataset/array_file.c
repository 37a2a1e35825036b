/* dataset/array_file.c -- see the header. */
#include "dataset/array_file.h"

#include "dataset/packed_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef LS_HAVE_ZLIB
#include <zlib.h>
#endif

static bool keep_name(LsArrayFile *a, const char *name, size_t n, LsError *e)
{
    a->name = malloc(n + 1);
    if (a->name == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    memcpy(a->name, name, n);
    a->name[n] = '\0';
    return true;
}

bool ls_array_file_npy(LsArrayFile *a, const LsFile *f, LsError *e)
{
    const char *slash = strrchr(f->path, '/'), *name = slash != NULL ? slash + 1 : f->path,
               *dot = strrchr(name, '.');
    *a = (LsArrayFile){0};
    return keep_name(a, name, dot != NULL ? (size_t)(dot - name) : strlen(name), e)
           && ls_npy_read_order(&a->array, f->data, f->size, f->path, &a->fortran, e);
}

/* An unnamed file of that size, mapped. */
static bool map_unnamed(LsArrayFile *a, const char *folder, size_t bytes, LsError *e)
{
    const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? tmpfile() : NULL;
    const int to = fd >= 0 ? fd : f != NULL ? fileno(f) : -1;
    /* room is taken now: a full disk is found here, and not when the pages are written */
    const int full = to >= 0 ? posix_fallocate(to, 0, (off_t)bytes) : errno;
    void *at =
        full == 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0) : MAP_FAILED;
    const int why = full != 0 ? full : errno;
    if (f != NULL)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return ls_fail(e, LS_EXIT_FAIL, "no room for %zu bytes of an unpacked array in %s: %s",
                       bytes, folder, strerror(why));
    a->unpacked = at;
    a->bytes = bytes;
    return true;
}

#ifdef LS_HAVE_ZLIB
static bool unpack(const LsNpzEntry *m, unsigned char *to, const char *what, LsError *e)
{
    enum { MOST = 1 << 30 };
    z_stream z = {.next_in = (unsigned char *)m->data, .next_out = to};
    uint64_t in = m->packed, out = m->bytes;
    int code = inflateInit2(&z, -MAX_WBITS);
    while (code == Z_OK) {
        const uInt give = in < MOST ? (uInt)in : MOST, room = out < MOST ? (uInt)out : MOST;
        z.avail_in = give;
        z.avail_out = room;
        code = inflate(&z, Z_NO_FLUSH);
        in -= give - z.avail_in;
        out -= room - z.avail_out;
        if (code == Z_OK && give == z.avail_in && room == z.avail_out)
            code = Z_DATA_ERROR; /* it does not end where it should */
    }
    inflateEnd(&z);
    if (code != Z_STREAM_END || out != 0)
        return ls_fail(e, LS_EXIT_DATA, "%s is damaged: it cannot be unpacked", what);
    return true;
}
#endif

static bool open_entry(LsArrayFile *a, const LsNpzEntry *m, const char *folder, const char *what,
                       LsError *e)
{
    const unsigned char *data = m->data;
    if (m->method == 8) {
#ifdef LS_HAVE_ZLIB
        /* a byte of deflate makes at most 1032 */
        if (m->bytes == 0 || m->bytes / 1032 > m->packed)
            return ls_fail(e, LS_EXIT_DATA, "%s is damaged: its sizes are impossible", what);
        if (!map_unnamed(a, folder, m->bytes, e) || !unpack(m, a->unpacked, what, e))
            return false;
        data = a->unpacked;
#else
        (void)folder;
        return ls_fail(e, LS_EXIT_DEVICE,
                       "%s is compressed, and this lowerset was built without "
                       "zlib; save with numpy.savez",
                       what);
#endif
    } else if (m->method != 0 || m->packed != m->bytes) {
        return ls_fail(e, LS_EXIT_DATA, "%s: compressed by a method that is not read", what);
    }
    if (ls_block_sum(0, data, m->bytes) != m->crc)
        return ls_fail(e, LS_EXIT_DATA, "%s is damaged: its checksum is wrong", what);
    return ls_npy_read_order(&a->array, data, m->bytes, what, &a->fortran, e);
}

bool ls_array_file_npz(LsArrayFile *a, const LsFile *f, uint32_t k, const char *folder, bool *found,
                       LsError *e)
{
    LsNpzEntry m;
    char what[LS_PATH];
    *a = (LsArrayFile){0};
    if (!ls_npz_entry(f, k, &m, found, e))
        return false;
    if (!*found)
        return true;
    if (m.len > 3 && memcmp(m.name, "in/", 3) == 0)
        m.name += 3, m.len -= 3;
    if (!keep_name(a, m.name, m.len, e))
        return false;
    snprintf(what, sizeof what, "%s: member %s", f->path, a->name);
    return open_entry(a, &m, folder, what, e);
}

void ls_array_file_close(LsArrayFile *a)
{
    if (a->unpacked != NULL)
        munmap(a->unpacked, a->bytes);
    free(a->name);
    *a = (LsArrayFile){0};
}

static void put_element(const LsArray *a, const unsigned char *from, unsigned char *to, size_t each)
{
    for (size_t k = 0; k < each; k++)
        to[k] = from[a->swap ? each - 1 - k : k];
}

/* In Fortran order element i of a sample, counted with the last axis fastest, lies at
 * sample + dim[0] * (the axes' indices, the first fastest). */
static int64_t fortran_place(const LsArray *a, int64_t i)
{
    int64_t index[LS_TENSOR_RANK], at = 0;
    for (int d = a->rank; d-- > 1;) {
        index[d] = i % a->dim[d];
        i /= a->dim[d];
    }
    for (int d = a->rank; d-- > 1;)
        at = at * a->dim[d] + index[d];
    return at * a->dim[0];
}

void ls_array_file_rows(const LsArrayFile *f, int64_t first, int64_t n, unsigned char *to)
{
    const LsArray *a = &f->array;
    const size_t each = (size_t)ls_element_bytes(a->type);
    const int64_t per = a->count / a->dim[0];
    if (!f->fortran && !a->swap) {
        memcpy(to, a->data + (size_t)(first * per) * each, (size_t)(n * per) * each);
        return;
    }
    for (int64_t i = 0; i < per; i++) {
        const int64_t at = f->fortran ? fortran_place(a, i) : 0;
        for (int64_t s = 0; s < n; s++)
            put_element(
                a, a->data + (size_t)(f->fortran ? at + first + s : (first + s) * per + i) * each,
                to + (size_t)(s * per + i) * each, each);
    }
}
