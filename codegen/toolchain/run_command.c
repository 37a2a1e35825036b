/* codegen/toolchain/run_command.c -- see run_command.h. */
#include "codegen/toolchain/run_command.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void ls_command_add(LsCommand *c, const char *word)
{
    c->word = ls_arena_grow(c->arena, c->word, c->n, c->n + 2, sizeof *c->word, &c->room);
    c->word[c->n++] = word;
    c->word[c->n] = NULL;
}

void ls_command_add_words(LsCommand *c, const char *text)
{
    char *copy = ls_arena_strdup(c->arena, text), *save = NULL;
    for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
        ls_command_add(c, w);
}

static bool succeeds(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int ls_command_run(const LsCommand *c)
{
    for (uint32_t k = 0; k < c->n && (c->print || c->dry); k++)
        fprintf(stderr, "%s%s", c->word[k], k + 1 < c->n ? " " : "\n");
    if (c->dry)
        return 0;
    posix_spawn_file_actions_t files;
    pid_t pid;
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    if (c->errors != NULL)
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, c->errors,
                                         O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int failed = posix_spawnp(&pid, c->word[0], &files, NULL, (char *const *)c->word, environ);
    posix_spawn_file_actions_destroy(&files);
    return failed != 0 ? failed : succeeds(pid) ? 0 : -1;
}

/* Reads to the end, so that the writer is never stopped; keeps the first `most` bytes. */
static const char *read_all(LsArena *a, int fd, size_t most)
{
    char *text = ls_arena_alloc(a, most + 1, 1), rest[512];
    size_t n = 0;
    for (ssize_t got;
         (got = n < most ? read(fd, text + n, most - n) : read(fd, rest, sizeof rest)) != 0;) {
        if (got < 0 && errno != EINTR)
            break;
        n += got > 0 && n < most ? (size_t)got : 0;
    }
    return text;
}

const char *ls_command_output(const LsCommand *c, size_t most)
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    int end[2];
    if (pipe2(end, O_CLOEXEC) != 0)
        return NULL;
    int failed = posix_spawn_file_actions_init(&files);
    if (failed == 0) {
        posix_spawn_file_actions_adddup2(&files, end[1], STDOUT_FILENO);
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        failed = posix_spawnp(&pid, c->word[0], &files, NULL, (char *const *)c->word, environ);
        posix_spawn_file_actions_destroy(&files);
    }
    close(end[1]);
    const char *text = failed == 0 ? read_all(c->arena, end[0], most) : NULL;
    close(end[0]);
    return failed == 0 && succeeds(pid) ? text : NULL;
}

const char *ls_command_find(LsArena *a, const char *program)
{
    const char *path = getenv("PATH");
    if (strchr(program, '/') != NULL)
        return access(program, X_OK) == 0 ? program : NULL;
    while (path != NULL && *path != '\0') {
        int n = (int)strcspn(path, ":");
        const char *file = ls_arena_printf(a, "%.*s/%s", n, path, program);
        if (n > 0 && access(file, X_OK) == 0)
            return file;
        path += n + (path[n] == ':');
    }
    return NULL;
}
