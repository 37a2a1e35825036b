/* codegen/program/adapter_tables.h -- the tables of a program's adapters (LsAdapterTable). */
#ifndef LS_CODEGEN_PROGRAM_ADAPTER_TABLES_H
#define LS_CODEGEN_PROGRAM_ADAPTER_TABLES_H

#include "codegen/emit/text_emit.h"
#include "codegen/program/program_contents.h"

/* The tables, before the program's own; and its entry. For c->adapters. */
void ls_adapter_tables_print(const LsCode *c, LsEmit *e);
void ls_adapter_tables_entry(const LsCode *c, LsEmit *e);

#endif
