/* runtime/engine/program_memory.c -- see program_memory.h. */
#include "runtime/engine/program_memory.h"
#include "runtime/data/batch_loader.h"
#include "runtime/engine/device_ranks.h"
#include "runtime/base/let_go.h"
#include "runtime/base/tensor_copy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>


enum { ALIGN = 64, HUGE = 1 << 21 };    /* bytes; HUGE: least size for large pages */

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

/* Zeros that take no memory until they are written. */
static char *get_untouched(int64_t bytes, LsError *e)
{
    void *at = mmap(NULL, (size_t)(bytes > 0 ? bytes : 1), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        ls_fail(e, LS_EXIT_FAIL, "no memory for the state, %lld bytes", (long long)bytes);
        return NULL;
    }
    return at;
}

/* Rank 0 of a pipeline writes the state of all stages; others have their own, and what never
 * changes. */
static bool is_here(const LsMemory *m, uint32_t k)
{
    return m->stage <= 0 || m->p->pipeline.state_stage[k] == m->stage
           || m->p->pipeline.state_stage[k] == LS_NO_STAGE;
}

/* Codes lie in the file as they are read. */
static void init_codes(const LsMemory *m, const LsStateTensor *s)
{
    const int64_t n = ls_tensor_count(&s->t);
    memcpy(ls_memory_view(m, s->t.at, n), m->p->file.onnx + s->onnx_offset, (size_t)n);
    ls_memory_store(m, s->t.at, n);
    ls_memory_let_go(m, m->p->file.onnx, (size_t)(s->onnx_offset + n));
}

/* The initial values of one tensor; members of an ensemble start with the same ones, unless the
 * file has others for them. */
static void init_tensor(const LsMemory *m, uint32_t state)
{
    const LsStateTensor *s = &m->p->state[state];
    const int64_t further = m->p->further != NULL ? m->p->further[state] : 0;
    const int64_t n = ls_tensor_count(&s->t), one = s->t.members > 0 ? n / s->t.members : n;
    enum { PART = LS_LET_GO / 4 };
    LsWalk w = ls_walk_start(&s->t);
    char *to = ls_memory_view(m, s->t.at, n * m->p->real_bytes);
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = i % one, member = i / one;
        const unsigned char *from =
            m->p->file.onnx
            + (member > 0 && further > 0 ? further + (member - 1) * one * 4 : s->onnx_offset);
        float v;
        memcpy(&v, from + 4 * k, 4);
        int64_t at = ls_walk_next(&w);
        ls_real_put(to + at * m->p->real_bytes, v, m->p->real_bytes);
        if (k % PART == PART - 1 || k == one - 1)       /* all so far: a page that is read brings
                                                         * those before it back, too */
            ls_memory_let_go(m, from, 4 * (size_t)(k + 1));
    }
    ls_memory_store(m, s->t.at, n * m->p->real_bytes);
}

static void init_state(LsMemory *m)
{
    const LsProgram *p = m->p;
    m->lets_go = p->file.onnx != NULL && ls_can_let_go(p->file.onnx, p->file.bytes + p->file.tail);
    for (uint32_t k = 0; k < p->nstate; k++) {
        const LsStateTensor *s = &p->state[k];
        if (s->onnx_offset < 0 || s->t.at.space == LS_AT_FILE || !is_here(m, k))
            continue;
        if (s->t.type == LS_DT_U8)
            init_codes(m, s);
        else
            init_tensor(m, k);
    }
    ls_memory_let_go(m, p->file.onnx, p->file.bytes + p->file.tail);
    if (ls_has_scaling(p)) {
        char start[8];
        ls_real_put(start, p->scaling.start, p->real_bytes);
        ls_memory_write(m, p->scaling.scale, start, p->real_bytes);
    }
}

/* Allocates a view for the largest tensor that is ever read, so that none is allocated later. */
static bool make_view(LsDevice *d, LsError *e)
{
    const LsProgram *p = d->p;
    const LsPhaseTable *phase[] = {&p->phase.train, &p->phase.last, &p->phase.eval};
    int64_t most = 1, n;
    for (uint32_t k = 0; k < p->nstate; k++)
        most = (n = ls_tensor_bytes(&p->state[k].t, p->real_bytes)) > most ? n : most;
    for (int f = 0; f < 3; f++)
        for (uint32_t k = 0; k < phase[f]->nwatch; k++)
            most = (n = ls_watch_bytes(&phase[f]->watch[k], p->real_bytes)) > most ? n : most;
    d->view = calloc(1, (size_t)most);
    d->view_bytes = d->view != NULL ? most : 0;
    return d->view != NULL ||
           ls_fail(e, LS_EXIT_FAIL, "no memory for a tensor's copy, %lld bytes", (long long)most);
}

