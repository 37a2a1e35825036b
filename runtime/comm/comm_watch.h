/* runtime/comm/comm_watch.h -- a rank's thread that learns what happens to other ranks, and moves
 * messages while the rank computes.
 *
 * Beside the way of messages, ranks have channels: to each other, with signs of life, or to the
 * process that started them all on one machine and sees for itself when one dies. A failure becomes
 * known to all ranks, with its reason, and one of them prints it. A rank that does not notice, as
 * it computes, is ended by its thread. */
#ifndef LS_RUNTIME_COMM_COMM_WATCH_H
#define LS_RUNTIME_COMM_COMM_WATCH_H

#include "runtime/base/run_error.h"
#include "runtime/comm/comm_seal.h"

#include <poll.h>

enum { LS_WATCH_SILENCE_MS = 6000 };    /* a rank that gives no sign of life for so long is lost */

typedef enum {
    LS_FRAME_PULSE,             /* a sign of life */
    LS_FRAME_FAILED,            /* all fail: code and text; subject: the rank that is out of reach,
                                 * or -1 */
    LS_FRAME_HEARD,             /* the answer to that */
    LS_FRAME_ENDED,             /* rank `subject` needs no other any more */
} LsFrameKind;
typedef struct LsFrame {
    uint32_t mark, kind;
    int32_t subject, code;
    char text[600];
    uint64_t check;             /* of all before it */
} LsFrame;

/* One end of a channel. */
typedef struct LsChannel {
    int fd;                     /* -1: closed */
    LsSeal seal;                /* of frames; not on: they have no checks, and are trusted */
    size_t at;                  /* bytes of `in` that have come */
    LsFrame in;
    int64_t heard_ns;           /* when the last bytes came */
    bool heard;                 /* the other end knows of the failure */
} LsChannel;

/* Sends a frame whole, or closes the channel. */
void ls_channel_send(LsChannel *c, LsFrameKind kind, int subject, const LsError *why);
/* 1: a whole frame is in c->in; 0: not yet; -1: closed by the other end, or broken; -2: what came
 * is no frame that the other end sent. */
int ls_channel_read(LsChannel *c);
/* Whether a frame is as it was sent. Then its text and code are fit to be shown, whoever sent
 * it. */
bool ls_channel_trusts(const LsChannel *c, LsFrame *f);
void ls_channel_close(LsChannel *c);

/* What moves messages: both functions are called with the lock held. */
typedef struct LsWatchWork {
    int (*fill)(void *of, struct pollfd *at);   /* what to wait for: their number, at most `most` */
    void (*move)(void *of);
    void *of;
    int most;
} LsWatchWork;

typedef struct LsWatch LsWatch;

/* channel: by rank, -1 for itself and for ranks that cannot be reached; with `hub` only one, to the
 * starter. seal: of each of them, or NULL. The watch closes them. NULL: memory or threads are
 * short. */
LsWatch *ls_watch_open(int rank, int size, bool hub, const int *channel, const LsSeal *seal,
                       const LsWatchWork *work, LsError *e);
void ls_watch_lock(LsWatch *w);
void ls_watch_unlock(LsWatch *w);

/* With the lock held: */

/* Something was begun: the thread looks at its work again. */
void ls_watch_kick(LsWatch *w);
/* Does the work itself until *done. False: some rank failed. */
bool ls_watch_until(LsWatch *w, const bool *done, LsError *e);
/* All ranks fail with this sentence, unless they failed already. gone: the rank that is out of
 * reach, which will not print it; -1: none. */
__attribute__((format(printf, 4, 5)))
void ls_watch_fail(LsWatch *w, int gone, LsExit code, const char *fmt, ...);
/* The way of messages to that rank is closed, though a message is waited for; err: errno, or 0.
 * Mostly a better reason comes within moments; else this becomes the failure. */
void ls_watch_suspect(LsWatch *w, int rank, int err);
/* Returns false with the failure, if there is one. */
bool ls_watch_fine(const LsWatch *w, LsError *e);

/* Without the lock: */

/* For LsCommEngine.abandon. */
bool ls_watch_abandon(LsWatch *w, const LsError *why);
/* Says goodbye, unless some rank failed; frees w. */
void ls_watch_close(LsWatch *w);

#endif
