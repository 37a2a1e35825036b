/* codegen/toolchain/attach_file.c -- see attach_file.h. */
#include "codegen/toolchain/attach_file.h"

#include "runtime/base/attached_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

static bool put(int fd, const void *bytes, size_t n, int64_t at)
{
    const char *from = bytes;
    for (ssize_t done; n > 0; from += done, at += done, n -= (size_t)done) {
        done = pwrite(fd, from, n, (off_t)at);
        if (done < 0 && errno != EINTR)
            return false;
        done = done < 0 ? 0 : done;
    }
    return true;
}

enum { PART = 1 << 16 };

static bool is_zero(const char *part, size_t n)
{
    static const char zeros[PART];
    return memcmp(part, zeros, n) == 0;
}

/* Copies all of `from` to byte `at` on, the file's end; returns the number of bytes, -1: an error.
 * Parts of zeros become holes, which take no room on the disk. */
static int64_t copy(int to, int64_t at, int from)
{
    static char part[PART];
    int64_t bytes = 0;
    for (ssize_t n; (n = read(from, part, sizeof part)) != 0; bytes += n > 0 ? n : 0)
        if ((n < 0 && errno != EINTR)
            || (n > 0 && !is_zero(part, (size_t)n) && !put(to, part, (size_t)n, at + bytes)))
            return -1;
    return ftruncate(to, at + bytes) == 0 ? bytes : -1;
}

/* Sets place and size of the section. Tools that lay a program out anew keep its alignment. */
static bool set_entry(int fd, int64_t entry, int64_t offset, int64_t bytes)
{
    const Elf64_Off place = (Elf64_Off)offset;
    const Elf64_Xword size = (Elf64_Xword)bytes, align = LS_ATTACHED_ALIGN;
    return put(fd, &place, sizeof place, entry + (int64_t)offsetof(Elf64_Shdr, sh_offset))
        && put(fd, &size, sizeof size, entry + (int64_t)offsetof(Elf64_Shdr, sh_size))
        && put(fd, &align, sizeof align, entry + (int64_t)offsetof(Elf64_Shdr, sh_addralign));
}

static bool attach(int to, int from, const LsAttached *a, int64_t shift)
{
    struct stat st;
    if (fstat(to, &st) != 0)
        return false;
    const int64_t at = (st.st_size + PAGE - 1) / PAGE * PAGE, bytes = copy(to, at + shift, from);
    return bytes >= 0 && set_entry(to, a->entry, at, shift + bytes);
}

bool ls_attach_file(LsCtx *cx, const char *program, const char *file, int64_t shift)
{
    LsAttached a;
    bool is_elf = true, ok = false;
    const int to = open(program, O_RDWR | O_CLOEXEC), from = open(file, O_RDONLY | O_CLOEXEC);
    if (to >= 0 && from >= 0 && !ls_attached_find(to, &a, &is_elf))
        errno = ENOEXEC;
    else if (to >= 0 && from >= 0)
        ok = attach(to, from, &a, shift);
    if (to >= 0 && close(to) != 0)
        ok = false;
    if (from >= 0)
        close(from);
    return ok || !is_elf
           || ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot attach '%s' to '%s': %s", file,
                       program, strerror(errno));
}
