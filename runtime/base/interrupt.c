/* runtime/base/interrupt.c -- see interrupt.h. Handlers may run in any thread, and call only
 * async-signal-safe functions of POSIX. */
#include "runtime/base/interrupt.h"

#include <stddef.h>
#include <unistd.h>

enum { FIRST_S = 1, MORE_S = 2 };       /* seconds until the first check; seconds added to two
                                         * steps */

static volatile sig_atomic_t asked, allowed, to_lose, step_s, waited;

static void say(const char *text, size_t n)
{
    ssize_t ignored = write(STDERR_FILENO, text, n);
    (void)ignored;
}
#define SAY(text) say(text, sizeof text - 1)

static void end_by(int number)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    signal(number, SIG_DFL);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

static void on_signal(int number)
{
    if (asked)
        end_by(number);
    asked = number;
    waited = 0;
    alarm(FIRST_S);
}

static void on_alarm(int number)
{
    (void)number;
    if (!asked || !allowed)
        return;                 /* the current work ends by itself, and no other work starts */
    if (to_lose && !waited) {
        SAY("\nnote: waiting for the step to end, to save it; "
            "another signal ends the run at once\n");
        waited = 1;
        alarm((unsigned)(MORE_S + 2 * step_s));
        return;
    }
    SAY("\nnote: ended in the middle of a step, nothing was saved\n");
    end_by(asked);
}

static void catch(int number, void (*handler)(int))
{
    struct sigaction a = {.sa_handler = handler};
    sigemptyset(&a.sa_mask);
    sigaction(number, &a, NULL);
}

void ls_interrupt_catch(void)
{
    struct sigaction hang_up;
    sigset_t timer;
    asked = allowed = 0;
    catch(SIGALRM, on_alarm);
    sigemptyset(&timer);
    sigaddset(&timer, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &timer, NULL);
    catch(SIGINT, on_signal);
    catch(SIGTERM, on_signal);
    if (sigaction(SIGHUP, NULL, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN)
        catch(SIGHUP, on_signal);
}

volatile sig_atomic_t *ls_interrupt_asked(void) { return &asked; }

void ls_interrupt_allow(bool lose, int64_t step_ns)
{
    enum { MOST_S = 1 << 20 };
    int64_t s = (step_ns + 999999999) / 1000000000;
    to_lose = lose;
    step_s = s < MOST_S ? (sig_atomic_t)s : MOST_S;
    allowed = 1;
}

void ls_interrupt_forbid(void) { allowed = 0; }
