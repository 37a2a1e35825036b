/* runtime/watch/event_file.h -- --tensorboard: scalars as TensorBoard reads them.
 *
 * A file is a row of records: length, its checksum, an Event of tensorflow/core/util/event.proto,
 * its checksum. A record that is cut off is told by its checksum, so a file is good at any time. A
 * run that goes on begins a file of its own, whose first event takes back what an earlier file has
 * of later steps. */
#ifndef LS_RUNTIME_WATCH_EVENT_FILE_H
#define LS_RUNTIME_WATCH_EVENT_FILE_H

#include "runtime/base/file.h"

typedef struct LsEvents {
    int fd;                     /* -1: none; see `open` */
    bool open;
    int err;                    /* the first error, after which nothing is written */
    int64_t flushed_ns;
    int64_t whole;              /* bytes of whole records in the file */
    size_t fill;
    char path[LS_PATH];
    unsigned char buf[1 << 15];
} LsEvents;

/* Makes the folder, if it is not there, and a file in it with a name that no other run takes. step:
 * the next one. */
bool ls_events_open(LsEvents *v, const char *folder, int64_t step, LsError *e);
/* Adds a scalar. Does nothing if the file is not open. Written once a second. */
void ls_events_scalar(LsEvents *v, int64_t step, const char *tag, double value);
void ls_events_flush(LsEvents *v);
bool ls_events_close(LsEvents *v, LsError *e);

#endif
