/* codegen/toolchain/object_file.c -- see the header. */
#include "codegen/toolchain/object_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool bad_object(LsCtx *cx, const LsObject *o)
{
    return ls_error(cx, LS_NOWHERE, LS_E_TOOL,
                    "--emit=c prints the program, to be built elsewhere",
                    "the C compiler made no ELF object file of 64 bits for this machine: '%s'",
                    o->path);
}

static bool bad_file(LsCtx *cx, const LsObject *o)
{
    return ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot read or write '%s': %s", o->path,
                    strerror(errno));
}

/* Whether n items of `size` bytes from byte `at` on lie within the file, and at a place where such
 * items may lie. */
static bool holds(const LsObject *o, uint64_t at, uint64_t n, size_t size)
{
    return at <= o->size && n <= (o->size - at) / size && at % _Alignof(Elf64_Sym) == 0;
}

static bool is_ours(const Elf64_Ehdr *head)
{
    const unsigned order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64
           && head->e_ident[EI_DATA] == order && head->e_type == ET_REL
           && head->e_shentsize == sizeof(Elf64_Shdr);
}

static bool find_sections(LsObject *o)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)o->at;
    if (o->size < sizeof *head || !is_ours(head) || !holds(o, head->e_shoff, 1, sizeof(Elf64_Shdr)))
        return false;
    o->section = (Elf64_Shdr *)(o->at + head->e_shoff);
    /* A number that does not fit into the head stands in the first section. */
    const uint64_t n = head->e_shnum != 0 ? head->e_shnum : o->section[0].sh_size;
    if (n > UINT32_MAX || !holds(o, head->e_shoff, n, sizeof(Elf64_Shdr)))
        return false;
    o->nsections = (uint32_t)n;
    return true;
}

static bool find_symbols(LsObject *o)
{
    for (uint32_t k = 0; k < o->nsections && o->table == NULL; k++)
        if (o->section[k].sh_type == SHT_SYMTAB)
            o->table = &o->section[k];
    if (o->table == NULL || o->table->sh_link >= o->nsections)
        return false;
    const Elf64_Shdr *names = &o->section[o->table->sh_link];
    const uint64_t n = o->table->sh_size / sizeof *o->symbol;
    if (n > UINT32_MAX || !holds(o, o->table->sh_offset, n, sizeof *o->symbol)
        || names->sh_size == 0 || names->sh_offset > o->size
        || names->sh_size > o->size - names->sh_offset)
        return false;
    o->symbol = (Elf64_Sym *)(o->at + o->table->sh_offset);
    o->nsymbols = (uint32_t)n;
    o->names = (const char *)o->at + names->sh_offset;
    o->names_size = names->sh_size;
    return o->names[o->names_size - 1] == '\0';
}

bool ls_object_open(LsCtx *cx, LsObject *o, const char *path)
{
    struct stat st;
    *o = (LsObject){.path = path};
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0 && fstat(file, &st) == 0 && st.st_size > 0) {
        o->size = (size_t)st.st_size;
        o->at = mmap(NULL, o->size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        o->at = o->at == MAP_FAILED ? NULL : o->at;
    }
    const int failed = errno;
    if (file >= 0)
        close(file);
    errno = failed;
    if (o->at == NULL)
        return file >= 0 && o->size == 0 ? bad_object(cx, o) : bad_file(cx, o);
    if (find_sections(o) && find_symbols(o))
        return true;
    munmap(o->at, o->size);
    return bad_object(cx, o);
}

bool ls_object_close(LsCtx *cx, LsObject *o)
{
    return munmap(o->at, o->size) == 0 || bad_file(cx, o);
}

const char *ls_object_name(const LsObject *o, const Elf64_Sym *s)
{
    return s->st_name < o->names_size ? o->names + s->st_name : "";
}

bool ls_object_offers(const Elf64_Sym *s)
{
    return ELF64_ST_BIND(s->st_info) != STB_LOCAL && s->st_shndx != SHN_UNDEF
           && s->st_shndx != SHN_COMMON;
}
