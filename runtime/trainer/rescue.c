/* runtime/trainer/rescue.c -- the state of a run that has no --save folder when it is interrupted,
 * or whose files cannot be written: a checkpoint beside --export, else beside the program, else in
 * the current or the temporary folder. */
#include "runtime/trainer/rescue.h"
#include "runtime/trainer/rank_update.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACES = 4 };

/* Place k, best first, without its ending; false: there is none. */
static bool place(const LsTrainer *t, int k, char path[LS_PATH])
{
    char program[LS_PATH];
    LsOut o;
    LsError e = {0};
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    const char *tmp = getenv("TMPDIR");
    program[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(program, '/'),
               *base = n > 0 && slash != NULL ? slash + 1 : "trainer";
    switch (k) {
    case 0:     /* a device or a pipe has no place beside it */
        return t->o.export_to != NULL && ls_out_place(&o, t->o.export_to, &e) && !o.through
            && snprintf(path, LS_PATH, "%s", t->o.export_to) < LS_PATH;
    case 1: return n > 0 && snprintf(path, LS_PATH, "%s", program) < LS_PATH;
    case 2: return snprintf(path, LS_PATH, "%s", base) < LS_PATH;
    default:
        return snprintf(path, LS_PATH, "%s/%s", tmp != NULL && *tmp ? tmp : "/tmp", base) < LS_PATH;
    }
}

/* Saves at the first place that takes the state: t->saver.path. False, with the first error: none
 * does. */
static bool save_somewhere(LsTrainer *t, const char *word, LsError *e)
{
    char path[LS_PATH];
    for (int k = 0; k < PLACES; k++) {
        LsError one = {0};
        if (!place(t, k, path)
            || snprintf(t->saves.saver.path, LS_PATH, "%.*s.%s.safetensors", LS_PATH - 64, path,
                        word)
                   >= LS_PATH)
            continue;
        if (ls_checkpoint_save(&t->u.memory, &t->u.place, t->saves.saver.path, &one))
            return true;
        if (e->code == LS_EXIT_DONE)
            *e = one;
    }
    return false;
}

static bool save_interrupted(LsTrainer *t, LsError *e)
{
    LsError why = {0};
    if (save_somewhere(t, "interrupted", &why))
        return true;
    *e = why;
    return false;
}

bool ls_end_interrupted(LsTrainer *t, LsError *e)
{
    if (!t->saves.saver.folder && !ls_train_by_first(t, save_interrupted, e))
        return false;
    fprintf(stderr, "interrupted after step %" PRId64 "; continue with --resume=%s\n",
            t->u.place.update, t->saves.saver.path);
    return true;
}

void ls_rescue_unwritten(LsTrainer *t)
{
    LsError e = {0};
    if (t->saves.saver.folder && t->saves.last == t->u.place.update
        && access(t->saves.saver.path, R_OK) == 0)
        fprintf(stderr,
                "note: %s has the trained state: --resume=%s with --export=FILE writes the model\n",
                t->saves.saver.path, t->saves.saver.path);
    else if (save_somewhere(t, "unwritten", &e))
        fprintf(stderr,
                "note: the state after step %" PRId64
                " is now in %s: --resume=%s continues, and --export=FILE with it writes the "
                "model\n",
                t->u.place.update, t->saves.saver.path, t->saves.saver.path);
    else
        fprintf(stderr,
                "note: the state after step %" PRId64
                " could be written nowhere, and is lost: %s\n",
                t->u.place.update, e.text);
}
