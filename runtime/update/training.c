/* runtime/update/training.c -- see training.h: what all who run updates open and close alike. */
#include "runtime/update/training.h"

bool ls_training_open_loader(LsTraining *t, int workers, LsError *e)
{
    LsDevice *d = t->memory.device;
    if (!ls_loader_open(&t->feed.loader, t->p, workers, e))
        return false;
    t->feed.pinned = d != NULL;
    if (t->feed.pinned)
        d->kind->pin(d, t->feed.loader.memory, ls_ring_bytes(t->p));
    return true;
}

void ls_training_begin(LsTraining *t, uint64_t seed)
{
    ls_place_free(&t->place);
    t->place = (LsPlace){.seed = seed};
    t->engine.run.seed = seed;
    t->scale = ls_scaling_read(&t->memory);
    t->no_label = false;
    t->under_way = (LsUnderWay){0};
}

void ls_training_drop(LsTraining *t, int64_t update, int64_t cursor)
{
    t->under_way = (LsUnderWay){0};
    t->nflight = 0;
    t->place.cursor = t->place.update == update ? cursor : t->place.cursor;
}

void ls_training_stop(LsTraining *t, bool has_threads)
{
    if (t->feed.pinned)
        t->memory.device->kind->unpin(t->memory.device, t->feed.loader.memory);
    ls_loader_close(&t->feed.loader);
    ls_member_state_close(&t->members);
    if (has_threads)
        ls_pool_destroy(t->engine.run.pool);
    else
        ls_pool_forget(t->engine.run.pool);
}

void ls_training_close(LsTraining *t)
{
    ls_engine_close(&t->engine);
    ls_dataset_close(&t->feed.train);
    ls_place_free(&t->place);
    ls_memory_close(&t->memory);
}
