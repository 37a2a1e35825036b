/* cli/option_groups/trained_group.c -- see the header. */
#include "cli/option_groups/trained_group.h"

#include "cli/option_groups/option_rows.h"

#define AT(field) offsetof(LsTrainedGroup, field)
static const LsOption trained[] = {
    {"--freeze", NULL, "GLOB", LIST, AT(freeze), ALL,
     "parameters that are not trained; may be repeated"},
    {"--train", NULL, "GLOB", LIST, AT(train), ALL,
     "tensors that are trained even if --freeze or the file says otherwise; may be repeated. "
     "The others stay as they are: see --train-only"},
    {"--train-only", NULL, "GLOB", LIST, AT(only), ALL,
     "train these tensors, and freeze all others; may be repeated"},
    {"--stop-gradient", NULL, "GLOB", LIST, AT(stop), ALL,
     "names of values or nodes: no gradient flows through them, as at detach(); may be repeated"},
    {"--tie", NULL, NULL, FLAG, AT(tie), ALL,
     "train each parameter of the file as one, even if the exporter may have merged several "
     "into it"},
    {"--lora", NULL, "SPEC", TEXT, AT(lora), ALL,
     "train low-rank adapters alone: r=8,alpha=16,dropout=0.05,rslora,bias=none:GLOB,..., see "
     "docs/fine-tuning.md"},
    {"--adapter", NULL, "DIR", TEXT, AT(adapter), ALL,
     "train the adapters of that folder (adapter_config.json and adapter_model.safetensors of "
     "peft), from their values; with --ensemble a folder for each member: DIR,DIR,..."},
    {"--quantize-frozen", NULL, "FORM[:MODULE,...]", LIST, AT(quantize), ALL,
     "keep weights that are not trained in few bits: nf4, nf4-double, fp4, int8, bf16 or f16 of "
     "the modules named, or of all products but the last; may be repeated"},
    {"--merge", NULL, NULL, FLAG, AT(merge), LS_CMD_COMPILE,
     "the trainer's --export adds adapters to the weights, instead of writing them as nodes"},
};
const LsOptionGroup ls_trained_group = GROUP(NULL, trained);

#undef AT
#define AT(field) offsetof(LsModeGroup, field)
static const LsOption norms[] = {
    {"--bn", NULL, "file|train|frozen", TEXT, AT(bn), ALL,
     "statistics that batch norms use: as in the file, those of the batch, the running ones "
     "(default file)"},
    {"--bn-var", NULL, "onnx|torch", TEXT, AT(bn_var), BUILD,
     "running variance: population (ONNX) or unbiased (PyTorch) (default onnx)"},
    {"--drop-bias", NULL, NULL, FLAG, AT(drop_bias), BUILD,
     "do not add biases in front of batch norms with statistics of the batch, which take them off "
     "again: less work, and the same results but for rounding; biases stay as they are, and "
     "running means, evaluation and --export are those of the network with them"},
    {"--dropout", NULL, "file|on|off", TEXT, AT(dropout), BUILD,
     "dropouts that are active: as in the file (before opset 12: all), all, none (default file)"},
};
const LsOptionGroup ls_norms_group = GROUP(NULL, norms);
