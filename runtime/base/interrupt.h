/* runtime/base/interrupt.h -- signals that end a run.
 *
 * The first SIGINT, SIGTERM or SIGHUP asks for an end: the step is finished, its result saved. A
 * step that is not finished a second later is broken off when nothing would be lost; when there are
 * updates that no checkpoint has, it gets the time of two more steps. The second signal ends the
 * process at once. Broken off, the process ends by the signal and saves nothing: in the middle of a
 * step some parameters are updated and some are not. */
#ifndef LS_RUNTIME_BASE_INTERRUPT_H
#define LS_RUNTIME_BASE_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* From now on. SIGHUP stays ignored where it is, as under nohup. */
void ls_interrupt_catch(void);
/* The number of the signal that asks for an end; 0: none yet. */
volatile sig_atomic_t *ls_interrupt_asked(void);
/* What follows may be broken off. to_lose: there are updates that no checkpoint has; step_ns: how
 * long a step takes. */
void ls_interrupt_allow(bool to_lose, int64_t step_ns);
/* What follows is finished: a checkpoint is written, a result. */
void ls_interrupt_forbid(void);

#endif
