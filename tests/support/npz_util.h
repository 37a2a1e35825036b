/* tests/support/npz_util.h -- small NPZ files for tests, written by the runtime's own writer and by
 * hand. */
#ifndef LS_TESTS_SUPPORT_NPZ_UTIL_H
#define LS_TESTS_SUPPORT_NPZ_UTIL_H

#include "runtime/data/npz.h"
#include "tests/support/suite.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct NpzItem {
    const char *name;
    LsElement type;
    int rank;
    int64_t dim[4];
    const void *data;
} NpzItem;

static inline void write_npz(const char *path, int n, const NpzItem *item)
{
    LsError e = {0};
    LsNpz *z = calloc(1, sizeof *z);
    LsNpzMember room[8];
    ck_assert(ls_npz_open(z, path, room, 8, &e));
    for (int k = 0; k < n; k++) {
        int64_t count = 1;
        for (int d = 0; d < item[k].rank; d++)
            count *= item[k].dim[d];
        ck_assert(ls_npz_begin(z, item[k].name, item[k].type, item[k].rank, item[k].dim, &e));
        ls_npz_write(z, item[k].data, (size_t)(count * ls_element_bytes(item[k].type)));
    }
    ck_assert_msg(ls_npz_close(z, &e), "%s", e.text);
    free(z);
}

static inline void write_bytes(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, n, f), n);
    fclose(f);
}

/* A new folder to work in, for the time of one test. */
static inline void enter_new_folder(void)
{
    char path[] = "/tmp/lowerset-test-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(path));
    ck_assert_int_eq(chdir(path), 0);
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static inline void leave_folder(void)
{
    char path[4096];
    if (getcwd(path, sizeof path) && strncmp(path, "/tmp/lowerset-test-", 19) == 0)
        nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* main of a suite whose tests each run in an empty folder of their own. */
static inline int run_in_folder(const char *name, size_t n, const TTest *const test[])
{
    TCase *tc = tcase_create(name);
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, enter_new_folder, leave_folder);
    add_tests(tc, n, test);
    return run_tests(name, tc);
}

#endif
