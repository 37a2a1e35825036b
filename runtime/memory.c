/* runtime/memory.c -- see memory.h. */
#include "runtime/memory.h"
#include "runtime/loader.h"
#include "runtime/tensor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64, HUGE = 1 << 21 };    /* bytes; HUGE: from here on large pages pay */

static char *get(int64_t bytes, const char *what, LsError *e)
{
    size_t align = bytes >= HUGE ? HUGE : ALIGN;
    size_t size = ((size_t)(bytes > 0 ? bytes : 1) + ALIGN - 1) / ALIGN * ALIGN;
    void *at;
    if (posix_memalign(&at, align, size) != 0) {
        ls_fail(e, LS_EXIT_FAIL, "no memory for the %s, %lld bytes", what, (long long)bytes);
        return NULL;
    }
    if (bytes >= HUGE)
        madvise(at, size, MADV_HUGEPAGE);
    memset(at, 0, size);
    return at;
}

static void init_state(LsMemory *m)
{
    const LsProgram *p = m->p;
    for (uint32_t k = 0; k < p->nstate; k++) {
        const LsStateTensor *s = &p->state[k];
        int64_t n = ls_tensor_count(&s->t);
        LsWalk w = ls_walk_start(&s->t);
        char *to = ls_memory_at(m, s->t.at);
        for (int64_t i = 0; s->onnx_offset >= 0 && i < n; i++) {
            float v;
            memcpy(&v, p->onnx + s->onnx_offset + 4 * i, 4);
            int64_t at = ls_walk_next(&w);
            if (p->real_bytes == 8)
                ((double *)(void *)to)[at] = v;
            else
                ((float *)(void *)to)[at] = v;
        }
    }
}

bool ls_memory_open(LsMemory *m, const LsProgram *p, LsError *e)
{
    *m = (LsMemory){.p = p, .constant = (const char *)p->constant};
    m->state = get(p->state_bytes, "state", e);
    m->arena = m->state ? get(p->arena_bytes, "arena", e) : NULL;
    if (!m->arena)
        return false;
    if (p->const_bytes > 0 && (uintptr_t)p->constant % ALIGN != 0) {
        m->copied = get(p->const_bytes, "constants", e);
        if (!m->copied)
            return false;
        memcpy(m->copied, p->constant, (size_t)p->const_bytes);
        m->constant = m->copied;
    }
    init_state(m);
    return true;
}

void ls_memory_close(LsMemory *m)
{
    free(m->state);
    free(m->arena);
    free(m->copied);
    *m = (LsMemory){0};
}

void *ls_memory_at(const LsMemory *m, LsAddress a)
{
    switch (a.space) {
    case LS_AT_ARENA: return m->arena + a.offset;
    case LS_AT_STATE: return m->state + a.offset;
    case LS_AT_CONST: return (char *)m->constant + a.offset;    /* kernels only read operands */
    default: return NULL;
    }
}

int64_t ls_memory_total(const LsProgram *p)
{
    return p->state_bytes + p->arena_bytes + p->const_bytes + ls_ring_bytes(p);
}

double ls_real_at(const void *at, int real_bytes)
{
    float f;
    double d;
    if (real_bytes == 8)
        return memcpy(&d, at, 8), d;
    return memcpy(&f, at, 4), (double)f;
}
