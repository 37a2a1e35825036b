/* runtime/predict/token_model.c -- see token_model.h. */
#include "runtime/predict/token_model.h"

#include "runtime/base/element.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/data/label_input.h"
#include "runtime/data/token_inputs.h"
#include "runtime/metrics/score_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What each input has of a row of tokens. */
static bool bind(LsTokenModel *m, LsError *e)
{
    const LsProgram *p = m->g->p;
    m->ids = p->ninput;
    for (uint32_t k = 0; k < p->ninput; k++) {
        const LsInput *in = &p->input[k];
        const bool row = in->t.type != LS_DT_REAL && m->row.source[k].per_sample == m->context;
        const bool ids = row && !in->is_label && ls_token_part(&m->row, k) == LS_ROW_TOKEN;
        if (in->is_label)
            continue;
        if (!row || (ids && m->ids != p->ninput))
            return ls_fail(e, LS_EXIT_USAGE,
                           "--generate: the model takes more than a row of tokens: input '%s'",
                           in->t.name);
        if (ids)
            m->ids = k;
        m->input[k] = calloc((size_t)m->context, sizeof(int64_t));
        if (m->input[k] == NULL)
            return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    }
    for (uint32_t k = 0; k < p->ninput; k++)
        if (m->input[k] != NULL)
            ls_dataset_point(&m->row, k, m->input[k], 1);
    for (uint32_t k = 0; k < p->ninput; k++)
        if (m->input[k] == NULL)
            ls_dataset_zero(&m->row, k);
    return m->ids < p->ninput || ls_fail(e, LS_EXIT_USAGE, "--generate: no input takes tokens");
}

bool ls_token_model_open(LsTokenModel *m, LsEngine *g, LsLoader *l, LsError *e)
{
    const LsProgram *p = g->p;
    *m = (LsTokenModel){.g = g, .l = l, .logits = ls_scores_watched(p),
                        .context = ls_tokens_of_sample(p),
                        .vocabulary = p->target.classes};
    if (m->context == 0 || m->vocabulary == 0)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--generate is for models that take a row of tokens and give the scores of "
                       "the next one at each place; this program does not");
    if (m->logits == NULL)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--generate: this program keeps no scores of all tokens; compile without "
                       "--head-chunks");
    m->input = calloc(p->ninput + 1, sizeof *m->input);
    m->score = calloc((size_t)m->vocabulary, sizeof *m->score);
    if (posix_memalign((void **)&m->batch, 64, (size_t)l->slot_bytes + 1) != 0)
        m->batch = NULL;
    if (m->input == NULL || m->score == NULL || m->batch == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    memset(m->batch, 0, (size_t)l->slot_bytes + 1);
    if (!ls_dataset_in_memory(&m->row, p, e) || !bind(m, e))
        return false;
    m->row.opt.data = "the prompt";
    m->row.source[m->ids].path = "the prompt";
    return true;
}

void ls_token_model_close(LsTokenModel *m)
{
    for (uint32_t k = 0; m->input != NULL && k < m->g->p->ninput; k++)
        free(m->input[k]);
    free(m->input);
    free(m->score);
    free(m->batch);
    ls_dataset_close(&m->row);
    *m = (LsTokenModel){0};
}

/* ---- one run ---- */

static void put(const LsTokenModel *m, uint32_t k, int64_t i, int64_t v)
{
    switch (m->g->p->input[k].t.type) {
    case LS_DT_I64: ((int64_t *)m->input[k])[i] = v; break;
    case LS_DT_I32: ((int32_t *)m->input[k])[i] = (int32_t)v; break;
    default: ((unsigned char *)m->input[k])[i] = v != 0; break;
    }
}

