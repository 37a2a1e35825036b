/* runtime/base/attached_file.c -- see attached_file.h. The section is found by its name, as `strip`
 * and the like keep it but may move it. */
#include "runtime/base/attached_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool get(int fd, void *to, size_t n, uint64_t at)
{
    return at <= INT64_MAX && pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

static bool is_named(int fd, const Elf64_Shdr *names, const Elf64_Shdr *s)
{
    char name[sizeof LS_ATTACHED_SECTION];
    return s->sh_name < names->sh_size && get(fd, name, sizeof name, names->sh_offset + s->sh_name)
        && memcmp(name, LS_ATTACHED_SECTION, sizeof name) == 0;
}

bool ls_attached_find(int fd, LsAttached *a, bool *is_elf)
{
    Elf64_Ehdr head;
    Elf64_Shdr names, s;
    const bool elf = get(fd, &head, sizeof head, 0) && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0;
    if (is_elf != NULL)
        *is_elf = elf;
    if (!elf || head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof s
        || !get(fd, &names, sizeof names, head.e_shoff + (uint64_t)head.e_shstrndx * sizeof s))
        return false;
    for (uint32_t k = 0; k < head.e_shnum; k++) {
        const uint64_t at = head.e_shoff + k * sizeof s;
        if (!get(fd, &s, sizeof s, at) || !is_named(fd, &names, &s))
            continue;
        *a = (LsAttached){(int64_t)s.sh_offset, (int64_t)s.sh_size, (int64_t)at};
        return s.sh_offset <= INT64_MAX && s.sh_size <= INT64_MAX;
    }
    return false;
}

/* NULL: it is not there. */
static const unsigned char *map_of(const char *path, size_t bytes)
{
    LsAttached a;
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const unsigned char *found = NULL;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && ls_attached_find(fd, &a, NULL) && a.bytes == (int64_t)bytes
        && a.offset <= st.st_size - a.bytes) {
        const int64_t before = a.offset % sysconf(_SC_PAGESIZE);
        void *map = mmap(NULL, (size_t)before + bytes, PROT_READ, MAP_PRIVATE, fd,
                         (off_t)(a.offset - before));
        found = map != MAP_FAILED ? (unsigned char *)map + before : NULL;
    }
    close(fd);
    return found;
}

/* The same bytes at a place that is aligned. */
static const unsigned char *copy_of(const unsigned char *from, size_t bytes)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map != MAP_FAILED ? memcpy(map, from, bytes) : NULL;
}

const unsigned char *ls_attached_map(const char *name, size_t bytes, size_t shift, bool in_place)
{
    const char *started = (const char *)getauxval(AT_EXECFN);
    const char *const place[] = {"/proc/self/exe", started,
                                 strchr(name, '/') != NULL ? name : NULL};
    const unsigned char *found = NULL;
    for (size_t k = 0; k < sizeof place / sizeof *place && found == NULL; k++)
        found = place[k] != NULL ? map_of(place[k], shift + bytes) : NULL;
    if (found != NULL && in_place && (uintptr_t)found % LS_ATTACHED_ALIGN != 0)
        found = copy_of(found, shift + bytes);
    return found != NULL ? found + shift : NULL;
}
