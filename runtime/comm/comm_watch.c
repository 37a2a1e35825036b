/* runtime/comm/comm_watch.c -- see comm_watch.h. */
#include "runtime/comm/comm_watch.h"
#include "runtime/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { MARK = 0x4c53666d };
enum {
    TAKE_US = 200,
    PULSE_MS = 500, TICK_MS = 250,
    LATE_MS = 2000,             /* if this thread itself was suspended for so long, peers are not
                                 * blamed for the gap */
    DOUBT_MS = 1500,            /* for a better reason than a closed connection */
    HEARD_MS = 3500,            /* for the word of the rank that is to print */
    NOTICE_MS = 2500,           /* for a rank to notice a failure by itself */
    LEAVE_MS = 8000,            /* for a rank to end, after a failure */
};
/* The promise of docs/ranks.md. */
_Static_assert(LS_WATCH_SILENCE_MS + TICK_MS + NOTICE_MS < 10000
                   && LS_WATCH_SILENCE_MS + TICK_MS + HEARD_MS < 10000,
               "all ranks end within 10 s");
static const int64_t MS = 1000000;      /* in ns */

struct LsWatch {
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t thread;
    int rank, size;
    bool hub;
    LsChannel *channel; int channels;
    bool *ended;                /* by rank */
    int64_t *doubt_ns;          /* by rank: since when; 0: none */
    int *doubt;                 /* by rank: errno */
    LsWatchWork work;
    struct pollfd *own, *of_main;       /* what each of both threads waits for */
    int wake, wake_main, timer;
    int errors;                 /* the process's first standard error: ranks may be made silent */
    bool inside;                /* the rank does the work itself */
    bool works;                 /* the thread waits for work */
    bool stop, noticed, told;
    LsError why; int gone;       /* see ls_watch_fail */
    int64_t failed_ns, ticked_ns, pulsed_ns;
};

void ls_watch_lock(LsWatch *w) { pthread_mutex_lock(&w->lock); }
void ls_watch_unlock(LsWatch *w) { pthread_mutex_unlock(&w->lock); }

static void ring(int fd)
{
    const uint64_t one = 1;
    ssize_t ignored = write(fd, &one, sizeof one);
    (void)ignored;
}

static void hush(int fd)
{
    uint64_t n;
    ssize_t ignored = read(fd, &n, sizeof n);
    (void)ignored;
}

/* The thread takes over when the rank has not come back within TAKE_US: a rank that waits moves its
 * messages itself, and does better without a second thread beside it. */
void ls_watch_kick(LsWatch *w)
{
    const struct itimerspec soon = {.it_value = {.tv_nsec = TAKE_US * 1000}};
    timerfd_settime(w->timer, 0, &soon, NULL);
}

