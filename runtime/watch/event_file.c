/* runtime/watch/event_file.c -- see event_file.h. */
#include "runtime/watch/event_file.h"

#include "runtime/base/checksum.h"
#include "runtime/base/clock.h"
#include "runtime/base/proto_field.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 512, TAG = 200 };         /* bytes of an event, of a tag */
static const int64_t FLUSH_NS = 1000000000;
/* Fields of the messages, with their wire types. */
enum {
    EVENT_TIME = 1 << 3 | 1,
    EVENT_STEP = 2 << 3,
    EVENT_VERSION = 3 << 3 | 2,
    EVENT_SUMMARY = 5 << 3 | 2,
    EVENT_SESSION = 7 << 3 | 2,
    SUMMARY_VALUE = 1 << 3 | 2,
    VALUE_TAG = 1 << 3 | 2,
    VALUE_SIMPLE = 2 << 3 | 5,
    SESSION_STATUS = 1 << 3,
};
enum { SESSION_START = 1 };

static void put_le(unsigned char *to, uint64_t v, int n)
{
    for (int k = 0; k < n; k++)
        to[k] = (unsigned char)(v >> 8 * k);
}

static uint32_t masked(const void *data, size_t n)
{
    const uint32_t crc = ls_crc32c(0, data, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

void ls_events_flush(LsEvents *v)
{
    size_t at = 0;
    for (ssize_t n; v->open && !v->err && at < v->fill; at += (size_t)n) {
        n = write(v->fd, v->buf + at, v->fill - at);
        if (n < 0 && errno == EINTR)
            n = 0;
        else if (n <= 0)
            v->err = n < 0 ? errno : ENOSPC;
        n = n < 0 ? 0 : n;
    }
    if (!v->err)
        v->whole += (int64_t)at;
    else if (v->open && ftruncate(v->fd, v->whole) != 0)
        v->whole = -1;          /* readers leave the piece out by its checksum */
    v->fill = 0;
    v->flushed_ns = ls_now_ns();
}

static void put_record(LsEvents *v, const unsigned char *event, size_t n)
{
    unsigned char head[12], tail[4];
    if (v->fill + n + sizeof head + sizeof tail > sizeof v->buf)
        ls_events_flush(v);
    put_le(head, n, 8);
    put_le(head + 8, masked(head, 8), 4);
    put_le(tail, masked(event, n), 4);
    memcpy(v->buf + v->fill, head, sizeof head);
    memcpy(v->buf + v->fill + sizeof head, event, n);
    memcpy(v->buf + v->fill + sizeof head + n, tail, sizeof tail);
    v->fill += sizeof head + n + sizeof tail;
    if (ls_now_ns() - v->flushed_ns > FLUSH_NS)
        ls_events_flush(v);
}

/* Begins an event of now. */
static unsigned char *begin(unsigned char *to, int64_t step)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double seconds = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    to = ls_proto_put(to, EVENT_TIME);
    put_le(to, bits, 8);
    to = ls_proto_put(to + 8, EVENT_STEP);
    return ls_proto_put(to, (uint64_t)step);
}

void ls_events_scalar(LsEvents *v, int64_t step, const char *tag, double value)
{
    unsigned char event[MOST], inner[TAG + 24], *to = inner;
    const size_t length = strnlen(tag, TAG);
    const float simple = (float)value;
    uint32_t bits;
    if (!v->open || v->err)
        return;
    memcpy(&bits, &simple, sizeof bits);
    to = ls_proto_put_bytes(to, VALUE_TAG, tag, length);
    to = ls_proto_put(to, VALUE_SIMPLE);
    put_le(to, bits, 4);
    const size_t value_bytes = (size_t)(to + 4 - inner);
    unsigned char summary[TAG + 40];
    unsigned char *end =
        ls_proto_put_bytes(summary, SUMMARY_VALUE, (const char *)inner, value_bytes);
    to = begin(event, step);
    to = ls_proto_put_bytes(to, EVENT_SUMMARY, (const char *)summary, (size_t)(end - summary));
    put_record(v, event, (size_t)(to - event));
}

static void put_start(LsEvents *v, int64_t step)
{
    static const char version[] = "brain.Event:2";
    unsigned char event[MOST], status[4], *to = begin(event, 0);
    to = ls_proto_put_bytes(to, EVENT_VERSION, version, sizeof version - 1);
    put_record(v, event, (size_t)(to - event));
    unsigned char *end = ls_proto_put(ls_proto_put(status, SESSION_STATUS), SESSION_START);
    to = begin(event, step);
    to = ls_proto_put_bytes(to, EVENT_SESSION, (const char *)status, (size_t)(end - status));
    put_record(v, event, (size_t)(to - event));
}

/* TensorBoard reads the files of a folder in the order of their names. */
static bool make_file(LsEvents *v, const char *folder)
{
    char host[64] = "";
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0' || strchr(host, '/') != NULL)
        snprintf(host, sizeof host, "host");
    for (int k = 0; k < 100; k++) {
        const int n = snprintf(v->path, sizeof v->path, "%s/events.out.tfevents.%010lld.%s.%ld.%d",
                               folder, (long long)time(NULL), host, (long)getpid(), k);
        if (n < 0 || (size_t)n >= sizeof v->path) {
            errno = ENAMETOOLONG;
            return false;
        }
        v->fd = open(v->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (v->fd >= 0 || errno != EEXIST)
            return v->fd >= 0;
    }
    return false;
}

bool ls_events_open(LsEvents *v, const char *folder, int64_t step, LsError *e)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot make the folder: %s", folder, strerror(errno));
    if (!make_file(v, folder))
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", folder, strerror(errno));
    v->open = true;
    v->err = 0;
    v->whole = 0;
    v->fill = 0;
    v->flushed_ns = ls_now_ns();
    put_start(v, step);
    ls_events_flush(v);
    return !v->err || ls_events_close(v, e);
}

bool ls_events_close(LsEvents *v, LsError *e)
{
    if (!v->open)
        return true;
    ls_events_flush(v);
    if (close(v->fd) != 0 && !v->err)
        v->err = errno;
    v->open = false;
    return !v->err
           || ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", v->path, strerror(v->err));
}
