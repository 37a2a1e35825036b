/* runtime/predict/line_reader.c -- see line_reader.h. */
#include "runtime/predict/line_reader.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEP = 1 << 16 };

void ls_lines_open(LsLineReader *r, int fd, size_t most, const volatile sig_atomic_t *stop)
{
    *r = (LsLineReader){.fd = fd, .most = most, .stop = stop};
}

void ls_lines_close(LsLineReader *r)
{
    free(r->buf);
    r->buf = NULL;
}

/* Makes room behind what is there. */
static bool make_room(LsLineReader *r)
{
    if (r->from > 0) {
        memmove(r->buf, r->buf + r->from, r->fill - r->from);
        r->fill -= r->from;
        r->from = 0;
    }
    if (r->room - r->fill >= STEP)
        return true;
    char *to = realloc(r->buf, r->fill + 2 * STEP);
    r->failed = to == NULL;
    if (to != NULL) {
        r->buf = to;
        r->room = r->fill + 2 * STEP;
    }
    return to != NULL;
}

/* Reads more; false at the end. */
static bool more(LsLineReader *r)
{
    if (r->ended || !make_room(r))
        return false;
    ssize_t n;
    while ((n = read(r->fd, r->buf + r->fill, STEP)) < 0 && errno == EINTR && !*r->stop)
        continue;
    r->failed |= n < 0 && errno != EINTR;
    r->ended = n <= 0;
    r->fill += n > 0 ? (size_t)n : 0;
    return n > 0;
}

bool ls_lines_next(LsLineReader *r, const char **line, size_t *n, bool *too_long)
{
    size_t seen = 0;
    *too_long = false;
    while (!*r->stop) {
        char *at = r->buf != NULL ? r->buf + r->from : NULL, *end = NULL;
        const size_t there = r->fill - r->from;
        if (there > seen)
            end = memchr(at + seen, '\n', there - seen);
        seen = there;
        const bool last = end == NULL && r->ended && there > 0;
        if (end == NULL && !last) {
            if (there > r->most) {      /* its end is not worth keeping */
                r->skipping = true;
                r->from = r->fill;
                seen = 0;
            }
            if (!more(r) && r->fill == r->from) {
                *too_long = r->skipping;
                *line = NULL;
                r->skipping = false;
                return *too_long && !*r->stop;
            }
            continue;
        }
        *n = last ? there : (size_t)(end - at);
        r->from += *n + !last;
        *too_long = r->skipping || *n > r->most;
        *line = *too_long ? NULL : at;
        r->skipping = false;
        return true;
    }
    return false;
}

bool ls_lines_wait(LsLineReader *r)
{
    struct pollfd p = {.fd = r->fd, .events = POLLIN};
    if (r->fill > r->from)
        return memchr(r->buf + r->from, '\n', r->fill - r->from) != NULL || r->ended
               || poll(&p, 1, 0) > 0;
    return !r->ended && poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
}
