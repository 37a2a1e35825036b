/* runtime/predict/serve.c -- see serve.h. */
#include "runtime/predict/serve.h"

#include "runtime/predict/line_reader.h"
#include "runtime/predict/serve_line.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 2048, LEAST = 1 << 20, EACH = 48 };       /* bytes: of a line at least, and for each
                                                         * number */

/* A line that was read. */
typedef struct Asked {
    int64_t sample;             /* of the batch; -1: the line is wrong: */
    LsError why;
    char id[LS_LINE_ID];
} Asked;

typedef struct Serve {
    LsEngine *g;
    LsLoader *l;
    const LsServeOptions *o;
    LsOutputs outputs;
    LsDataset data;             /* the batch's samples, by their numbers */
    LsLineInput *input;
    double **value, **next;     /* by input: [batch][count]; where the next sample goes */
    bool *given;
    Asked *asked; int64_t nasked, samples;
    char *batch;
    double *reals;              /* of an output */
    int64_t line;
} Serve;

static void to_stream(void *to, const void *data, size_t n) { fwrite(data, 1, n, to); }

/* ---- opening ---- */

static void describe(const LsProgram *p, LsLineInput *to, uint32_t k)
{
    const LsInput *in = &p->input[k];
    const int64_t rows = in->t.rank > 0 ? in->t.dim[0] / p->division.samples : 1;
    *to = (LsLineInput){.name = in->t.name, .count = 1,
                        .needed = !in->is_label && in->usual == LS_USUAL_NONE};
    if (rows > 1)
        to->dim[to->rank++] = rows;
    for (int d = 1; d < in->t.rank; d++)
        to->dim[to->rank++] = in->t.dim[d];
    for (int d = 0; d < to->rank; d++)
        to->count *= to->dim[d];
}

static bool open_inputs(Serve *s, LsError *e)
{
    const LsProgram *p = s->g->p;
    const size_t n = p->ninput + 1, batch = (size_t)p->division.samples;
    s->input = calloc(n, sizeof *s->input);
    s->value = calloc(n, sizeof *s->value);
    s->next = calloc(n, sizeof *s->next);
    s->given = calloc(n, sizeof *s->given);
    s->asked = calloc(batch, sizeof *s->asked);
    if (posix_memalign((void **)&s->batch, 64, (size_t)s->l->slot_bytes + 1) != 0)
        s->batch = NULL;
    if (!s->input || !s->value || !s->next || !s->given || !s->asked || !s->batch)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    memset(s->batch, 0, (size_t)s->l->slot_bytes + 1);
    if (!ls_dataset_in_memory(&s->data, p, e))
        return false;
    for (uint32_t k = 0; k < p->ninput; k++) {
        if (s->data.source[k].whole && !p->input[k].is_label)
            return ls_fail(e, LS_EXIT_USAGE,
                           "--serve-stdin: input '%s' has no axis of samples, so no line has it",
                           p->input[k].t.name);
        describe(p, &s->input[k], k);
        s->value[k] = calloc(batch * (size_t)s->input[k].count, sizeof **s->value);
        if (s->value[k] == NULL)
            return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    }
    return true;
}

/* Inputs read the numbers of lines; targets are zeros. */
static bool point_inputs(Serve *s, LsError *e)
{
    const LsProgram *p = s->g->p;
    for (uint32_t k = 0; k < p->ninput; k++) {
        LsSource *from = &s->data.source[k];
        ls_dataset_point(&s->data, k, s->value[k], p->division.samples);
        from->path = "the line";
        from->array.type = LS_F64;
        if (p->input[k].is_label)
            ls_dataset_zero(&s->data, k);
    }
    return ls_dataset_scale(&s->data, &s->o->data, e);
}

static bool open_serve(Serve *s, LsError *e)
{
    int64_t most = 0;
    if (s->g->p->mixing.eval != NULL && s->g->p->division.samples > 1)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--serve-stdin: an answer would depend on the other lines of its batch: %s. "
                       "Compile with --batch 1",
                       s->g->p->mixing.eval);
    if (!ls_outputs_open(&s->outputs, s->g, s->o->outputs, e) || !open_inputs(s, e)
        || !point_inputs(s, e))
        return false;
    for (int k = 0; k < s->outputs.n; k++)
        most = s->outputs.output[k].count > most ? s->outputs.output[k].count : most;
    s->reals = calloc((size_t)most + 1, sizeof *s->reals);
    return s->reals != NULL || ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

static void close_serve(Serve *s)
{
    for (uint32_t k = 0; s->value != NULL && k < s->g->p->ninput; k++)
        free(s->value[k]);
    free(s->input);
    free(s->value);
    free(s->next);
    free(s->given);
    free(s->asked);
    free(s->batch);
    free(s->reals);
    ls_dataset_close(&s->data);
    ls_outputs_close(&s->outputs);
}

