/* cli/job/machine_probe.h -- how fast this computer is now: a product of small matrices and a pass
 * over memory, in some 50 ms. */
#ifndef LS_CLI_JOB_MACHINE_PROBE_H
#define LS_CLI_JOB_MACHINE_PROBE_H

#include <stdbool.h>

typedef struct LsProbed {
    double flops;               /* operations in f32 per ns, of all threads together */
    double memory;              /* bytes per ns, read and written */
} LsProbed;

/* threads: at least 1. False: memory or threads are short. */
bool ls_machine_probe(int threads, LsProbed *to);

#endif
