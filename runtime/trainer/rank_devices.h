/* runtime/trainer/rank_devices.h -- which device a rank takes, and what carries gradients between
 * devices. */
#ifndef LS_RUNTIME_TRAINER_RANK_DEVICES_H
#define LS_RUNTIME_TRAINER_RANK_DEVICES_H

#include "runtime/trainer/trainer_state.h"

/* All ranks call it, before any device is opened. Rank k of a machine takes its device k, counted
 * again from the first where there are fewer. Two ranks with one device are refused without
 * --share-gpus, and devices of different kinds in any case. Sets t->direct: messages with gradients
 * are to lie in devices' memory, which all ranks can, and no --comm forbids. Does nothing for
 * programs without a device. */
bool ls_ranks_choose_devices(LsTrainer *t, LsError *e);
/* With t->direct, and an open device: t->comm becomes the engine for such messages, and
 * t->base_comm the one that it stands on. */
bool ls_ranks_join_devices(LsTrainer *t, LsError *e);

#endif
