/* tests/support/command_line.h -- command lines in the test's folder, and the data that they
 * read. */
#ifndef LS_TESTS_SUPPORT_COMMAND_LINE_H
#define LS_TESTS_SUPPORT_COMMAND_LINE_H

#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char text[1 << 16];      /* output of the last command */

/* Runs a command line in the test's folder. Returns its exit code. */
static inline int sh(const char *fmt, ...)
{
    char line[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    strncat(line, " >out 2>&1", sizeof line - strlen(line) - 1);
    int code = system(line);
    FILE *f = fopen("out", "r");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return code < 0 ? code : code >> 8;
}

#define MUST(...) ck_assert_msg(sh(__VA_ARGS__) == 0, "%s", text)

/* Whether the arrays of two files .npz whose names begin with the prefix have the same bits. */
static inline bool same_arrays(const char *a, const char *b, const char *prefix)
{
    return sh(LS_BUILD "/tests/npz_near %s %s 0 %s", a, b, prefix) == 0;
}

static inline double told(const char *what)
{
    const char *at = strstr(text, what);
    ck_assert_msg(at != NULL, "no '%s' in: %s", what, text);
    return atof(at + strlen(what));
}

static inline void write_npy(const char *path, const char *type, const char *shape,
                             const void *data, size_t bytes)
{
    char head[128];
    int n = snprintf(head, sizeof head, "\x93NUMPY%c%cv%c{'descr': '%s', 'fortran_order': False, "
                     "'shape': (%s), }", 1, 1, 1, type, shape);
    memset(head + n, ' ', sizeof head - (size_t)n);
    head[7] = head[9] = 0;
    head[8] = sizeof head - 10;
    head[sizeof head - 1] = '\n';
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fwrite(head, 1, sizeof head, f);
    fwrite(data, 1, bytes, f);
    fclose(f);
}

/* Runs the tests of t in a new folder, after `make`, which writes what they all read. Returns the
 * exit code. */
static inline int run_command_lines(const char *name, TCase *t, void (*make)(void))
{
    char dir[] = "/tmp/lowerset-test-XXXXXX", remove[64];
    if (mkdtemp(dir) == NULL || chdir(dir) != 0)
        return 99;
    tcase_set_timeout(t, 120);
    tcase_add_unchecked_fixture(t, make, NULL);
    const int code = run_tests(name, t);
    snprintf(remove, sizeof remove, "rm -rf %s", dir);
    return system(remove) != 0 || code != 0;
}

static inline float wave(int i, int seed) { return sinf((float)(i * 7 + seed * 13) * 0.37f); }

#endif
