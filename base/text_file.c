/* base/text_file.c */
#include "base/text_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *ls_text_file(const char *path, const LsWhy *why)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t n = 0;
    ssize_t got = f != NULL ? getdelim(&text, &n, '\0', f) : -1;
    if (f == NULL)
        ls_why(why, "%s", strerror(errno));
    else if (ferror(f))         /* a part of the file is not the file */
        got = -1;
    if (f != NULL)
        fclose(f);
    if (f != NULL && got < 0)
        ls_why(why, "cannot be read, or is empty");
    if (got >= 0)
        return text;
    free(text);
    return NULL;
}
