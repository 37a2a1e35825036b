/* runtime/trainer/export_notes.h -- what --export says of the run, in the metadata of the model:
 * entries with keys lowerset.version, .plan, .loss, .steps, .data, .scaling and .classes.
 *
 * scaling: {"x":{"scale":s,"mean":[...],"std":[...]}}, by input: the model was trained on (v *
 * scale - mean) / std of the values v of the data; mean and std by channel. classes: a list of
 * names. No note depends on the machine, the time, or the number of threads; the data are named
 * without their folders. */
#ifndef LS_RUNTIME_TRAINER_EXPORT_NOTES_H
#define LS_RUNTIME_TRAINER_EXPORT_NOTES_H

#include "runtime/data/dataset.h"

typedef struct LsNotes { unsigned char *bytes; size_t n; } LsNotes;

/* As bytes to append to a model of so many steps. d: whose scaling and classes; d->p NULL: none. */
bool ls_notes_make(LsNotes *to, const LsProgram *p, int64_t steps, const LsDataset *d,
                   LsError *e);
void ls_notes_free(LsNotes *n);

/* Names of classes that the model file has; *room, on the heap, holds them. n 0: it has none. */
LsClassNames ls_notes_classes(const LsProgram *p, void **room);

/* How an input of the data was scaled: bytes without --scale are divided by 255. */
double ls_source_scale(const LsSource *s);

#endif
