/* tests/support/shared_file.h -- files of references: small ones lie in tests/data, the rest in
 * ../shared. */
#ifndef LS_TEST_SHARED_FILE_H
#define LS_TEST_SHARED_FILE_H

#include <stdio.h>
#include <unistd.h>

enum { SHARED_PATH = 4096 };

/* The path of a file, "judge/judge.py", in the first of the two folders that has it; NULL after a
 * line that says that neither has. */
static inline const char *shared_file(char path[SHARED_PATH], const char *name)
{
    snprintf(path, SHARED_PATH, "%s/tests/data/%s", LS_SOURCE, name);
    if (access(path, R_OK) == 0)
        return path;
    snprintf(path, SHARED_PATH, "%s/%s", LS_SHARED, name);
    if (access(path, R_OK) == 0)
        return path;
    printf("skipped: no %s\n", path);
    return NULL;
}

#endif
