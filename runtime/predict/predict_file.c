/* runtime/predict/predict_file.c -- see predict_file.h. */
#include "runtime/predict/predict_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const LsPredictKind *const all[] = {&ls_predict_npz, &ls_predict_csv, &ls_predict_png};
enum { NKINDS = sizeof all / sizeof *all };

static const LsPredictKind *named(const char *name)
{
    for (int k = 0; k < NKINDS; k++)
        if (strcmp(all[k]->name, name) == 0)
            return all[k];
    return NULL;
}

const LsPredictKind *ls_predict_kind(const char *path, const char *as, LsError *e)
{
    const char *base = strrchr(path, '/'), *dot = strrchr(base != NULL ? base : path, '.');
    const LsPredictKind *kind = as != NULL ? named(as) : dot != NULL ? named(dot + 1) : NULL;
    struct stat st;
    if (kind == &ls_predict_png && as == NULL)
        kind = NULL;            /* one picture holds one sample */
    if (kind == NULL && as == NULL
        && (path[strlen(path) - 1] == '/' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode))))
        kind = &ls_predict_png;
    if (kind == NULL && as != NULL)
        ls_fail(e, LS_EXIT_USAGE, "--predict-as=%s: must be npz, csv or png", as);
    else if (kind == NULL)
        ls_fail(e, LS_EXIT_USAGE,
                "--predict=%s: the name says nothing of the form: FILE.npz, FILE.csv, or FOLDER/ "
                "for pictures; --predict-as=npz, csv or png says it, too",
                path);
    return kind;
}

bool ls_predict_check(const LsPredictKind *kind, const char *path, LsError *e)
{
    char folder[LS_PATH];
    size_t n = strlen(path);
    while (kind == &ls_predict_png && n > 1 && path[n - 1] == '/')
        n--;
    if (n >= sizeof folder)
        return ls_fail(e, LS_EXIT_USAGE, "--predict: the name is too long");
    memcpy(folder, path, n);
    folder[n] = '\0';
    return kind == NULL || kind == &ls_predict_png || ls_out_check(folder, e);
}

bool ls_predict_open(LsPredictFile *f, LsError *e)
{
    int64_t most = 0;
    for (int k = 0; k < f->outputs->n; k++)
        most = f->outputs->output[k].count > most ? f->outputs->output[k].count : most;
    f->row = malloc((size_t)f->outputs->bytes + 1);
    f->reals = calloc((size_t)most + 1, sizeof *f->reals);
    if (f->row == NULL || f->reals == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --predict");
    return f->kind->open(f, e);
}

bool ls_predict_put(LsPredictFile *f, int64_t valid, LsError *e)
{
    for (int64_t i = 0; i < valid; i++, f->done++)
        if (!f->kind->put(f, i, e))
            return false;
    return true;
}

bool ls_predict_close(LsPredictFile *f, bool whole, LsError *e)
{
    LsError ignored = {0};      /* of a file that is given up: why is told already */
    const bool ok = f->own == NULL || f->kind->close(f, whole, whole ? e : &ignored);
    free(f->row);
    free(f->reals);
    f->row = f->own = NULL;
    f->reals = NULL;
    return ok;
}
