/* runtime/comm/comm_greet.c -- see comm_greet.h. Every proof is an HMAC of its own purpose, both
 * numbers, and what is said. */
#include "runtime/comm/comm_greet.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

static const char greeting_mark[8] = "LSRANK2?", welcome_mark[8] = "LSRANK2!";

typedef enum { OF_WELCOME, OF_CLAIM, OF_VERDICT, OF_CONNECTION } Purpose;

LsHmac ls_greet_key(const char *token, const char *program)
{
    static const char with[] = "lowerset ranks, version 2, by token",
                      without[] = "lowerset ranks, version 2, by program";
    unsigned char key[LS_SHA256];
    const char *from = token != NULL ? token : program != NULL ? program : "";
    const LsHmac of = ls_hmac_key(from, strlen(from));
    ls_hmac(&of, token != NULL ? with : without, token != NULL ? sizeof with : sizeof without, key);
    return ls_hmac_key(key, sizeof key);
}

static void prove(const LsHmac *key, Purpose why, const LsMet *m, const void *said, size_t n,
                  unsigned char to[LS_SHA256])
{
    unsigned char text[1 + 2 * LS_NONCE + sizeof(LsClaim)] = {(unsigned char)why};
    memcpy(text + 1, m->greeting.nonce, LS_NONCE);
    memcpy(text + 1 + LS_NONCE, m->welcome.nonce, LS_NONCE);
    if (n > 0)
        memcpy(text + 1 + 2 * LS_NONCE, said, n);
    ls_hmac(key, text, 1 + 2 * LS_NONCE + n, to);
}

_Static_assert(sizeof(LsVerdict) < sizeof(LsClaim), "room for what is proved");

static bool is_proof(const LsHmac *key, Purpose why, const LsMet *m, const void *said, size_t n,
                     const unsigned char proof[LS_SHA256])
{
    unsigned char right[LS_SHA256];
    prove(key, why, m, said, n, right);
    return ls_same_secret(right, proof, sizeof right);
}

static bool draw(unsigned char nonce[LS_NONCE], LsError *e)
{
    return getrandom(nonce, LS_NONCE, 0) == LS_NONCE
           || ls_fail(e, LS_EXIT_FAIL, "the system gives no random numbers: %s", strerror(errno));
}

bool ls_greet(LsMet *m, LsError *e)
{
    memcpy(m->greeting.mark, greeting_mark, sizeof greeting_mark);
    return draw(m->greeting.nonce, e);
}

bool ls_greet_is_greeting(const LsGreeting *g, size_t come)
{
    return memcmp(g->mark, greeting_mark, come < sizeof greeting_mark ? come : sizeof greeting_mark)
           == 0;
}

bool ls_greet_back(const LsHmac *key, LsMet *m, LsError *e)
{
    memcpy(m->welcome.mark, welcome_mark, sizeof welcome_mark);
    if (!draw(m->welcome.nonce, e))
        return false;
    prove(key, OF_WELCOME, m, NULL, 0, m->welcome.proof);
    return true;
}

bool ls_greet_is_welcome(const LsWelcome *w, size_t come)
{
    return memcmp(w->mark, welcome_mark, come < sizeof welcome_mark ? come : sizeof welcome_mark)
           == 0;
}

bool ls_greet_knows(const LsHmac *key, const LsMet *m)
{
    return is_proof(key, OF_WELCOME, m, NULL, 0, m->welcome.proof);
}

void ls_greet_prove(const LsHmac *key, const LsMet *m, LsClaim *c)
{
    prove(key, OF_CLAIM, m, c, offsetof(LsClaim, proof), c->proof);
}

bool ls_greet_proved(const LsHmac *key, const LsMet *m, LsClaim *c)
{
    if (!is_proof(key, OF_CLAIM, m, c, offsetof(LsClaim, proof), c->proof))
        return false;
    c->run[sizeof c->run - 1] = '\0';
    ls_make_printable(c->run);
    return true;
}

void ls_greet_judge(const LsHmac *key, const LsMet *m, LsVerdict *v)
{
    prove(key, OF_VERDICT, m, v, offsetof(LsVerdict, proof), v->proof);
}

bool ls_greet_judged(const LsHmac *key, const LsMet *m, LsVerdict *v)
{
    if (!is_proof(key, OF_VERDICT, m, v, offsetof(LsVerdict, proof), v->proof))
        return false;
    v->why[sizeof v->why - 1] = '\0';
    ls_make_printable(v->why);
    return true;
}

LsSeal ls_greet_seal(const LsHmac *key, const LsMet *m)
{
    unsigned char secret[LS_SHA256];
    prove(key, OF_CONNECTION, m, NULL, 0, secret);
    return ls_seal_key(secret);
}
