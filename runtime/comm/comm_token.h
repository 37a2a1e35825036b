/* runtime/comm/comm_token.h -- the secret by which ranks know each other: a file's, or that of a
 * variable. */
#ifndef LS_RUNTIME_COMM_COMM_TOKEN_H
#define LS_RUNTIME_COMM_COMM_TOKEN_H

#include "runtime/base/run_error.h"

enum { LS_TOKEN = 1024, LS_TOKEN_LEAST = 16 };  /* bytes of a token, with its end; characters */
#define LS_TOKEN_VARIABLE "LOWERSET_TOKEN"

/* file: NULL: the variable. *token: text, or NULL: there is none. Blanks and lines' ends around a
 * token do not count. */
bool ls_token_read(const char *file, char text[LS_TOKEN], const char **token, LsError *e);

#endif
