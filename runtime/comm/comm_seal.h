/* runtime/comm/comm_seal.h -- what messages between ranks carry so that a change on the way is
 * seen.
 *
 * Both ends of a connection have a key of its own. A head gets a check from HMAC, of its content,
 * its sender and its number on the connection. The bytes behind it get a polynomial over the
 * integers modulo 2^61 - 1 at a secret place, hidden by another part of the same HMAC (Carter and
 * Wegman): any single bit that changes changes it, and whoever lacks the key finds a right one for
 * other bytes with a chance of n / (7 * 2^61) for n bytes. */
#ifndef LS_RUNTIME_COMM_COMM_SEAL_H
#define LS_RUNTIME_COMM_COMM_SEAL_H

#include "runtime/base/sha256.h"

/* Of one connection. */
typedef struct LsSeal {
    bool on;                    /* false: there are no checks, as between processes of one
                                 * machine */
    LsHmac key;
    uint64_t place[4];          /* of the polynomial: its powers 1 to 4 */
} LsSeal;

LsSeal ls_seal_key(const unsigned char secret[LS_SHA256]);

/* The polynomial of bytes that come one after the other. */
typedef struct LsSealSum {
    uint64_t sum[4];            /* of every fourth word */
    unsigned char rest[28];     /* bytes that are not added up yet */
    int nrest;
} LsSealSum;

void ls_seal_add(const LsSeal *s, LsSealSum *sum, const void *data, int64_t bytes);

/* Of a message: its place in the order of all that its sender sent on the connection, and what its
 * head says. */
typedef struct LsSealHead {
    uint64_t number;
    int64_t sender;
    uint64_t tag;
    int64_t bytes;
} LsSealHead;
/* of[0]: the check of the head; of[1]: what hides that of the bytes */
void ls_seal_head(const LsSeal *s, const LsSealHead *h, uint64_t of[2]);
/* The check of bytes that were added up. */
uint64_t ls_seal_bytes(const LsSeal *s, const LsSealSum *sum, uint64_t hides);
/* The check of something short; 0 without checks. */
uint64_t ls_seal_text(const LsSeal *s, const void *text, size_t n);

#endif
