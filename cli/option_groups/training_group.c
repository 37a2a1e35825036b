/* cli/option_groups/training_group.c -- see the header. */
#include "cli/option_groups/training_group.h"

#include "cli/option_groups/option_rows.h"

#define AT(field) offsetof(LsLossGroup, field)
static const LsOption loss[] = {
    {"--loss", NULL, "SPEC", TEXT, AT(spec), BUILD,
     "loss to train with, or several losses by commas, see below (default ce)"},
    {"--loss-input", NULL, "NAME", TEXT, AT(input), BUILD,
     "model output that a single loss reads (default: the first); with --loss=graph, the output "
     "that is the loss (default: the only scalar)"},
    {"--label", NULL, "NAME", TEXT, AT(label), BUILD,
     "name of the target input; with losses of several outputs, NAME.OUTPUT are their targets "
     "(default label)"},
    {"--class-axis", NULL, "K", TEXT, AT(class_axis), BUILD,
     "cross-entropy: axis of the classes, counted from the end if negative (default: the axis "
     "that the model's last weight makes)"},
    {"--label-shape", NULL, "AxBx...", TEXT, AT(label_shape), BUILD,
     "cross-entropy: shape of the target, samples first; the classes are on the axis that the "
     "output has beside it"},
    {"--label-smoothing", NULL, "E", TEXT, AT(smoothing), BUILD,
     "cross-entropy: part of each target that is spread over all classes, 0 to 1 (default 0)"},
    {"--ignore-index", NULL, "K", TEXT, AT(ignore), BUILD,
     "cross-entropy: positions with this label do not count"},
    {"--class-weights", NULL, "W0,W1,...", TEXT, AT(class_weights), BUILD,
     "cross-entropy: weight of each class"},
    {"--segments", NULL, NULL, FLAG, AT(segments), BUILD,
     "samples share rows of tokens: adds an input 'segments' of integers, in which a run of equal "
     "numbers is a sample; attention and positions keep them apart"},
    {"--head-chunks", NULL, "N|auto|off", TEXT, AT(head_chunks), BUILD,
     "cross-entropy over a vocabulary: compute scores, losses and gradients by N chunks of the "
     "positions, so that all scores are never there; auto: as few as a --budget in bytes, or min, "
     "needs (default: at once, but chunks where a budget in bytes has no plan otherwise)"},
    {"--head-gradient", NULL, "whole|parts|auto", TEXT, AT(head_gradient), BUILD,
     "of the weight of a vocabulary head in chunks: parts: its update computes it, for some "
     "classes at a time, from scores that it computes once more; auto: where a budget needs that, "
     "which chosen chunks alone do not keep (default auto)"},
};
const LsOptionGroup ls_loss_group = GROUP("Training", loss);

#undef AT
#define AT(field) offsetof(LsUpdateGroup, field)
static const LsOption update[] = {
    {"--optimizer", NULL, "SPEC", TEXT, AT(optimizer), BUILD,
     "kind and settings, see below (default sgd:momentum=0.9)"},
    {"--lr", NULL, "RATE", TEXT, AT(lr), LS_CMD_COMPILE | LS_CMD_CHECK,
     "default learning rate of the trainer (default: the optimizer's, see below)"},
    {"--schedule", NULL, "SPEC", TEXT, AT(schedule), LS_CMD_COMPILE,
     "default rate schedule of the trainer, see below (default constant)"},
    {"--no-decay", NULL, "GLOB", LIST, AT(no_decay), BUILD,
     "no weight decay of parameters of these names, beside those of biases and norms; may be "
     "repeated; none: those of biases and norms decay, too"},
    {"--ema", NULL, "D", TEXT, AT(ema), BUILD,
     "keep an average of the weights: D times itself and 1 - D times the weights after every "
     "update; evaluation and --export take the average"},
    {"--clip-norm", NULL, "X", TEXT, AT(clip_norm), BUILD,
     "scale all gradients down together if their norm exceeds X (default: no clipping)"},
    {"--clip-value", NULL, "X", TEXT, AT(clip_value), BUILD,
     "clamp each element of the gradients to -X..X (default: no clipping)"},
    {"--loss-scale", NULL, "SPEC", TEXT, AT(scale), BUILD,
     "factor of the loss while it is differentiated, see below; steps whose gradients are not "
     "finite are skipped (default: dynamic for f16, else none)"},
};
const LsOptionGroup ls_update_group = GROUP(NULL, update);
