/* scheduler/bounds/least_peak.h -- a lower bound on the live peak of every schedule of a large
 * graph.
 *
 * The largest tensors make the peak. With only those of some size the graph is small, and a search
 * of all its schedules ends or comes far (some_tensors.h). With smaller ones, too, the bound rises,
 * until the search gets stuck. */
#ifndef LS_SCHEDULER_BOUNDS_LEAST_PEAK_H
#define LS_SCHEDULER_BOUNDS_LEAST_PEAK_H

#include "scheduler/relaxation/group_graph.h"

/* known: a lower bound, at least the bytes that each node takes while it runs. most: states to try
 * in all searches. Returns `known` or a higher bound, bytes. */
int64_t ls_least_peak(const LsBoundGraph *b, int64_t known, uint32_t most);

#endif
