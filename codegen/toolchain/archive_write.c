/* codegen/toolchain/archive_write.c -- an archive of one object file.
 *
 * Members of an archive are a head of text and their bytes, filled up to an even number. The first
 * one is the index: the number of symbols, for each the place of the member that has it (4 bytes
 * each, the largest first), and their names. */
#include "codegen/toolchain/object_file.h"

#include <ar.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void put_head(FILE *to, const char *name, uint64_t size)
{
    /* Neither time nor owner: the same object gives the same archive. */
    fprintf(to, "%-16s%-12d%-6d%-6d%-8o%-10" PRIu64 ARFMAG, name, 0, 0, 0, 0644, size);
}

static void put_number(FILE *to, uint64_t number)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        putc((int)(number >> shift & 0xff), to);
}

static uint64_t even(uint64_t n) { return n + n % 2; }

static void put_index(FILE *to, const LsObject *o, uint64_t count, uint64_t bytes)
{
    const uint64_t size = even(4 + 4 * count + bytes);
    put_head(to, "/", size);
    put_number(to, count);
    for (uint64_t k = 0; k < count; k++)
        put_number(to, SARMAG + sizeof(struct ar_hdr) + size);
    for (uint32_t k = 0; k < o->nsymbols; k++)
        if (ls_object_offers(&o->symbol[k]))
            fprintf(to, "%s%c", ls_object_name(o, &o->symbol[k]), '\0');
    if (bytes % 2 != 0)
        putc('\0', to);
}

static void put_archive(FILE *to, const LsObject *o)
{
    uint64_t count = 0, bytes = 0;
    for (uint32_t k = 0; k < o->nsymbols; k++)
        if (ls_object_offers(&o->symbol[k])) {
            count++;
            bytes += strlen(ls_object_name(o, &o->symbol[k])) + 1;
        }
    fputs(ARMAG, to);
    put_index(to, o, count, bytes);
    put_head(to, "library.o/", o->size);
    fwrite(o->at, 1, o->size, to);
    if (o->size % 2 != 0)
        putc('\n', to);
}

bool ls_archive_write(LsCtx *cx, const char *archive, const char *object)
{
    const uint64_t most = UINT64_C(9999999999);         /* ten digits of a head */
    LsObject o;
    if (!ls_object_open(cx, &o, object))
        return false;
    if (o.size > most) {
        ls_object_close(cx, &o);
        return ls_error(cx, LS_NOWHERE, LS_E_IO, NULL,
                        "'%s' has %zu bytes, and a file in an archive at most %" PRIu64, object,
                        o.size, most);
    }
    FILE *to = fopen(archive, "wb");
    if (to != NULL)
        put_archive(to, &o);
    bool ok = to != NULL && !ferror(to);
    if (to != NULL)
        ok &= fclose(to) == 0;
    if (!ok)
        ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot write '%s': %s", archive, strerror(errno));
    return ls_object_close(cx, &o) && ok;
}
