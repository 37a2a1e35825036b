/* codegen/program/packed_tables.h -- the table of weights that a program keeps in few bits, for
 * exports. */
#ifndef LS_CODEGEN_PROGRAM_PACKED_TABLES_H
#define LS_CODEGEN_PROGRAM_PACKED_TABLES_H

#include "codegen/emit/text_emit.h"
#include "codegen/program/program_contents.h"

/* The state with the codes of weight k; NULL behind the last one. */
const LsStateSlot *ls_packed_slot(const LsAddresses *a, uint32_t k);
/* The number of the weight of that name; -1: there is none. */
int64_t ls_packed_number(const LsAddresses *a, const char *name);

/* Prints the table, and its entry in LsProgram; nothing if no weight is kept so. */
void ls_packed_tables_print(const LsAddresses *a, LsEmit *e);
void ls_packed_tables_entry(const LsAddresses *a, LsEmit *e);

#endif
