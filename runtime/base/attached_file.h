/* runtime/base/attached_file.h -- a file that is attached to a program: a section of the executable
 * that is not loaded with it. lowerset attaches the ONNX file with the initial weights, which may
 * be larger than all else: neither the linker nor a step needs its bytes, and a program reads them
 * once. */
#ifndef LS_RUNTIME_BASE_ATTACHED_FILE_H
#define LS_RUNTIME_BASE_ATTACHED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LS_ATTACHED_SECTION ".lowerset.onnx"
enum { LS_ATTACHED_ALIGN = 64 };        /* of the section */

/* Where the section lies in the file behind fd, and its entry in the table of sections. False: the
 * file is no ELF file of 64 bits, or has no such section; is_elf says which (may be NULL). */
typedef struct LsAttached { int64_t offset, bytes, entry; } LsAttached;
bool ls_attached_find(int fd, LsAttached *a, bool *is_elf);

/* Maps the file that is attached to this program, `bytes` long, for as long as the program runs.
 * name: argv[0]. shift: bytes of the section before the file. in_place: kernels read it where it
 * lies: if a tool has moved the section to another alignment, it is copied. NULL: it is not
 * there. */
const unsigned char *ls_attached_map(const char *name, size_t bytes, size_t shift, bool in_place);

#endif
