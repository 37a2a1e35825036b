/* runtime/cuda/cudnn_match.c -- see cudnn_match.h. */
#include "runtime/cuda/cudnn_match.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The number after the key `name` in cuDNN's JSON; -1: no such key. */
static int64_t number_of(const char *json, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(json, key);
    return at != NULL ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static bool same_number(const char *a, const char *b, const char *name)
{
    int64_t v = number_of(a, name);
    return v >= 0 && v == number_of(b, name);
}

bool ls_dnn_plan_fits(const char *plan, const char *device, int64_t version)
{
    return number_of(plan, "cudnnVersion") == version && same_number(plan, device, "deviceVer")
        && same_number(plan, device, "multiProcessorCount");
}

char *ls_dnn_plan_here(const char *plan, const char *device)
{
    static const char key[] = "\"GPUProfile\":";
    const char *at = strstr(plan, key), *end = at != NULL ? strchr(at, '}') : NULL;
    if (end == NULL)
        return NULL;
    size_t before = (size_t)(at - plan) + sizeof key - 1, n = before + strlen(device) + strlen(end);
    char *text = malloc(n);
    if (text != NULL)
        snprintf(text, n, "%.*s%s%s", (int)before, plan, device, end + 1);
    return text;
}

void ls_dnn_device_name(const char *json, char *name, size_t size)
{
    static const char key[] = "\"deviceName\":";
    const char *at = strstr(json, key);
    at = at != NULL ? strchr(at + sizeof key - 1, '"') : NULL;
    const char *end = at != NULL ? strchr(at + 1, '"') : NULL;
    snprintf(name, size, "%.*s", end != NULL ? (int)(end - at - 1) : 1, end != NULL ? at + 1 : "?");
}

/* "9.19.0" */
typedef struct Version { char text[72]; } Version;

static Version version_of(int64_t v)
{
    Version t;
    snprintf(t.text, sizeof t.text, "%" PRId64 ".%" PRId64 ".%" PRId64, v / 10000, v / 100 % 100,
             v % 100);
    return t;
}

void ls_dnn_note_again(FILE *to, const char *plan, const char *device, int64_t version,
                       const char *why)
{
    char was[80], is[80];
    ls_dnn_device_name(device, is, sizeof is);
    if (plan == NULL) {
        fprintf(to,
                "note: convolutions were compiled without cuDNN; they are planned now, for %s\n",
                is);
        return;
    }
    if (why != NULL) {
        fprintf(to, "note: a convolution's plan is made again, within the same workspace: %s\n",
                why);
        return;
    }
    ls_dnn_device_name(plan, was, sizeof was);
    Version then = version_of(number_of(plan, "cudnnVersion")), now = version_of(version);
    fprintf(to, "note: convolutions were planned for %s and cuDNN %s; here are %s and %s: planned "
            "again, within the same workspace\n", was, then.text, is, now.text);
}
