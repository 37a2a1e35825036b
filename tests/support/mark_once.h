/* tests/support/mark_once.h -- found as check.h, in place of Check's header. For every assertion
 * that holds, Check writes its place to a file, to report after a crash how far the test came. That
 * takes half the time of tests that check arrays element by element. Here each line is marked only
 * the first time. */
#ifndef LS_TESTS_SUPPORT_MARK_ONCE_H
#define LS_TESTS_SUPPORT_MARK_ONCE_H

#include_next <check.h>
#include <stdbool.h>

__attribute__((unused)) static void mark_once(const char *file, int line)
{
    enum { LINES = 4096 };
    static bool marked[LINES];
    if (!marked[line % LINES])
        _mark_point(file, line);
    marked[line % LINES] = true;
}

#ifdef LS_LIBFUZZER             /* no test runs (tests/support/fuzz_target.h): what fails ends the
                                 * program */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#define _mark_point(file, line) ((void)0)
#define _ck_assert_failed fail_at_once
__attribute__((unused, noreturn)) static void fail_at_once(const char *file, int line,
                                                           const char *expr, const char *said, ...)
{
    va_list ap;
    va_start(ap, said);
    fprintf(stderr, "%s:%d: %s: ", file, line, expr);
    if (said != NULL)
        vfprintf(stderr, said, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    abort();
}
#else
#define _mark_point(file, line) mark_once(file, line)
#endif

#endif
