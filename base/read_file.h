/* base/read_file.h -- reads a whole file into memory. */
#ifndef LS_BASE_READ_FILE_H
#define LS_BASE_READ_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/reason.h"

#define LS_ANY_SIZE ((size_t)PTRDIFF_MAX)

/* Returns all bytes of a file and a NUL after them, on the heap: free() them. *size: bytes without
 * the NUL (size may be NULL). Returns NULL, with a sentence in `why`, if the file cannot be read or
 * has more than `most` bytes. */
char *ls_read_file(const char *path, size_t most, size_t *size, const LsWhy *why);

/* The same in the arena; NULL, without a sentence, if the file cannot be read or is too large. */
char *ls_read_file_into(LsArena *arena, const char *path, size_t most, size_t *size);

/* Reads a text file, such as JSON, of any length up to its first NUL. An empty file is refused. */
char *ls_read_text(const char *path, const LsWhy *why);

#endif
