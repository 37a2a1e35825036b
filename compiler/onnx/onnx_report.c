/* compiler/onnx/onnx_report.c -- sorts diagnostics by node. The importer finds problems pass by
 * pass and in run order; people read a file from its first node to its last. */
#include "compiler/onnx/onnx_report.h"

#include "base/heap.h"

#include <stdlib.h>

typedef struct LsReportPart { int64_t node; size_t from, to; } Part;

void ls_report_begin(LsReport *r, LsCtx *cx)
{
    *r = (LsReport){.cx = cx, .log = cx->log};
    cx->log = r->held = ls_text_open(&r->text, &r->bytes);
}

void ls_report_cut(LsReport *r, int64_t node)
{
    if (r == NULL)
        return;
    fflush(r->held);            /* a failure stays, and ls_text_close sees it */
    if (r->bytes == r->cut)
        return;
    r->part =
        ls_arena_grow(r->cx->arena, r->part, r->npart, r->npart + 1, sizeof *r->part, &r->cap_part);
    r->part[r->npart++] = (Part){node, r->cut, r->bytes};
    r->cut = r->bytes;
}

static int by_node(const void *x, const void *y)
{
    const Part *a = x, *b = y;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

void ls_report_end(LsReport *r)
{
    ls_report_cut(r, LS_REPORT_LAST);
    r->cx->log = r->log;
    ls_text_close(r->held, &r->text);
    FILE *to = r->log != NULL ? r->log : stderr;
    if (r->npart > 0)
        qsort(r->part, r->npart, sizeof *r->part, by_node);
    for (uint32_t i = 0; i < r->npart; i++)
        fwrite(r->text + r->part[i].from, 1, r->part[i].to - r->part[i].from, to);
    free(r->text);
}
