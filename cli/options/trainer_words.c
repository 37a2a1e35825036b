/* cli/options/trainer_words.c -- see trainer_words.h. */
#include "cli/options/trainer_words.h"

#include "runtime/update/learning_rate.h"

#include <stdio.h>

bool ls_trainer_lr(const char *text, double *lr) { return ls_rate_parse_lr(text, lr); }

bool ls_trainer_schedule(const char *text, char *why, size_t size)
{
    LsRate rate;
    LsError e = {0};
    bool ok = ls_rate_parse(&rate, text, 1, 1, &e);
    if (!ok)
        snprintf(why, size, "%s", e.text);
    return ok;
}
