/* runtime/comm/comm_open.c -- see comm_open.h. */
#include "runtime/comm/comm_open.h"
#include "runtime/base/number.h"
#include "runtime/comm/comm_launch.h"
#include "runtime/comm/comm_meet.h"
#include "runtime/comm/comm_token.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Programs that start several processes, and what they tell each one. */
static const struct { const char *name, *size, *rank, *only_with; } known[] = {
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", NULL},
    {"mpiexec", "PMI_SIZE", "PMI_RANK", NULL},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", NULL},
    {"srun", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_STEP_ID"},      /* a batch script has it, too */
};

typedef struct Launcher { const char *name, *variable; int64_t size, rank; } Launcher;

static bool read_variable(const char *name, int64_t *value)
{
    const char *text = getenv(name);
    return text != NULL && ls_number_whole(text, 0, INT32_MAX, value);
}

/* size 1: none that matters. */
static Launcher launcher(void)
{
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        Launcher l = {known[k].name, known[k].size, 1, -1};
        if ((known[k].only_with != NULL && getenv(known[k].only_with) == NULL)
            || !read_variable(l.variable, &l.size) || l.size < 2)
            continue;
        if (!read_variable(known[k].rank, &l.rank))
            l.rank = -1;
        return l;
    }
    return (Launcher){.size = 1, .rank = -1};
}

/* How many processes there are, as the options say. */
static int64_t count_peers(const char *peers)
{
    int64_t n = 1;
    for (const char *at = peers; *at != '\0'; at++)
        n += *at == ',';
    return n;
}

static bool is_linked(const LsCommWish *w, const char *name)
{
    return w->linked != NULL && strcmp(w->linked->name, name) == 0;
}

/* The engine, by name. A program that has MPI takes it when something else started several
 * processes. */
static const char *engine_of(const LsCommWish *w, const Launcher *l)
{
    if (w->engine != NULL)
        return w->engine;
    return w->peers != NULL                   ? "sockets"
           : w->linked != NULL && l->size > 1 ? w->linked->name
                                              : "local";
}

/* Refuses copies that nothing joins. */
static bool fits_launcher(const LsCommWish *w, const Launcher *l, const char *engine, int64_t ranks,
                          LsError *e)
{
    const bool local = strcmp(engine, "local") == 0;
    if (l->size == 1)
        return true;
    if (ranks == 1)
        return ls_fail(e, LS_EXIT_USAGE,
                       "%s started %" PRId64
                       " copies of this program (%s), and each would train alone: compile "
                       "with lowerset compile --ranks %" PRId64
                       " --comm=mpi; or unset %s if they have nothing to do with each "
                       "other",
                       l->name, l->size, l->variable, l->size, l->variable);
    if (ranks != l->size)
        return ls_fail(e, LS_EXIT_USAGE,
                       "this program is for %" PRId64 " ranks, but %s started %" PRId64
                       " processes (%s)",
                       ranks, l->name, l->size, l->variable);
    return !local
           || ls_fail(e, LS_EXIT_USAGE,
                      "%s started %" PRId64 " processes (%s), and nothing joins them: compile with "
                      "lowerset compile --comm=mpi, or give --peers HOST:PORT,...; or start the "
                      "program itself, for ranks "
                      "of one machine%s",
                      l->name, l->size, l->variable, w->engine != NULL ? " (--comm=local)" : "");
}

static bool fits_engine(const LsCommWish *w, const char *engine, int64_t ranks, LsError *e)
{
    const bool local = strcmp(engine, "local") == 0, sockets = strcmp(engine, "sockets") == 0;
    if (strcmp(engine, "mpi") == 0 && !is_linked(w, engine))
        return ls_fail(
            e, LS_EXIT_USAGE,
            "--comm=mpi: this program has no MPI; compile with lowerset compile --comm=mpi");
    if (!local && !sockets && !is_linked(w, engine))
        return ls_fail(e, LS_EXIT_USAGE, "--comm=%s: must be local, sockets or mpi", engine);
    if (!sockets && w->peers != NULL)
        return ls_fail(e, LS_EXIT_USAGE, "--peers is for --comm=sockets, not for --comm=%s",
                       engine);
    if (sockets && w->peers == NULL)
        return ls_fail(e, LS_EXIT_USAGE, "--comm=sockets needs --peers HOST:PORT,...");
    if (w->token_file != NULL && w->peers == NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--token-file is for --peers: nobody else can reach ranks that %s",
                       local ? "are processes of this machine" : "MPI joins");
    if (w->rank >= 0 && w->peers == NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--rank is for --peers: without it, ranks are processes of this machine");
    return ranks > 1 || w->engine == NULL
           || ls_fail(e, LS_EXIT_USAGE, "--comm: one rank sends no messages; give --ranks");
}

static bool meet(const LsCommWish *w, const Launcher *l, int64_t ranks, LsCommOpened *o, LsError *e)
{
    const int64_t rank = w->rank >= 0 ? w->rank : l->rank;
    if (rank < 0)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--peers names %" PRId64 " ranks: say which one this is, with --rank",
                       ranks);
    if (rank >= ranks)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--rank %" PRId64 ": ranks are numbered from 0 to %" PRId64, rank,
                       ranks - 1);
    char token[LS_TOKEN];
    LsMeetWish with = {w->peers, (int)rank, (int)ranks, w->run, NULL, w->program};
    return ls_token_read(w->token_file, token, &with.token, e)
           && ls_comm_meet(&with, &o->comm, &o->silent, e);
}

/* mpirun ends all processes as soon as one has ended with a failure, also the one that speaks. */
bool ls_comm_is_spoken_for(void)
{
    enum { TURN_NS = 300000000 };
    const struct timespec turn = {.tv_nsec = TURN_NS};
    const bool silent = launcher().rank > 0;
    if (silent)
        nanosleep(&turn, NULL);
    return silent;
}

LsCommCount ls_comm_count(const LsCommWish *w)
{
    const Launcher l = launcher();
    if (w->ranks > 0)
        return (LsCommCount){w->ranks, "--ranks"};
    if (w->peers != NULL)
        return (LsCommCount){count_peers(w->peers), "--peers"};
    return (LsCommCount){l.size, l.size > 1 ? l.name : "this run"};
}

bool ls_comm_open(const LsCommWish *w, LsCommOpened *o, LsError *e)
{
    enum { MOST = 4096 };
    const Launcher l = launcher();
    const int64_t peers = w->peers != NULL ? count_peers(w->peers) : 0,
                  ranks = ls_comm_count(w).ranks;
    *o = (LsCommOpened){0};
    if (peers > 0 && peers != ranks)
        return ls_fail(e, LS_EXIT_USAGE, "--ranks %" PRId64 ", but --peers names %" PRId64, ranks,
                       peers);
    const char *engine = engine_of(w, &l);
    if (!fits_engine(w, engine, ranks, e) || !fits_launcher(w, &l, engine, ranks, e)) {
        o->silent = ls_comm_is_spoken_for();
        return false;
    }
    if (ranks > MOST)
        return ls_fail(e, LS_EXIT_USAGE, "--ranks %" PRId64 ": at most %d", ranks, MOST);
    if (ranks == 1)
        return true;
    if (w->peers != NULL)
        return meet(w, &l, ranks, o, e);
    if (is_linked(w, engine))
        return w->linked->open(ranks, w->run, o, e);
    const bool ok = ls_comm_launch((int)ranks, &o->comm, &o->code, e);
    o->starter = o->comm == NULL;
    return ok;
}
