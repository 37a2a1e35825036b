/* tests/runtime/test_value_checks.c -- what --check-numerics finds in the state after a step. */
#include "tests/support/npz_util.h"
#include "tests/support/tiny_program.h"
#include "runtime/update/value_checks.h"

static LsProgram p;
static LsMemory m;
static LsEngine engine;
static LsError e;

static bool check(double loss)
{
    LsCheck c;
    ls_check_start(&c, &engine, &p.phase.train);
    e = (LsError){0};
    return ls_check_end(&c, loss, 3, &e);
}

START_TEST(a_state_tensor_that_is_not_finite_is_named)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    p = tiny_program(1);
    e = (LsError){0};
    ck_assert(ls_memory_open(&m, &p, &e));
    memset(m.state, 0, ST_END);
    engine = (LsEngine){.p = &p, .m = &m};
    ck_assert(check(1));
    for (uint32_t k = 0; k < p.nstate; k++)
        for (int i = 0; i < 3; i++) {
            char want[96];
            float *at = (float *)(void *)(m.state + p.state[k].t.at.offset);
            *at = bad[i];
            ck_assert_msg(!check(1), "%s", p.state[k].t.name);
            snprintf(want, sizeof want, "step 3: the update made '%s' not finite",
                     p.state[k].t.name);
            ck_assert_msg(strstr(e.text, want) != NULL, "'%s' is not in: %s", want, e.text);
            ck_assert_int_eq(e.code, LS_EXIT_DIVERGED);
            *at = 0;
        }
    ck_assert(!check(NAN));
    ck_assert_ptr_nonnull(strstr(e.text, "the update made 'loss' not finite"));
    ls_memory_close(&m);
}
END_TEST

/* An accumulator keeps the infinity of a skipped update until the next update begins. */
START_TEST(an_accumulator_of_a_skipped_update_is_no_fault)
{
    for (int accumulate = 1; accumulate < 3; accumulate++) {
        LsStateTensor state[16];
        p = tiny_scaled(accumulate);
        ck_assert_uint_le(p.nstate, 16);
        memcpy(state, p.state, p.nstate * sizeof *state);
        for (uint32_t k = 0; k < p.nstate; k++)
            if (strstr(state[k].t.name, ".sum") != NULL)
                state[k].kind = LS_STATE_SUM;
        p.state = state;
        e = (LsError){0};
        ck_assert(ls_memory_open(&m, &p, &e));
        engine = (LsEngine){.p = &p, .m = &m};
        *(float *)(void *)(m.state + ST_WS) = INFINITY;
        ck_assert(check(1));
        *(float *)(void *)(m.state + ST_W) = INFINITY;
        ck_assert(!check(1));
        ls_memory_close(&m);
    }
}
END_TEST

int main(void)
{
    const TTest *test[] = {a_state_tensor_that_is_not_finite_is_named,
                           an_accumulator_of_a_skipped_update_is_no_fault};
    return run_in_folder("value_checks", sizeof test / sizeof test[0], test);
}
