/* tests/support/same_file.h -- compares files. */
#ifndef LS_TESTS_SUPPORT_SAME_FILE_H
#define LS_TESTS_SUPPORT_SAME_FILE_H

#include "runtime/base/file.h"

#include <check.h>
#include <string.h>

/* Both files have the same bytes. */
static inline void check_same_file(const char *x, const char *y)
{
    LsFile a, b;
    LsError e = {0};
    ck_assert(ls_file_map(&a, x, &e) && ls_file_map(&b, y, &e));
    ck_assert_uint_eq(a.size, b.size);
    ck_assert_int_eq(memcmp(a.data, b.data, a.size), 0);
    ls_file_unmap(&a);
    ls_file_unmap(&b);
}

#endif
