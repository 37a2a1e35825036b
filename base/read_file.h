/* base/read_file.h -- a whole file in memory. */
#ifndef LS_BASE_READ_FILE_H
#define LS_BASE_READ_FILE_H

#include <stddef.h>

#include "base/reason.h"

/* All bytes of a file and a NUL behind them, on the heap: free() them. *size: their number without that NUL
 * (size NULL: nobody asks). NULL with a sentence where it cannot be read, or has more than `most` bytes. */
char *ls_read_file(const char *path, size_t most, size_t *size, const LsWhy *why);

/* A file of text, such as one of JSON, of any length: up to its first NUL; empty ones are refused. */
char *ls_read_text(const char *path, const LsWhy *why);

#endif
