/* runtime/comm/comm_door.c -- see comm_door.h. */
#include "runtime/comm/comm_door.h"
#include "runtime/comm/peer_address.h"

#include <sys/socket.h>
#include <unistd.h>

static const int64_t S = 1000000000;    /* in ns */

static void hang_up(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void ls_door_init(LsDoor *d, const LsHmac *key)
{
    *d = (LsDoor){.listener = -1, .key = key};
    for (int k = 0; k < LS_GUESTS; k++)
        d->guest[k].fd = -1;
}

void ls_door_close(LsDoor *d)
{
    for (int k = 0; k < LS_GUESTS; k++)
        hang_up(&d->guest[k].fd);
    hang_up(&d->listener);
}

void ls_door_fill(const LsDoor *d, struct pollfd *at)
{
    for (int k = 0; k < LS_GUESTS; k++)
        at[k] = (struct pollfd){.fd = d->guest[k].fd, .events = POLLIN};
    at[LS_GUESTS] = (struct pollfd){.fd = d->listener, .events = POLLIN};
}

/* Turns a guest away who has the key not, or says nothing that ranks say. */
static void turn_away(LsDoor *d, LsGuest *g)
{
    d->unproved += g->greeted;
    hang_up(&g->fd);
}

static void hear_greeting(LsDoor *d, LsGuest *g, int64_t now)
{
    LsError none = {0};
    const int got = ls_peer_hear(g->fd, &g->met.greeting, &g->at, sizeof g->met.greeting);
    if (got < 0 || !ls_greet_is_greeting(&g->met.greeting, g->at)) {
        turn_away(d, g);
    } else if (got > 0) {
        g->greeted = ls_greet_back(d->key, &g->met, &none)
                     && ls_peer_say(g->fd, &g->met.welcome, sizeof g->met.welcome);
        g->at = 0;
        g->due_ns = now + LS_ANSWER_S * S;
        if (!g->greeted)
            turn_away(d, g);
    }
}

bool ls_door_hear(LsDoor *d, int k, bool ready, int64_t now)
{
    LsGuest *g = &d->guest[k];
    if (g->fd >= 0 && ready && !g->greeted) {
        hear_greeting(d, g, now);
    } else if (g->fd >= 0 && ready) {
        const int got = ls_peer_hear(g->fd, &g->claim, &g->at, sizeof g->claim);
        if (got > 0 && ls_greet_proved(d->key, &g->met, &g->claim))
            return true;
        if (got != 0)
            turn_away(d, g);
    }
    if (g->fd >= 0 && now > g->due_ns)
        turn_away(d, g);
    return false;
}

void ls_door_let_in(LsDoor *d, int64_t now)
{
    for (int fd; (fd = accept4(d->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0; ) {
        LsGuest *place = &d->guest[0];
        for (int k = 0; k < LS_GUESTS && place->fd >= 0; k++)
            if (d->guest[k].fd < 0 || d->guest[k].due_ns < place->due_ns)
                place = &d->guest[k];
        hang_up(&place->fd);        /* whoever was silent for longest, if there is no room */
        *place = (LsGuest){.fd = fd, .due_ns = now + LS_ANSWER_S * S};
    }
}
