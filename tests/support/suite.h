/* tests/support/suite.h -- the end of every suite of Check: runs its tests and returns the exit
 * code. */
#ifndef LS_TESTS_SUPPORT_SUITE_H
#define LS_TESTS_SUPPORT_SUITE_H

#include <check.h>
#include <stddef.h>

static inline void add_tests(TCase *tc, size_t n, const TTest *const test[])
{
    for (size_t k = 0; k < n; k++)
        tcase_add_test(tc, test[k]);
}

/* Runs the tests of tc; the exit code of the suite. */
static inline int run_tests(const char *name, TCase *tc)
{
    Suite *s = suite_create(name);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

#endif
