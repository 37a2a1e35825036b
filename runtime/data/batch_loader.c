/* runtime/data/batch_loader.c -- see batch_loader.h.
 *
 * Batch q lives in slot q % nslot. Workers take numbers in order. The worker with number q waits
 * until batch q - nslot is released by all readers, fills the slot without the lock, and marks it
 * full. */
#include "runtime/base/tensor_copy.h"
#include "runtime/data/batch_loader.h"

#include <stdlib.h>
#include <string.h>

static int64_t parts_of(const LsPass *pass) { return pass->parts > 1 ? pass->parts : 1; }

static int64_t members_of(const LsPass *pass) { return pass->members > 0 ? pass->members : 1; }

/* Samples of a part. */
static int64_t samples_of(const LsPass *pass)
{
    return pass->data->p->division.samples * members_of(pass);
}

/* Members have whole batches: what does not fill all of them is left out. */
int64_t ls_batches_per_epoch(const LsPass *pass)
{
    const int64_t n = pass->data->samples, batch = samples_of(pass) * parts_of(pass);
    const int64_t all =
        pass->drop_last || pass->members > 0 ? n / batch : (n + batch - 1) / batch;
    return pass->data->limit > 0 && pass->data->limit < all ? pass->data->limit : all;
}

/* Parts follow each other as the samples of their batches do. */
int64_t ls_batch_first(const LsPass *pass, int64_t number)
{
    return number % (ls_batches_per_epoch(pass) * parts_of(pass)) * samples_of(pass);
}

int64_t ls_batch_valid(const LsPass *pass, int64_t number)
{
    int64_t left = pass->data->samples - ls_batch_first(pass, number),
            batch = pass->data->p->division.samples;
    return left < 0 ? 0 : left < batch ? left : batch;
}

int64_t ls_part_of_rank(const LsPass *pass, int64_t own)
{
    const LsShare *s = &pass->share;
    const int64_t start = s->origin + own / s->block * s->group;
    int64_t before = s->rank * s->block + own % s->block;
    for (int64_t k = start; k < start + s->group; k++)
        if (ls_batch_valid(pass, k) > 0 && before-- == 0)
            return k;
    return -1;
}

static int64_t aligned(int64_t n) { return (n + 63) & ~(int64_t)63; }

static int64_t slot_bytes(const LsProgram *p)
{
    int64_t n = 0;
    for (uint32_t k = 0; k < p->ninput; k++)
        n += aligned(ls_tensor_bytes(&p->input[k].t, p->real_bytes));
    return n;
}

int64_t ls_ring_bytes(const LsProgram *p) { return ls_ring_slots(p) * slot_bytes(p); }

static int64_t epoch_of(const LsPass *pass, int64_t number)
{
    return number / (ls_batches_per_epoch(pass) * parts_of(pass));
}

/* The sample at a place of a batch; places behind the valid samples repeat them. */
static int64_t sample_at(const LsPass *pass, int64_t number, int64_t place)
{
    int64_t i =
        ls_batch_first(pass, number) + place % (ls_batch_valid(pass, number) * members_of(pass));
    return pass->shuffle
               ? ls_shuffled(pass->seed, epoch_of(pass, number), pass->data->samples, i)
               : i;
}

bool ls_batch_is_finite(const LsPass *pass, int64_t number, LsError *e)
{
    for (int64_t place = 0, n = ls_batch_valid(pass, number) * members_of(pass); place < n; place++)
        for (uint32_t k = 0; k < pass->data->p->ninput; k++)
            if (!ls_dataset_is_finite(pass->data, k, sample_at(pass, number, place), e))
                return false;
    return true;
}

/* Decides which samples batch `number` has, the next one to fill. */
static void assign(LsLoader *l, LsBatch *b, int64_t number)
{
    const LsPass *pass = &l->pass;
    b->number = pass->share.block > 0 ? ls_part_of_rank(pass, number) : number;
    b->epoch = pass->drawn.rate > 0 ? l->draw.update
               : b->number < 0      ? 0
                                    : epoch_of(pass, b->number);
    if (b->number < 0)
        b->valid = 0;
    else if (pass->drawn.rate > 0)
        b->valid = ls_draw_take(&l->draw, l->p->division.samples, b->drawn, &b->last);
    else
        b->valid = ls_batch_valid(pass, b->number);
}