/* ---- a line ---- */

/* Reads the line into the batch, if it is right. */
static void take(Serve *s, const char *line, size_t n, bool too_long, size_t most)
{
    const LsProgram *p = s->g->p;
    Asked *a = &s->asked[s->nasked++];
    *a = (Asked){.sample = -1};
    for (uint32_t k = 0; k < p->ninput; k++)
        s->next[k] = s->value[k] + s->samples * s->input[k].count;
    LsLine to = {s->input, p->ninput, s->next, s->given, ""};
    bool ok = too_long ? ls_fail(&a->why, LS_EXIT_DATA, "the line has more than %zu bytes", most)
                       : ls_line_sample(&to, line, n, &a->why);
    memcpy(a->id, to.id, sizeof a->id);
    for (uint32_t k = 0; ok && k < p->ninput; k++) {
        LsSource *from = &s->data.source[k];
        const bool was = from->synthetic;
        from->synthetic = !p->input[k].is_label && !s->given[k];   /* what is usual */
        ok = ls_dataset_read(&s->data, k, from->whole ? 0 : s->samples, s->samples,
                             s->batch + s->l->offset[k], &a->why);
        from->synthetic = was;
    }
    if (ok)
        a->sample = s->samples++;
}

/* ---- answers ---- */

static int digits(const Serve *s) { return s->g->p->real_bytes == 8 ? 17 : 9; }

static void put_nested(const Serve *s, LsText *t, const int64_t *dim, int rank, int64_t *at)
{
    if (rank == 0) {
        ls_text_number(t, s->reals[(*at)++], digits(s));
        return;
    }
    for (int64_t i = 0; i < dim[0]; i++) {
        ls_text_put(t, i == 0 ? "[" : ",");
        put_nested(s, t, dim + 1, rank - 1, at);
    }
    ls_text_put(t, "]");
}

static void put_class(const Serve *s, LsText *t, int k, int64_t sample)
{
    const int64_t n = s->outputs.output[k].count;
    char text[LS_CLASS_NUMBER];
    int64_t best = 0;
    ls_output_probabilities(&s->outputs, k, sample, s->reals);
    for (int64_t c = 1; c < n; c++)
        best = s->reals[c] > s->reals[best] ? c : best;
    ls_text_put(t, "\"class\":");
    if (best < s->o->classes.n)
        ls_line_put_text(t, s->o->classes.name[best], strlen(s->o->classes.name[best]));
    else
        ls_text_put(t, "%s", ls_class_called(&s->o->classes, best, text));
    ls_text_put(t, ",\"probability\":");
    ls_text_number(t, s->reals[best], digits(s));
    for (int64_t c = 0; c < n; c++) {
        ls_text_put(t, c == 0 ? ",\"probabilities\":[" : ",");
        ls_text_number(t, s->reals[c], digits(s));
    }
    ls_text_put(t, "]");
}

static void put_output(const Serve *s, LsText *t, int k, int64_t sample)
{
    const LsOutput *out = &s->outputs.output[k];
    int64_t dim[LS_TENSOR_RANK], at = 0;
    const bool class = out->scores && ls_output_scores(&s->outputs, k).positions == 1;
    if (class && s->outputs.n == 1) {
        put_class(s, t, k, sample);
        return;
    }
    ls_line_put_text(t, out->name, strlen(out->name));
    ls_text_put(t, class ? ":{" : ":");
    if (class) {
        put_class(s, t, k, sample);
        ls_text_put(t, "}");
        return;
    }
    ls_output_reals(&s->outputs, k, sample, s->reals);
    for (int64_t i = 0; s->g->p->target.bits && i < out->count; i++)
        s->reals[i] = 1 / (1 + exp(-s->reals[i]));
    put_nested(s, t, dim, ls_output_dims(out, dim), &at);
}

static void begin_answer(LsText *t, const char *id)
{
    ls_text_put(t, "{");
    if (id[0] != '\0')
        ls_text_put(t, "\"id\":%s,", id);
}

static void put_error(LsText *t, const LsError *why)
{
    ls_text_put(t, "\"error\":");
    ls_line_put_text(t, why->text, strlen(why->text));
}

static bool run_batch(Serve *s, LsError *e)
{
    LsEngine *g = s->g;
    const LsBatch b = {.input = s->batch, .valid = s->samples};
    const LsHook hook = ls_dump_hook(&s->outputs.seen);
    LsLoss loss;
    for (int64_t at = s->samples; at < g->p->division.samples; at++)    /* fills the batch up */
        for (uint32_t k = 0; k < g->p->ninput; k++)
            if (!s->data.source[k].whole
                && !ls_dataset_read(&s->data, k, 0, at, s->batch + s->l->offset[k], e))
                return false;
    return ls_engine_evaluate(g, s->l, &b, &hook, 1, &loss, e);
}

