/* runtime/comm_mpi/comm_mpi.h -- the engine for ranks that mpirun or srun started: messages by MPI.
 *
 * A library of its own, which programs of lowerset compile --comm=mpi are linked with. */
#ifndef LS_RUNTIME_COMM_MPI_COMM_MPI_H
#define LS_RUNTIME_COMM_MPI_COMM_MPI_H

#include "runtime/comm/comm_open.h"

extern const LsCommKind ls_comm_mpi;

#endif
