/* runtime/watch/progress.c -- see progress.h. */
#include "runtime/watch/progress.h"
#include "runtime/base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 20 };                      /* characters */
static const int64_t BAR_NS = 100000000, PLAIN_NS = 10000000000;

static bool says_utf8(void)
{
    const char *v = getenv("LC_ALL");
    v = v && *v ? v : getenv("LC_CTYPE");
    v = v && *v ? v : getenv("LANG");
    return v && (strstr(v, "UTF-8") || strstr(v, "utf8") || strstr(v, "UTF8"));
}

void ls_progress_open(LsProgress *g, const char *mode, int64_t bytes, int64_t budget)
{
    const char *term = getenv("TERM");
    bool terminal = isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
    *g = (LsProgress){.to = stderr, .utf8 = says_utf8(), .bytes = bytes, .budget = budget,
                      .last_ns = ls_now_ns()};
    if (strcmp(mode, "bar") == 0 || (strcmp(mode, "auto") == 0 && terminal))
        g->mode = LS_PROGRESS_BAR;
    else if (strcmp(mode, "none") != 0)
        g->mode = LS_PROGRESS_PLAIN;
}

char *ls_progress_bytes(int64_t bytes, char text[32])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int k = 0;
    for (; v >= 1024 && k < 4; k++)
        v /= 1024;
    snprintf(text, 32, k && v < 99.95 ? "%.1f %s" : "%.0f %s", v, unit[k]);
    return text;
}

/* Draws eighths of a cell where the terminal supports them; at most 3 bytes per cell. */
static void bar_text(const LsProgress *g, double part, int cells, char *to)
{
    static const char *const eighth[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    int full = (int)(part * cells * 8 + 0.5);
    for (int k = 0; k < cells; k++, full -= 8) {
        int level = full >= 8 ? 8 : full > 0 ? full : 0;
        const char *cell = g->utf8 ? eighth[level] : level >= 4 ? "#" : " ";
        size_t n = strlen(cell);
        memcpy(to, cell, n);
        to += n;
    }
    *to = '\0';
}

static int columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

/* Draws the bar. The line must not reach the last column: a wrapped bar cannot be cleared. */
static void show_bar(LsProgress *g, const LsProgressAt *at, const char *right)
{
    char bar[BAR * 3 + 1];
    int room = columns() - 1 - (int)strlen(at->what) - (int)strlen(right) - 4;
    int cells = room < BAR ? room : BAR;
    if (cells < 3) {
        fprintf(g->to, "\r%.*s\033[K", columns() - 1, right);
    } else {
        bar_text(g, at->of ? (double)at->done / (double)at->of : 1, cells, bar);
        fprintf(g->to, "\r%s %s%s%s %s\033[K", at->what, g->utf8 ? "▕" : "[", bar,
                g->utf8 ? "▏" : "]", right);
    }
    g->shown = true;
}

static char *time_text(double seconds, char text[32])
{
    int64_t s = (int64_t)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, 32, "%" PRId64 ":%02d:%02d", s / 3600, (int)(s / 60 % 60), (int)(s % 60));
    else
        snprintf(text, 32, "%02d:%02d", (int)(s / 60), (int)(s % 60));
    return text;
}

static void measure_rate(LsProgress *g, int64_t now, int64_t done)
{
    int64_t more = done - g->last_done;
    double seconds = (double)(now - g->last_ns) * 1e-9;
    if (more > 0 && seconds > 0) {
        double rate = (double)more / seconds;
        g->rate = g->rate > 0 ? 0.8 * g->rate + 0.2 * rate : rate;
    }
    g->last_ns = now;
    g->last_done = done;
}

bool ls_progress_due(const LsProgress *g)
{
    return g->mode != LS_PROGRESS_NONE
           && ls_now_ns() - g->last_ns >= (g->mode == LS_PROGRESS_BAR ? BAR_NS : PLAIN_NS);
}

/* " (0.1 .. 0.4)" */
static const char *range_text(const LsProgressAt *at, char text[64])
{
    text[0] = '\0';
    if (at->nlosses == 0)
        return text;
    double least = INFINITY, most = -INFINITY;
    for (int64_t k = 0; k < at->nlosses; k++) {
        least = at->losses[k] < least ? at->losses[k] : least;
        most = at->losses[k] > most ? at->losses[k] : most;
    }
    snprintf(text, 64, " (%.4g .. %.4g)", least, most);
    return text;
}

/* "1.2e+04 samples/s", or tokens, or batches */
static const char *speed_text(const LsProgress *g, const LsProgressAt *at, char text[48])
{
    if (at->tokens > 0 || at->samples > 0)
        snprintf(text, 48, "%.3g %s/s", g->rate * (at->tokens > 0 ? at->tokens : at->samples),
                 at->tokens > 0 ? "tokens" : "samples");
    else
        snprintf(text, 48, "%.3g it/s", g->rate);
    return text;
}

void ls_progress_show(LsProgress *g, const LsProgressAt *at)
{
    char right[256], have[32], asked[32], left[32], range[64], speed[48];
    int64_t now = ls_now_ns();
    bool bar = g->mode == LS_PROGRESS_BAR;
    if (at->done < g->last_done)
        g->last_done = 0;
    if (!ls_progress_due(g))
        return;
    measure_rate(g, now, at->done);
    time_text(g->rate > 0 ? (double)at->left / g->rate : 0, left);
    ls_progress_bytes(g->bytes, have);
    ls_progress_bytes(g->budget, asked);
    snprintf(right, sizeof right, "%" PRId64 "/%" PRId64 " loss %.4g%s %s %s%s%s ETA %s",
             at->done, at->of, at->loss, range_text(at, range),
             speed_text(g, at, speed), have, g->budget ? "/" : "",
             g->budget ? asked : "", left);
    if (bar)
        show_bar(g, at, right);
    else
        fprintf(g->to, "%s %s\n", at->what, right);
}

void ls_progress_clear(LsProgress *g)
{
    if (g->shown)
        fputs("\r\033[K", g->to);
    g->shown = false;
}
