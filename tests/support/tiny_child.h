/* tests/support/tiny_child.h -- a trainer in a process of its own, and its output. */
#ifndef LS_TESTS_SUPPORT_TINY_CHILD_H
#define LS_TESTS_SUPPORT_TINY_CHILD_H

#include "tests/support/tiny_program.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TINY_TEXT = 65536, TINY_NO_FILE = 125 };
static char out_text[TINY_TEXT], err_text[TINY_TEXT];

/* Returns waitpid's status. Words of the command are separated by blanks. */
static inline int tiny_child_status(int (*trainer)(void *user, int argc, char **argv), void *user,
                                    const char *command)
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
        if (!freopen("out", "w", stdout) || !freopen("err", "w", stderr))
            _exit(TINY_NO_FILE);
        exit(trainer(user, argc, argv));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    tiny_read("out", out_text, sizeof out_text);
    tiny_read("err", err_text, sizeof err_text);
    return status;
}

/* Its exit code: the value that `trainer` returns there. */
static inline int tiny_child(int (*trainer)(void *user, int argc, char **argv), void *user,
                             const char *command)
{
    int status = tiny_child_status(trainer, user, command);
    ck_assert_msg(WIFEXITED(status), "killed by signal %d\n%s", WTERMSIG(status), err_text);
    ck_assert_msg(WEXITSTATUS(status) != TINY_NO_FILE, "no file for the trainer's words");
    return WEXITSTATUS(status);
}

#endif
