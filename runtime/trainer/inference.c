/* runtime/trainer/inference.c -- see inference.h. */
#include "runtime/trainer/inference.h"

#include "runtime/base/interrupt.h"
#include "runtime/predict/predict_run.h"
#include "runtime/predict/serve.h"
#include "runtime/trainer/export_notes.h"
#include "runtime/trainer/run_results.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool predict(LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    const LsPredictOptions to = {o->predict, o->predict_as, o->predict_outputs};
    int64_t done;
    if (!ls_predict(&t->u.engine, &t->u.feed.loader, &t->u.feed.train, &to, t->ending.signal, &done,
                    e))
        return false;
    if (!*t->ending.signal)
        printf("predicted %" PRId64 " samples with the weights of step %" PRId64 ": %s\n", done,
               t->u.place.update, o->predict);
    else
        fprintf(stderr, "note: %s is not written: interrupted after %" PRId64 " of %" PRId64
                " samples\n", o->predict, done, t->u.feed.train.samples);
    return true;
}

/* ---- --generate ---- */

static bool take_prompt(LsGenerator *x, const char *prompt, LsError *e)
{
    LsFile f;
    if (prompt[0] != '@')
        return ls_generator_prompt(x, prompt, strlen(prompt), e);
    if (!ls_file_map(&f, prompt + 1, e))
        return false;
    const bool ok = ls_generator_prompt(x, (const char *)f.data, f.size, e);
    ls_file_unmap(&f);
    return ok;
}

static bool generate(LsTrainer *t, LsGenerator *x, LsError *e)
{
    const bool text = ls_alphabet_count(&x->alphabet) > 0;
    int64_t token;
    if (!take_prompt(x, t->o.prompt, e))
        return false;
    for (int64_t k = 0; k < x->count && !*t->ending.signal; k++) {
        if (!ls_generator_next(x, k, &token, e))
            return false;
        if (text)
            putchar(x->character[token]);
        else
            printf("%s%" PRId64, k > 0 ? " " : "", token);
        fflush(stdout);
    }
    printf("\n");
    return true;
}

/* ---- --serve-stdin ---- */

static LsServeOptions serving(const LsTrainer *t)
{
    const LsTrainerOptions *o = &t->o;
    return (LsServeOptions){.data = {.scale = o->scale, .mean = o->mean, .std = o->std},
                            .outputs = o->predict_outputs,
                            .from = STDIN_FILENO,
                            .to = stdout,
                            .stop = t->ending.signal};
}

static bool with_generator(LsTrainer *t, LsError *e)
{
    const LsTrainerOptions *o = &t->o;
    const LsServeOptions serve = serving(t);
    const LsDrawHow how = {.temperature = o->temperature >= 0 ? o->temperature : 1,
                           .top_k = o->top_k,
                           .top_p = o->top_p >= 0 ? o->top_p : 1,
                           .seed = (uint64_t)o->seed};
    LsGenerator x;
    bool ok = ls_generator_open(&x, &t->u.engine, &t->u.feed.loader, &t->u.place.alphabet, &how,
                                o->generate, e);
    if (ok)
        ok = o->serve_stdin ? ls_serve_prompts(&x, &serve, e) : generate(t, &x, e);
    ls_generator_close(&x);
    return ok;
}

/* Classes have the names of the data, else those of the model file. */
static bool infer(LsTrainer *t, LsError *e)
{
    LsServeOptions serve = serving(t);
    void *room = NULL;
    if (t->u.feed.train.classes.n == 0)
        t->u.feed.train.classes = ls_notes_classes(t->p, &room);
    serve.classes = t->u.feed.train.classes;
    const bool ok = t->o.predict    ? predict(t, e)
                    : t->o.generate ? with_generator(t, e)
                                    : ls_serve(&t->u.engine, &t->u.feed.loader, &serve, e);
    if (room != NULL)
        t->u.feed.train.classes = (LsClassNames){0};
    free(room);
    return ok;
}

bool ls_infer(LsTrainer *t, LsError *e)
{
    ls_interrupt_allow(false, 0);
    const bool ok = infer(t, e);
    ls_interrupt_forbid();
    t->ending.agreed = (int)*t->ending.signal;
    t->ending.interrupted = t->ending.agreed != 0;
    return ok && !t->ending.interrupted ? ls_write_results(t, e) : ok;
}
