/* runtime/comm/comm_launch.h -- ranks on this machine: copies of this process, which it starts and
 * watches.
 *
 * The starter computes nothing. It hands signals on, prints what went wrong (its caller does, from
 * the error), and ends when all ranks have ended. No rank outlives it. */
#ifndef LS_RUNTIME_COMM_COMM_LAUNCH_H
#define LS_RUNTIME_COMM_COMM_LAUNCH_H

#include "runtime/comm/comm.h"

/* Returns in `size` new processes with *c, and in the starter with *c = NULL when all of them have
 * ended; *ended is then the exit code, if there is no error. To be called before anything of this
 * process has threads or children. */
bool ls_comm_launch(int size, LsComm **c, int *ended, LsError *e);

#endif
