/* tests/cli/test_memory_here.c -- the memory that control groups allow, in an imitated /sys and
 * /proc. */
#include "tests/support/suite.h"

#include "cli/job/memory_here.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t ALL = INT64_C(1) << 40;
static char dir[] = "/tmp/ls-groups-XXXXXX";

static void setup(void)
{
    strcpy(dir + sizeof dir - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
}

static void teardown(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", dir);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
}

/* Makes a file and its folders. */
static void put(const char *path, const char *text)
{
    char part[256];
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        mkdir(part, 0777);
    }
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(the_least_of_a_chain_of_groups_counts)
{
    put("groups", "0::/slice/job/step\n");
    put("sys/memory.max", "max\n");
    put("sys/slice/memory.max", "9000\n");
    put("sys/slice/job/memory.max", "5000\n");
    put("sys/slice/job/step/memory.max", "max\n");
    put("sys/slice/other/memory.max", "100\n");
    ck_assert_int_eq(ls_memory_limit("groups", "sys", ALL), 5000);
    ck_assert_int_eq(ls_memory_limit("groups", "sys", 4000), 4000);
    put("sys/slice/memory.max", "3000\n");
    ck_assert_int_eq(ls_memory_limit("groups", "sys", ALL), 3000);
    put("sys/slice/job/step/memory.max", "2000\n");
    ck_assert_int_eq(ls_memory_limit("groups", "sys", ALL), 2000);
    put("sys/memory.max", "1000\n");
    ck_assert_int_eq(ls_memory_limit("groups", "sys", ALL), 1000);
}
END_TEST

START_TEST(groups_of_version_1_have_a_tree_of_their_own)
{
    put("groups", "9:cpu,cpuacct:/far\n4:hugetlb,memory:/slice/job\n3:memory_x:/x\n0::/near\n");
    put("sys/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/memory/slice/memory.limit_in_bytes", "7000\n");
    put("sys/memory/slice/job/memory.limit_in_bytes", "8000\n");
    put("sys/memory/far/memory.limit_in_bytes", "10\n");
    put("sys/memory/x/memory.limit_in_bytes", "10\n");
    ck_assert_int_eq(ls_memory_limit("groups", "sys", ALL), 7000);
    put("sys/unified/near/memory.max", "6000\n");
    ck_assert_int_eq(ls_memory_limit("groups", "sys", ALL), 6000);
}
END_TEST

/* As in a container: names are the host's names, and files lie at the root. */
START_TEST(the_root_counts_where_the_group_is_not_seen)
{
    put("groups", "0::/host/only\n4:memory:/host/only\n");
    put("sys/memory.max", "4000\n");
    ck_assert_int_eq(ls_memory_limit("groups", "sys", ALL), 4000);
    ck_assert_int_eq(ls_memory_limit("no-such-file", "sys", ALL), 4000);
    put("sys/memory/memory.limit_in_bytes", "3000\n");
    ck_assert_int_eq(ls_memory_limit("no-such-file", "sys", ALL), 3000);
    ck_assert_int_eq(ls_memory_limit("groups", "sys", ALL), 3000);
    put("groups", "junk\n:\n0:\n\n0::\n0::/\n4:memory:/");
    ck_assert_int_eq(ls_memory_limit("groups", "sys", ALL), 3000);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("memory_here");
    tcase_add_checked_fixture(tc, setup, teardown);
    const TTest *const test[] = {
        the_least_of_a_chain_of_groups_counts,
        groups_of_version_1_have_a_tree_of_their_own,
        the_root_counts_where_the_group_is_not_seen,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("memory_here", tc);
}
