/* runtime/base/interrupt.h -- signals that end a run.
 *
 * The first SIGINT, SIGTERM or SIGHUP asks for an end: the step is finished and its result saved. A
 * step that is not finished after a second is aborted when nothing would be lost; when some updates
 * are in no checkpoint, it gets the time of two more steps. The second signal ends the process at
 * once. An aborted process ends by the signal and saves nothing: in the middle of a step only some
 * parameters are updated. */
#ifndef LS_RUNTIME_BASE_INTERRUPT_H
#define LS_RUNTIME_BASE_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Handles the signals from now on. SIGHUP stays ignored where it is, as under nohup. */
void ls_interrupt_catch(void);
/* The number of the signal that asks for an end; 0: none yet. */
volatile sig_atomic_t *ls_interrupt_asked(void);
/* Allows the following code to be aborted. to_lose: some updates are in no checkpoint; step_ns:
 * length of a step. */
void ls_interrupt_allow(bool to_lose, int64_t step_ns);
/* The following code must finish: it writes a checkpoint or a result. */
void ls_interrupt_forbid(void);

#endif
