/* tests/runtime/test_stage_check.c -- the check of a pipeline's messages, which
 * LOWERSET_CHECK_STAGES turns on: each way to spoil one is seen. */
#include "runtime/pipeline/stage_check.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 16 };
static const LsMessage message = {.tag = 3, .peer = 1, .bytes = BYTES};
static const LsStage stage = {.slots = 1, .nsend = 1};

static void open_check(LsStageCheck *c)
{
    LsError e = {0};
    ck_assert_int_eq(setenv("LOWERSET_CHECK_STAGES", "1", 1), 0);
    ck_assert_msg(ls_stage_check_open(c, &stage, &e), "%s", e.text);
    ck_assert(c->on);
}

/* Any bit of a message that changes while it is on its way. */
START_TEST(a_message_stays_as_it_was_sent)
{
    LsStageCheck c;
    LsError e = {0};
    unsigned char text[BYTES] = "a message";
    open_check(&c);
    ls_stage_check_sends(&c, 0, text, BYTES);
    ck_assert_msg(ls_stage_check_left(&c, 0, &message, &e), "%s", e.text);
    for (int bit = 0; bit < 8 * BYTES; bit++) {
        text[bit / 8] ^= (unsigned char)(1u << bit % 8);
        e = (LsError){0};
        ck_assert_msg(!ls_stage_check_left(&c, 0, &message, &e), "bit %d", bit);
        ck_assert_str_eq(e.text, "message 3 was overwritten before stage 2 had it");
        text[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    ck_assert(ls_stage_check_left(&c, 0, &message, &e));
    ls_stage_check_close(&c);
}
END_TEST

/* Nobody may write to where a message arrives: not to its last byte either. */
START_TEST(nothing_is_written_to_where_a_message_arrives)
{
    LsStageCheck c;
    LsError e = {0};
    unsigned char at[BYTES];
    open_check(&c);
    free(c.inbox);
    c.inbox = calloc(1, sizeof *c.inbox);       /* as a stage that receives has one */
    c.inbox[0] = malloc(BYTES);
    c.nreceive = 1;
    memset(c.inbox[0], 7, BYTES);
    for (int spoilt = -1; spoilt < BYTES; spoilt++) {
        ck_assert_ptr_eq(ls_stage_check_asks(&c, 0, at, BYTES), c.inbox[0]);
        if (spoilt >= 0)
            at[spoilt] = 0;
        ck_assert_int_eq(ls_stage_check_arrived(&c, 0, &message, at, &e), spoilt < 0);
        ck_assert_int_eq(at[BYTES - 1] == 7, spoilt < 0);
    }
    ls_stage_check_close(&c);
}
END_TEST

int main(void)
{
    const TTest *test[] = {a_message_stays_as_it_was_sent,
                           nothing_is_written_to_where_a_message_arrives};
    TCase *tc = tcase_create("stage_check");
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("stage_check", tc);
}
