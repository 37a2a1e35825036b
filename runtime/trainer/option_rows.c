/* runtime/trainer/option_rows.c -- the table of the trainer's options: parser, --help and the list
 * for completion are read from it. */
#include "runtime/trainer/trainer_options.h"

#include <stddef.h>

#define FLAG LS_OPTION_FLAG, 0, 0
#define TEXT LS_OPTION_TEXT, 0, 0
#define OUTPUT LS_OPTION_OUTPUT, 0, 0
#define REAL LS_OPTION_REAL, 0, 0
#define WHOLE(least) LS_OPTION_WHOLE, least, INT64_MAX
#define AMOUNT(least) LS_OPTION_AMOUNT, least, INT64_MAX
#define AT(field) offsetof(LsTrainerOptions, field)

static const LsOption row[] = {
    LS_OPTION_HEADING("Data"),
    {"--data", NULL, "SPEC", TEXT, AT(data), 1,
     "FILE, FILE,FILE or INPUT=FILE,...: .lsd (lowerset data pack), IDX, NPY, NPZ (members by "
     "input name, target 'label'), CSV, .txt, .jsonl, .bin of tokens or CIFAR, "
     "raw; several with + between, or a pattern; or synthetic[:SAMPLES]"},
    {"--val", NULL, "SPEC", TEXT, AT(val), 1, "data to evaluate on after every epoch"},
    {"--val-split", NULL, "N|P%", TEXT, AT(val_split), 1,
     "hold out N samples, or a share of them, of --data to evaluate on: drawn by --seed, or of "
     "token streams the last windows"},
    {"--val-every", NULL, "N", WHOLE(1), AT(val_every), 1,
     "evaluate every N updates, too, not only after every epoch"},
    {"--patience", NULL, "N", WHOLE(1), AT(patience), 1,
     "end the run after N evaluations in a row that are no better than the best before them, by "
     "the metric of --keep-best (default val_loss)"},
    {"--min-delta", NULL, "D", REAL, AT(min_delta), 1,
     "with --patience: what is better by no more than D is not better (default 0)"},
    {"--limit-batches", NULL, "N", WHOLE(1), AT(limit_batches), 1,
     "take no more than N batches of each epoch, for a quick try"},
    {"--limit-val-batches", NULL, "N", WHOLE(1), AT(limit_val_batches), 1,
     "take no more than N batches of each evaluation"},
    {"--label-from", NULL, "INPUT", TEXT, AT(label_from), 1,
     "use that input as the target (autoencoders); --target=input uses the first input"},
    {"--scale", NULL, "S", TEXT, AT(scale), 1,
     "multiply real inputs by S (default: bytes are divided by 255)"},
    {"--mean", NULL, "M,...", TEXT, AT(mean), 1,
     "subtract after scaling: one number, or one for each channel, or auto, those of an .lsd"},
    {"--std", NULL, "D,...", TEXT, AT(std), 1,
     "divide by after --mean: one number, or one for each channel, or auto"},
    {"--raw", NULL, "TYPE", TEXT, AT(raw), 1, "files are bare numbers: float32, uint8, int64, ..."},
    {"--stride", NULL, "N", WHOLE(1), AT(stride), 1,
     "token streams: tokens from the start of one row to that of the next (default: a row)"},
    {"--pack", NULL, NULL, FLAG, AT(pack), 1,
     "JSON lines: put as many samples into a row as fit; of programs compiled with --segments"},
    {"--random-windows", NULL, NULL, FLAG, AT(random_windows), 1,
     "token streams: in every epoch windows begin some tokens later, fewer than a stride, drawn by "
     "--seed"},
    {"--augment", NULL, "HOW,...", TEXT, AT(augment), 1,
     "change the samples of training, anew in every epoch: flip, vflip[=CHANCE], "
     "crop=PAD[:reflect], resized-crop[=MIN-MAX], rotate=DEG, jitter=B/C/S/H, mixup=ALPHA, "
     "cutmix=ALPHA"},
    {"--shuffle", NULL, NULL, FLAG, AT(shuffle), 1,
     "a new order every epoch (default); --no-shuffle: file order"},
    {"--shuffle-seed", NULL, "N", LS_OPTION_WHOLE, 0, (int64_t)1 << 62, AT(shuffle_seed), 1,
     "another seed of that order than --seed; the rest that is drawn stays"},
    {"--drop-last", NULL, NULL, FLAG, AT(drop_last), 1, "leave out an incomplete last batch"},
    {"--workers", NULL, "N", WHOLE(0), AT(workers), 1, "threads that prepare batches"},
    LS_OPTION_HEADING("Training"),
    {"--epochs", NULL, "N", REAL, AT(epochs), 1,
     "passes over the data, also a part of one, as 0.5 (default 1)"},
    {"--steps", NULL, "N", WHOLE(1), AT(steps), 1, "stop after N updates in all"},
    {"--lr", NULL, "RATE", REAL, AT(lr), 1, "learning rate (default: set by lowerset compile)"},
    {"--schedule", NULL, "S", TEXT, AT(schedule), 1,
     "constant, linear, cosine[:min=F], step:every=N,gamma=F; each with warmup=N, e.g. "
     "cosine:warmup=500"},
    {"--find-rate", NULL, "[=N]", AMOUNT(1), AT(find_rate), 1,
     "do not train: run N updates (default 100) with rising rates, print their losses and a rate "
     "to train with; nothing of these updates is kept"},
    {"--rate-range", NULL, "LOW:HIGH", TEXT, AT(rate_range), 1,
     "with --find-rate: the first and the last rate (default 1e-7:10)"},
    {"--rate-table", NULL, "FILE", OUTPUT, AT(rate_table), 1,
     "with --find-rate: write rates and losses as CSV"},
    {"--init-from", NULL, "FILE", TEXT, AT(init_from), 1,
     "begin with the weights of a safetensors file, an index of several, or a folder with one of "
     "both, by name; says what did not match"},
    {"--init-strict", NULL, NULL, FLAG, AT(init_strict), 1,
     "with --init-from: exit 8 if a tensor is missing, too many or of another shape"},
    {"--max-skipped", NULL, "N", WHOLE(1), AT(max_skipped), 1,
     "with a loss scale: end with exit code 7 after N skipped updates in a row (default 100)"},
    {"--seed", NULL, "N", WHOLE(0), AT(seed), 1,
     "seed of shuffling, dropout and what optimizers draw (default 0)"},
    {"--ensemble-seed", NULL, "N", WHOLE(0), AT(ensemble_seed), 1,
     "an ensemble's members begin with different weights: all but the first with the file's in an "
     "order drawn by N, within "
     "each tensor (default: all as in the file)"},
    {"--ensemble-weights", NULL, "FILE", TEXT, AT(ensemble_weights), 1,
     "NPZ with initial weights of all members: PARAM or stack/PARAM, of shape [members, ...]"},
    {"--member-rates", NULL, "R,R,...", TEXT, AT(member_rates), 1,
     "learning rates of an ensemble's members (default: --lr for all)"},
    {"--member-seeds", NULL, "N,N,...", TEXT, AT(member_seeds), 1,
     "seeds of dropout of an ensemble's members (default: --seed plus the member's number, from "
     "0)"},
    {"--noise-seed", NULL, "N", WHOLE(0), AT(noise_seed), 1,
     "private training: repeatable draws and noise, for experiments; such a run is not private "
     "(default: a secret of the "
     "system's)"},
    {"--check-clip", NULL, "N", WHOLE(0), AT(check_clip), 1,
     "private training: look in the first update and every N updates whether the gradient of one "
     "sample is clipped, and end with "
     "exit code 6 if it is not; takes the time of a micro-batch; 0: never (default 100)"},
    {"--threads", NULL, "N", WHOLE(1), AT(threads), 1,
     "threads that compute (default: all cores); results do not "
     "depend on it"},
    {"--ranks", NULL, "N", WHOLE(1), AT(ranks), 1,
     "the number of ranks: as compiled with lowerset compile --ranks N; any that the program takes "
     "with --ranks any (default 1, "
     "or as --peers or mpirun says); without --peers they are processes of this machine, which the "
     "program starts"},
    {"--peers", NULL, "HOST:PORT,...", TEXT, AT(peers), 1,
     "ranks on several machines: where each of them listens; the program is started once for each"},
    {"--rank", NULL, "K", WHOLE(0), AT(rank), 1,
     "with --peers: which of them this one is, from 0 (default: as srun or mpirun "
     "says)"},
    {"--token-file", NULL, "FILE", TEXT, AT(token_file), 1,
     "with --peers: a secret text of at least 16 characters, the same for all ranks, by which they "
     "know each other (default: the "
     "variable LOWERSET_TOKEN, if it is set)"},
    {"--comm", NULL, "ENGINE", TEXT, AT(comm), 1,
     "what carries messages between ranks: local (processes of this machine), sockets (--peers) or "
     "mpi (mpirun, srun; the "
     "program must have it); default: as fits. nccl: as fits, and gradients go from GPU to GPU by "
     "NCCL, as they do by default "
     "where all ranks have it"},
    {"--bucket", NULL, "BYTES", WHOLE(1), AT(bucket), 1,
     "with ranks: exchange gradients as soon as so many bytes of them are complete (default "
     "4194304); results do not depend on "
     "it"},
    {"--late-exchange", NULL, NULL, FLAG, AT(late_exchange), 1,
     "with ranks: exchange gradients only after the backward part, not beside it: to measure what "
     "that brings"},
    {"--compare-replicas", NULL, "N", WHOLE(0), AT(compare_replicas), 1,
     "with ranks: once in N updates, and before the first and after the last one, compare the "
     "parameters of all ranks, and end the "
     "run if they differ; 0: never (default 100)"},
    {"--share-gpus", NULL, NULL, FLAG, AT(share_gpus), 1,
     "ranks may share GPUs, where a machine has fewer of them than ranks"},
    {"--tune", NULL, NULL, FLAG, AT(tune), 1,
     "on a GPU: time the libraries' kernels for each convolution and product, and keep the "
     "fastest"},
    {"--eval", NULL, NULL, FLAG, AT(eval), 1, "do not train: evaluate on --val, or on --data"},
    {"--metrics", NULL, "LIST", TEXT, AT(metrics), 1,
     "what evaluations give besides loss and accuracy: auto (default), all, none, or of classes "
     "top5, confusion, precision, recall, f1, iou, dice, auroc, perplexity, of values mae, mse, "
     "r2"},
    {"--by-class", NULL, NULL, FLAG, AT(by_class), 1,
     "print the metrics of each class after every evaluation, not only with --eval"},
    {"--confusion", NULL, "FILE", OUTPUT, AT(confusion), 1,
     "write how often each class was taken for each other in the last evaluation (CSV: a row for "
     "each class, a column for each prediction)"},
    LS_OPTION_HEADING("Predictions"),
    {"--predict", NULL, "OUT", TEXT, AT(predict), 1,
     "do not train: write what the model gives for --data, which needs no targets: FILE.npz (all "
     "outputs), FILE.csv (classes and probabilities, or values), FOLDER/ (pictures, masks)"},
    {"--predict-as", NULL, "npz|csv|png", TEXT, AT(predict_as), 1,
     "the form of --predict, whatever its name"},
    {"--predict-outputs", NULL, "NAME,...", TEXT, AT(predict_outputs), 1,
     "the outputs that --predict and --serve-stdin give (default: all)"},
    {"--generate", NULL, "N", WHOLE(1), AT(generate), 1,
     "do not train: print N tokens or characters that follow --prompt"},
    {"--prompt", NULL, "TEXT|@FILE", TEXT, AT(prompt), 1,
     "what --generate continues: text, or numbers of tokens; @FILE: what the file has"},
    {"--temperature", NULL, "T", REAL, AT(temperature), 1,
     "scores are divided by T before a token is drawn; 0: the likeliest (default 1)"},
    {"--top-k", NULL, "K", WHOLE(1), AT(top_k), 1, "draw from the K likeliest tokens"},
    {"--top-p", NULL, "P", REAL, AT(top_p), 1,
     "draw from the likeliest tokens whose probabilities reach P together"},
    {"--serve-stdin", NULL, NULL, FLAG, AT(serve_stdin), 1,
     "do not train: answer every line of standard input (JSON, CSV; a prompt with --generate) with "
     "a line of JSON"},
    LS_OPTION_HEADING("Results"),
    {"--save", NULL, "DIR", TEXT, AT(save), 1, "folder for checkpoints (safetensors)"},
    {"--save-every", NULL, "N", WHOLE(1), AT(save_every), 1,
     "save every N updates (default: every epoch)"},
    {"--keep-last", NULL, "K", WHOLE(1), AT(keep_last), 1, "delete all but the last K checkpoints"},
    {"--keep-best", NULL, "METRIC", TEXT, AT(keep_best), 1,
     "keep the checkpoint with the best evaluation, too, as best.safetensors in --save: val_loss, "
     "val_accuracy or another metric that the run prints"},
    {"--export-best", NULL, NULL, FLAG, AT(export_best), 1,
     "with --keep-best: --export, --export-adapter and --save-weights write the best model, not "
     "the last"},
    {"--save-frozen", NULL, NULL, FLAG, AT(save_frozen), 1,
     "checkpoints also have the weights that are not trained"},
    {"--resume", NULL, "FILE", TEXT, AT(resume), 1,
     "continue from a checkpoint, bit for bit; auto: from the newest in --save"},
    {"--overwrite", NULL, NULL, FLAG, AT(overwrite), 1,
     "remove the checkpoints of other runs from --save when this run begins; without it, a folder "
     "that has some is refused"},
    {"--export", NULL, "FILE", OUTPUT, AT(export_to), 1,
     "write the trained model as ONNX, in evaluation form"},
    {"--save-weights", NULL, "FILE", OUTPUT, AT(save_weights), 1,
     "write the trained weights alone as safetensors, under the names of the ONNX file"},
    {"--weights-of", NULL, "average|trained", TEXT, AT(weights_of), 1,
     "with --save-weights of a program that keeps averages: those, as --export has them (default), "
     "or the weights they are of"},
    {"--export-adapter", NULL, "DIR", TEXT, AT(export_adapter), 1,
     "write the trained adapters as peft reads them: adapter_config.json and "
     "adapter_model.safetensors; of an ensemble, of each member to DIR/0, DIR/1, ..."},
    {"--export-member", NULL, "K", WHOLE(0), AT(export_member), 1,
     "the member of an ensemble that --export and --export-adapter write, from 0"},
    {"--export-precision", NULL, "f32|f16|bf16", TEXT, AT(export_precision), 1,
     "types of the weights in --export (default f32); a Cast widens those of 16 bits"},
    {"--export-external", NULL, NULL, FLAG, AT(export_external), 1,
     "--export writes the weights to FILE.data beside FILE, as it does with more than 2 GiB of "
     "them"},
    {"--export-notes", NULL, NULL, FLAG, AT(export_notes), 1,
     "--export says in the model's metadata what it comes from: plan, steps, data, scaling, "
     "classes (default); --no-export-notes: equal weights make equal files, whatever the plan"},
    {"--export-scaling", NULL, NULL, FLAG, AT(export_scaling), 1,
     "--export puts --scale, --mean and --std in front of the model, which then takes what the "
     "data files have"},
    {"--image-grid", NULL, "FILE", OUTPUT, AT(image_grid), 1,
     "write a picture (PNG or PPM): five inputs, with the model's outputs below"},
    LS_OPTION_HEADING("Reports"),
    {"--log", NULL, "FILE", OUTPUT, AT(log), 1, "write a line of JSON for each step"},
    {"--tensorboard", NULL, "DIR", TEXT, AT(tensorboard), 1,
     "write a file of events to the folder DIR, for TensorBoard: loss, rate, throughput, "
     "evaluations"},
    {"--log-grad-norm", NULL, NULL, FLAG, AT(log_grad_norm), 1,
     "--log and --tensorboard have the norm of all gradients, before --clip-norm; takes a pass "
     "over the gradients"},
    {"--progress", NULL, "MODE", TEXT, AT(progress), 1,
     "how to show progress: auto, bar, plain or none"},
    {"--trace", NULL, "FILE", OUTPUT, AT(trace), 1,
     "write a timeline of the last steps (Chrome trace JSON)"},
    {"--profile", NULL, "FILE", OUTPUT, AT(profile), 1, "write the mean time of every node (JSON)"},
    {"--check-numerics", NULL, NULL, FLAG, AT(check_numerics), 1,
     "stop at the first node that makes a NaN, and name the node"},
    {"--check-gradients", NULL, "[=N]", AMOUNT(1), AT(check_gradients), 1,
     "do not train: compare gradients of one batch with differences of its loss, for N elements of "
     "the "
     "parameters; exit 6 if they differ"},
    {"--dump", NULL, "FILE", OUTPUT, AT(dump), 1,
     "write the values of the last step as NPZ: loss, out/, grad/, "
     "param/, stat/"},
    {"--measure", NULL, NULL, FLAG, AT(measure), 1, "print how much of the arena the steps use"},
    {"--print-plan", NULL, NULL, FLAG, AT(print_plan), 1, "print the table of steps and stop"},
    {"--version", NULL, NULL, FLAG, AT(version), 1, "print model and plan and stop"},
    {"--help", NULL, NULL, FLAG, AT(help), 1, "print this"},
};
enum { NROWS = sizeof row / sizeof row[0] };
const LsOptionTable ls_trainer_table = {.row = row, .n = NROWS, .where = 1, .negative = true};
