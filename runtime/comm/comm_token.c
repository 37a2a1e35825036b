/* runtime/comm/comm_token.c -- see comm_token.h. */
#include "runtime/comm/comm_token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char around[] = " \t\r\n";

static bool read_file(const char *file, char text[LS_TOKEN], size_t *n, LsError *e)
{
    FILE *f = fopen(file, "r");
    if (f == NULL)
        return ls_fail(e, LS_EXIT_USAGE, "--token-file: cannot read %s: %s", file, strerror(errno));
    *n = fread(text, 1, LS_TOKEN, f);
    const bool bad = ferror(f) != 0;
    fclose(f);
    return !bad || ls_fail(e, LS_EXIT_USAGE, "--token-file: cannot read %s", file);
}

bool ls_token_read(const char *file, char text[LS_TOKEN], const char **token, LsError *e)
{
    const char *given = file != NULL ? NULL : getenv(LS_TOKEN_VARIABLE),
               *name = file != NULL ? file : LS_TOKEN_VARIABLE;
    size_t n = 0;
    *token = NULL;
    if (file == NULL && given == NULL)
        return true;
    if (file != NULL && !read_file(file, text, &n, e))
        return false;
    if (given != NULL) {
        n = strnlen(given, LS_TOKEN);
        memcpy(text, given, n);
    }
    if (n >= LS_TOKEN || memchr(text, '\0', n) != NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "%s is no token: it must be a text of at most %d characters", name,
                       LS_TOKEN - 1);
    text[n] = '\0';
    const size_t before = strspn(text, around);
    while (n > before && strchr(around, text[n - 1]) != NULL)
        text[--n] = '\0';
    if (n - before < LS_TOKEN_LEAST)
        return ls_fail(e, LS_EXIT_USAGE,
                       "%s has a token of %zu characters: it must have %d or more, as those of "
                       "'openssl rand -hex "
                       "32'",
                       name, n - before, LS_TOKEN_LEAST);
    *token = text + before;
    return true;
}
