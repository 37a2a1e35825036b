/* codegen/program/library_text.h -- the header and the functions of a library (--emit=lib). */
#ifndef LS_CODEGEN_PROGRAM_LIBRARY_TEXT_H
#define LS_CODEGEN_PROGRAM_LIBRARY_TEXT_H

#include "codegen/program/program_contents.h"

/* The prefix of a library's symbols that a file name gives: its letters and digits, in lower case;
 * others become '_', and a name that begins with a digit gets "net_" before it. */
const char *ls_library_prefix(LsArena *a, const char *base);
/* Whether a C identifier may begin with the prefix. */
bool ls_library_prefix_is(const char *prefix);

/* The header, for C11 and C++17. Call after ls_program_print. */
void ls_library_print_header(const LsCode *c, const char *prefix, FILE *to);
/* The C file that defines its functions. header: its name, for #include. */
void ls_library_print_functions(const LsCode *c, const char *prefix, const char *header, FILE *to);

#endif
