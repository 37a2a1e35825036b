/* runtime/comm/comm_threads.h -- the engine for ranks that are threads of one process. */
#ifndef LS_RUNTIME_COMM_COMM_THREADS_H
#define LS_RUNTIME_COMM_COMM_THREADS_H

#include "runtime/comm/comm.h"

/* Makes `size` ranks at once; rank k is c[k], for a thread that also closes it. A message is one
 * copy, from the sender's memory to the receiver's, made by the first of both that waits for it. */
bool ls_comm_threads_open(int size, LsComm *c[], LsError *e);

#endif
