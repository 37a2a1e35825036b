/* codegen/toolchain/object_file.h -- object files: what objcopy and ar do with them, where there is
 * a C compiler alone. */
#ifndef LS_CODEGEN_TOOLCHAIN_OBJECT_FILE_H
#define LS_CODEGEN_TOOLCHAIN_OBJECT_FILE_H

#include "compiler/ir/diag.h"

#include <elf.h>

typedef struct LsObject {       /* a file of 64 bits in this machine's byte order, mapped */
    const char *path;
    unsigned char *at; size_t size;
    Elf64_Shdr *section; uint32_t nsections;
    Elf64_Shdr *table;          /* the section with the symbols */
    Elf64_Sym *symbol; uint32_t nsymbols;
    const char *names; size_t names_size;   /* ends with a zero */
} LsObject;

/* Maps an object file, to be read and changed. False after an error. */
bool ls_object_open(LsCtx *cx, LsObject *o, const char *path);
/* Writes what was changed. False after an error. */
bool ls_object_close(LsCtx *cx, LsObject *o);

/* A symbol's name; "" if it has none. */
const char *ls_object_name(const LsObject *o, const Elf64_Sym *s);
/* Whether the file has the symbol's code or data, for other files to link with. */
bool ls_object_offers(const Elf64_Sym *s);

/* Makes all symbols of the file local that it offers, but for those that begin with PREFIX_. */
bool ls_hide_symbols(LsCtx *cx, const char *object, const char *prefix);

/* Writes an archive of one object file, with an index of the symbols that it offers. */
bool ls_archive_write(LsCtx *cx, const char *archive, const char *object);

#endif
