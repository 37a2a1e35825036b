/* runtime/trainer/run_results.c -- see run_results.h. */
#include "runtime/trainer/run_results.h"
#include "runtime/trainer/export_adapter.h"
#include "runtime/trainer/export_notes.h"
#include "runtime/trainer/export_trained.h"
#include "runtime/watch/image_grid.h"
#include "runtime/trainer/pipelined_update.h"
#include "runtime/trainer/rescue.h"
#include "runtime/trainer/save_weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_measure(LsTrainer *t)
{
    const LsPhaseTable *phase = t->reports.measure.t;
    ls_measure_end(&t->reports.measure);
    printf("{\"arena_bytes\":%" PRId64 ",\"live_peak\":%" PRId64 ",\"addressed\":%" PRId64
           ",\"touched\":%" PRId64 ",\"state_bytes\":%" PRId64 ",\"total\":%" PRId64 "}\n",
           phase->arena_bytes, phase->live_peak, t->reports.measure.addressed,
           t->reports.measure.touched, t->p->bytes.state, ls_memory_total(t->p, t->group.count));
}

/* --trace, --profile */
static bool write_times(const LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    if (ls_is_pipelined(t))
        return ls_pipelined_trace_write(t, e);
    return (!o->trace || ls_trace_write(&t->reports.trace, 1, o->trace, e))
           && (!o->profile
               || ls_profile_write(&t->reports.trace, 1, o->profile,
                                   t->u.memory.device ? 0 : t->u.threads, e));
}

/* Keeps the first error. */
static bool keep(LsError *e, const LsError *one)
{
    if (e->code == LS_EXIT_DONE)
        *e = *one;
    return one->code == LS_EXIT_DONE;
}

static bool write_dump(LsTrainer *t, LsError *e)
{
    const int64_t n = t->u.members.n > 0 ? t->u.members.n : 1;
    const double *losses = t->u.members.n == 0 ? &t->u.under_way.loss
                           : t->o.eval       ? t->u.members.val_loss
                                             : t->u.members.loss;
    return ls_is_pipelined(t) ? ls_pipelined_dump_write(t, e)
                              : ls_dump_write(&t->reports.dump, 1, t->o.dump, losses, n, e);
}

/* The best model takes the place of the last one, which is in a checkpoint. */
static bool take_best(LsTrainer *t, LsError *e)
{
    LsSaver *s = &t->saves.saver;
    LsPlace at = {0};
    if (t->u.place.habits.best.update == 0)
        return ls_fail(e, LS_EXIT_FAIL,
                       "--export-best: no evaluation had a %s, so no model is the best",
                       t->o.keep_best);
    if (!ls_checkpoint_load(&t->u.memory, &at, ls_saver_best(s, s->path), e))
        return false;
    ls_privacy_free(&at.ledger);
    printf("exporting the model of step %" PRId64 ", with the best %s\n", at.update,
           t->u.place.habits.best.metric);
    return true;
}

static void export_model(LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    const LsDataset *d = t->u.feed.train.p != NULL ? &t->u.feed.train : &t->val;
    const int64_t steps = o->export_best ? t->u.place.habits.best.update : t->u.place.update;
    LsNotes notes = {0};
    LsFront front = {0};
    if ((!o->export_notes || ls_notes_make(&notes, t->p, steps, d, e))
        && (!o->export_scaling || ls_front_make(&front, t->p, d, e))) {
        const LsExportForm form = {o->export_type, o->export_external,
                                   o->export_scaling ? &front : NULL, notes.bytes, notes.n};
        ls_export(&t->u.memory, o->export_member, &t->u.place.alphabet, &form, o->export_to, e);
    }
    ls_notes_free(&notes);
    ls_front_free(&front);
}

/* --export, --export-adapter, --save-weights */
static void write_models(LsTrainer *t, LsError *model, LsError *adapter, LsError *weights)
{
    const LsTrainerOptions *o = &t->o;
    if (o->export_best && !take_best(t, model))
        return;
    if (o->export_to)
        export_model(t, model);
    if (o->export_adapter)
        ls_export_adapter(&t->u.memory, o->export_member, o->export_adapter, adapter);
    if (o->save_weights)
        ls_save_weights(&t->u.memory, o->export_member,
                        o->weights_of != NULL && strcmp(o->weights_of, "trained") == 0,
                        o->save_weights, weights);
}

/* One file that cannot be written keeps none of the others from being written, and loses no
 * model. */
bool ls_write_results(LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    const bool whole = o->eval || t->u.place.update == t->u.updates, dumps = o->dump && whole;
    LsError dump = {0}, times = {0}, model = {0}, grid = {0}, adapter = {0},
            weights = {0}, table = {0};
    if (o->dump && !whole)
        fprintf(stderr, "note: %s is not written: the last step was not run\n", o->dump);
    if (o->measure)
        print_measure(t);
    if (!o->export_best)
        write_models(t, &model, &adapter, &weights);
    if (o->confusion)
        ls_metrics_write_confusion(&t->reports.metrics, o->confusion, &table);
    if (dumps)
        write_dump(t, &dump);
    write_times(t, &times);
    if (o->image_grid)
        ls_grid_write(&t->u.engine, &t->u.feed.loader, t->val.p ? &t->val : &t->u.feed.train,
                      o->image_grid, &grid);
    if (o->export_best)         /* the rest is of the last model */
        write_models(t, &model, &adapter, &weights);
    const LsError *lost = o->export_to ? &model : o->save_weights ? &weights : &dump;
    if (!o->eval && lost->code != LS_EXIT_DONE)
        ls_rescue_unwritten(t);
    LsError *const one[] = {&model, &adapter, &dump, &times, &grid, &weights, &table};
    bool ok = true;
    for (int k = 0; k < (int)(sizeof one / sizeof *one); k++)
        ok &= keep(e, one[k]);
    return ok;
}
