/* runtime/engine/device.c -- see device.h: failures, the same for all kinds of devices. */
#include "runtime/engine/device.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

bool ls_device_fail(LsDevice *d, LsExit code, const char *fmt, ...)
{
    char what[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (d->update > 0 && d->at != NULL)
        return ls_fail(&d->error, code, "step %" PRId64 ", node '%s' (%s): %s", d->update,
                       d->at->name, d->at->op, what);
    if (d->update > 0)
        return ls_fail(&d->error, code, "step %" PRId64 ": %s", d->update, what);
    return ls_fail(&d->error, code, "%s", what);
}

bool ls_device_ok(const LsDevice *d, LsError *e)
{
    return d == NULL || d->error.code == LS_EXIT_DONE
           || ls_fail(e, d->error.code, "%s", d->error.text);
}
