/* base/heap.h -- memory outside of arenas. Where there is none, the process ends with exit code 1
 * and a sentence, as ls_arena_alloc does: callers need no way out, and nothing is lost in
 * silence. */
#ifndef LS_BASE_HEAP_H
#define LS_BASE_HEAP_H

#include <stddef.h>
#include <stdio.h>

__attribute__((noreturn)) void ls_out_of_memory(size_t n, size_t size);

/* n * size zeroed bytes (at least one), for free(). Never NULL. */
void *ls_heap_alloc(size_t n, size_t size);

/* A stream whose text is in *text (for free()), *n bytes and a zero, after ls_text_close. */
FILE *ls_text_open(char **text, size_t *n);
void ls_text_close(FILE *stream, char *const *text);

#endif
