/* cli/stage.c -- see stage.h. */
#include "cli/stage.h"

#include <stdarg.h>
#include <unistd.h>

static bool is_passing(const LsOptions *o)
{
    return !o->quiet && !o->verbose && isatty(STDERR_FILENO);
}

void ls_stage(const LsOptions *o, const char *fmt, ...)
{
    va_list ap;
    bool passing = is_passing(o);
    if (!passing && (!o->verbose || o->quiet))
        return;
    fprintf(stderr, "%s%s: ", passing ? "\r\033[K" : "", o->model != NULL ? o->model : "lowerset");
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, passing ? " ..." : "\n");
}

void ls_stage_end(const LsOptions *o)
{
    if (is_passing(o))
        fprintf(stderr, "\r\033[K");
}
