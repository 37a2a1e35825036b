/* cli/options/option_values.c -- see option_values.h. */
#include "cli/options/option_values.h"

#include "cli/options/options.h"
#include "runtime/base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ls_options_bad(const char *option, const char *text, const char *want)
{
    fprintf(stderr, "lowerset: %s: '%s' is not %s\n", option, text, want);
    return LS_EXIT_USAGE;
}

int ls_options_real(const char *option, const char *text, double least, double most, double *v)
{
    char want[80];
    if (text == NULL || ls_number_real(text, least, most, v))
        return 0;
    snprintf(want, sizeof want, most < 1e30 ? "a number from %g to %g" : "a number of at least %g",
             least, most);
    return ls_options_bad(option, text, want);
}

int ls_options_word(const char *option, const char *text, const char *const *words, int otherwise)
{
    if (text == NULL)
        return otherwise;
    for (int k = 0; words[k] != NULL; k++)
        if (strcmp(words[k], text) == 0)
            return k;
    fprintf(stderr, "lowerset: %s: '%s' is not one of", option, text);
    for (int k = 0; words[k] != NULL; k++)
        fprintf(stderr, " %s", words[k]);
    fprintf(stderr, "\n");
    return -1;
}

bool ls_options_count(const char *text, const char **end, int64_t *v)
{
    char *stop;
    *v = strtoll(text, &stop, 10);
    *end = stop;
    return stop != text && *v > 0 && *v < INT64_C(1) << 48;
}

bool ls_settings_shape(const char *text, LsShape *shape)
{
    bool ok = true;
    *shape = (LsShape){0};
    while (ok && shape->rank < LS_MAX_RANK) {
        ok = ls_options_count(text, &text, &shape->dim[shape->rank++]);
        if (*text != 'x')
            break;
        text++;
    }
    return ok && *text == '\0';
}