/* The same as sample_at for drawn samples, too. A batch without samples reads the first of the
 * data. */
static int64_t sample_of(const LsPass *pass, const LsBatch *b, int64_t place)
{
    if (pass->drawn.rate == 0)
        return sample_at(pass, b->number, place);
    return b->valid > 0 ? b->drawn[place % b->valid] : 0;
}

/* Reads sample i of an input to a place of a batch. */
static bool read(const LsLoader *l, const LsPass *pass, const LsSlot *slot, uint32_t k, int64_t i,
                 int64_t place, LsError *e)
{
    char *batch = slot->batch.input + l->offset[k];
    const LsSource *s = &pass->data->source[k];
    const int64_t each =
        s->per_sample * ls_data_bytes(l->p->input[k].t.type, l->p->real_bytes);
    return pass->augment == NULL
               ? ls_dataset_read(pass->data, k, i, place, batch, e)
               : ls_augmenter_read(pass->augment, slot->room, k, i, slot->batch.epoch,
                                   batch + (s->whole ? 0 : place) * each, e);
}

static bool fill(const LsLoader *l, const LsPass *pass, const LsSlot *slot, LsError *e)
{
    const LsBatch *b = &slot->batch;
    if (b->valid == 0 && pass->drawn.rate == 0)
        return true;
    for (int64_t place = 0; place < samples_of(pass); place++) {
        int64_t i = sample_of(pass, b, place);
        for (uint32_t k = 0; k < l->p->ninput; k++)
            if (!(pass->data->source[k].whole && place > 0) && pass->data->source[k].there == NULL
                && !read(l, pass, slot, k, i, place, e))
                return false;
    }
    return true;
}

/* Whether the pass has a batch `number`, the next one to fill. */
static bool has_next(const LsLoader *l, int64_t number)
{
    return l->pass.drawn.rate > 0 ? l->draw.update <= l->pass.drawn.last : number < l->pass.end;
}

static bool may_fill(const LsLoader *l)
{
    return has_next(l, l->next) && l->next < l->taken + l->nslot && l->error.code == LS_EXIT_DONE;
}

static LsSlot *slot_of(LsLoader *l, int64_t number) { return &l->slot[number % l->nslot]; }

/* A room that no other slot has. Those with the lowest numbers are used first, so that idle ones
 * take no memory. */
static int take_room(const LsLoader *l)
{
    int room = 0;
    for (int k = 0; k < l->nslot; k++)
        if (l->slot[k].room == room) {
            room++;
            k = -1;
        }
    return room;
}

/* Fills the next batch. Called and left with the lock. */
static void fill_next(LsLoader *l)
{
    const int64_t number = l->next++;
    LsSlot *slot = slot_of(l, number);
    const LsPass pass = l->pass;
    LsError e = {0};
    l->busy++;
    assign(l, &slot->batch, number);
    slot->room = take_room(l);
    pthread_mutex_unlock(&l->lock);
    const bool ok = fill(l, &pass, slot, &e);
    pthread_mutex_lock(&l->lock);
    slot->room = -1;
    l->busy--;
    slot->full = ok;
    slot->number = number;
    slot->left = pass.readers > 0 ? pass.readers : 1;
    if (!ok && (l->error.code == LS_EXIT_DONE || number < l->error_at)) {
        l->error = e;
        l->error_at = number;
    }
    pthread_cond_broadcast(&l->filled);
}

static void *work(void *arg)
{
    LsLoader *l = arg;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stop && !may_fill(l))
            pthread_cond_wait(&l->freed, &l->lock);
        if (l->stop)
            break;
        fill_next(l);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

