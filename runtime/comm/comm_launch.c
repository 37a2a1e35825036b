/* runtime/comm/comm_launch.c -- see comm_launch.h. */
#include "runtime/comm/comm_launch.h"
#include "runtime/base/clock.h"
#include "runtime/comm/comm_stream.h"
#include "runtime/comm/comm_watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_MS = 5000 };       /* from a failure until the ranks that are left are killed */

typedef struct Started {
    pid_t pid;                  /* 0: it has ended */
    LsChannel channel;
    bool done;                  /* it said that it needs nobody any more */
    int code;                   /* of exit; 128 + signal */
} Started;

typedef struct Starter {
    int size, alive;
    Started *rank;
    pid_t group;                /* of all ranks, so that a terminal's signals reach the starter
                                 * alone */
    int signals;
    sigset_t caught, before;
    int asked;                  /* the last signal handed on; 0: none */
    LsError why;
    int64_t failed_ns;
} Starter;

/* Pairs of sockets: pair[a * size + b] is a's end towards b, hub[a] rank a's end of its channel. */
typedef struct Wires { int size, *pair, *hub; } Wires;

static void close_at(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_wires(Wires *w)
{
    for (int k = 0; w->pair != NULL && k < w->size * w->size; k++)
        close_at(&w->pair[k]);
    for (int k = 0; w->hub != NULL && k < w->size; k++)
        close_at(&w->hub[k]);
    free(w->pair);
    free(w->hub);
}

static bool make_pair(int *a, int *b)
{
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) != 0)
        return false;
    *a = fd[0];
    *b = fd[1];
    return true;
}

static bool make_wires(Starter *s, Wires *w, LsError *e)
{
    const size_t n = (size_t)s->size;
    *w = (Wires){s->size, malloc(n * n * sizeof *w->pair), malloc(n * sizeof *w->hub)};
    if (w->pair == NULL || w->hub == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    memset(w->pair, 0xff, n * n * sizeof *w->pair);
    memset(w->hub, 0xff, n * sizeof *w->hub);
    bool ok = true;
    for (int a = 0; a < s->size; a++) {
        ok = ok && make_pair(&w->hub[a], &s->rank[a].channel.fd);
        for (int b = 0; b < a; b++)
            ok = ok && make_pair(&w->pair[a * s->size + b], &w->pair[b * s->size + a]);
    }
    return ok || ls_fail(e, LS_EXIT_FAIL, "cannot join %d ranks: %s", s->size, strerror(errno));
}

/* Every rank has a pair with every other one. */
static void allow_descriptors(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return;
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
}

/* In the new process: it keeps its own ends alone. */
static LsComm *be_rank(Starter *s, Wires *w, int me, pid_t starter, LsError *e)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != starter)
        _exit(LS_EXIT_RANK);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
    close(s->signals);
    int *stream = w->pair + (size_t)me * (size_t)s->size;
    for (int k = 0; k < s->size; k++) {
        close_at(&s->rank[k].channel.fd);
        if (k == me)
            continue;
        close_at(&w->hub[k]);
        for (int b = 0; b < s->size; b++)
            close_at(&w->pair[k * s->size + b]);
    }
    const LsStreams mine = {
        .rank = me, .size = s->size, .stream = stream, .hub = true, .channel = &w->hub[me]};
    LsComm *c = ls_comm_streams("local", &mine, e);
    free(w->pair);
    free(w->hub);
    free(s->rank);
    return c;
}

static void fail_all(Starter *s)
{
    if (s->failed_ns != 0)
        return;
    s->failed_ns = ls_now_ns();
    for (int k = 0; k < s->size; k++)
        ls_channel_send(&s->rank[k].channel, LS_FRAME_FAILED, -1, &s->why);
}

static void read_channel(Starter *s, int k)
{
    LsChannel *c = &s->rank[k].channel;
    for (int got; c->fd >= 0 && (got = ls_channel_read(c)) != 0; ) {
        if (got < 0) {
            ls_channel_close(c);
        } else if (c->in.kind == LS_FRAME_FAILED) {
            ls_fail(&s->why, (LsExit)c->in.code, "%s", c->in.text);
            fail_all(s);
        } else if (c->in.kind == LS_FRAME_ENDED) {
            s->rank[k].done = true;
            for (int other = 0; other < s->size; other++)
                if (other != k)
                    ls_channel_send(&s->rank[other].channel, LS_FRAME_ENDED, k, NULL);
        }
    }
}

