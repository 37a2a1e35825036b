/* cli/report/output.h -- files that the user asks for. A regular or new file appears complete or
 * not at all; a device or a pipe is written to directly (runtime/base/file.h has the rule). */
#ifndef LS_CLI_REPORT_OUTPUT_H
#define LS_CLI_REPORT_OUTPUT_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>

/* Whether the file could be written now; NULL: not asked for. False after a message. */
bool ls_output_check(const char *path);
/* Calls `put` to write the file. False after a message. */
bool ls_output_write(const char *path, void (*put)(FILE *to, void *user), void *user);
/* For files that another program writes: the name under which it should write, in the folder of
 * `path`. The name is path itself when path is no regular file. */
const char *ls_output_part(LsArena *arena, const char *path);
/* Moves the file `part` to path if `ok`, else removes it. part may be any other file too; its bytes
 * are then copied. False after a message. */
bool ls_output_take(const char *part, const char *path, bool ok);
/* Writes the bytes of the file `from` to path, whole or not at all. False after a message. */
bool ls_output_copy(const char *from, const char *path);
/* Whether files could be written to the folder, which need not exist yet: 0, or the exit code after
 * a message. */
int ls_output_folder(const char *path);
/* Makes a folder in $TMPDIR, or /tmp; NULL after a message. */
const char *ls_temporary_folder(LsArena *arena);

#endif
