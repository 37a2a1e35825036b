/* runtime/comm/comm_greet.h -- what two ends of a new connection say, so that each knows that the
 * other one belongs to the run.
 *
 * 1. The caller sends a number that nobody has seen (LsGreeting). 2. Whoever is called sends one,
 * too, and proves with both that it has the run's key (LsWelcome). 3. The caller proves it, and
 * only then says who it is and what it runs (LsClaim).
 * 4. The other one compares, and answers (LsVerdict). A key of the connection follows from both
 * numbers. Who lacks the run's key learns nothing but that ranks listen here. */
#ifndef LS_RUNTIME_COMM_COMM_GREET_H
#define LS_RUNTIME_COMM_COMM_GREET_H

#include "runtime/base/run_error.h"
#include "runtime/comm/comm_seal.h"

enum { LS_NONCE = 32, LS_RUN_TEXT = 700 };

typedef struct LsGreeting { char mark[8]; unsigned char nonce[LS_NONCE]; } LsGreeting;
typedef struct LsWelcome {
    char mark[8];
    unsigned char nonce[LS_NONCE], proof[LS_SHA256];
} LsWelcome;
typedef struct LsClaim {
    int32_t size, rank, called;         /* called: the rank that the caller means */
    int32_t channel;            /* 1: for the channel; 0: for messages */
    char run[LS_RUN_TEXT];
    unsigned char proof[LS_SHA256];
} LsClaim;
typedef enum {
    LS_TAKEN,
    LS_DIFFERS,                 /* they do not mean the same run */
    LS_DOUBLE,                  /* somebody else is that rank already */
} LsVerdictKind;
typedef struct LsVerdict { int32_t kind; char why[600]; unsigned char proof[LS_SHA256]; } LsVerdict;

/* What one end knows of a connection. */
typedef struct LsMet { LsGreeting greeting; LsWelcome welcome; } LsMet;

/* The key of a run: from its token, or without one (NULL) from the hash of the program, which all
 * its copies have. */
LsHmac ls_greet_key(const char *token, const char *program);
/* False: the system has no random numbers. */
bool ls_greet(LsMet *m, LsError *e);
bool ls_greet_is_greeting(const LsGreeting *g, size_t come);    /* as far as so many bytes tell */
bool ls_greet_back(const LsHmac *key, LsMet *m, LsError *e);
bool ls_greet_is_welcome(const LsWelcome *w, size_t come);
/* Whether the other end has the key. The text of what it said is then printable, and ends. */
bool ls_greet_knows(const LsHmac *key, const LsMet *m);
void ls_greet_prove(const LsHmac *key, const LsMet *m, LsClaim *c);
bool ls_greet_proved(const LsHmac *key, const LsMet *m, LsClaim *c);
void ls_greet_judge(const LsHmac *key, const LsMet *m, LsVerdict *v);
bool ls_greet_judged(const LsHmac *key, const LsMet *m, LsVerdict *v);
LsSeal ls_greet_seal(const LsHmac *key, const LsMet *m);

#endif
