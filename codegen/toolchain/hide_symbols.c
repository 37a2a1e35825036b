/* codegen/toolchain/hide_symbols.c -- makes symbols of an object file local.
 *
 * Local symbols come first in an object file. So symbols change places, and whatever has their
 * numbers is renumbered: relocations, groups of sections, the table of large section numbers. */
#include "codegen/toolchain/object_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

#ifndef SHT_LLVM_ADDRSIG
#define SHT_LLVM_ADDRSIG 0x6fff4c03
#endif

/* Makes symbols local; returns how many local ones there are then. */
static uint32_t make_local(LsObject *o, const char *prefix)
{
    const size_t n = strlen(prefix);
    uint32_t local = 0;
    for (uint32_t k = 0; k < o->nsymbols; k++) {
        Elf64_Sym *s = &o->symbol[k];
        const char *name = ls_object_name(o, s);
        if (ls_object_offers(s) && (strncmp(name, prefix, n) != 0 || name[n] != '_')) {
            s->st_info = ELF64_ST_INFO(STB_LOCAL, ELF64_ST_TYPE(s->st_info));
            s->st_other = STV_DEFAULT;
        }
        local += ELF64_ST_BIND(s->st_info) == STB_LOCAL;
    }
    return local;
}

/* Sorts the symbols, locals first, and what stands beside each. place: by symbol, its new
 * number. */
static void sort(LsObject *o, uint32_t *place, uint32_t locals, uint32_t *large)
{
    Elf64_Sym *sorted = ls_heap_alloc(o->nsymbols, sizeof *sorted);
    uint32_t *beside = ls_heap_alloc(o->nsymbols, sizeof *beside), local = 0, global = locals;
    for (uint32_t k = 0; k < o->nsymbols; k++) {
        place[k] = ELF64_ST_BIND(o->symbol[k].st_info) == STB_LOCAL ? local++ : global++;
        sorted[place[k]] = o->symbol[k];
        beside[place[k]] = large != NULL ? large[k] : 0;
    }
    memcpy(o->symbol, sorted, o->nsymbols * sizeof *sorted);
    if (large != NULL)
        memcpy(large, beside, o->nsymbols * sizeof *beside);
    free(sorted);
    free(beside);
    o->table->sh_info = locals;
}

/* The bytes of a section with n or more items of `size` bytes; NULL: it has fewer. */
static void *content(const LsObject *o, const Elf64_Shdr *s, uint64_t n, size_t size)
{
    const bool is_in = s->sh_offset <= o->size && s->sh_size <= o->size - s->sh_offset;
    return is_in && s->sh_size / size >= n && s->sh_offset % sizeof(uint32_t) == 0
               ? o->at + s->sh_offset : NULL;
}

static bool renumber_relocations(const LsObject *o, const Elf64_Shdr *s, const uint32_t *place)
{
    const size_t size = s->sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    const uint64_t n = s->sh_size / size;
    unsigned char *at = content(o, s, n, size);
    for (uint64_t k = 0; at != NULL && k < n; k++, at += size) {
        Elf64_Rel r;            /* the beginning of both kinds */
        memcpy(&r, at, sizeof r);
        if (ELF64_R_SYM(r.r_info) >= o->nsymbols)
            return false;
        r.r_info = ELF64_R_INFO((uint64_t)place[ELF64_R_SYM(r.r_info)], ELF64_R_TYPE(r.r_info));
        memcpy(at, &r, sizeof r);
    }
    return n == 0 || at != NULL;
}

static bool renumber(LsObject *o, const uint32_t *place)
{
    const uint32_t table = (uint32_t)(o->table - o->section);
    for (uint32_t k = 0; k < o->nsections; k++) {
        Elf64_Shdr *s = &o->section[k];
        if (s->sh_link != table)
            continue;
        if ((s->sh_type == SHT_RELA || s->sh_type == SHT_REL)
            && !renumber_relocations(o, s, place))
            return false;
        if (s->sh_type == SHT_GROUP && s->sh_info >= o->nsymbols)
            return false;
        if (s->sh_type == SHT_GROUP)
            s->sh_info = place[s->sh_info];
        if (s->sh_type == SHT_LLVM_ADDRSIG)     /* advice, now void: its numbers are the old ones */
            s->sh_link = 0;
    }
    return true;
}

static bool hide(LsObject *o, const char *prefix)
{
    const uint32_t table = (uint32_t)(o->table - o->section);
    uint32_t *large = NULL;
    for (uint32_t k = 0; k < o->nsections; k++) {
        const Elf64_Shdr *s = &o->section[k];
        if (s->sh_type != SHT_SYMTAB_SHNDX || s->sh_link != table)
            continue;
        large = content(o, s, o->nsymbols, sizeof *large);
        if (large == NULL)
            return false;
    }
    uint32_t *place = ls_heap_alloc(o->nsymbols, sizeof *place);
    sort(o, place, make_local(o, prefix), large);
    const bool ok = renumber(o, place);
    free(place);
    return ok;
}

bool ls_hide_symbols(LsCtx *cx, const char *object, const char *prefix)
{
    LsObject o;
    if (!ls_object_open(cx, &o, object))
        return false;
    const bool ok = hide(&o, prefix);
    return ls_object_close(cx, &o)
           && (ok || ls_error(cx, LS_NOWHERE, LS_E_TOOL, NULL,
                              "the object file '%s' has parts outside of it", object));
}
