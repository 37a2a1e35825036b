/* tests/runtime/test_let_go.c -- only what the system can read again from a file is let go. */
#include "runtime/base/let_go.h"
#include "tests/support/suite.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { N = 1 << 14 };
static const int numbers[N] = {[0] = 1, [1000] = 2, [N - 1] = 3};
static int own[N] = {4, 5};

static int resident(const void *at)
{
    unsigned char in = 0;
    const uintptr_t page = 4096;
    ck_assert_int_eq(mincore((void *)((uintptr_t)at / page * page), page, &in), 0);
    return in & 1;
}

START_TEST(constants_come_back_from_the_program)
{
    ck_assert(ls_can_let_go(numbers, sizeof numbers));
    for (int k = 0; k < 2; k++) {
        ls_let_go(numbers, sizeof numbers);
        ck_assert_int_eq(*(const volatile int *)numbers + numbers[1000] + numbers[N - 1], 6);
    }
    ck_assert_int_eq(resident(numbers), 1);
}
END_TEST

START_TEST(what_no_file_has_stays)
{
    int *heap = malloc(sizeof own);
    void *pages = mmap(NULL, sizeof own, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(heap != NULL && pages != MAP_FAILED);
    ck_assert(!ls_can_let_go(heap, sizeof own));
    ck_assert(!ls_can_let_go(pages, sizeof own));
    ck_assert(!ls_can_let_go(own, sizeof own));         /* of a file, but it may have changed */
    ck_assert(!ls_can_let_go(numbers, SIZE_MAX / 2));
    munmap(pages, sizeof own);
    free(heap);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("let_go");
    const TTest *const test[] = {constants_come_back_from_the_program, what_no_file_has_stays};
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("let_go", tc);
}
