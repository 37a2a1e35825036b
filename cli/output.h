/* cli/output.h -- whether results can be written, asked before the work that makes them. */
#ifndef LS_CLI_OUTPUT_H
#define LS_CLI_OUTPUT_H

/* Whether a file can be made or written over at `path`, as far as that shows without writing. NULL:
 * nothing is to be written. 0, or the exit code after a message. */
int ls_output_file(const char *path);
/* The same of a folder that files are put into. */
int ls_output_folder(const char *path);
/* That it could not be, by errno: the exit code, after a message. */
int ls_output_failed(const char *path);

#endif