static int64_t slice_bytes(const LsMemory *m)
{
    return m->ranks > 0 ? ls_rank_slice_bytes(m->p->ranks, m->ranks) : 0;
}
static int64_t level_bytes(const LsMemory *m)
{
    return m->ranks > 0 ? ls_rank_level_bytes(m->p->ranks, m->ranks) : 0;
}

static bool open_on_device(LsMemory *m, LsError *e)
{
    const LsProgram *p = m->p;
    LsDevice *d = m->device = p->accelerator.kind->open(p, ls_memory_input(p) / LS_DEVICE_SLOTS, e);
    if (d == NULL || !make_view(d, e))
        return false;
    m->state = d->state;
    m->arena = d->arena;
    m->constant = d->constant;
    if (p->bytes.constants > 0)
        p->accelerator.kind->write(d, d->constant, p->constant, p->bytes.constants);
    if (slice_bytes(m) > 0)
        m->slice = p->accelerator.ranks->take(d, slice_bytes(m));
    if (level_bytes(m) > 0)
        m->level = p->accelerator.ranks->take(d, level_bytes(m));
    init_state(m);
    return ls_device_ok(d, e);
}

bool ls_memory_open(LsMemory *m, const LsProgram *p, LsError *e)
{
    return ls_memory_open_with(m, p, 0, NULL, -1, e);
}

/* State and arena of one stage. */
static bool open_stage(LsMemory *m, LsError *e)
{
    const LsProgram *p = m->p;
    const LsStage *s = &p->pipeline.stage[m->stage];
    int64_t bytes = s->arena_bytes;
    if (m->stage == 0 && p->phase.eval.arena_bytes > bytes)
        bytes = p->phase.eval.arena_bytes;
    m->arena_at = s->at;
    m->state = get_untouched(p->bytes.state, e);
    m->arena = m->state ? get(bytes, "arena", e) : NULL;
    return m->arena != NULL;
}

static bool open_on_host(LsMemory *m, LsError *e)
{
    const LsProgram *p = m->p;
    const int64_t slices = slice_bytes(m), levels = level_bytes(m);
    return (m->state = get(m->sums != NULL ? p->ranks->sums.offset : p->bytes.state, "state", e))
               != NULL
           && (slices == 0 || (m->slice = get(slices, "state", e)) != NULL)
           && (levels == 0 || (m->level = get(levels, "state", e)) != NULL)
           && (m->arena = get(p->bytes.arena, "arena", e)) != NULL;
}

/* Constants and the initial state. */
static bool open_values(LsMemory *m, LsError *e)
{
    const LsProgram *p = m->p;
    if (p->bytes.constants > 0 && (uintptr_t)p->constant % ALIGN != 0) {
        m->copied = get(p->bytes.constants, "constants", e);
        if (!m->copied)
            return false;
        memcpy(m->copied, p->constant, (size_t)p->bytes.constants);
        m->constant = m->copied;
    }
    init_state(m);
    return true;
}

bool ls_memory_open_with(LsMemory *m, const LsProgram *p, int ranks, char *sums, int stage,
                         LsError *e)
{
    *m = (LsMemory){.p = p,
                    .constant = (const char *)p->constant,
                    .ranks = ranks,
                    .sums = sums,
                    .stage = stage};
    if (p->accelerator.kind != NULL)
        return open_on_device(m, e);
    if (stage >= 0 ? !open_stage(m, e) : !open_on_host(m, e))
        return false;
    return open_values(m, e);
}

bool ls_memory_open_at(LsMemory *m, const LsProgram *p, void *state, void *arena, LsError *e)
{
    *m = (LsMemory){.p = p,
                    .constant = (const char *)p->constant,
                    .stage = -1,
                    .state = state,
                    .arena = arena,
                    .lent = true};
    memset(state, 0, (size_t)p->bytes.state);
    memset(arena, 0, (size_t)p->bytes.arena);
    return open_values(m, e);
}

void ls_memory_begin(LsMemory *m)
{
    const LsAddress all = {LS_AT_STATE, 0};
    void *state = ls_memory_view(m, all, m->p->bytes.state);
    if (state == NULL)
        return;                         /* the device has failed: ls_memory_ok */
    memset(state, 0, (size_t)m->p->bytes.state);
    ls_memory_store(m, all, m->p->bytes.state);
    init_state(m);
}

void ls_memory_close(LsMemory *m)
{
    if (m->device != NULL) {
        free(m->device->view);          /* which gives slices and levels back itself */
        m->device->kind->close(m->device);
    } else {
        if (m->lent)
            m->state = m->arena = NULL;
        if (m->stage < 0)
            free(m->state);
        else if (m->state != NULL)
            munmap(m->state, (size_t)(m->p->bytes.state > 0 ? m->p->bytes.state : 1));
        free(m->slice);
        free(m->level);
        free(m->arena);
        free(m->copied);
    }
    *m = (LsMemory){0};
}

