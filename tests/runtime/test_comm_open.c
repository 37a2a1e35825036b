/* tests/runtime/test_comm_open.c -- which engine a run gets, from options and from what started it;
 * runs that are refused, as their processes would train side by side without knowing of each
 * other. */
#include "runtime/comm/comm_open.h"
#include "runtime/comm/comm_stream.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const variable[] = {
    "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE",     "PMI_RANK",
    "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",         "SLURM_PROCID", "SLURM_STEP_ID"};
static int64_t opened;          /* the linked engine, with so many ranks */

static void forget(void)
{
    for (size_t k = 0; k < sizeof variable / sizeof variable[0]; k++)
        unsetenv(variable[k]);
    opened = 0;
}

static bool open_linked(int64_t ranks, const char *run, LsCommOpened *o, LsError *e)
{
    (void)run, (void)o, (void)e;
    opened = ranks;
    return true;
}
static const LsCommKind linked = {"mpi", open_linked};

typedef struct Row {
    const char *environment;    /* NAME=VALUE NAME=VALUE */
    LsCommWish wish;
    const char *text;           /* of the error; NULL: it opens */
    bool silent;
} Row;

static void set_all(const char *environment)
{
    char text[200], *rest = text;
    snprintf(text, sizeof text, "%s", environment);
    for (char *one; (one = strsep(&rest, " ")) != NULL; ) {
        char *value = strchr(one, '=');
        if (value == NULL)
            continue;
        *value = '\0';
        setenv(one, value + 1, 1);
    }
}

static const Row row[] = {
    {"", {.ranks = 1, .rank = -1}, NULL, false},
    {"", {.rank = -1}, NULL, false},
    {"OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0", {.ranks = 1, .rank = -1}, NULL, false},
    /* a program for one process, started many times */
    {"OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0",
     {.ranks = 1, .rank = -1},
     "mpirun started 4 copies of this program (OMPI_COMM_WORLD_SIZE), and each would train alone",
     false},
    {"PMI_SIZE=3 PMI_RANK=1",
     {.ranks = 1, .rank = -1},
     "mpiexec started 3 copies of this program (PMI_SIZE)",
     true},
    {"SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1",
     {.ranks = 1, .rank = -1},
     "srun started 2 copies",
     true},
    {"SLURM_NTASKS=2 SLURM_PROCID=0 SLURM_STEP_ID=0",
     {.ranks = 1, .rank = -1},
     "srun started 2 copies",
     false},
    {"SLURM_NTASKS=2 SLURM_PROCID=0",
     {.ranks = 1, .rank = -1},
     NULL,
     false}, /* a batch script itself */
    /* one for as many as there are */
    {"PMI_SIZE=3 PMI_RANK=1",
     {.rank = -1},
     "mpiexec started 3 processes (PMI_SIZE), and nothing joins them",
     true},
    {"PMI_SIZE=3 PMI_RANK=1",
     {.rank = -1, .peers = "a:1,b:1"},
     "this program is for 2 ranks, but mpiexec started 3",
     true},
    {"", {.rank = -1, .peers = "a:1,b:1"}, "--peers names 2 ranks: say which one this is", false},
    /* one for several */
    {"OMPI_COMM_WORLD_SIZE=4",
     {.ranks = 2, .rank = -1},
     "this program is for 2 ranks, but mpirun started 4 processes",
     false},
    {"OMPI_COMM_WORLD_SIZE=4",
     {.ranks = 4, .rank = -1},
     "nothing joins them: compile with lowerset compile --comm=mpi",
     false},
    {"OMPI_COMM_WORLD_SIZE=4",
     {.ranks = 4, .rank = -1, .engine = "local"},
     "(--comm=local)",
     false},
    {"OMPI_COMM_WORLD_SIZE=4",
     {.ranks = 2, .rank = -1, .linked = &linked},
     "this program is for 2 ranks, but mpirun",
     false},
    {"", {.ranks = 2, .rank = -1, .peers = "a:1,b:1,c:1"}, "--ranks 2, but --peers names 3", false},
    {"", {.ranks = 2, .rank = -1, .peers = "a:1,b:1"}, "say which one this is, with --rank", false},
    {"", {.ranks = 2, .rank = 2, .peers = "a:1,b:1"}, "ranks are numbered from 0 to 1", false},
    {"SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=1",
     {.ranks = 2, .rank = -1, .peers = "a:1,b:1"},
     "srun started 3 processes",
     true},
    {"",
     {.ranks = 2, .rank = 0, .peers = "127.0.0.1:1,127.0.0.1:1"},
     "ranks 0 and 1 have the same address",
     false},
    {"",
     {.ranks = 2, .rank = 0, .peers = "127.0.0.1:1,nobody"},
     "'nobody' of rank 1 is not HOST:PORT",
     false},
    {"",
     {.ranks = 2, .rank = 0, .peers = "127.0.0.1:x,127.0.0.1:2"},
     "'127.0.0.1:x' of rank 0",
     false},
    {"", {.ranks = 2, .rank = 1}, "--rank is for --peers", false},
    {"", {.ranks = 2, .rank = -1, .engine = "sockets"}, "--comm=sockets needs --peers", false},
    {"",
     {.ranks = 2, .rank = 0, .engine = "local", .peers = "a:1,b:1"},
     "--peers is for --comm=sockets",
     false},
    {"", {.ranks = 2, .rank = -1, .engine = "mpi"}, "this program has no MPI", false},
    {"", {.ranks = 2, .rank = -1, .engine = "pigeons"}, "must be local, sockets or mpi", false},
    {"", {.ranks = 1, .rank = -1, .engine = "local"}, "one rank sends no messages", false},
    {"", {.ranks = 5000, .rank = -1}, "at most 4096", false},
};

