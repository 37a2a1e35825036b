/* runtime/pipeline/stage_check.c -- see the header. */
#include "runtime/pipeline/stage_check.h"

#include <stdlib.h>
#include <string.h>

enum { POISON = 0xFF };         /* reals of such bytes are NaNs */

static bool is_on(void)
{
    const char *text = getenv("LOWERSET_CHECK_STAGES");
    return text != NULL && strcmp(text, "1") == 0;
}

bool ls_stage_check_open(LsStageCheck *c, const LsStage *s, LsError *e)
{
    *c = (LsStageCheck){.on = is_on(), .nreceive = s->nreceive};
    if (!c->on)
        return true;
    c->inbox = calloc(s->nreceive + 1u, sizeof *c->inbox);
    c->sent = calloc((size_t)s->slots * s->nsend + 1, sizeof *c->sent);
    bool ok = c->inbox != NULL && c->sent != NULL;
    for (uint32_t k = 0; ok && k < s->nreceive; k++)
        ok = (c->inbox[k] = malloc((size_t)s->plan[0].receive[k].bytes)) != NULL;
    return ok || ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

void ls_stage_check_close(LsStageCheck *c)
{
    for (uint32_t k = 0; c->inbox != NULL && k < c->nreceive; k++)
        free(c->inbox[k]);
    free(c->inbox);
    free(c->sent);
    *c = (LsStageCheck){0};
}

void ls_stage_check_update(const LsStageCheck *c, void *arena, int64_t bytes)
{
    if (c->on && bytes > 0)
        memset(arena, POISON, (size_t)bytes);
}

void *ls_stage_check_asks(const LsStageCheck *c, uint32_t k, void *at, int64_t bytes)
{
    if (!c->on)
        return at;
    memset(at, POISON, (size_t)bytes);
    return c->inbox[k];
}

bool ls_stage_check_arrived(const LsStageCheck *c, uint32_t k, const LsMessage *m, void *at,
                            LsError *e)
{
    const unsigned char *byte = at;
    int64_t same = 0;
    if (!c->on)
        return true;
    while (same < m->bytes && byte[same] == POISON)
        same++;
    if (same < m->bytes)
        return ls_fail(e, LS_EXIT_CHECK,
                       "byte %lld of message %u was written before it was awaited", (long long)same,
                       m->tag);
    memcpy(at, c->inbox[k], (size_t)m->bytes);
    return true;
}

static uint64_t sum_of(const void *at, int64_t bytes)
{
    const unsigned char *byte = at;
    uint64_t sum = 0;
    for (int64_t k = 0; k < bytes; k++)
        sum = (sum ^ byte[k]) * UINT64_C(0x100000001B3);
    return sum;
}

void ls_stage_check_sends(const LsStageCheck *c, uint32_t k, const void *at, int64_t bytes)
{
    if (c->on)
        c->sent[k] = (LsStageSent){at, bytes, sum_of(at, bytes)};
}

bool ls_stage_check_left(const LsStageCheck *c, uint32_t k, const LsMessage *m, LsError *e)
{
    return !c->on || sum_of(c->sent[k].at, c->sent[k].bytes) == c->sent[k].sum
           || ls_fail(e, LS_EXIT_CHECK, "message %u was overwritten before stage %u had it", m->tag,
                      m->peer + 1);
}
