/* runtime/trainer/run_results.c -- see run_results.h. */
#include "runtime/trainer/run_results.h"
#include "runtime/trainer/export_trained.h"
#include "runtime/watch/image_grid.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_measure(LsTrainer *t)
{
    const LsPhaseTable *phase = t->measure.t;
    ls_measure_end(&t->measure);
    printf("{\"arena_bytes\":%" PRId64 ",\"live_peak\":%" PRId64 ",\"addressed\":%" PRId64
           ",\"touched\":%" PRId64 ",\"state_bytes\":%" PRId64 ",\"total\":%" PRId64 "}\n",
           phase->arena_bytes, phase->live_peak, t->measure.addressed, t->measure.touched,
           t->p->state_bytes, ls_memory_total(t->p, t->ranks));
}

/* --trace, --profile */
static bool write_times(const LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    if (ls_is_pipelined(t))
        return ls_pipelined_trace_write(t, e);
    return (!o->trace || ls_trace_write(&t->trace, 1, o->trace, e))
           && (!o->profile || ls_profile_write(&t->trace, 1, o->profile, t->memory.device ? 0 : t->threads, e));
}

bool ls_write_results(LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    bool whole = o->eval || t->at.update == t->updates;
    const int64_t n = t->members.n > 0 ? t->members.n : 1;
    const double *losses = t->members.n == 0 ? &t->loss : o->eval ? t->members.val_loss : t->members.loss;
    if (o->dump && !whole)
        fprintf(stderr, "note: %s is not written: the last step was not run\n", o->dump);
    if (o->measure)
        print_measure(t);
    const bool dumps = o->dump && whole;
    if (dumps && !(ls_is_pipelined(t) ? ls_pipelined_dump_write(t, e) : ls_dump_write(&t->dump, 1, o->dump, losses, n, e)))
        return false;
    return write_times(t, e) &&
           (!o->export_to || ls_export(&t->memory, o->export_member, &t->at.alphabet, o->export_type, o->export_to, e)) &&
           (!o->image_grid ||
            ls_grid_write(&t->engine, &t->loader, t->val.p ? &t->val : &t->data, o->image_grid, e));
}

static void name_interrupted(const LsTrainer *t, char path[LS_PATH])
{
    const char *base = strrchr(t->p->model, '/');
    snprintf(path, LS_PATH, "%.200s.interrupted.safetensors", base ? base + 1 : t->p->model);
}

static bool save_interrupted(LsTrainer *t, LsError *e)
{
    char path[LS_PATH];
    name_interrupted(t, path);
    return ls_checkpoint_save(&t->memory, &t->at, path, e);
}

bool ls_end_interrupted(LsTrainer *t, LsError *e)
{
    char path[LS_PATH];
    if (!t->saver.folder && !ls_train_by_first(t, save_interrupted, e))
        return false;
    name_interrupted(t, path);
    fprintf(stderr, "interrupted after step %" PRId64 "; continue with --resume=%s\n", t->at.update,
            t->saver.folder ? t->saver.path : path);
    return true;
}
