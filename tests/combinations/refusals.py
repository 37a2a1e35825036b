"""Which refusals are true. Each row: words of the message, and when it may come."""
import re


def given(*options):
    """All of these options are there; `--a=b` stands for --a with the value b or one that has b."""
    def holds(o):
        words = o.compile + o.way_compile
        for option in options:
            name, _, value = option.partition("=")
            if not any(w == name and value in (words[k + 1] if value else "")
                       for k, w in enumerate(words)):
                return False
        return True
    return holds


def either(*conditions):
    return lambda o: any(c(o) for c in conditions)


counted = either(given("--ignore-index"), given("--class-weights"))
samples = either(given("--grads"), given("--dp"))

ROWS = [
    (r"the budget of its arena is .* but the least found is", given("--stages", "--budget")),
    (r"--sums=running: (ranks|stages) add up in the tree",
     lambda o: given("--sums")(o) and either(given("--ranks"), given("--stages"))(o)),
    (r"no output of the model has an axis of samples",
     lambda o: "prediction" in o.also and (given("--loss=graph")(o) or given("--head-chunks")(o))),
    (r"no plan .* budget|least budget", given("--budget")),
    (r"(mixup|cutmix) mixes targets, and '.*' has integer labels", lambda o: "mix" in o.augments),
    (r"(mixup|cutmix) mixes reals, and '.*' has integers",
     lambda o: "mix" in o.augments
     and (o.net.kind in ("tokens", "sequence") or given("--loss=graph")(o))),
    (r"(mixup|cutmix) mixes samples, and the guarantee",
     lambda o: "mix" in o.augments and given("--dp")(o)),
    (r"the program takes no pictures", lambda o: o.augments and o.net.kind != "image"),
    (r"a mean over the labels that count, not over samples",
     lambda o: (counted(o) or given("--loss=graph")(o)) and samples(o)),
    (r"gradients of samples have no loss scale",
     lambda o: samples(o) and (o.precision == "f16" or given("--loss-scale")(o))),
    (r"members have no loss scale", given("--ensemble", "--loss-scale")),
    (r"batch norms take statistics of all samples", lambda o: samples(o)
     and given("--bn=train")(o)),
    (r"Dropout draws random numbers", lambda o: o.mode != "plain" and o.net.has_dropout
     and not given("--randomness")(o)),
    (r"no weight of a part is right for all of them",
     lambda o: counted(o) and o.parts * o.accumulate > 1 and len(o.net.outputs) > 1),
    (r"no weight of a batch is right for all of them",
     lambda o: counted(o) and o.accumulate > 1 and len(o.net.outputs) > 1),
    (r"running_stat.*every micro-batch adds up here depends on gradients of all stages",
     lambda o: given("--stages", "--bn=train")(o)
     and (o.precision == "f16" or given("--loss-scale")(o))),
    (r"--train-only \S+ matches no parameter that can be trained",     # a norm's statistic
     lambda o: given("--train-only")(o) and o.net.has_norm),
    (r"--head-chunks: (the (loss|scores|classes) (is|are) not|[123] chunks of)",
     given("--head-chunks")),
    (r"--head-chunks: a chunk has positions of several samples",
     lambda o: given("--head-chunks")(o) and samples(o)),
    (r"a library \(--emit=lib\) has no --schedule",
     lambda o: given("--schedule")(o) and "library" in o.also),
    (r"--head-gradient=parts: (no update reads the gradient of a head|the update of '.*' cannot)",
     given("--head-gradient")),
    (r"--head-gradient=parts and --stages do not go together",
     given("--head-gradient", "--stages")),
    (r"--tiles: no value of \d+ bytes or more can be computed in parts", given("--tiles")),
    (r"--tiles: values in parts do not go together with",
     lambda o: given("--tiles")(o) and (o.mode in ("grads", "dp") or given("--stages")(o))),
    (r"--precision-of: nothing is called 'y0'", given("--head-chunks")),
    (r"has rank \d+, and its weight has", given("--lora")),
    (r"no module that can have an adapter", given("--lora")),
    (r"no number of ranks but 1 divides", lambda o: given("--ranks=any")(o) and o.accumulate > 1),
    (r"expected more than 1 value per channel when training",
     lambda o: given("--bn=train")(o) and (o.batch == o.parts or o.short > 0)),
    (r"leave --accumulate out", given("--stages", "--accumulate")),
    (r"evaluation runs batches of \d+, which do not divide \d+ samples",
     lambda o: "--val-split" in o.run),
    (r"does not divide into blocks of 1, 2, 4, 8", lambda o: given("--ranks")(o)
     and o.accumulate > 1),
]


def row_of(message, options):
    """The words of the row that makes this refusal true; None: there is none. Without options: the
    row that has the words."""
    for words, when in ROWS:
        if re.search(words, message) and (options is None or when(options)):
            return words
    return None
