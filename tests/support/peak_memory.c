/* tests/support/peak_memory.c -- runs a command and writes the largest resident memory, in KiB,
 * that one of its processes took: peak_memory FILE COMMAND... */
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
    struct rusage most;
    pid_t pid;
    int status = 0;
    if (argc < 3 || posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ) != 0
        || waitpid(pid, &status, 0) != pid)
        return 125;
    getrusage(RUSAGE_CHILDREN, &most);
    FILE *f = fopen(argv[1], "w");
    if (f == NULL)
        return 125;
    fprintf(f, "%ld\n", most.ru_maxrss);
    return fclose(f) == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
