/* runtime/comm/peer_address.h -- where ranks listen: the list of --peers. Sockets here do not
 * block. */
#ifndef LS_RUNTIME_COMM_PEER_ADDRESS_H
#define LS_RUNTIME_COMM_PEER_ADDRESS_H

#include "runtime/base/run_error.h"

#include <netdb.h>

typedef struct LsPeer {
    char text[280];             /* HOST:PORT as given */
    struct addrinfo *found;     /* its addresses */
    const struct addrinfo *next;        /* that ls_peer_connect tries */
} LsPeer;

/* Reads `size` addresses HOST:PORT or [HOST]:PORT, with commas between, and looks them up. */
bool ls_peers_read(LsPeer *p, int size, const char *list, LsError *e);
void ls_peers_free(LsPeer *p, int size);
/* A socket that listens there, and nowhere else, for that rank. -1: error, as if the address is not
 * one of this machine. */
int ls_peer_listen(const LsPeer *p, int rank, LsError *e);
/* Begins a connection to the next one of its addresses; -1: not now. */
int ls_peer_connect(LsPeer *p);
/* Whether a connection that was begun is there now. */
bool ls_peer_connected(int fd);
/* Sends something short on a new connection, whose buffers are empty. */
bool ls_peer_say(int fd, const void *what, size_t n);
/* Reads on; 1: all has come, 0: not yet, -1: nothing more will. */
int ls_peer_hear(int fd, void *to, size_t *at, size_t n);

#endif
