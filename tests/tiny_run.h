/* tests/tiny_run.h -- the program of tiny_program.h run as a trainer, in a process of its own. */
#ifndef LS_TESTS_TINY_RUN_H
#define LS_TESTS_TINY_RUN_H

#include "tests/npz_util.h"
#include "tests/tiny_program.h"

#include <string.h>
#include <sys/wait.h>

enum { SAMPLES = 10 };          /* not a multiple of the batch: the last one counts in part */

static float features[SAMPLES * TF];
static int64_t labels[SAMPLES];
static char out_text[65536], err_text[65536];

static inline void make_data(int64_t samples)
{
    tiny_data(SAMPLES, features, labels);
    write_npz("data.npz", 2, (NpzItem[]){{"in/x", LS_F32, 3, {samples, TC, TS}, features},
                                         {"label", LS_I64, 1, {samples}, labels}});
}

/* Runs the trainer in a process of its own; arguments are separated by blanks. */
static inline int run_program(const LsProgram *p, const char *command)
{
    char text[1024], *argv[64] = {"trainer"}, *rest = text;
    int argc = 1, status;
    snprintf(text, sizeof text, "%s", command);
    for (char *word; (word = strsep(&rest, " ")) != NULL;)
        if (*word)
            argv[argc++] = word;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        freopen("out", "w", stdout);
        freopen("err", "w", stderr);
        exit(ls_trainer_main(p, argc, argv));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    tiny_read("out", out_text, sizeof out_text);
    tiny_read("err", err_text, sizeof err_text);
    ck_assert_msg(WIFEXITED(status), "killed by signal %d\n%s", WTERMSIG(status), err_text);
    return WEXITSTATUS(status);
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
