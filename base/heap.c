/* base/heap.c -- see the header. */
#include "base/heap.h"

#include <stdbool.h>
#include <stdlib.h>

void ls_out_of_memory(size_t n, size_t size)
{
    fprintf(stderr, "lowerset: out of memory (asked for %zu x %zu bytes)\n", n, size);
    exit(1);
}

void *ls_heap_alloc(size_t n, size_t size)
{
    void *p = calloc(n > 0 ? n : 1, size > 0 ? size : 1);
    if (p == NULL)
        ls_out_of_memory(n, size);
    return p;
}

FILE *ls_text_open(char **text, size_t *n)
{
    FILE *stream = open_memstream(text, n);
    if (stream == NULL)
        ls_out_of_memory(1, BUFSIZ);
    return stream;
}

void ls_text_close(FILE *stream, char *const *text)
{
    bool failed = fflush(stream) != 0 || ferror(stream);
    failed |= fclose(stream) != 0;
    if (failed || *text == NULL)
        ls_out_of_memory(1, BUFSIZ);
}
