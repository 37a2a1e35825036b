"""Random options. `meaning` decides the numbers of a run; `ways` must not change a bit of them."""
import random

OPTIMIZERS = ["sgd", "sgd:momentum=0.9", "sgd:momentum=0.9,nesterov,wd=0.01", "adam", "adamw",
              "lion", "rmsprop", "rmsprop:momentum=0.5,centered", "adagrad", "nadam",
              "radam", "lamb",
              "lars", "adafactor", "muon", "schedule-free-sgd", "schedule-free-adamw", "adam8",
              "adam4", "apollo:rank=1,gap=2", "apollo:rank=2,tensor,front,wd=0.1", "apollo-mini",
              "adamw:bf16", "sgd:momentum=0.9,bf16", "lion:bf16"]
LOSSES = {"classes": ["ce", "ce", "ce"], "reals": ["mse", "l1", "huber", "bce"], "tokens": ["ce"],
          "graph": ["graph"]}
STEPS = 3
LARGE = ("picture", "sequence")     # kinds of networks with values for parts
SIZES = ["1B", "1B", "256B", "512B", "1KiB", "2KiB", "4KiB", "8KiB"]


class Options:
    """compile and run: what both programs get. way_compile, way_run: what the second one gets, too.
    close: numbers may differ by rounding, where the way of a sum is free by design. also: what else
    of both is compared (afterwards.py); files: options that write in training."""

    def __init__(self, dice, net):
        self.dice, self.net = dice, net
        self.compile, self.run = [], []
        self.way_compile, self.way_run = [], []
        self.close = self.in_two = False
        self.also, self.files = [], []
        self.level = "-O1" if dice.random() < 0.04 else "-O0"
        self.is_large = net.kind in LARGE
        self.mode = dice.choice(["plain"] * 24 + ["grads", "dp", "ensemble", "ensemble", "ensemble"]
                                if self.is_large else
                                ["plain"] * 9 + ["grads", "dp", "dp", "ensemble"])
        self.batch_and_parts()
        self.numbers()
        self.training()
        self.of_mode()
        self.ways()
        self.augmentation(random.Random(" ".join(self.compile + self.run)))

    def maybe(self, chance, *options):
        """Adds one of the options, each a text, to what both programs are compiled with."""
        if self.dice.random() < chance:
            self.compile += self.dice.choice(options).split()

    def has(self, option):
        return option in self.compile or option in self.way_compile

    def batch_and_parts(self):
        dice = self.dice
        self.parts = dice.choice([1, 1, 2, 3, 4, 6, 8]) if self.mode == "plain" else 1
        self.batch = self.parts * dice.choice([1, 2, 3]) if self.parts > 1 else dice.choice([4, 6])
        if self.is_large:
            self.parts = dice.choice([1, 1, 1, 1, 2, 2, 3, 4]) if self.mode == "plain" else 1
            self.batch = self.parts * self.of_part()
        self.accumulate = dice.choice([1, 1, 1, 2, 3])
        samples = self.batch * self.accumulate * (6 if self.mode == "ensemble" else 2)
        self.short = dice.randint(1, self.batch) if dice.random() < 0.3 else 0
        samples += self.short
        self.compile += ["--batch", str(self.batch)]
        if self.parts > 1:
            self.compile += ["--microbatches", str(self.parts)]
        if self.accumulate > 1:
            self.compile += ["--accumulate", str(self.accumulate)]
            if self.mode != "dp":
                self.maybe(0.1, "--sums running")
        held = dice.choice([1, 2, 5]) if dice.random() < 0.25 else 0
        self.run += ["--data", f"synthetic:{samples + held}", "--seed", str(dice.randint(0, 9)),
                     "--progress", "none"]
        if held:
            self.run += ["--val-split", str(held)]
            self.run += dice.choice([[], ["--val-every", "1"], ["--val-every", "2"]])
            self.run += dice.choice([[], ["--patience", "9"]])
            self.run += dice.choice([[], ["--limit-val-batches", "1"]])
            self.run += dice.choice([[], ["--metrics", "all"]])
        if dice.random() < 0.1:
            self.run += ["--limit-batches", "1"]
        if self.mode == "dp":
            self.run += ["--noise-seed", "5"]
        elif dice.random() < 0.2:
            self.run += ["--drop-last"]

    def of_part(self):
        """Samples of a part, where values are large: mostly one picture, or more tokens than a
        block of a sum has."""
        dice, net = self.dice, self.net
        if net.kind == "picture":
            return 1 if dice.random() < 0.7 else dice.choice([2, 3, 5])
        least = 256 // net.tokens + 1
        return dice.choice([least, least, least + 1, 1, 2])

    def losses(self):
        terms = []
        for name, kind in self.net.outputs:
            term = self.dice.choice(LOSSES[kind])
            if len(self.net.outputs) > 1:
                term += ":" + name + self.dice.choice(["", "@0.5"])
            terms.append(term)
        return ",".join(terms)

    def numbers(self):
        plain = self.mode == "plain"
        self.precision = self.dice.choice(["f32", "f32", "f32", "f64", "bf16",
                                           "f16" if plain else "bf16"])
        self.compile += ["--precision", self.precision]
        self.maybe(0.2 if plain else 0.02, "--loss-scale 128",
                   "--loss-scale dynamic:init=64,period=2", "--loss-scale torch:init=256,period=2")
        if self.precision == "bf16":
            self.maybe(0.2, "--bf16-sums pairs", "--bf16-sums tiles", "--precision-of y0=f32")

    def training(self):
        net, dice = self.net, self.dice
        optimizer = dice.choice(OPTIMIZERS)
        self.compile += ["--loss", self.losses(), "--optimizer", optimizer]
        kinds = {kind for _, kind in net.outputs}
        counted = 0.02 if self.mode in ("dp", "grads") else 0.15
        if kinds == {"classes"} or kinds == {"tokens"}:
            self.maybe(counted, "--ignore-index 1")
            self.maybe(0.15, "--label-smoothing 0.1")
            if len(net.outputs) == 1:
                self.maybe(0.15, "--head-chunks 1", "--head-chunks 2", "--head-chunks 3",
                           "--head-chunks 2 --head-gradient parts",
                           "--head-chunks 3 --head-gradient parts")
        if kinds == {"classes"}:
            self.maybe(counted, "--class-weights 1,2,0.5,1")
        self.maybe(0.25, "--clip-norm 0.1", "--clip-norm 1")
        self.maybe(0.1, "--clip-value 0.01")
        if not optimizer.startswith("schedule-free"):
            self.maybe(0.15, "--ema 0.9")
        if "wd=" in optimizer or optimizer in ("adamw", "adamw:bf16", "muon"):
            self.maybe(0.4, "--no-decay p*", "--no-decay none")
        if dice.random() < 0.15:
            self.compile += [dice.choice(["--freeze", "--freeze", "--train-only"]),
                             dice.choice(net.model.parameters)]
        elif dice.random() < 0.15:
            self.maybe(1, "--lora r=2", "--lora r=1,alpha=3", "--lora r=2,dora",
                       "--lora r=2,rslora", "--lora r=2,bias=all")
        self.maybe(0.1, "--schedule cosine:warmup=2", "--schedule step:every=1,gamma=0.5")
        if net.has_norm:
            trains = ["--bn train", "--bn train --bn-var torch"]
            rare = 0.1 if self.mode in ("dp", "grads") else 0.7
            self.compile += dice.choice(trains if dice.random() < rare else ["--bn frozen"]).split()
        if net.has_dropout:
            self.maybe(1, "--dropout on", "--dropout off", "--dropout off")

    def of_mode(self):
        """What a sample, a private run and an ensemble have beside the others."""
        dice = self.dice
        if self.mode == "grads":
            self.compile += ["--grads", dice.choice(["per-sample", "per-sample-norm"])]
            self.maybe(0.6, "--sample-norms pairs", "--sample-norms tiles", "--sample-norms terms")
            self.close = True
        elif self.mode == "dp":
            sums = dice.choice(["", ",sums=terms", ",sums=again"])
            self.compile += ["--dp", f"clip=0.3,noise=0.5,delta=1e-4{sums}"]
            self.close = sums != ",sums=terms"
        elif self.mode == "ensemble":
            self.compile += ["--ensemble", str(dice.choice([2, 3]))]
            self.maybe(0.5, "--ensemble-batches each")
            self.way(0.5, "--ensemble-lanes 2")
            if dice.random() < 0.5:
                self.run += ["--ensemble-seed", "4"]
        if self.mode != "plain" and (self.net.has_dropout or dice.random() < 0.1):
            self.maybe(0.95, "--randomness different", "--randomness same")

    def augmentation(self, dice):
        """Changes of samples, with dice of their own, so that other options stay as they are."""
        spec = self.compile.index("--loss") + 1
        if dice.random() < 0.15 and "--ignore-index" not in self.compile:
            terms = self.compile[spec].split(",")
            self.compile[spec] = ",".join(["soft_" + t if t.startswith("ce") else t for t in terms])
        if self.net.kind == "image" and dice.random() < 0.4:
            how = dice.choice(["flip", "flip=0.2,vflip", "crop=1", "crop=2:reflect,flip",
                               "resized-crop", "resized-crop=0.3-1,vflip", "flip,jitter=0.4/0.4",
                               "mixup=0.3", "rotate=30", "cutmix=1,flip",
                               "crop=1,mixup=1,cutmix=1"])
            self.augments = how
            self.run += ["--augment", how]
            self.way_run += ["--workers", str(dice.choice([0, 1, 3]))]
        elif self.net.kind == "vector" and dice.random() < 0.2:
            self.augments = "mixup=1"
            self.run += ["--augment", "mixup=1"]
        elif dice.random() < 0.03:
            self.augments = dice.choice(["flip", "mixup=1", "cutmix=1"])
            self.run += ["--augment", self.augments]

    # ---- what must not change a bit ----
    def way(self, chance, *options):
        if self.dice.random() < chance:
            self.way_compile += self.dice.choice(options).split()

    def ways(self):
        dice = self.dice
        if self.is_large:
            self.way(0.6, "--budget min", "--budget min", "--budget min", "--budget 90%")
        else:
            self.way(0.6, "--budget 90%", "--budget 75%", "--budget min", "--budget min")
        engines = ["one", "ranks", "stages" if self.accumulate == 1
                   or dice.random() < 0.05 else "one"]
        engine = dice.choice(engines if self.parts > 1 else ["one"])
        if engine == "stages" and self.is_large and dice.random() < 0.8:
            engine = "ranks"        # stages take no parts
        if engine == "ranks":
            self.on_ranks()
        elif engine == "stages":
            self.in_stages()
        if engine != "stages":
            self.way(0.2, "--strategy chen", "--strategy exact", "--strategy approx-mc")
            self.way(0.15, "--recompute all", "--recompute cheap", "--recompute conv-saved")
        elif dice.random() < 0.6:
            self.way_compile += ["--recompute", dice.choice(["none", "all", "except-last"])]
        self.way(0.15, "--no-inplace", "--no-alternatives", "--store-gradients")
        if self.is_large:
            self.in_parts()
        else:
            self.way(0.2, "--tiles 2@64B", "--tiles 3@256B", "--tiles 8@1B",
                     "--tiles 2tokens@64B", "--tiles 2rows@64B")
        self.way_run += ["--threads", str(dice.choice([1, 1, 2, 3]))]
        self.in_two = dice.random() < 0.15
        self.one_begins = dice.random() < 0.4
        self.is_one = engine == "one"
        self.afterwards()

    def afterwards(self):
        dice = self.dice
        for what, chance in (("evaluation", 0.15), ("prediction", 0.15), ("library", 0.1)):
            if dice.random() < chance and (what != "library" or self.may_be_library()):
                self.also.append(what)
        if dice.random() < 0.15:
            self.files += ["--export"]
        if not self.in_two and dice.random() < 0.15:
            self.files += ["--log"]
            if self.mode == "plain" and self.parts * self.accumulate == 1:
                self.files += dice.choice([[], ["--log-grad-norm"]])

    def may_be_library(self):
        return self.is_one and self.mode == "plain"

    def written(self, name):
        """Options for what this program writes in training."""
        out = []
        for option in self.files:
            out += {"--export": ["--export", f"{name}.onnx", "--no-export-notes"],
                    "--log": ["--log", f"{name}.log"]}.get(option, [option])
        if "--export" in out and self.mode == "ensemble":
            out += ["--export-member", "1"]
        return out

    def in_parts(self):
        dice, net = self.dice, self.net
        tiles = dice.choice([2, 2, 3, 3, 4, 5, 7, 16])
        if net.kind == "picture":
            of = "rows" if self.batch == self.parts else ""
        else:
            of = dice.choice(["tokens", "tokens", ""])
        if dice.random() < 0.03:
            of = dice.choice(["rows", "tokens", ""])
        if dice.random() < 0.05:
            self.way_compile += ["--tiles", "auto"]
            if not self.has("--budget"):
                self.way_compile += ["--budget", "min"]
        elif dice.random() < 0.95:
            self.way_compile += ["--tiles", f"{tiles}{of}@{dice.choice(SIZES)}"]

    def on_ranks(self):
        counts = [n for n in (2, 3, 4, 8) if self.parts % n == 0 and self.parts // n in (1, 2, 4)]
        n = self.dice.choice(counts)
        any_number = self.dice.random() < 0.3 and self.accumulate < 3
        self.way_compile += ["--ranks", "any" if any_number else str(n)]
        self.way_run += ["--ranks", str(n)] if any_number else []
        self.way_run += self.dice.choice([[], [], ["--bucket", "64"], ["--late-exchange"]])
        self.peers = n if self.dice.random() < 0.25 else 0

    def in_stages(self):
        n = self.dice.choice([2, 2, 3, 4])
        self.way_compile += ["--stages", str(n),
                             "--order", self.dice.choice(["gpipe", "1f1b", "zb"])]
        how = self.dice.choice(["threads", "threads", "processes", "peers"])
        self.way_run += ["--ranks", str(n)] if how == "processes" else []
        self.peers = n if how == "peers" else 0

    peers = 0
    augments = ""
