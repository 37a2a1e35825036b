/* tests/base/test_arena.c -- arrays that grow in an arena keep their items, end in zeros, and give
 * their memory back. */
#include "base/arena.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { MANY = 3 << 20 };        /* of 4 bytes */

/* Two arrays in turn, so that neither can be extended where it is. */
START_TEST(arrays_keep_their_items_while_they_grow)
{
    LsArena *a = ls_arena_new();
    uint32_t *x[2] = {NULL, NULL}, cap[2] = {0, 0};
    for (uint32_t i = 0; i < MANY / 4; i++)
        for (uint32_t k = 0; k < 2; k++) {
            x[k] = ls_arena_regrow(a, x[k], i, i + 1, sizeof *x[k], &cap[k]);
            x[k][i] = 3 * i + k;
            if (i % 100000 == 0)
                ck_assert_uint_eq(*(char *)ls_arena_alloc(a, 1 << 16, 1), 0);
        }
    for (uint32_t i = 0; i < MANY / 4; i++)
        ck_assert(x[0][i] == 3 * i && x[1][i] == 3 * i + 1);
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = MANY / 4; i < cap[k]; i++)
            ck_assert_uint_eq(x[k][i], 0);
    ls_arena_free(a);
}
END_TEST

/* The pages of an array that was outgrown, and those beyond its items, are not in memory. */
START_TEST(arrays_take_little_more_memory_than_their_items)
{
    LsArena *a = ls_arena_new();
    struct rusage before, after;
    uint32_t *x = NULL, cap = 0;
    getrusage(RUSAGE_SELF, &before);
    for (uint32_t i = 0; i < MANY; i++) {
        x = ls_arena_regrow(a, x, i, i + 1, sizeof *x, &cap);
        x[i] = i;
    }
    getrusage(RUSAGE_SELF, &after);
    if (!tests_do_less())
        ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, MANY * 4 / 1024 * 5 / 4);
    ls_arena_free(a);
}
END_TEST

/* Bytes of a mapped file, from any offset, come back when they are let go; other bytes stay. */
START_TEST(a_mapped_file_is_let_go_and_read_again)
{
    enum { BYTES = 1 << 16, FROM = 4097 };
    LsArena *a = ls_arena_new();
    unsigned char *own = ls_arena_alloc(a, BYTES, 1);
    for (int i = 0; i < BYTES; i++)
        own[i] = (unsigned char)(i * 7 + i / 256);
    FILE *f = tmpfile();
    ck_assert(f != NULL && fwrite(own, 1, BYTES, f) == BYTES && fflush(f) == 0);
    const unsigned char *map = ls_arena_map(a, fileno(f), FROM, BYTES - FROM);
    ck_assert_ptr_nonnull(map);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(memcmp(map, own + FROM, BYTES - FROM), 0);
        ls_arena_let_go(a, map + 5, BYTES - FROM - 5);
        ls_arena_let_go(a, own, BYTES);
    }
    ck_assert_uint_eq(own[300], (unsigned char)(300 * 7 + 1));
    fclose(f);
    ls_arena_free(a);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("arena");
    tcase_add_test(tc, arrays_keep_their_items_while_they_grow);
    tcase_add_test(tc, arrays_take_little_more_memory_than_their_items);
    tcase_add_test(tc, a_mapped_file_is_let_go_and_read_again);
    return run_tests("arena", tc);
}