bool ls_loader_open(LsLoader *l, const LsProgram *p, int workers, LsError *e)
{
    size_t ring = (size_t)ls_ring_bytes(p), table = (p->ninput + 1) * sizeof *l->offset;
    size_t threads = (size_t)(workers + 1) * sizeof *l->thread;
    /* of a slot */
    size_t drawn = p->privacy.expected > 0 ? (size_t)p->division.samples * sizeof(int64_t) : 0;
    size_t slots = (size_t)ls_ring_slots(p), own = slots * sizeof(LsSlot);
    size_t all = ring + table + threads + own + slots * drawn;
    *l = (LsLoader){.p = p, .slot_bytes = slot_bytes(p), .nslot = (int)slots};
    if (posix_memalign((void **)&l->memory, 64, all) != 0) {
        l->memory = NULL;
        return ls_fail(e, LS_EXIT_FAIL, "no memory for the input ring, %zu bytes", ring);
    }
    memset(l->memory, 0, all);
    l->offset = (int64_t *)(void *)(l->memory + ring);
    l->thread = (pthread_t *)(void *)(l->memory + ring + table);
    for (uint32_t k = 0; k < p->ninput; k++)
        l->offset[k + 1] = l->offset[k] + aligned(ls_tensor_bytes(&p->input[k].t, p->real_bytes));
    l->slot = (LsSlot *)(void *)(l->memory + ring + table + threads);
    for (int k = 0; k < l->nslot; k++) {
        l->slot[k].room = -1;
        l->slot[k].batch.input = l->memory + k * l->slot_bytes;
        l->slot[k].batch.drawn =
            (int64_t *)(void *)(l->memory + ring + table + threads + own + (size_t)k * drawn);
    }
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->filled, NULL);
    pthread_cond_init(&l->freed, NULL);
    for (; l->nthread < workers; l->nthread++)
        if (pthread_create(&l->thread[l->nthread], NULL, work, l) != 0)
            return ls_fail(e, LS_EXIT_FAIL, "cannot start worker %d", l->nthread + 1);
    return true;
}

void ls_loader_close(LsLoader *l)
{
    if (!l->memory)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->freed);
    pthread_mutex_unlock(&l->lock);
    for (int k = 0; k < l->nthread; k++)
        pthread_join(l->thread[k], NULL);
    pthread_cond_destroy(&l->freed);
    pthread_cond_destroy(&l->filled);
    pthread_mutex_destroy(&l->lock);
    free(l->memory);
    l->memory = NULL;
}

void ls_loader_begin(LsLoader *l, const LsPass *pass)
{
    pthread_mutex_lock(&l->lock);
    l->pass = (LsPass){.end = l->next};         /* no worker takes a new number of the earlier
                                                 * pass */
    while (l->busy > 0)
        pthread_cond_wait(&l->filled, &l->lock);
    l->pass = *pass;
    l->next = l->taken = pass->first;
    if (pass->drawn.rate > 0)
        ls_draw_begin(&l->draw, &pass->drawn.key, pass->drawn.rate, pass->data->samples,
                      pass->drawn.first);
    l->error = (LsError){0};
    for (int k = 0; k < l->nslot; k++)
        l->slot[k].full = false;
    pthread_cond_broadcast(&l->freed);
    pthread_mutex_unlock(&l->lock);
}

/* The batch is there, or cannot be. */
static bool is_decided(LsLoader *l, int64_t number)
{
    const LsSlot *slot = slot_of(l, number);
    return (slot->full && slot->number == number)
           || (l->error.code != LS_EXIT_DONE && l->error_at <= number);
}

const LsBatch *ls_loader_at(LsLoader *l, int64_t number, LsError *e)
{
    LsSlot *slot = slot_of(l, number);
    pthread_mutex_lock(&l->lock);
    const bool there = l->pass.drawn.rate > 0 ? l->nthread > 0 || slot->full || has_next(l, number)
                                              : number < l->pass.end;
    while (there && !is_decided(l, number)) {
        if (l->nthread == 0 && may_fill(l))
            fill_next(l);
        else
            pthread_cond_wait(&l->filled, &l->lock);
    }
    const bool full = there && slot->full && slot->number == number;
    if (there && !full)
        *e = l->error;
    pthread_mutex_unlock(&l->lock);
    return full ? &slot->batch : NULL;
}

void ls_loader_done(LsLoader *l, int64_t number)
{
    pthread_mutex_lock(&l->lock);
    slot_of(l, number)->left--;
    while (slot_of(l, l->taken)->full && slot_of(l, l->taken)->left == 0) {
        slot_of(l, l->taken)->full = false;
        l->taken++;
    }
    pthread_cond_broadcast(&l->freed);
    if (l->nthread == 0)
        pthread_cond_broadcast(&l->filled);
    pthread_mutex_unlock(&l->lock);
}

const LsBatch *ls_loader_next(LsLoader *l, LsError *e) { return ls_loader_at(l, l->taken, e); }

void ls_loader_release(LsLoader *l) { ls_loader_done(l, l->taken); }
