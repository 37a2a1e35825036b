/* runtime/comm/comm_door.h -- who calls at a rank's address: anybody may, and is heard until he has
 * shown that he has the run's key, or is turned away. */
#ifndef LS_RUNTIME_COMM_COMM_DOOR_H
#define LS_RUNTIME_COMM_COMM_DOOR_H

#include "runtime/comm/comm_greet.h"

#include <poll.h>

enum { LS_GUESTS = 64 };
enum { LS_ANSWER_S = 5 };       /* whoever is there must say who he is by then */

/* Somebody who called, and has not said all yet. */
typedef struct LsGuest {
    int fd;                     /* -1: nobody */
    size_t at;                  /* bytes that have come of what he says now */
    int64_t due_ns;
    bool greeted;
    LsMet met;
    LsClaim claim;
} LsGuest;

typedef struct LsDoor {
    int listener;               /* -1: closed */
    const LsHmac *key;
    LsGuest guest[LS_GUESTS];
    int unproved;               /* callers who greeted as ranks do, and then lacked the key */
} LsDoor;

void ls_door_init(LsDoor *d, const LsHmac *key);
void ls_door_close(LsDoor *d);
/* What to wait for, in at[0 .. LS_GUESTS]. */
void ls_door_fill(const LsDoor *d, struct pollfd *at);
/* Lets new guests in. */
void ls_door_let_in(LsDoor *d, int64_t now);
/* Hears guest k. True: he has the key, and his claim is there; the caller answers, and takes or
 * closes fd. */
bool ls_door_hear(LsDoor *d, int k, bool ready, int64_t now);

#endif
