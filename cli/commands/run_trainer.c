/* cli/commands/run_trainer.c -- see run_trainer.h. */
#include "cli/commands/run_trainer.h"

#include "compiler/ir/diag.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "lowerset: %s: %s\n", what, why);
    return LS_EXIT_TOOL;
}

/* Starts the program, waits, and returns its exit status. failed: an errno, 0 when it ran. */
static int spawn(const LsTrial *t, const char *const *argv, int *failed)
{
    posix_spawn_file_actions_t to;
    pid_t pid;
    int status = 0;
    posix_spawn_file_actions_init(&to);
    posix_spawn_file_actions_addopen(&to, 1, t->out != NULL ? t->out : "/dev/null",
                                     O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (t->err != NULL)
        posix_spawn_file_actions_addopen(&to, 2, t->err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    *failed = posix_spawn(&pid, t->program, &to, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&to);
    while (*failed == 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            *failed = errno;
    return status;
}

/* Appends an option with its value; NULL: the option is left out. */
static void give(const char **argv, int *n, const char *option, const char *value)
{
    if (value == NULL)
        return;
    argv[(*n)++] = option;
    argv[(*n)++] = value;
}

int ls_trial_run(LsArena *arena, const LsTrial *t)
{
    const char *argv[32] = {t->of};     /* its messages show that name */
    int n = 1, failed;
    give(argv, &n, "--data", t->data != NULL ? t->data : "synthetic");
    give(argv, &n, "--progress", "none");
    give(argv, &n, "--lr", t->lr != NULL ? t->lr : "0");
    give(argv, &n, "--steps", ls_arena_printf(arena, "%" PRId64, t->steps));
    give(argv, &n, "--threads", ls_arena_printf(arena, "%d", t->threads));
    give(argv, &n, "--log", t->log);
    give(argv, &n, "--profile", t->profile);
    give(argv, &n, "--dump", t->dump);
    if (!t->draws)
        argv[n++] = "--no-shuffle";
    if (t->gradients != NULL)
        argv[n++] = t->gradients;
    if (t->measure)
        argv[n++] = "--measure";
    int status = spawn(t, argv, &failed);
    if (failed != 0)
        return fail(t->program, strerror(failed));
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || t->hand_on))
        return WEXITSTATUS(status);
    return fail(t->of, "the program built for it failed");
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The number under `key` in a line of JSON. */
static bool number(const char *line, const char *key, double *to)
{
    cJSON *root = cJSON_Parse(line);
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(root, key);
    bool ok = cJSON_IsNumber(v);
    if (ok)
        *to = v->valuedouble;
    cJSON_Delete(root);
    return ok;
}

double ls_trial_step_ns(LsArena *arena, const char *log)
{
    char *line = NULL;
    size_t size = 0;
    double *took = NULL, before = 0, now;
    uint32_t n = 0, seen = 0, room = 0;
    FILE *f = fopen(log, "r");
    while (f != NULL && getline(&line, &size, f) >= 0) {
        if (!number(line, "loss", &now) || !number(line, "time", &now))
            continue;
        if (seen++ >= 1) {      /* the first step is a warm-up */
            took = ls_arena_grow(arena, took, n, n + 1u, sizeof *took, &room);
            took[n++] = now - before;
        }
        before = now;
    }
    free(line);
    if (f != NULL)
        fclose(f);
    if (n == 0)
        return 0;
    qsort(took, n, sizeof *took, by_size);
    return 1e9 * (n % 2 ? took[n / 2] : (took[n / 2 - 1] + took[n / 2]) / 2);
}

double ls_trial_number(const char *file, const char *key, double otherwise)
{
    char *line = NULL;
    size_t size = 0;
    FILE *f = fopen(file, "r");
    while (f != NULL && getline(&line, &size, f) >= 0)
        number(line, key, &otherwise);
    free(line);
    if (f != NULL)
        fclose(f);
    return otherwise;
}

const char *ls_trial_text(LsArena *arena, const char *file, const char *key)
{
    char *line = NULL;
    size_t size = 0;
    const char *text = "";
    FILE *f = fopen(file, "r");
    while (f != NULL && getline(&line, &size, f) >= 0) {
        cJSON *root = cJSON_Parse(line);
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(root, key);
        if (cJSON_IsString(v))
            text = ls_arena_strdup(arena, v->valuestring);
        cJSON_Delete(root);
    }
    free(line);
    if (f != NULL)
        fclose(f);
    return text;
}
