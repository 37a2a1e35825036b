/* cli/output.h -- files that the user asks for: what is a regular file, or nothing yet, appears
 * complete or not at all; a device or a pipe is written to (runtime/base/file.h has the rule). */
#ifndef LS_CLI_OUTPUT_H
#define LS_CLI_OUTPUT_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>

/* Whether it could be written now; NULL: not asked for. false after a message. */
bool ls_output_check(const char *path);
/* Has `put` write the file. false after a message. */
bool ls_output_write(const char *path, void (*put)(FILE *to, void *user), void *user);
/* For files that another program writes: the name to have them written under, in the folder of
 * `path`, or path itself when that is no regular file. */
const char *ls_output_part(LsArena *arena, const char *path);
/* Puts what lies under `part` in the place of path; removes it unless `ok`. part may be any other
 * file too, whose bytes are then copied. false after a message. */
bool ls_output_take(const char *part, const char *path, bool ok);
/* Whether files could be put into the folder, which need not be there yet: 0, or the exit code after
 * a message. */
int ls_output_folder(const char *path);

#endif
