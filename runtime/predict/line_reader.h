/* runtime/predict/line_reader.h -- lines of a descriptor, as they come. */
#ifndef LS_RUNTIME_PREDICT_LINE_READER_H
#define LS_RUNTIME_PREDICT_LINE_READER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct LsLineReader {
    int fd;
    const volatile sig_atomic_t *stop;
    size_t most;                /* bytes of a line; a longer one is skipped */
    char *buf;
    size_t from, fill, room;    /* what is read and not taken: buf[from .. fill) */
    bool ended, failed;         /* no memory, or the descriptor cannot be read */
    bool skipping;
} LsLineReader;

void ls_lines_open(LsLineReader *r, int fd, size_t most, const volatile sig_atomic_t *stop);
void ls_lines_close(LsLineReader *r);
/* Waits for the next line, without its end; valid until the next call. *too_long: it was skipped,
 * and *line is NULL. False: there is none any more, or *stop is set. */
bool ls_lines_next(LsLineReader *r, const char **line, size_t *n, bool *too_long);
/* Whether the next line, or a part of it, is there already. */
bool ls_lines_wait(LsLineReader *r);

#endif
