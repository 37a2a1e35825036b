/* tests/support/tiny_run.h -- the program of tiny_program.h run as a trainer, in a process of its
 * own. */
#ifndef LS_TESTS_SUPPORT_TINY_RUN_H
#define LS_TESTS_SUPPORT_TINY_RUN_H

#include "tests/support/npz_util.h"
#include "tests/support/tiny_child.h"

enum { SAMPLES = 10 };          /* not a multiple of the batch: the last batch counts in part */

static float features[SAMPLES * TF];
static int64_t labels[SAMPLES];

static inline void make_data(int64_t samples)
{
    tiny_data(SAMPLES, features, labels);
    write_npz("data.npz", 2, (NpzItem[]){{"in/x", LS_F32, 3, {samples, TC, TS}, features},
                                         {"label", LS_I64, 1, {samples}, labels}});
}

static inline int train(void *program, int argc, char **argv)
{
    return ls_trainer_main(program, argc, argv);
}

/* Runs the trainer; arguments are separated by blanks. */
static inline int run_program(const LsProgram *p, const char *command)
{
    LsProgram own = *p;
    return tiny_child(train, &own, command);
}

static inline int run(const char *command)
{
    LsProgram p = tiny_program(1);
    return run_program(&p, command);
}

#define MUST(code, command)                                                                        \
    do {                                                                                           \
        int got_ = run(command);                                                                   \
        ck_assert_msg(got_ == (code), "exit %d, not %d:\n%s%s", got_, code, out_text, err_text);   \
    } while (0)
#define TOLD(text, part) ck_assert_msg(strstr(text, part) != NULL, "no '%s' in:\n%s", part, text)

#endif