/* Fills the inputs with n tokens, and every row of the batch with these. */
static bool fill(LsTokenModel *m, const int64_t *token, int64_t n, int64_t padding, LsError *e)
{
    const LsProgram *p = m->g->p;
    for (uint32_t k = 0; k < p->ninput; k++) {
        const char *name = p->input[k].t.name;
        const bool seen = strcmp(name, "attention_mask") == 0,
                   place = strcmp(name, "position_ids") == 0, segment = p->segments == k + 1;
        for (int64_t i = 0; m->input[k] != NULL && i < m->context; i++)
            put(m, k, i,
                k == m->ids ? (i < n ? token[i] : padding)
                : segment   ? 0
                : seen      ? i < n
                : place     ? i
                            : 0);
    }
    for (int64_t row = 0; row < p->division.samples; row++)
        for (uint32_t k = 0; k < p->ninput; k++)
            if (!(m->row.source[k].whole && row > 0)
                && !ls_dataset_read(&m->row, k, 0, row, m->batch + m->l->offset[k], e))
                return false;
    return true;
}

static void look(LsTokenModel *m)
{
    const LsProgram *p = m->g->p;
    const LsScoreRows r = ls_score_rows(m->logits, p->target.class_axis, p->real_bytes);
    const char *at = ls_engine_view(m->g, r.t.at, r.bytes);
    const int64_t members = p->ensemble.members;
    if (at == NULL)
        return;
    at += ls_score_at(&r, m->at);
    if (members == 0) {
        for (int64_t c = 0; c < r.classes; c++)
            m->score[c] = ls_score(&r, at, c);
        return;
    }
    if (m->g->member == 0)
        memset(m->score, 0, (size_t)r.classes * sizeof *m->score);
    ls_score_add_softmax(&r, at, m->score);
    for (int64_t c = 0; m->g->member == members - 1 && c < r.classes; c++)
        m->score[c] = log(m->score[c] / (double)members);
}

static void before_step(void *self, uint32_t step)
{
    LsTokenModel *m = self;
    if (m->logits->before && step == m->logits->step)
        look(m);
}

static void after_step(void *self, uint32_t step)
{
    LsTokenModel *m = self;
    if (!m->logits->before && step == m->logits->step)
        look(m);
}

static bool run(LsTokenModel *m, const int64_t *token, int64_t n, int64_t padding, LsError *e)
{
    LsEngine *g = m->g;
    const LsBatch b = {.input = m->batch, .valid = g->p->division.samples};
    const LsHook hook = {before_step, after_step, m, NULL};
    LsLoss loss;
    m->at = n - 1;
    return fill(m, token, n, padding, e) && ls_engine_evaluate(g, m->l, &b, &hook, 1, &loss, e);
}

/* Whether tokens behind the n change their scores: a model that looks ahead would take the padding
 * for text. */
static bool check_causal(LsTokenModel *m, const int64_t *token, int64_t n, LsError *e)
{
    const size_t bytes = (size_t)m->vocabulary * sizeof *m->score;
    double *first = malloc(bytes);
    bool same = false;
    if (first == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    const bool ok = run(m, token, n, m->vocabulary - 1, e);
    if (ok) {
        memcpy(first, m->score, bytes);
        if (run(m, token, n, 0, e))
            same = memcmp(first, m->score, bytes) == 0;
    }
    free(first);
    m->causal = same;
    return same || e->code != LS_EXIT_DONE
           ? same
           : ls_fail(e, LS_EXIT_USAGE,
                     "--generate: the scores of this model depend on tokens behind, so it takes a "
                     "prompt of %" PRId64 " tokens at least; %" PRId64 " are given",
                     m->context, n);
}

bool ls_token_model_run(LsTokenModel *m, const int64_t *token, int64_t n, LsError *e)
{
    const int64_t from = n > m->context ? n - m->context : 0;
    if (n == 0)
        return ls_fail(e, LS_EXIT_USAGE, "--generate: the prompt has no token");
    if (n - from < m->context && !m->causal && m->vocabulary > 1)
        return check_causal(m, token + from, n - from, e);
    for (int64_t i = 0; i < m->vocabulary; i++)
        m->score[i] = 0;
    if (!run(m, token + from, n - from, 0, e))
        return false;
    for (int64_t i = 0; i < m->vocabulary; i++)
        if (isnan(m->score[i]))
            return ls_fail(e, LS_EXIT_DIVERGED, "the scores of the next token are not numbers");
    return true;
}
