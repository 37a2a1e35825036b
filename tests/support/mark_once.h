/* tests/support/mark_once.h -- found as check.h, in the place of Check's header. Of every assertion that holds Check
 * writes its place to a file, to say after a crash how far the test came: half the time of tests that judge
 * arrays element by element. Here a line is marked the first time it is reached. */
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

#define _mark_point(file, line) mark_once(file, line)

#endif