static void bury(Starter *s, int k, int status)
{
    Started *r = &s->rank[k];
    read_channel(s, k);         /* its last words */
    r->pid = 0;
    s->alive--;
    r->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (WIFSIGNALED(status) && WTERMSIG(status) == s->asked)
        ls_fail(&s->why, (LsExit)r->code, "interrupted");
    else if (WIFSIGNALED(status))
        ls_fail(&s->why, LS_EXIT_RANK, "rank %d was killed by signal %d (%s)", k, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    else if (!r->done)
        ls_fail(&s->why, LS_EXIT_RANK, "rank %d ended in the middle of the run, with exit code %d",
                k, r->code);
    if (s->why.code != LS_EXIT_DONE)
        fail_all(s);
}

static void reap(Starter *s)
{
    for (int k = 0; k < s->size; k++) {
        int status;
        if (s->rank[k].pid > 0 && waitpid(s->rank[k].pid, &status, WNOHANG) == s->rank[k].pid)
            bury(s, k, status);
    }
}

static void kill_all(const Starter *s, int signal)
{
    for (int k = 0; k < s->size; k++)
        if (s->rank[k].pid > 0)
            kill(s->rank[k].pid, signal);
}

/* The starter stops with its ranks, and goes on with them. */
static void pause_all(const Starter *s)
{
    kill_all(s, SIGSTOP);
    raise(SIGSTOP);
    kill_all(s, SIGCONT);
}

static void take_signals(Starter *s)
{
    struct signalfd_siginfo got;
    while (read(s->signals, &got, sizeof got) == (ssize_t)sizeof got) {
        const int signal = (int)got.ssi_signo;
        if (signal == SIGCHLD)
            continue;
        if (signal == SIGTSTP) {
            pause_all(s);
            continue;
        }
        s->asked = signal;
        kill_all(s, signal);
    }
}

/* Until all ranks have ended. */
static void watch_over(Starter *s)
{
    struct pollfd *at = calloc((size_t)s->size + 1, sizeof *at);
    while (s->alive > 0 && at != NULL) {
        at[s->size] = (struct pollfd){.fd = s->signals, .events = POLLIN};
        for (int k = 0; k < s->size; k++)
            at[k] = (struct pollfd){.fd = s->rank[k].channel.fd, .events = POLLIN};
        const int64_t left =
            s->failed_ns == 0 ? -1 : GRACE_MS - (ls_now_ns() - s->failed_ns) / 1000000;
        poll(at, (nfds_t)s->size + 1, s->failed_ns == 0 ? -1 : left > 0 ? (int)left : 100);
        for (int k = 0; k < s->size; k++)
            read_channel(s, k);
        take_signals(s);
        reap(s);
        if (s->failed_ns != 0 && ls_now_ns() - s->failed_ns > GRACE_MS * INT64_C(1000000))
            kill_all(s, SIGKILL);
    }
    free(at);
}

/* The code of all ranks: the first that is not 0. */
static int code_of(const Starter *s)
{
    for (int k = 0; k < s->size; k++)
        if (s->rank[k].code != 0)
            return s->rank[k].code;
    return 0;
}

static bool end(Starter *s, int *ended, LsError *e)
{
    for (int k = 0; k < s->size; k++)
        ls_channel_close(&s->rank[k].channel);
    close(s->signals);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
    *ended = code_of(s);
    free(s->rank);
    if (s->why.code == LS_EXIT_DONE)
        return true;
    *ended = (int)s->why.code;
    return (int)s->why.code > 128 || ls_fail(e, s->why.code, "%s", s->why.text);
}

static bool catch_signals(Starter *s)
{
    static const int of_rank[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP};
    sigemptyset(&s->caught);
    for (size_t k = 0; k < sizeof of_rank / sizeof of_rank[0]; k++)
        sigaddset(&s->caught, of_rank[k]);
    sigprocmask(SIG_BLOCK, &s->caught, &s->before);
    s->signals = signalfd(-1, &s->caught, SFD_NONBLOCK | SFD_CLOEXEC);
    return s->signals >= 0;
}

bool ls_comm_launch(int size, LsComm **c, int *ended, LsError *e)
{
    Wires wires = {0};
    Starter s = {.size = size, .rank = calloc((size_t)size, sizeof *s.rank), .signals = -1};
    const pid_t starter = getpid();
    *c = NULL;
    if (s.rank == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    for (int k = 0; k < size; k++)
        s.rank[k].channel.fd = -1;
    allow_descriptors();
    bool ok = catch_signals(&s) ? make_wires(&s, &wires, e)
                                : ls_fail(e, LS_EXIT_FAIL, "no signalfd: %s", strerror(errno));
    fflush(NULL);
    for (int k = 0; ok && k < size; k++) {
        const pid_t pid = fork();
        if (pid == 0) {
            setpgid(0, s.group);
            *c = be_rank(&s, &wires, k, starter, e);
            return *c != NULL;
        }
        if (pid < 0) {
            ok = ls_fail(&s.why, LS_EXIT_FAIL, "cannot start rank %d: %s", k, strerror(errno));
            break;
        }
        s.group = k == 0 ? pid : s.group;
        setpgid(pid, s.group);
        s.rank[k].pid = pid;
        s.alive++;
    }
    close_wires(&wires);
    if (!ok)
        kill_all(&s, SIGKILL);
    watch_over(&s);
    return end(&s, ended, e) && ok;
}
