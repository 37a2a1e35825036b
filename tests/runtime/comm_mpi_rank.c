/* tests/runtime/comm_mpi_rank.c -- a rank for comm_mpi.sh: one of the cases that every engine must
 * pass.
 *   mpirun -n N comm_mpi_rank CASE FILE [RUN]
 * FILE: memory that all ranks share; RUN: what they run, NUMBER of ranks otherwise. */
#include "runtime/comm_mpi/comm_mpi.h"
#include "tests/support/comm_cases.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* Ranks send to each other for ever. Rank 1 computes after a while, and does not look. */
static void case_loop(LsComm *c, CommShared *s)
{
    LsError e = {0};
    for (int k = 0; c->engine->barrier(c, &e); k++)
        if (atomic_fetch_add(&s->count, 1) > 100 && c->rank == 1)
            for (;;)
                pause();
    comm_failed(c, s, &e);
}

/* Rank 2 dies in the middle. */
static void case_death(LsComm *c, CommShared *s)
{
    if (c->rank == 2)
        raise(SIGKILL);
    case_loop(c, s);
}

static const struct { const char *name; CommCase *fn;
} row[] = {
    {"all_to_all", case_all_to_all},
    {"exchange", case_exchange},
    {"barrier", case_barrier},
    {"mismatch", case_mismatch},
    {"abandon", case_abandon},
    {"early_end", case_early_end},
    {"loop", case_loop},
    {"death", case_death},
};

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const int fd = open(argv[2], O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, sizeof(CommShared)) != 0)
        return 2;
    CommShared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    LsCommOpened o = {0};
    LsError e = {0};
    if (!ls_comm_mpi.open(atoi(argv[3]), argc > 4 ? argv[4] : "plan", &o, &e)) {
        if (!o.silent)
            fprintf(stderr, "error: %s\n", e.text);
        return (int)e.code;
    }
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++)
        if (strcmp(argv[1], row[k].name) == 0)
            row[k].fn(o.comm, s);
    return 0;
}