void *ls_memory_at(const LsMemory *m, LsAddress a)
{
    switch (a.space) {
    case LS_AT_ARENA: return m->arena + a.offset;
    case LS_AT_STATE:
        if (m->sums != NULL && a.offset >= m->p->ranks->sums.offset)
            return m->sums + (a.offset - m->p->ranks->sums.offset);
        return m->state + a.offset;
    case LS_AT_CONST: return (char *)m->constant + a.offset;    /* kernels only read operands */
    case LS_AT_FILE: return (char *)m->p->file.onnx + a.offset;
    case LS_AT_LEVEL: return m->level != NULL ? m->level + a.offset : NULL;
    default: return NULL;
    }
}

void *ls_memory_view(const LsMemory *m, LsAddress a, int64_t bytes)
{
    if (a.space == LS_AT_SLICE) {
        if (m->slices.self == NULL)     /* no rank trains */
            return ls_memory_look(
                m, (char *)ls_memory_at(m, m->p->ranks->sums) + a.offset % m->p->ranks->sum_bytes,
                bytes);
        m->slices.view(m->slices.self, a.offset);
        return m->slices.at + a.offset % m->p->ranks->sum_bytes;
    }
    return ls_memory_look(m, ls_memory_at(m, a), bytes);
}

void *ls_memory_look(const LsMemory *m, void *at, int64_t bytes)
{
    LsDevice *d = m->device;
    if (d == NULL || at == NULL)
        return at;
    if (bytes > d->view_bytes) {    /* a whole arena, for --measure */
        void *more = realloc(d->view, (size_t)bytes);
        if (more == NULL) {
            ls_device_fail(d, LS_EXIT_FAIL, "no memory for a copy of %lld bytes",
                           (long long)bytes);
            return NULL;
        }
        d->view = more;
        d->view_bytes = bytes;
    }
    if (!d->kind->read(d, d->view, at, bytes))
        memset(d->view, 0, (size_t)bytes);
    return d->view;
}

void ls_memory_store(const LsMemory *m, LsAddress a, int64_t bytes)
{
    LsDevice *d = m->device;
    if (a.space == LS_AT_SLICE && m->slices.self != NULL)
        m->slices.store(m->slices.self, a.offset);
    if (d != NULL && a.space != LS_AT_SLICE)
        d->kind->write(d, ls_memory_at(m, a), d->view, bytes);
}

void ls_memory_write(const LsMemory *m, LsAddress a, const void *from, int64_t bytes)
{
    LsDevice *d = m->device;
    if (d != NULL)
        d->kind->write(d, ls_memory_at(m, a), from, bytes);
    else
        memcpy(ls_memory_at(m, a), from, (size_t)bytes);
}

void ls_memory_replace(const LsMemory *m, LsAddress a, const void *from, int64_t bytes)
{
    char *to = ls_memory_at(m, a);
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (memcmp(to, from, (size_t)bytes) == 0)
        return;
    char *first = (char *)((uintptr_t)to / page * page);
    if (mprotect(first, (size_t)(to + bytes - first), PROT_READ | PROT_WRITE) == 0)
        memcpy(to, from, (size_t)bytes);
}

void ls_memory_let_go(const LsMemory *m, const void *onnx, size_t bytes)
{
    if (m->lets_go)
        ls_let_go(onnx, bytes);
}

bool ls_memory_ok(const LsMemory *m, LsError *e)
{
    const LsError *slices = m->slices.error;
    if (slices != NULL && slices->code != LS_EXIT_DONE)
        return ls_fail(e, slices->code, "%s", slices->text);
    return ls_device_ok(m->device, e);
}

int64_t ls_memory_input(const LsProgram *p)
{
    return p->accelerator.kind != NULL ? ls_ring_bytes(p) / ls_ring_slots(p) * LS_DEVICE_SLOTS
                                       : ls_ring_bytes(p);
}

static int64_t exchange_bytes(const LsRanks *r, int n)
{
    int64_t rows = 0;
    for (uint32_t t = 0; n > 0 && t < r->nrows; t++)
        rows += r->rows[t].bytes;
    return n > 0 ? ls_rank_exchange_bytes(n, r->parts, r->sum_bytes, rows) : 0;
}

int64_t ls_memory_state(const LsProgram *p, int ranks)
{
    return p->bytes.state + p->bytes.mapped
           + (ranks > 0
                  ? ls_rank_slice_bytes(p->ranks, ranks) + ls_rank_level_bytes(p->ranks, ranks)
                  : 0);
}

int64_t ls_memory_total(const LsProgram *p, int ranks)
{
    return ls_memory_state(p, ranks) + p->bytes.arena + p->bytes.constants + ls_memory_input(p)
           + exchange_bytes(p->ranks, ranks);
}
