/* runtime/trainer/member_settings.h -- what options say of the members of an ensemble. */
#ifndef LS_RUNTIME_TRAINER_MEMBER_SETTINGS_H
#define LS_RUNTIME_TRAINER_MEMBER_SETTINGS_H

#include "runtime/update/member_state.h"
#include "runtime/trainer/trainer_options.h"

/* Reads --member-seeds and --member-rates, of which there are as many as members, or none. */
bool ls_member_settings(LsMemberState *s, const LsTrainerOptions *o, LsError *e);
/* Sets the initial weights that --ensemble-weights or --ensemble-seed ask for. */
bool ls_member_weights(const LsMemory *m, const LsTrainerOptions *o, LsError *e);

#endif
