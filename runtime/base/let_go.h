/* runtime/base/let_go.h -- gives back the memory of a program's own data that were read and are not
 * needed for now. They stay in the program's file, and come back when they are read again. */
#ifndef LS_RUNTIME_BASE_LET_GO_H
#define LS_RUNTIME_BASE_LET_GO_H

#include <stdbool.h>
#include <stddef.h>

enum { LS_LET_GO = 1 << 20 };   /* bytes to read before they are let go */

/* Whether the bytes can be let go: the system maps them from a file, to be read alone. False where
 * it does not say so. */
bool ls_can_let_go(const void *at, size_t n);
/* Lets go of all pages that have some of the bytes. Only for bytes that ls_can_let_go. */
void ls_let_go(const void *at, size_t n);

#endif
