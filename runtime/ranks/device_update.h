/* runtime/ranks/device_update.h -- the update of ranks whose gradients are in the memory of
 * devices. */
#ifndef LS_RUNTIME_RANKS_DEVICE_UPDATE_H
#define LS_RUNTIME_RANKS_DEVICE_UPDATE_H

#include "runtime/ranks/rank_exchange_parts.h"

/* Runs the phase `update`, after the gathering of whole sums: of slices with their exchange, or
 * whole. */
bool ls_rank_device_update(LsExchange *x, LsError *e);

#endif
