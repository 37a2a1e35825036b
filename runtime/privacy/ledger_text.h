/* runtime/privacy/ledger_text.h -- ledgers and guarantees of private training as text. */
#ifndef LS_RUNTIME_PRIVACY_LEDGER_TEXT_H
#define LS_RUNTIME_PRIVACY_LEDGER_TEXT_H

#include "runtime/privacy/privacy_ledger.h"

/* "epsilon 2.0280 at delta 1e-06 (order 11)", rounded up: a guarantee is not understated. Returns
 * text. */
char *ls_privacy_bound_text(LsPrivacyBound b, double delta, char text[LS_PRIVACY_WHY]);

/* "RATE NOISE UPDATES", exact. Returns text. */
char *ls_privacy_run_text(const LsPrivacyRun *r, char text[LS_PRIVACY_WHY]);
/* Adds the runs of such texts, with ';' between them. False with the reason in `why`. */
bool ls_privacy_read(LsPrivacyLedger *l, const char *text, char why[LS_PRIVACY_WHY]);

#endif