static bool answer(Serve *s, LsError *e)
{
    char part[PART];
    LsText t = {part, 0, sizeof part, to_stream, s->o->to};
    if (s->samples > 0 && !run_batch(s, e))
        return false;
    for (int64_t i = 0; i < s->nasked; i++) {
        begin_answer(&t, s->asked[i].id);
        if (s->asked[i].sample < 0)
            put_error(&t, &s->asked[i].why);
        for (int k = 0; s->asked[i].sample >= 0 && k < s->outputs.n; k++) {
            ls_text_put(&t, k > 0 ? "," : "");
            put_output(s, &t, k, s->asked[i].sample);
        }
        ls_text_put(&t, "}\n");
    }
    ls_text_flush(&t);
    s->nasked = s->samples = 0;
    return (fflush(s->o->to) == 0 && !ferror(s->o->to))
           || ls_fail(e, LS_EXIT_FAIL, "an answer could not be written: %s", strerror(errno));
}

static bool is_blank(const char *line, size_t n)
{
    while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t' || line[n - 1] == '\r'))
        n--;
    return n == 0;
}

static bool read_failed(const LsLineReader *r, LsError *e)
{
    return !r->failed || ls_fail(e, LS_EXIT_FAIL, "standard input cannot be read");
}

bool ls_serve(LsEngine *g, LsLoader *l, const LsServeOptions *o, LsError *e)
{
    Serve s = {.g = g, .l = l, .o = o};
    LsLineReader lines = {0};
    const char *line;
    size_t n, most = LEAST;
    bool too_long, ok = open_serve(&s, e);
    for (uint32_t k = 0; ok && k < g->p->ninput; k++)
        most += EACH * (size_t)s.input[k].count;
    ls_lines_open(&lines, o->from, most, o->stop);
    while (ok && ls_lines_next(&lines, &line, &n, &too_long)) {
        if (too_long || !is_blank(line, n))
            take(&s, line, n, too_long, most);
        if (s.nasked > 0
            && (s.nasked == g->p->division.samples || !ls_lines_wait(&lines)))
            ok = answer(&s, e);
    }
    ok = ok && (s.nasked == 0 || answer(&s, e)) && read_failed(&lines, e);
    ls_lines_close(&lines);
    close_serve(&s);
    return ok;
}

/* ---- prompts ---- */

static bool generate(LsGenerator *x, const char *text, size_t n, LsError *e)
{
    if (!ls_generator_prompt(x, text, n, e))
        return false;
    for (int64_t k = 0, token; k < x->count; k++)
        if (!ls_generator_next(x, k, &token, e))
            return false;
    return true;
}

static void put_generated(const LsGenerator *x, LsText *t)
{
    const int64_t from = x->n - x->count;
    if (ls_alphabet_count(&x->alphabet) == 0) {
        for (int64_t k = 0; k < x->count; k++)
            ls_text_put(t, "%s%" PRId64, k == 0 ? "\"tokens\":[" : ",", x->token[from + k]);
        ls_text_put(t, "]");
        return;
    }
    char *text = malloc((size_t)x->count + 1);
    for (int64_t k = 0; text != NULL && k < x->count; k++)
        text[k] = (char)x->character[x->token[from + k]];
    ls_text_put(t, "\"text\":");
    ls_line_put_text(t, text != NULL ? text : "", text != NULL ? (size_t)x->count : 0);
    free(text);
}

bool ls_serve_prompts(LsGenerator *x, const LsServeOptions *o, LsError *e)
{
    LsLineReader lines;
    const char *line;
    size_t n;
    bool too_long, ok = true;
    ls_lines_open(&lines, o->from, LEAST, o->stop);
    while (ok && ls_lines_next(&lines, &line, &n, &too_long)) {
        char part[PART], id[LS_LINE_ID] = "", *room = NULL;
        const char *text;
        size_t bytes;
        LsError why = {0};
        LsText t = {part, 0, sizeof part, to_stream, o->to};
        if (!too_long && is_blank(line, n))
            continue;
        bool done = too_long
                        ? ls_fail(&why, LS_EXIT_DATA, "the line has more than %d bytes", LEAST)
                    : (room = malloc(n + 1)) == NULL
                        ? ls_fail(&why, LS_EXIT_FAIL, "out of memory")
                        : ls_line_prompt(line, n, room, &text, &bytes, id, &why);
        done = done && generate(x, text, bytes, &why);
        begin_answer(&t, id);
        if (done)
            put_generated(x, &t);
        else
            put_error(&t, &why);
        ls_text_put(&t, "}\n");
        ls_text_flush(&t);
        free(room);
        ok = fflush(o->to) == 0
             || ls_fail(e, LS_EXIT_FAIL, "an answer could not be written: %s", strerror(errno));
    }
    ok = ok && read_failed(&lines, e);
    ls_lines_close(&lines);
    return ok;
}
