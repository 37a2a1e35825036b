/* runtime/update/skipped_updates.c -- see skipped_updates.h. */
#include "runtime/update/skipped_updates.h"

#include "runtime/base/note.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

LsScaleSeen ls_scaling_read(const LsMemory *m)
{
    const LsProgram *p = m->p;
    const int bytes = p->real_bytes;
    LsScaleSeen s = {0};
    if (!ls_has_scaling(p))
        return s;
    s.scale = ls_real_at(ls_memory_view(m, p->scaling.scale, bytes), bytes);
    const char *skips = ls_memory_view(m, p->scaling.skips, 2 * bytes);
    s.skipped = (int64_t)ls_real_at(skips, bytes);
    s.row = (int64_t)ls_real_at(skips + bytes, bytes);
    return s;
}

/* The text of an error without "step 3: ". */
static const char *reason(const LsError *why)
{
    const char *colon = why != NULL && why->code != LS_EXIT_DONE ? strstr(why->text, ": ") : NULL;
    return colon != NULL ? colon + 2 : "";
}

void ls_scaling_tell(FILE *to, const LsScaleSeen *was, const LsScaleSeen *is, int64_t update,
                     const LsError *why)
{
    const char *text = reason(why), *gap = *text != '\0' ? "; " : "";
    if (is->scale != was->scale)
        ls_note(to, "step %" PRId64 ": scale %.9g -> %.9g, update skipped%s%s\n", update,
                was->scale, is->scale, gap, text);
    else
        ls_note(to, "step %" PRId64 ": scale %.9g, update skipped%s%s\n", update, is->scale,
                gap, text);
}

bool ls_scaling_give_up(const LsScaleSeen *is, int64_t update, const LsError *why,
                        const LsPass *pass, int64_t batch, LsError *e)
{
    LsError data = {0};
    const char *text = reason(why);
    if (!ls_batch_is_finite(pass, batch, &data) && data.code != LS_EXIT_DONE)
        return ls_fail(e, LS_EXIT_DIVERGED,
                       "step %" PRId64 ": %" PRId64 " updates in a row were skipped "
                       "(--max-skipped), because the data are not finite: %s",
                       update, is->row, data.text);
    return ls_fail(e, LS_EXIT_DIVERGED,
                   "step %" PRId64 ": %" PRId64
                   " updates in a row were skipped (--max-skipped), as "
                   "gradients were not finite, also with the loss scale %.9g%s%s",
                   update, is->row, is->scale, *text != '\0' ? "; " : "", text);
}
