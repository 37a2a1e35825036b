/* compiler/ir/diag.c -- prints diagnostics; ids and exit codes come from errors.def. */
#include "compiler/ir/diag.h"

#include "base/plain_text.h"

#include <inttypes.h>
#include <string.h>

static const int exit_code[] = { 0,
#define LS_ERROR_ENUM(code, exit_code, text) exit_code,
#include "compiler/ir/errors.def"
#undef LS_ERROR_ENUM
};

static FILE *start_line(LsCtx *cx, LsWhere at)
{
    FILE *to = cx->log != NULL ? cx->log : stderr;
    fprintf(to, "%s: ", cx->model != NULL ? cx->model : "lowerset");
    const char *gap = "";
    if (at.node >= 0) {
        fprintf(to, "node %" PRId64, at.node);
        gap = " ";
    }
    if (at.name != NULL && at.name[0] != '\0') {
        fprintf(to, "%s'", gap);
        ls_plain_text(to, at.name);
        fprintf(to, "'");
        gap = " ";
    }
    if (at.op != NULL) {
        fprintf(to, "%s(", gap);
        ls_plain_text(to, at.op);
        fprintf(to, ")");
    }
    if (at.node >= 0 || at.name != NULL || at.op != NULL)
        fprintf(to, ": ");
    return to;
}

/* The rest of a message. Names in it are the file's. */
__attribute__((format(printf, 3, 0))) static void end_line(FILE *to, const char *hint,
                                                           const char *fmt, va_list ap)
{
    ls_plain_vprintf(to, fmt, ap);
    if (hint != NULL) {
        fprintf(to, "\n  hint: ");
        ls_plain_text(to, hint);
    }
    fputc('\n', to);
}

bool ls_error(LsCtx *cx, LsWhere at, LsErrId id, const char *hint, const char *fmt, ...)
{
    cx->nerror++;
    cx->last = id;
    if (cx->exit_code == 0)
        cx->exit_code = exit_code[id];
    if (cx->max_error > 0 && cx->nerror > cx->max_error)
        return false;
    FILE *to = start_line(cx, at);
    fprintf(to, "error LS-E%04d: ", (int)id);
    va_list ap;
    va_start(ap, fmt);
    end_line(to, hint, fmt, ap);
    va_end(ap);
    return false;
}

void ls_warn(LsCtx *cx, LsWhere at, const char *hint, const char *fmt, ...)
{
    cx->nwarning++;
    if (cx->quiet)
        return;
    FILE *to = start_line(cx, at);
    fprintf(to, "warning: ");
    va_list ap;
    va_start(ap, fmt);
    end_line(to, hint, fmt, ap);
    va_end(ap);
}

const char *ls_shape_text(LsArena *a, const LsShape *s)
{
    if (s->rank == 0)
        return "scalar";
    char text[LS_MAX_RANK * 22];
    for (int k = 0, at = 0; k < s->rank; k++)
        at += sprintf(text + at, "%s%" PRId64, k > 0 ? "x" : "", s->dim[k]);
    return ls_arena_strdup(a, text);
}
