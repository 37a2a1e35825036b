/* cli/options/privacy_spec.c -- see the header. */
#include "cli/options/privacy_spec.h"

#include "runtime/base/number.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SPEC = 256 };
enum { CLIP, NOISE, DELTA, EXPECTED, SUMS, NSETTINGS };
static const char *const sums[] = {
    [LS_SUMS_AUTO] = "auto", [LS_SUMS_TERMS] = "terms", [LS_SUMS_AGAIN] = "again"};

static const struct {
    const char *name, *wanted;
    double least, most;
    bool needed;
} setting[NSETTINGS] = {
    [CLIP] = {"clip", "a number above 0", FLT_MIN, FLT_MAX, true},
    [NOISE] = {"noise", "a number from 0", 0, FLT_MAX, true},
    [DELTA] = {"delta", "a number above 0 and below 1", DBL_MIN, 1 - DBL_EPSILON, true},
    [EXPECTED] = {"expected-batch", "a number of samples above 0", FLT_MIN, FLT_MAX, false},
    [SUMS] = {"sums", "auto, terms or again", 0, 0, false},
};

static bool read_value(int k, const char *text, double *to)
{
    if (k != SUMS)
        return ls_number_real(text, setting[k].least, setting[k].most, to);
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        if (strcmp(text, sums[i]) == 0)
            return *to = (double)i, true;
    return false;
}

static bool read_setting(char *text, double value[], bool given[], char *why, size_t size)
{
    char *equal = strchr(text, '=');
    int k = 0;
    if (equal != NULL)
        *equal = '\0';
    while (k < NSETTINGS && strcmp(setting[k].name, text) != 0)
        k++;
    if (k == NSETTINGS || equal == NULL)
        snprintf(
            why, size,
            "there is no setting '%s'; it takes clip= noise= delta= expected-batch= sums=", text);
    else if (given[k])
        snprintf(why, size, "%s is given twice", text);
    else if (!read_value(k, equal + 1, &value[k]))
        snprintf(why, size, "%s=%s: must be %s", text, equal + 1, setting[k].wanted);
    else
        return given[k] = true;
    return false;
}

bool ls_privacy_parse(const char *text, LsPrivacy *to, char *why, size_t size)
{
    char copy[MOST_SPEC];
    double value[NSETTINGS] = {0};
    bool given[NSETTINGS] = {false};
    *to = (LsPrivacy){0};
    if (text == NULL)
        return true;
    if (strlen(text) >= sizeof copy) {
        snprintf(why, size, "'%s' is too long", text);
        return false;
    }
    strcpy(copy, text);
    for (char *part = copy, *next; part != NULL; part = next) {
        next = strchr(part, ',');
        if (next != NULL)
            *next++ = '\0';
        if (!read_setting(part, value, given, why, size))
            return false;
    }
    for (int k = 0; k < NSETTINGS; k++)
        if (setting[k].needed && !given[k]) {
            snprintf(why, size, "%s= is missing; example: clip=1.0,noise=1.1,delta=1e-5",
                     setting[k].name);
            return false;
        }
    *to = (LsPrivacy){true,         value[CLIP],     value[NOISE],
                      value[DELTA], value[EXPECTED], (LsClippedSums)value[SUMS]};
    return true;
}
