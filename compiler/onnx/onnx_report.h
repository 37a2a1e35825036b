/* compiler/onnx/onnx_report.h -- holds diagnostics back and prints them sorted by node. */
#ifndef LS_COMPILER_ONNX_ONNX_REPORT_H
#define LS_COMPILER_ONNX_ONNX_REPORT_H

#include "compiler/ir/diag.h"

enum { LS_REPORT_FIRST = -1 };          /* about the whole file, before every node */
static const int64_t LS_REPORT_LAST __attribute__((unused)) = INT64_MAX;

typedef struct LsReport {
    LsCtx *cx;
    FILE *log, *held;           /* the final place of messages; their buffer */
    char *text; size_t bytes;   /* of held, as open_memstream keeps them */
    struct LsReportPart *part; uint32_t npart, cap_part;
    size_t cut;                 /* bytes already assigned to a part */
} LsReport;

void ls_report_begin(LsReport *r, LsCtx *cx);
/* Assigns the messages since the last call to this node of the file. r may be NULL. */
void ls_report_cut(LsReport *r, int64_t node);
void ls_report_end(LsReport *r);        /* prints everything, by node, then in order of arrival */

#endif