void ls_channel_close(LsChannel *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

void ls_channel_send(LsChannel *c, LsFrameKind kind, int subject, const LsError *why)
{
    LsFrame f = {.mark = MARK, .kind = kind, .subject = subject};
    if (c->fd < 0)
        return;
    if (why != NULL) {
        f.code = (int32_t)why->code;
        memcpy(f.text, why->text, sizeof f.text);
    }
    f.check = ls_seal_text(&c->seal, &f, offsetof(LsFrame, check));
    const ssize_t sent = send(c->fd, &f, sizeof f, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && kind == LS_FRAME_PULSE)
        return;                 /* its buffer is full of earlier ones */
    if (sent != (ssize_t)sizeof f)
        shutdown(c->fd, SHUT_WR);       /* what comes from there still counts */
}

int ls_channel_read(LsChannel *c)
{
    if (c->at == sizeof c->in)
        c->at = 0;
    const ssize_t got = recv(c->fd, (char *)&c->in + c->at, sizeof c->in - c->at, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (got <= 0)
        return -1;
    c->at += (size_t)got;
    c->heard_ns = ls_now_ns();
    if (c->at < sizeof c->in)
        return 0;
    return ls_channel_trusts(c, &c->in) ? 1 : -2;
}

bool ls_channel_trusts(const LsChannel *c, LsFrame *f)
{
    if (f->mark != MARK || f->check != ls_seal_text(&c->seal, f, offsetof(LsFrame, check)))
        return false;
    f->text[sizeof f->text - 1] = '\0';
    if (c->seal.on)
        ls_make_printable(f->text);
    if (f->kind == LS_FRAME_FAILED && (f->code <= 0 || f->code > 255))
        f->code = LS_EXIT_RANK;
    return true;
}

bool ls_watch_fine(const LsWatch *w, LsError *e)
{
    return w->why.code == LS_EXIT_DONE || ls_fail(e, w->why.code, "%s", w->why.text);
}

void ls_watch_fail(LsWatch *w, int gone, LsExit code, const char *fmt, ...)
{
    va_list ap;
    if (w->why.code != LS_EXIT_DONE)
        return;
    va_start(ap, fmt);
    vsnprintf(w->why.text, sizeof w->why.text, fmt, ap);
    va_end(ap);
    w->why.code = code;
    w->gone = gone;
    w->failed_ns = ls_now_ns();
    for (int k = 0; k < w->channels; k++)
        ls_channel_send(&w->channel[k], LS_FRAME_FAILED, gone, &w->why);
    ring(w->wake_main);
    pthread_cond_broadcast(&w->news);
}

void ls_watch_suspect(LsWatch *w, int rank, int err)
{
    if (w->ended[rank]) {
        ls_watch_fail(w, -1, LS_EXIT_RANK, "rank %d ended while others still wait for it", rank);
    } else if (w->doubt_ns[rank] == 0) {
        w->doubt_ns[rank] = ls_now_ns();
        w->doubt[rank] = err;
        ring(w->wake);
    }
}

/* The first rank that prints, or has printed. */
static int first_alive(const LsWatch *w)
{
    for (int k = 0; k < w->rank; k++)
        if (w->channel[k].heard || (k != w->gone && w->channel[k].fd >= 0 && !w->ended[k]))
            return k;
    return w->rank;
}

static void take_frame(LsWatch *w, int k)
{
    LsChannel *c = &w->channel[k];
    const LsFrame *f = &c->in;
    switch ((LsFrameKind)f->kind) {
    case LS_FRAME_PULSE:
        break;
    case LS_FRAME_FAILED:
        ls_watch_fail(w, f->subject, (LsExit)f->code, "%s", f->text);
        if (!w->hub)
            ls_channel_send(c, LS_FRAME_HEARD, w->rank, NULL);
        c->heard = true;
        pthread_cond_broadcast(&w->news);
        break;
    case LS_FRAME_HEARD:
        c->heard = true;
        pthread_cond_broadcast(&w->news);
        break;
    case LS_FRAME_ENDED:
        if (f->subject >= 0 && f->subject < w->size)
            w->ended[f->subject] = true;
        ring(w->wake_main);
        break;
    }
}

static void lose_channel(LsWatch *w, int k)
{
    ls_channel_close(&w->channel[k]);
    pthread_cond_broadcast(&w->news);
    if (w->hub)
        ls_watch_fail(w, -1, LS_EXIT_RANK, "the process that started the ranks is gone");
    else if (!w->ended[k])
        ls_watch_fail(w, k, LS_EXIT_RANK, "rank %d died: its connection was closed", k);
}

static void read_channel(LsWatch *w, int k)
{
    for (int got; w->channel[k].fd >= 0 && (got = ls_channel_read(&w->channel[k])) != 0; ) {
        if (got > 0)
            take_frame(w, k);
        else if (got < -1)
            ls_watch_fail(
                w, -1, LS_EXIT_RANK,
                "a sign of life of rank %d changed on its way to rank %d: its check is wrong", k,
                w->rank);
        else
            lose_channel(w, k);
    }
}

static bool is_watched(const LsWatch *w, int k) { return w->channel[k].fd >= 0 && !w->ended[k]; }

/* Signs of life, to the other ranks and of them. */
static void feel_pulses(LsWatch *w, int64_t now)
{
    const bool due = now - w->pulsed_ns >= PULSE_MS * MS;
    int others = 0, silent = 0, lost = -1;
    for (int k = 0; k < w->channels; k++) {
        LsChannel *c = &w->channel[k];
        if (!is_watched(w, k))
            continue;
        if (due)
            ls_channel_send(c, LS_FRAME_PULSE, w->rank, NULL);
        others++;
        silent += now - c->heard_ns > (LS_WATCH_SILENCE_MS - LATE_MS) * MS;
        if (lost < 0 && now - c->heard_ns > LS_WATCH_SILENCE_MS * MS)
            lost = k;
    }
    w->pulsed_ns = due ? now : w->pulsed_ns;
    const bool cut_off = lost >= 0 && silent == others && others > 1;
    for (int k = 0; k < w->channels && cut_off; k++)
        ls_channel_close(&w->channel[k]);
    if (cut_off)
        ls_watch_fail(w, -1, LS_EXIT_RANK,
                      "rank %d is cut off: no other rank gave a sign of life for %d s", w->rank,
                      LS_WATCH_SILENCE_MS / 1000);
    else if (lost >= 0)
        ls_watch_fail(w, lost, LS_EXIT_RANK,
                      "rank %d gave no sign of life for %d s: it hangs, or its machine or the "
                      "network is down",
                      lost, LS_WATCH_SILENCE_MS / 1000);
}

/* Ends the process, whose rank does not come to an end by itself. */
static void end_late(LsWatch *w, int64_t now)
{
    const int64_t since = now - w->failed_ns;
    if (w->why.code == LS_EXIT_DONE || w->hub || since < (w->noticed ? LEAVE_MS : NOTICE_MS) * MS)
        return;
    if (!w->told && first_alive(w) == w->rank)
        dprintf(w->errors, "%s: error: %s\n", program_invocation_name, w->why.text);
    _exit((int)w->why.code);
}

static void tick(LsWatch *w)
{
    const int64_t now = ls_now_ns(), gap = now - w->ticked_ns;
    w->ticked_ns = now;
    for (int k = 0; k < w->channels && gap > LATE_MS * MS; k++)
        w->channel[k].heard_ns += gap;
    if (!w->hub && w->why.code == LS_EXIT_DONE)
        feel_pulses(w, now);
    for (int k = 0; k < w->size; k++)
        if (w->doubt_ns[k] != 0 && w->ended[k])
            ls_watch_suspect(w, k, 0);
        else if (w->doubt_ns[k] != 0 && now - w->doubt_ns[k] > DOUBT_MS * MS)
            ls_watch_fail(w, -1, LS_EXIT_RANK, "the connection to rank %d broke: %s", k,
                          w->doubt[k] != 0 ? strerror(w->doubt[k]) : "it was closed");
    end_late(w, now);
}

/* What the thread waits for. */
static int fill(LsWatch *w)
{
    int n = 0;
    w->own[n++] = (struct pollfd){.fd = w->wake, .events = POLLIN};
    w->own[n++] = (struct pollfd){.fd = w->timer, .events = POLLIN};
    for (int k = 0; k < w->channels; k++)
        w->own[n++] = (struct pollfd){.fd = w->channel[k].fd, .events = POLLIN};
    const int more = w->inside || w->work.fill == NULL ? 0 : w->work.fill(w->work.of, w->own + n);
    w->works = more > 0;
    return n + more;
}

static void *watch_main(void *arg)
{
    LsWatch *w = arg;
    pthread_mutex_lock(&w->lock);
    w->ticked_ns = ls_now_ns();
    while (!w->stop) {
        const int n = fill(w);
        pthread_mutex_unlock(&w->lock);
        poll(w->own, (nfds_t)n, TICK_MS);
        pthread_mutex_lock(&w->lock);
        if (w->own[0].revents != 0)
            hush(w->wake);
        if (w->own[1].revents != 0)
            hush(w->timer);
        for (int k = 0; k < w->channels; k++)
            if (w->own[2 + k].revents != 0)
                read_channel(w, k);
        if (!w->inside && w->work.move != NULL && w->why.code == LS_EXIT_DONE)
            w->work.move(w->work.of);
        tick(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

bool ls_watch_until(LsWatch *w, const bool *done, LsError *e)
{
    w->work.move(w->work.of);
    if (!*done && w->why.code == LS_EXIT_DONE) {
        w->inside = true;
        if (w->works)
            ring(w->wake);
        while (!*done && w->why.code == LS_EXIT_DONE) {
            w->of_main[0] = (struct pollfd){.fd = w->wake_main, .events = POLLIN};
            const int n = 1 + w->work.fill(w->work.of, w->of_main + 1);
            pthread_mutex_unlock(&w->lock);
            poll(w->of_main, (nfds_t)n, -1);
            pthread_mutex_lock(&w->lock);
            if (w->of_main[0].revents != 0)
                hush(w->wake_main);
            w->work.move(w->work.of);
        }
        w->inside = false;
        if (w->work.fill(w->work.of, w->of_main + 1) > 0)
            ls_watch_kick(w);
    }
    return *done || ls_watch_fine(w, e);
}

/* Whether this rank reports the failure: the lowest living rank does, and acknowledges it to the
 * others. */
static bool is_teller(LsWatch *w)
{
    struct timespec until;
    if (w->hub)
        return w->channel[0].fd < 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HEARD_MS / 1000;
    until.tv_nsec += HEARD_MS % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    for (int k; (k = first_alive(w)) != w->rank; ) {
        if (w->channel[k].heard)
            return false;
        if (pthread_cond_timedwait(&w->news, &w->lock, &until) != 0)
            break;
    }
    return true;
}

bool ls_watch_abandon(LsWatch *w, const LsError *why)
{
    pthread_mutex_lock(&w->lock);
    ls_watch_fail(w, -1, why->code, "rank %d: %s", w->rank, why->text);
    w->noticed = true;
    const bool tells = !w->told && is_teller(w);
    w->told = true;
    pthread_mutex_unlock(&w->lock);
    return tells;
}

static void free_watch(LsWatch *w)
{
    for (int k = 0; k < w->channels && w->channel != NULL; k++)
        ls_channel_close(&w->channel[k]);
    if (w->wake >= 0)
        close(w->wake);
    if (w->wake_main >= 0)
        close(w->wake_main);
    if (w->timer >= 0)
        close(w->timer);
    if (w->errors >= 0)
        close(w->errors);
    free(w->channel);
    free(w->ended);
    free(w->doubt_ns);
    free(w->doubt);
    free(w->own);
    free(w->of_main);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->news);
    free(w);
}

/* Signals are for the rank's own thread. */
static bool start_thread(LsWatch *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&w->thread, NULL, watch_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

LsWatch *ls_watch_open(int rank, int size, bool hub, const int *channel, const LsSeal *seal,
                       const LsWatchWork *work, LsError *e)
{
    const size_t n = (size_t)size, most = n + 3 + (work != NULL ? (size_t)work->most : 0);
    LsWatch *w = calloc(1, sizeof *w);
    if (w == NULL) {
        ls_fail(e, LS_EXIT_FAIL, "out of memory");
        return NULL;
    }
    *w = (LsWatch){.rank = rank,
                   .size = size,
                   .hub = hub,
                   .channels = hub ? 1 : size,
                   .gone = -1,
                   .channel = calloc(n, sizeof *w->channel),
                   .ended = calloc(n, sizeof *w->ended),
                   .doubt_ns = calloc(n, sizeof *w->doubt_ns),
                   .doubt = calloc(n, sizeof *w->doubt),
                   .own = calloc(most, sizeof *w->own),
                   .of_main = calloc(most, sizeof *w->of_main),
                   .wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                   .wake_main = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                   .timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
                   .errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->news, NULL);
    for (int k = 0; k < w->channels && w->channel != NULL; k++)
        w->channel[k] = (LsChannel){.fd = channel[k],
                                    .seal = seal != NULL ? seal[k] : (LsSeal){.on = false},
                                    .heard_ns = ls_now_ns()};
    if (work != NULL)
        w->work = *work;
    if (w->channel != NULL && w->ended != NULL && w->doubt_ns != NULL && w->doubt != NULL
        && w->own != NULL && w->of_main != NULL && w->wake >= 0 && w->wake_main >= 0
        && w->timer >= 0 && start_thread(w))
        return w;
    free_watch(w);
    ls_fail(e, LS_EXIT_FAIL, "no memory, descriptor or thread left to watch over ranks");
    return NULL;
}

void ls_watch_close(LsWatch *w)
{
    pthread_mutex_lock(&w->lock);
    for (int k = 0; k < w->channels && w->why.code == LS_EXIT_DONE; k++)
        ls_channel_send(&w->channel[k], LS_FRAME_ENDED, w->rank, NULL);
    w->stop = true;
    ring(w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    for (int k = 0; k < w->channels; k++)
        if (w->channel[k].fd >= 0)
            while (ls_channel_read(&w->channel[k]) > 0)
                continue;
    free_watch(w);
}
