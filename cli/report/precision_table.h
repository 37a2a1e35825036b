/* cli/report/precision_table.h */
#ifndef LS_CLI_REPORT_PRECISION_TABLE_H
#define LS_CLI_REPORT_PRECISION_TABLE_H

#include <stdio.h>

/* Prints compiler/ir/precision.def as a table, with `type` ("bf16") for the type of 16 bits. */
void ls_precision_table(FILE *to, const char *type);

#endif