START_TEST(copies_that_do_not_know_each_other_are_refused)
{
    const Row *r = &row[_i];
    LsCommOpened o;
    LsError e = {0};
    forget();
    set_all(r->environment);
    ck_assert_msg(ls_comm_open(&r->wish, &o, &e) == (r->text == NULL), "%s", e.text);
    ck_assert_ptr_null(o.comm);
    ck_assert_int_eq(o.silent, r->silent);
    if (r->text != NULL)
        ck_assert_msg(e.code == LS_EXIT_USAGE && strstr(e.text, r->text) != NULL, "%d: %s", e.code,
                      e.text);
}
END_TEST

/* Only processes that something started are MPI's, unless it is asked for. */
START_TEST(a_linked_engine_is_for_processes_that_something_started)
{
    LsCommOpened o;
    LsError e = {0};
    LsCommWish w = {.ranks = 4, .rank = -1, .linked = &linked};
    forget();
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    ck_assert(ls_comm_open(&w, &o, &e) && opened == 4);
    forget();
    w.engine = "mpi";
    ck_assert(ls_comm_open(&w, &o, &e) && opened == 4);
    forget();
    setenv("PMI_SIZE", "3", 1);
    w = (LsCommWish){.rank = -1, .linked = &linked};
    ck_assert(ls_comm_count(&w).ranks == 3 && strcmp(ls_comm_count(&w).by, "mpiexec") == 0);
    ck_assert(ls_comm_open(&w, &o, &e) && opened == 3);
    w = (LsCommWish){.ranks = 2, .rank = -1, .linked = &linked};
    forget();
    ck_assert(ls_comm_open(&w, &o, &e) && opened == 0);
    if (o.comm != NULL) {       /* a rank of this machine */
        o.comm->engine->close(o.comm);
        _exit(0);
    }
    ck_assert(o.starter);
    ck_assert_int_eq(o.code, 0);
}
END_TEST

static int open_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void limit_descriptors(rlim_t n)
{
    struct rlimit r;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = n;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
}

/* Whichever descriptor is the first that it does not get: it says so, and keeps none. */
START_TEST(a_rank_without_descriptors_says_so_and_keeps_none)
{
    const int before = open_descriptors();
    struct rlimit whole;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &whole), 0);
    int refused = 0;
    for (LsComm *c = NULL; c == NULL; refused++) {
        int way[2], news[2], free_one = dup(0);
        LsError e = {0};
        close(free_one);
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, way), 0);
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, news), 0);
        const int stream[2] = {-1, way[0]}, channel[2] = {-1, news[0]};
        limit_descriptors((rlim_t)(free_one + 4 + refused));
        c = ls_comm_streams("sockets", &(LsStreams){.size = 2, .stream = stream,
                                                    .channel = channel}, &e);
        limit_descriptors(whole.rlim_cur);
        ck_assert_int_lt(refused, 32);
        if (c == NULL)
            ck_assert_msg(e.code == LS_EXIT_FAIL
                              && strstr(e.text, refused < 2 ? "no descriptors left"
                                                            : "descriptor") != NULL,
                          "%d: %s", e.code, e.text);
        else
            c->engine->close(c);
        close(way[1]);
        close(news[1]);
        ck_assert_int_eq(open_descriptors(), before);
    }
    ck_assert_int_ge(refused, 2);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("comm_open");
    tcase_add_loop_test(tc, copies_that_do_not_know_each_other_are_refused, 0,
                        sizeof row / sizeof row[0]);
    tcase_add_test(tc, a_linked_engine_is_for_processes_that_something_started);
    tcase_add_test(tc, a_rank_without_descriptors_says_so_and_keeps_none);
    return run_tests("comm_open", tc);
}
