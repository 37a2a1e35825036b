/* tests/scheduler/test_lower_set.c -- enumeration of lower sets against brute force, and its
 * limit. */
#include <check.h>
#include <stdlib.h>

#include "scheduler/lower_sets/lower_set.h"
#include "tests/support/dag_tools.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

static LsForward *forward_of(uint32_t nf, uint64_t seed)
{
    return ls_forward_new(a, ls_prob_new(a, dag_make(a, nf, seed), true));
}

static bool is_lower(const LsForward *f, uint64_t set)
{
    for (uint32_t v = 0; v < f->n; v++)
        for (uint32_t k = f->pred.at[v]; set >> v & 1 && k < f->pred.at[v + 1]; k++)
            if (!(set >> f->pred.id[k] & 1))
                return false;
    return true;
}

START_TEST(all_lower_sets_are_found_once_and_no_others)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        LsForward *f = forward_of(2 + seed % 10, seed);
        LsFamily *fam = ls_family_all(f, 100000);
        uint32_t want = 0, size = 0;
        for (uint64_t s = 0; s < UINT64_C(1) << f->n; s++)
            want += is_lower(f, s);
        ck_assert_uint_eq(fam->n, want);
        for (uint32_t i = 0; i < fam->n; i++) {
            ck_assert(is_lower(f, fam->low[i]));
            uint32_t now = (uint32_t)__builtin_popcountll(fam->low[i]);
            ck_assert(i == 0 || now > size || (now == size && fam->low[i] > fam->low[i - 1]));
            size = now;
        }
        ck_assert_uint_eq(fam->low[0], 0);
        ck_assert_uint_eq(size, f->n);
    }
}
END_TEST

START_TEST(the_pruned_family_holds_the_ancestors_of_every_vertex)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        LsForward *f = forward_of(12, seed);
        LsFamily *fam = ls_family_pruned(f);
        ck_assert_uint_eq(fam->n, ls_family_pruned_size(f));
        for (uint32_t v = 0; v < f->n; v++) {
            uint32_t found = 0;
            for (uint32_t i = 0; i < fam->n; i++) {
                ck_assert(is_lower(f, fam->low[i]));
                /* some set has v */
                found += fam->low[i] >> v & 1;
            }
            ck_assert_uint_gt(found, 0);
        }
    }
}
END_TEST

/* Bytes of the vertices of a set. */
static int64_t bytes_of(const LsForward *f, uint64_t set)
{
    int64_t bytes = 0;
    for (uint32_t v = 0; v < f->n; v++)
        bytes += set >> v & 1 ? f->mem[v] : 0;
    return bytes;
}

/* The halo by the paper's definition, from the edges alone. */
START_TEST(the_halo_is_what_successors_make_and_read_outside)
{
    int some = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        LsForward *f = forward_of(3 + seed % 8, seed);
        LsFamily *fam = ls_family_all(f, 100000);
        for (uint32_t i = 0; i < fam->n; i++) {
            uint64_t low = fam->low[i], next = 0, beside = 0;
            for (uint32_t v = 0; v < f->n; v++)
                for (uint32_t k = f->pred.at[v]; k < f->pred.at[v + 1]; k++)
                    if (!(low >> v & 1) && low >> f->pred.id[k] & 1)
                        next |= UINT64_C(1) << v;
            for (uint32_t v = 0; v < f->n; v++)
                for (uint32_t k = f->pred.at[v]; next >> v & 1 && k < f->pred.at[v + 1]; k++)
                    beside |= UINT64_C(1) << f->pred.id[k];
            ck_assert_int_eq(fam->halo[i], bytes_of(f, next) + bytes_of(f, beside & ~low));
            ck_assert_int_eq(fam->mem[i], bytes_of(f, low));
            some += (beside & ~low) != 0;
        }
    }
    ck_assert_int_gt(some, 50);
}
END_TEST

START_TEST(enumeration_stops_at_its_limit)
{
    LsForward *f = forward_of(12, 7);
    uint32_t n = ls_family_all(f, 100000)->n;
    ck_assert_ptr_null(ls_family_all(f, n - 1));
    ck_assert_ptr_nonnull(ls_family_all(f, n));
}
END_TEST

START_TEST(the_kept_set_is_the_boundary_and_what_cannot_run_twice)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        LsForward *f = forward_of(10, seed);
        LsFamily *fam = ls_family_all(f, 100000);
        for (uint32_t i = 0; i < fam->n; i++)
            for (uint32_t v = 0; v < f->n; v++) {
                bool keep = f->stuck[0] >> v & 1;
                for (uint32_t k = f->succ.at[v]; k < f->succ.at[v + 1]; k++)
                    keep |= !(fam->low[i] >> f->succ.id[k] & 1);
                keep &= fam->low[i] >> v & 1;
                ck_assert_int_eq(keep, fam->keep[i] >> v & 1);
            }
    }
}
END_TEST

START_TEST(googlenet_has_as_many_lower_sets_as_its_authors_say)
{
    LsDag *g = dag_shared(a, "published/googlenet.json");
    if (g != NULL)
        ck_assert_uint_eq(ls_family_all(ls_forward_new(a, ls_prob_new(a, g, true)), 40000)->n,
                          27358 + 1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("lower_set");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, all_lower_sets_are_found_once_and_no_others);
    tcase_add_test(tc, the_pruned_family_holds_the_ancestors_of_every_vertex);
    tcase_add_test(tc, the_halo_is_what_successors_make_and_read_outside);
    tcase_add_test(tc, enumeration_stops_at_its_limit);
    tcase_add_test(tc, the_kept_set_is_the_boundary_and_what_cannot_run_twice);
    tcase_add_test(tc, googlenet_has_as_many_lower_sets_as_its_authors_say);
    return run_tests("lower_set", tc);
}
