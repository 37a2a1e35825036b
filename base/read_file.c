/* base/read_file.c -- see read_file.h. Pipes are read too, so the size is unknown in advance. */
#include "base/read_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 1 << 16 };       /* bytes of the first piece; each later piece doubles the total */

/* Reads to the end of the file, or just beyond `most` bytes; returns NULL if out of memory. */
static char *read_pieces(FILE *f, size_t most, size_t *n)
{
    char *text = NULL;
    *n = 0;
    for (size_t room = FIRST;; room *= 2) {
        char *more = realloc(text, room + 1);
        if (more == NULL) {
            free(text);
            return NULL;
        }
        text = more;
        *n += fread(text + *n, 1, room - *n, f);
        if (*n < room || *n > most) {
            text[*n] = '\0';
            return text;
        }
    }
}

char *ls_read_file(const char *path, size_t most, size_t *size, const LsWhy *why)
{
    size_t n = 0;
    FILE *f = fopen(path, "rb");
    char *text = f != NULL ? read_pieces(f, most, &n) : NULL;
    bool failed = text == NULL || ferror(f);    /* part of a file would pass for the whole */
    if (failed)
        ls_why(why, "%s", strerror(errno));
    else if (n > most)
        ls_why(why, "larger than %zu bytes", most);
    if (f != NULL)
        fclose(f);
    if (failed || n > most) {
        free(text);
        return NULL;
    }
    if (size != NULL)
        *size = n;
    return text;
}

char *ls_read_file_into(LsArena *arena, const char *path, size_t most, size_t *size)
{
    char why[1];
    size_t n = 0;
    char *text = ls_read_file(path, most, &n, &(LsWhy){.text = why, .size = sizeof why});
    char *copy = text != NULL ? memcpy(ls_arena_alloc(arena, n + 1, 1), text, n + 1) : NULL;
    free(text);
    if (size != NULL)
        *size = n;
    return copy;
}

char *ls_read_text(const char *path, const LsWhy *why)
{
    size_t n = 0;
    char *text = ls_read_file(path, LS_ANY_SIZE, &n, why);
    if (text != NULL && n == 0) {
        ls_why(why, "is empty");
        free(text);
        return NULL;
    }
    return text;
}
