/* runtime/library/net_device.c -- see net.h: arrays, a stream and losses on a device. */
#include "runtime/library/net.h"
#include "runtime/library/net_state.h"

#include "runtime/base/tensor_copy.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- the caller's stream ---- */

static LsDevice *device(const LsNet *n) { return n->t.memory.device; }

bool ls_net_after(LsNet *n, LsError *e)
{
    return !n->follows || device(n)->kind->after(device(n), n->stream, e);
}

bool ls_net_before(LsNet *n, LsError *e)
{
    return !n->follows || device(n)->kind->before(device(n), n->stream)
           || ls_device_ok(device(n), e);
}

bool ls_net_set_stream(LsNet *n, void *stream, LsError *e)
{
    if (device(n) == NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "the net computes on the host and has no stream: a call returns when its "
                       "work is done");
    if (!device(n)->kind->after(device(n), stream, e))
        return false;
    n->follows = true;
    n->stream = stream;
    return true;
}

/* ---- inputs ---- */

/* A copy on the host of an array that lies on the device. */
static const void *fetch(LsNet *n, uint32_t k, const void *at, int64_t samples, LsError *e)
{
    const LsProgram *p = n->t.p;
    const LsSource *s = &n->t.feed.train.source[k];
    const int64_t bytes = s->per_sample * (s->whole ? 1 : samples)
                          * ls_data_bytes(p->input[k].t.type, p->real_bytes);
    void *copy = realloc(n->fetched[k], (size_t)bytes);
    if (copy == NULL) {
        ls_fail(e, LS_EXIT_FAIL, "no memory for a copy of '%s', %" PRId64 " bytes",
                p->input[k].t.name, bytes);
        return NULL;
    }
    n->fetched[k] = copy;
    return device(n)->kind->read(device(n), copy, at, bytes) || ls_device_ok(device(n), e) ? copy
                                                                                         : NULL;
}

bool ls_net_point(LsNet *n, uint32_t k, const void *at, int64_t samples, LsError *e)
{
    LsDataset *data = &n->t.feed.train;
    LsDevice *d = device(n);
    if (d == NULL || !d->kind->holds(d, at)) {
        ls_dataset_point(data, k, at, samples);
        return true;
    }
    if (!n->follows && !d->kind->settle(d))
        return ls_device_ok(d, e);
    if (ls_dataset_copies(data, k) && !ls_is_private(n->t.p)) {
        ls_dataset_point_there(data, k, at, samples);
        return true;
    }
    const void *here = fetch(n, k, at, samples, e);
    if (here != NULL)
        ls_dataset_point(data, k, here, samples);
    return here != NULL;
}

/* ---- the loss ---- */

bool ls_net_loss_there(const LsNet *n, const void **at, LsError *e)
{
    const LsProgram *p = n->t.p;
    const int64_t batches = ls_update_batches(&p->division) * ls_micro_batches(&p->division);
    if (device(n) == NULL)
        return ls_fail(e, LS_EXIT_USAGE, "the net computes on the host: its losses are there");
    if (batches > 1)
        return ls_fail(e, LS_EXIT_USAGE,
                       "an update of %" PRId64 " batches has its loss on the host, which combines "
                       "theirs: ask the step for it, or wait for it",
                       batches);
    const LsPhaseTable *last = p->phase.last.nstep > 0 ? &p->phase.last : &p->phase.train;
    *at = ls_memory_at(&n->t.memory, last->loss);
    return true;
}
