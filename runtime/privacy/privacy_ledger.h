/* runtime/privacy/privacy_ledger.h -- the accountant of private training: what all updates together
 * guarantee.
 *
 * A ledger holds runs of equal updates (runtime/privacy/renyi.h), in any number. Renyi divergences
 * of one order add up over updates, and each order gives an epsilon for a delta. The best of
 * LS_PRIVACY_ORDERS fixed orders counts, which are those of dp_accounting's RdpAccountant: 1.1 1.2
 * ... 10.9, 11 12 ... 63, 128 256 512 1024.
 *
 * The guarantee is (epsilon, delta)-differential privacy for neighbours that differ in one
 * sample. */
#ifndef LS_RUNTIME_PRIVACY_PRIVACY_LEDGER_H
#define LS_RUNTIME_PRIVACY_PRIVACY_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

enum { LS_PRIVACY_ORDERS = 99 + 53 + 4, LS_PRIVACY_WHY = 120 };

typedef struct LsPrivacyRun {
    double rate, noise;                 /* sampling rate, noise multiplier */
    int64_t updates;
    double renyi[LS_PRIVACY_ORDERS];    /* of one update, by order */
} LsPrivacyRun;

/* All zero: nothing was published yet. */
typedef struct LsPrivacyLedger { LsPrivacyRun *run; int n; } LsPrivacyLedger;

/* order: of the divergence that gives epsilon; 0 if epsilon is infinite */
typedef struct LsPrivacyBound { double epsilon, order; } LsPrivacyBound;

/* Adds updates: to an earlier run with the same rate and noise, else as a run of its own, which
 * allocates. False with the reason in `why`, and the ledger as it was: a rate outside 0 to 1, a
 * noise that is negative or not finite, fewer than 0 updates or more than an int64_t counts, no
 * memory. */
bool ls_privacy_add(LsPrivacyLedger *l, double rate, double noise, int64_t updates,
                    char why[LS_PRIVACY_WHY]);
/* The least epsilon for this delta, above 0 and below 1. Allocates nothing. */
LsPrivacyBound ls_privacy_epsilon(const LsPrivacyLedger *l, double delta);
void ls_privacy_free(LsPrivacyLedger *l);

/* The least noise multiplier whose updates stay within epsilon: 0 where none is needed, else a
 * multiple of 0.0001 from LS_LEAST_NOISE to LS_MOST_NOISE. False with the reason in `why`: there is
 * none, or numbers are bad as above. */
#define LS_MOST_NOISE 1e6
bool ls_privacy_noise(double rate, int64_t updates, double delta, double epsilon, double *noise,
                      char why[LS_PRIVACY_WHY]);

#endif
