/* runtime/watch/json_log.c -- see json_log.h. */
#include "runtime/watch/json_log.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/json_read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LINE = 512 };            /* most bytes of a line formatted at a time */
static const int64_t FLUSH_NS = 1000000000; /* readers may follow the file while training runs */

static void to_file(void *to, const void *data, size_t n) { fwrite(data, 1, n, to); }

static void end_line(LsLog *l, LsText *t)
{
    int64_t now = ls_now_ns();
    ls_text_put(t, "}\n");
    ls_text_flush(t);
    if (now - l->flushed_ns > FLUSH_NS) {
        fflush(l->to);
        l->flushed_ns = now;
    }
}

bool ls_log_open(LsLog *l, const char *path, bool append, const LsProgram *p, LsError *e)
{
    char part[LINE];
    int fd = ls_out_follow(path, append);
    l->to = fd >= 0 ? fdopen(fd, append ? "a" : "w") : NULL;
    if (!l->to && errno == EWOULDBLOCK)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--log=%s: another run is writing this log; give each run a log of its own",
                       path);
    if (!l->to)
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", path, strerror(errno));
    LsText t = {part, 0, sizeof part, to_file, l->to};
    setvbuf(l->to, l->buf, _IOFBF, sizeof l->buf);
    l->start_ns = l->flushed_ns = ls_now_ns();
    l->digits = p->real_bytes == 8 ? 17 : 9;
    ls_text_put(&t, "{\"schema\":1,\"model\":");
    ls_text_string(&t, p->about.model);
    ls_text_put(&t, ",\"plan\":");
    ls_text_string(&t, p->about.plan_hash);
    ls_text_put(&t, ",\"batch\":%" PRId64 ",\"resumed\":%s", ls_batch_samples(&p->division),
                append ? "true" : "false");
    if (p->privacy.expected > 0)
        ls_text_put(
            &t,
            ",\"private\":{\"clip\":%.9g,\"noise\":%.9g,\"delta\":%.9g,\"expected_batch\":%.9g}",
            p->privacy.clip, p->privacy.noise, p->privacy.delta, p->privacy.expected);
    end_line(l, &t);
    return true;
}

/* Begins a line on an update; `part`: room for it. False without a log. */
static bool begin(LsLog *l, LsText *t, char part[LINE], int64_t update, int64_t epoch)
{
    if (!l->to)
        return false;
    *t = (LsText){part, 0, LINE, to_file, l->to};
    ls_text_put(t, "{\"step\":%" PRId64 ",\"epoch\":%" PRId64 ",\"time\":%.6f", update, epoch,
                (double)(ls_now_ns() - l->start_ns) * 1e-9);
    return true;
}

static void put_losses(const LsLog *l, LsText *t, const char *name)
{
    for (int64_t k = 0; k < l->nlosses; k++) {
        ls_text_put(t, k == 0 ? ",\"%s\":[" : ",", name);
        ls_text_number(t, l->losses[k], l->digits);
    }
    if (l->nlosses > 0)
        ls_text_put(t, "]");
}

void ls_log_step(LsLog *l, const LsStepValues *v)
{
    char part[LINE];
    LsText t;
    if (!begin(l, &t, part, v->update, v->epoch))
        return;
    if (v->samples > 0)
        ls_text_put(&t, ",\"samples_per_second\":%.6g", v->samples);
    if (v->tokens > 0)
        ls_text_put(&t, ",\"tokens_per_second\":%.6g", v->tokens);
    ls_text_put(&t, ",\"loss\":");
    ls_text_number(&t, v->loss, l->digits);
    put_losses(l, &t, "losses");
    ls_text_put(&t, ",\"lr\":");
    ls_text_number(&t, v->rate, 9);
    if (v->grad_norm >= 0 || isnan(v->grad_norm)) {
        ls_text_put(&t, ",\"grad_norm\":");
        ls_text_number(&t, v->grad_norm, 9);
    }
    end_line(l, &t);
}

void ls_log_scale(LsLog *l, int64_t update, int64_t epoch, double was, double is, bool skipped)
{
    char part[LINE];
    LsText t;
    if (!begin(l, &t, part, update, epoch))
        return;
    ls_text_put(&t, ",\"scale_before\":");
    ls_text_number(&t, was, 9);
    ls_text_put(&t, ",\"scale\":");
    ls_text_number(&t, is, 9);
    ls_text_put(&t, ",\"skipped\":%s", skipped ? "true" : "false");
    end_line(l, &t);
}

void ls_log_privacy(LsLog *l, int64_t update, int64_t epoch, double epsilon, double delta)
{
    char part[LINE];
    LsText t;
    if (!begin(l, &t, part, update, epoch))
        return;
    ls_text_put(&t, ",\"epsilon\":");
    ls_text_number(&t, epsilon, 17);
    ls_text_put(&t, ",\"delta\":");
    ls_text_number(&t, delta, 17);
    end_line(l, &t);
}

void ls_log_eval(LsLog *l, int64_t update, int64_t epoch, double loss, double accuracy,
                 LsLogResults further)
{
    char part[LINE];
    LsText t;
    if (!begin(l, &t, part, update, epoch))
        return;
    ls_text_put(&t, ",\"val_loss\":");
    ls_text_number(&t, loss, l->digits);
    put_losses(l, &t, "val_losses");
    if (accuracy >= 0) {
        ls_text_put(&t, ",\"val_accuracy\":");
        ls_text_number(&t, accuracy, 9);
    }
    for (int k = 0; k < further.n; k++) {
        ls_text_put(&t, ",\"%s\":", further.name[k]);
        ls_text_number(&t, further.value[k], 17);
    }
    end_line(l, &t);
}

void ls_log_gradients(LsLog *l, int64_t elements, uint32_t parameters, uint32_t stopped,
                      double median, double worst, double limit, const char *name, int64_t element)
{
    char part[LINE];
    LsText t = {part, 0, sizeof part, to_file, l->to};
    if (!l->to)
        return;
    ls_text_put(&t, "{\"elements\":%" PRId64 ",\"parameters\":%" PRIu32, elements,
                parameters);
    if (stopped > 0)
        ls_text_put(&t, ",\"stopped\":%" PRIu32, stopped);
    ls_text_put(&t, ",\"median\":");
    ls_text_number(&t, median, 9);
    ls_text_put(&t, ",\"worst\":");
    ls_text_number(&t, worst, 9);
    ls_text_put(&t, ",\"limit\":");
    ls_text_number(&t, limit, 9);
    ls_text_put(&t, ",\"at\":\"");
    ls_text_escaped(&t, name);
    ls_text_put(&t, *name ? "[%" PRId64 "]\"" : "\"", element);
    end_line(l, &t);
}

bool ls_log_close(LsLog *l, const char *path, LsError *e)
{
    if (!l->to)
        return true;
    bool bad = ferror(l->to) != 0;
    errno = 0;
    bad |= fclose(l->to) != 0;
    l->to = NULL;
    return bad ? ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", path,
                         errno != 0 ? strerror(errno) : "lines are missing")
               : true;
}
