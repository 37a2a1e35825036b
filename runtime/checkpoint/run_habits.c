/* runtime/checkpoint/run_habits.c -- see run_habits.h. */
#include "runtime/checkpoint/run_habits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *ls_habits_text(const LsHabits *h, char text[LS_HABITS_TEXT])
{
    const LsBest *b = &h->best;
    int n = 0;
    text[0] = '\0';
    if (h->held == 0 && h->limit == 0 && b->metric[0] == '\0')
        return text;
    n = snprintf(text, LS_HABITS_TEXT, "held %" PRId64 " of %" PRId64 " limit %" PRId64, h->held,
                 h->held_of, h->limit);
    if (b->metric[0] != '\0')
        snprintf(text + n, LS_HABITS_TEXT - (size_t)n,
                 " best %s %a at %" PRId64 " mark %a waited %" PRId64, b->metric, b->value,
                 b->update, b->mark, b->waited);
    return text;
}

bool ls_habits_parse(LsHabits *h, const char *text)
{
    LsBest *b = &h->best;
    *h = (LsHabits){0};
    const int n = sscanf(text,
                         "held %" SCNd64 " of %" SCNd64 " limit %" SCNd64
                         " best %63s %la at %" SCNd64 " mark %la waited %" SCNd64,
                         &h->held, &h->held_of, &h->limit, b->metric, &b->value, &b->update,
                         &b->mark, &b->waited);
    return (n == 3 || n == 8) && h->held >= 0 && h->held <= h->held_of && h->limit >= 0
           && b->update >= 0 && b->waited >= 0;
}
