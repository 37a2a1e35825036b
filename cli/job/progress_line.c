/* cli/job/progress_line.c -- see progress_line.h.
 *
 * A thread of its own counts the seconds on the terminal. The thread shares only `line` with the
 * rest, under its lock, and ends before ls_stage_end returns. */
#include "cli/job/progress_line.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 512, TAIL = 16 };         /* columns for " ... 12345 s", at least */

static struct {                 /* the line on the terminal; there is only one */
    pthread_mutex_t lock;
    pthread_cond_t over;        /* signals that `ended` is set; exists while the thread counts */
    pthread_t thread;
    bool counts, ended;         /* counts: the thread runs, or waits to be joined */
    char text[ROOM];            /* changed only while the thread does not run */
} line = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool ls_stage_passes(const LsOptions *o)
{
    return !o->output.quiet && !o->output.verbose && isatty(STDERR_FILENO);
}

/* Shortens the text: a line wider than the terminal could not be cleared. */
static void cut_text(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    size_t most = known ? size.ws_col : 80, n = most > 2 * TAIL ? most - TAIL : TAIL;
    if (strlen(line.text) <= n)
        return;
    while (n > 0 && (line.text[n] & 0xC0) == 0x80)      /* within a UTF-8 character */
        n--;
    line.text[n] = '\0';
}

static void *count(void *unused)
{
    struct timespec next;
    pthread_mutex_lock(&line.lock);
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int seconds = 1; !line.ended; seconds++) {
        next.tv_sec++;
        while (!line.ended && pthread_cond_timedwait(&line.over, &line.lock, &next) == 0)
            ;
        if (!line.ended)
            fprintf(stderr, "\r\033[K%s ... %d s", line.text, seconds);
    }
    pthread_mutex_unlock(&line.lock);
    return unused;
}

/* Signals go to the other threads. If the thread cannot be started, the line is not updated. */
static void start_counting(void)
{
    sigset_t all, before;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    bool ready = pthread_cond_init(&line.over, &clock) == 0;
    pthread_condattr_destroy(&clock);
    if (!ready)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    line.ended = false;
    line.counts = pthread_create(&line.thread, NULL, count, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!line.counts)
        pthread_cond_destroy(&line.over);
}

static void stop_counting(void)
{
    if (!line.counts)
        return;
    pthread_mutex_lock(&line.lock);
    line.ended = true;
    pthread_cond_signal(&line.over);
    pthread_mutex_unlock(&line.lock);
    pthread_join(line.thread, NULL);
    pthread_cond_destroy(&line.over);
    line.counts = false;
}

void ls_progress_line(const LsOptions *o, const char *fmt, ...)
{
    va_list ap;
    bool passing = ls_stage_passes(o);
    if (!passing && (!o->output.verbose || o->output.quiet))
        return;
    stop_counting();
    int n = snprintf(line.text, ROOM, "%s: ", o->model != NULL ? o->model : "lowerset");
    va_start(ap, fmt);
    if (n < ROOM)
        vsnprintf(line.text + n, (size_t)(ROOM - n), fmt, ap);
    va_end(ap);
    if (passing)
        cut_text();
    if (passing) {
        fprintf(stderr, "\r\033[K%s ...", line.text);
        start_counting();
    } else {
        fprintf(stderr, "%s\n", line.text);
    }
}

void ls_stage_end(const LsOptions *o)
{
    stop_counting();
    if (ls_stage_passes(o))
        fprintf(stderr, "\r\033[K");
}
