"""tests/export/zoo.py -- known architectures at small sizes, for tests/export/zoo_check.py.

They come from torchvision, timm and transformers, with random weights, or are written here where
those have none. ZOO: name -> Net. A constructor imports what it needs: each net stands alone.
"""
import torch
from torch import nn
from torch.nn import functional as F


class Net:
    """make: the module; inputs: name -> shape (floats) or (vocabulary, shape) (integers);
    pick: what of the module's result is compared; dynamic: exported for any batch;
    masked: called with an attention_mask of ones, without which transformers looks for packed
    sequences by an operator that the TorchScript exporter does not have."""

    def __init__(self, make, inputs, pick, dynamic, masked):
        self.make, self.inputs, self.pick = make, inputs, pick
        self.dynamic, self.masked = dynamic, masked


ZOO = {}


def image(size=32, batch=2):
    return {"x": (batch, 3, size, size)}


def text(vocabulary=31, length=8):
    return {"x": (vocabulary, (2, length))}


def net(inputs, pick=lambda y: y, dynamic=False, masked=False):
    def add(make):
        ZOO[make.__name__] = Net(make, inputs, pick, dynamic, masked)
        return make
    return add


def joined(outputs):
    return torch.cat([y.flatten(1) for y in outputs], 1)


# Convolutional classifiers

@net(image(), dynamic=True)
def resnet():
    from timm.models.resnet import BasicBlock, ResNet
    return ResNet(BasicBlock, (1, 1, 1, 1), num_classes=5, channels=(8, 16, 24, 32), stem_width=8)


@net(image())
def resnet_bottleneck_se():
    from timm.models.resnet import Bottleneck, ResNet
    return ResNet(Bottleneck, (1, 1, 1, 1), num_classes=5, channels=(4, 8, 8, 8), cardinality=2,
                  base_width=32, stem_type="deep", stem_width=8, avg_down=True,
                  block_args=dict(attn_layer="se"))


@net(image())
def resnetv2():
    from timm.models.resnetv2 import ResNetV2
    return ResNetV2((1, 1), channels=(128, 128), num_classes=5, stem_chs=32, bottle_ratio=0.25)


@net(image())
def vgg():
    from torchvision.models.vgg import VGG, make_layers
    m = VGG(make_layers([8, "M", 16, "M", 16], batch_norm=True), num_classes=5, dropout=0.0)
    m.avgpool = nn.AdaptiveAvgPool2d(4)
    m.classifier = nn.Sequential(nn.Linear(16 * 16, 16), nn.ReLU(True), nn.Linear(16, 5))
    return m


@net(image(64))
def alexnet():
    return nn.Sequential(nn.Conv2d(3, 16, 11, 4, 2), nn.ReLU(True), nn.MaxPool2d(3, 2),
                         nn.LocalResponseNorm(5), nn.Conv2d(16, 24, 5, padding=2), nn.ReLU(True),
                         nn.MaxPool2d(3, 2), nn.Flatten(), nn.Linear(216, 5))


@net(image())
def densenet():
    from torchvision.models import DenseNet
    return DenseNet(8, (2, 2), 8, num_classes=5)


@net(image(64))
def squeezenet():
    from torchvision.models.squeezenet import Fire
    return nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(True),
                         nn.MaxPool2d(3, 2, ceil_mode=True), Fire(16, 4, 8, 8), Fire(16, 4, 8, 8),
                         nn.MaxPool2d(3, 2, ceil_mode=True), nn.Conv2d(16, 5, 1), nn.ReLU(True),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten())


@net(image(64))
def inception():
    from torchvision.models.googlenet import Inception
    return nn.Sequential(nn.Conv2d(3, 16, 3, stride=4, bias=False), nn.BatchNorm2d(16),
                         Inception(16, 8, 8, 16, 4, 8, 8), Inception(40, 8, 8, 16, 4, 8, 8),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(40, 5))


@net(image(), dynamic=True)
def mobilenet_v2():
    from torchvision.models import MobileNetV2
    return MobileNetV2(5, 0.25, [[1, 16, 1, 1], [4, 24, 2, 2], [4, 32, 1, 2]], dropout=0.0)


@net(image())
def mobilenet_v3():
    from torchvision.models.mobilenetv3 import InvertedResidualConfig as C, MobileNetV3
    return MobileNetV3([C(16, 3, 16, 16, True, "RE", 2, 1, 1),
                        C(16, 3, 32, 24, False, "HS", 2, 1, 1),
                        C(24, 5, 48, 24, True, "HS", 1, 1, 1)], 32, 5, dropout=0.0)


@net(image())
def shufflenet_v2():
    from torchvision.models import ShuffleNetV2
    return ShuffleNetV2([2, 2, 2], [8, 16, 32, 48, 48], 5)


@net(image())
def mnasnet():
    from torchvision.models.mnasnet import _InvertedResidual, _stack
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
                         _stack(8, 12, 3, 2, 3, 2, 0.1), _InvertedResidual(12, 12, 5, 1, 3),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5))


@net(image())
def efficientnet():
    from torchvision.models.efficientnet import EfficientNet, MBConvConfig as C
    return EfficientNet([C(1, 3, 1, 16, 8, 1, 1, 1), C(4, 3, 2, 8, 12, 2, 1, 1),
                         C(4, 5, 2, 12, 16, 1, 1, 1)], 0.0, 0.0, 5, last_channel=32)


@net(image())
def efficientnet_v2():
    from torchvision.models.efficientnet import (EfficientNet, FusedMBConvConfig as Fu,
                                                 MBConvConfig as C)
    return EfficientNet([Fu(1, 3, 1, 16, 8, 1), Fu(4, 3, 2, 8, 16, 1), C(4, 3, 2, 16, 16, 1, 1, 1)],
                        0.0, 0.0, 5, last_channel=32)


@net(image())
def regnet():
    from torchvision.models.regnet import BlockParams, RegNet
    return RegNet(BlockParams([1, 1, 1], [8, 16, 24], [8, 8, 8], [1.0] * 3, [2, 2, 2], 0.25), 5,
                  stem_width=8)


@net(image())
def convnext():
    from timm.models.convnext import ConvNeXt
    return ConvNeXt(num_classes=5, depths=(1, 1, 1, 1), dims=(8, 16, 16, 24))


@net(image())
def convnext_torchvision():
    from torchvision.models.convnext import CNBlockConfig as C, ConvNeXt
    return ConvNeXt([C(8, 16, 1), C(16, None, 1)], num_classes=5)


@net(image())
def convnext_v2():
    from timm.models.convnext import ConvNeXt
    return ConvNeXt(num_classes=5, depths=(1, 1, 1, 1), dims=(8, 16, 16, 24), use_grn=True,
                    ls_init_value=None)


@net(image())
def repvgg():
    from timm.models.byobnet import ByoBlockCfg as B, ByoModelCfg, ByobNet
    return ByobNet(ByoModelCfg((B("rep", 1, 8, 2), B("rep", 2, 16, 2)), stem_type="rep",
                               stem_chs=8),
                   num_classes=5)


@net(image())
def nfnet():
    from timm.models.nfnet import NfCfg, NormFreeNet
    return NormFreeNet(NfCfg((1, 1), (32, 64), stem_type="3x3", stem_chs=16, attn_layer="se",
                             attn_kwargs=dict(rd_divisor=8)), num_classes=5)


@net(image(64))
def ghostnet():
    from timm.models.ghostnet import GhostBottleneck
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), GhostBottleneck(8, 16, 12, 3, 2, se_ratio=0.25),
                         GhostBottleneck(12, 24, 12, 5), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(12, 5))


# Segmentation

class Double(nn.Sequential):
    def __init__(self, a, b):
        super().__init__(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b),
                         nn.ReLU(True),
                         nn.Conv2d(b, b, 3, padding=1, bias=False), nn.BatchNorm2d(b),
                         nn.ReLU(True))


class UNet(nn.Module):
    """up: makes what doubles height and width."""

    def __init__(self, up):
        super().__init__()
        self.a, self.b, self.c, self.up = Double(3, 8), Double(8, 16), Double(24, 8), up
        self.out = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        a = self.a(x)
        return self.out(self.c(torch.cat((a, self.up(self.b(F.max_pool2d(a, 2)))), 1)))


@net(image(), dynamic=True)
def unet():
    return UNet(nn.ConvTranspose2d(16, 16, 2, 2))


@net(image())
def unet_bilinear():
    return UNet(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True))


def small_features():
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
                         nn.Conv2d(16, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(True))


class Segment(nn.Module):
    def __init__(self, head):
        super().__init__()
        self.features, self.head = small_features(), head

    def forward(self, x):
        return F.interpolate(self.head(self.features(x)), x.shape[-2:], mode="bilinear",
                             align_corners=False)


@net(image())
def fcn():
    from torchvision.models.segmentation.fcn import FCNHead
    head = FCNHead(32, 4)
    head[3] = nn.Identity()
    return Segment(head)


@net(image())
def deeplab():
    from torchvision.models.segmentation.deeplabv3 import ASPP
    aspp = ASPP(32, (2, 4), 16)
    aspp.project[3] = nn.Identity()
    return Segment(nn.Sequential(aspp, nn.Conv2d(16, 4, 1)))


@net(image(64), lambda y: y.logits)
def segformer():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation
    return SegformerForSemanticSegmentation(SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 24],
        patch_sizes=[7, 3],
        strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16,
        num_labels=4, classifier_dropout_prob=0.0, drop_path_rate=0.0))


# Detection

class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        from torchvision.models.detection.retinanet import RetinaNetHead
        from torchvision.ops import FeaturePyramidNetwork
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(True))
        self.down = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(True))
        self.fpn, self.head = FeaturePyramidNetwork([8, 16], 32), RetinaNetHead(32, 2, 3)

    def forward(self, x):
        a = self.stem(x)
        y = self.head(list(self.fpn({"a": a, "b": self.down(a)}).values()))
        return torch.cat((y["cls_logits"], y["bbox_regression"]), 2)


@net(image())
def retinanet():
    return Detector()


@net(image(64))
def ssd():
    from torchvision.models.detection.ssd import SSDHead

    class Ssd(nn.Module):
        def __init__(self):
            super().__init__()
            self.features, self.head = small_features(), SSDHead([32], [4], 3)

        def forward(self, x):
            y = self.head([self.features(x)])
            return torch.cat((y["cls_logits"], y["bbox_regression"]), 2)
    return Ssd()


@net(image(64))
def yolo():
    class Conv(nn.Sequential):
        def __init__(self, a, b, k=1, s=1):
            super().__init__(nn.Conv2d(a, b, k, s, k // 2, bias=False), nn.BatchNorm2d(b),
                             nn.SiLU(True))

    class Yolo(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.a, self.b = Conv(3, 8, 3, 2), Conv(8, 16, 3, 2), Conv(16, 16, 3, 2)
            self.pool, self.mix = Conv(64, 16), Conv(32, 16)
            self.heads = nn.ModuleList(nn.Conv2d(16, 14, 1) for _ in range(2))

        def forward(self, x):
            a = self.a(self.stem(x))
            b = self.b(a)
            p = [b]
            for _ in range(3):
                p.append(F.max_pool2d(p[-1], 5, 1, 2))
            b = self.pool(torch.cat(p, 1))
            a = self.mix(torch.cat((a, F.interpolate(b, scale_factor=2.0)), 1))
            return joined([h(y).unflatten(1, (2, 7)).permute(0, 1, 3, 4, 2).sigmoid()
                           for h, y in zip(self.heads, (a, b))])
    return Yolo()


@net(image(64), lambda y: joined([y.logits, y.pred_boxes]))
def yolos():
    from transformers import YolosConfig, YolosForObjectDetection
    return YolosForObjectDetection(YolosConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        image_size=[64, 64], patch_size=16, num_detection_tokens=4, num_labels=3))


# Vision transformers

@net(image(), dynamic=True)
def vit():
    from timm.models.vision_transformer import VisionTransformer
    return VisionTransformer(32, 8, num_classes=5, embed_dim=16, depth=2, num_heads=2)


@net(image())
def vit_torchvision():
    from torchvision.models import VisionTransformer
    return VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=5)


@net(image(), lambda y: y.logits)
def vit_transformers():
    from transformers import ViTConfig, ViTForImageClassification
    return ViTForImageClassification(ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        image_size=32, patch_size=8, num_labels=5))


@net(image())
def beit():
    from timm.models.beit import Beit
    m = Beit(32, 8, num_classes=5, embed_dim=16, depth=2, num_heads=2,
             use_shared_rel_pos_bias=False, use_rel_pos_bias=True, init_values=0.1)
    # the default exporter cannot decompose fused attention whose mask has a gradient
    for block in m.blocks:
        block.attn.fused_attn = False
    return m


@net(image())
def eva_rope():
    from timm.models.eva import Eva
    return Eva(32, 8, num_classes=5, embed_dim=16, depth=2, num_heads=2, use_rot_pos_emb=True,
               swiglu_mlp=True)


@net(image())
def cait():
    from timm.models.cait import Cait
    return Cait(32, 8, num_classes=5, embed_dim=16, depth=2, num_heads=2)


@net(image())
def xcit():
    from timm.models.xcit import Xcit
    return Xcit(32, 8, num_classes=5, embed_dim=16, depth=2, num_heads=2, cls_attn_layers=1)


@net(image())
def swin():
    from timm.models.swin_transformer import SwinTransformer
    return SwinTransformer(32, 4, num_classes=5, embed_dim=16, depths=(2, 2), num_heads=(2, 2),
                           window_size=4, drop_path_rate=0.0)


@net(image())
def swin_torchvision():
    from torchvision.models import SwinTransformer
    return SwinTransformer([4, 4], 16, [2, 2], [2, 2], [2, 2], num_classes=5,
                           stochastic_depth_prob=0.0)


@net(image())
def swin_v2():
    from timm.models.swin_transformer_v2 import SwinTransformerV2
    return SwinTransformerV2(32, 4, num_classes=5, embed_dim=16, depths=(2, 2), num_heads=(2, 2),
                             window_size=4, drop_path_rate=0.0)


@net(image(64))
def maxvit():
    from torchvision.models import MaxVit
    return MaxVit((64, 64), 8, 4, [8, 16], [1, 1], 8, 0.0, num_classes=5)


@net(image())
def mixer():
    from timm.models.mlp_mixer import MlpMixer
    return MlpMixer(5, img_size=32, patch_size=8, num_blocks=2, embed_dim=16)


@net(image())
def poolformer():
    from timm.models.metaformer import GroupNorm1, MetaFormer, Pooling
    return MetaFormer(num_classes=5, depths=(1, 1), dims=(8, 16), token_mixers=Pooling,
                      norm_layers=GroupNorm1)


@net(image(64))
def mobilevit():
    from timm.models.mobilevit import MobileVitBlock
    return nn.Sequential(nn.Conv2d(3, 16, 3, 4, 1), nn.BatchNorm2d(16), nn.SiLU(),
                         MobileVitBlock(16, transformer_dim=16, transformer_depth=1, num_heads=2,
                                        patch_size=2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))


@net(image(64))
def pvt_v2():
    from timm.models.pvt_v2 import PyramidVisionTransformerV2
    return PyramidVisionTransformerV2(num_classes=5, depths=(1, 1), embed_dims=(8, 16),
                                      num_heads=(1, 2), sr_ratios=(2, 1), mlp_ratios=(2., 2.))


@net(image())
def focalnet():
    from timm.models.focalnet import FocalNet
    return FocalNet(num_classes=5, embed_dim=8, depths=(1, 1), drop_path_rate=0.0)


# Language models

TINY = dict(vocab_size=31, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=32)
NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def logits(y):
    return y.logits


@net(text(), logits, dynamic=True, masked=True)
def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(vocab_size=31, n_positions=16, n_embd=16, n_layer=2, n_head=2,
                                      resid_pdrop=0.,
                                      embd_pdrop=0., attn_pdrop=0., use_cache=False))


@net(text(), logits, dynamic=True, masked=True)
def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(**TINY, num_key_value_heads=1, use_cache=False))


@net(text(), logits, masked=True)
def qwen2():
    from transformers import Qwen2Config, Qwen2ForCausalLM
    return Qwen2ForCausalLM(Qwen2Config(**TINY, num_key_value_heads=1, use_cache=False,
                                        tie_word_embeddings=True))


@net(text(), logits, masked=True)
def qwen3():
    from transformers import Qwen3Config, Qwen3ForCausalLM
    return Qwen3ForCausalLM(Qwen3Config(**TINY, num_key_value_heads=1, head_dim=8, use_cache=False))


@net(text(), logits, masked=True)
def mistral():
    from transformers import MistralConfig, MistralForCausalLM
    return MistralForCausalLM(MistralConfig(**TINY, num_key_value_heads=1, use_cache=False,
                                            sliding_window=4))


@net(text(), logits, masked=True)
def gemma():
    from transformers import GemmaConfig, GemmaForCausalLM
    return GemmaForCausalLM(GemmaConfig(**TINY, num_key_value_heads=1, head_dim=8, use_cache=False))


@net(text(), logits, masked=True)
def phi():
    from transformers import PhiConfig, PhiForCausalLM
    return PhiForCausalLM(PhiConfig(**TINY, use_cache=False))


@net(text(), logits)
def opt():
    from transformers import OPTConfig, OPTForCausalLM
    return OPTForCausalLM(OPTConfig(
        vocab_size=31, hidden_size=16, num_hidden_layers=2, ffn_dim=32, num_attention_heads=2,
        dropout=0.0, word_embed_proj_dim=16, max_position_embeddings=16, use_cache=False))


@net(text(), logits, masked=True)
def gpt_neox():
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM
    return GPTNeoXForCausalLM(GPTNeoXConfig(**TINY, use_cache=False))


@net(text(), logits)
def bloom():
    from transformers import BloomConfig, BloomForCausalLM
    return BloomForCausalLM(BloomConfig(vocab_size=31, hidden_size=16, n_layer=2, n_head=2,
                                        use_cache=False))


@net(text(), logits)
def mamba():
    from transformers import MambaConfig, MambaForCausalLM
    return MambaForCausalLM(MambaConfig(vocab_size=31, hidden_size=16, state_size=4,
                                        num_hidden_layers=1, use_cache=False))


@net(text(), logits, masked=True)
def mixtral():
    from transformers import MixtralConfig, MixtralForCausalLM
    return MixtralForCausalLM(MixtralConfig(**TINY, num_key_value_heads=1, num_local_experts=2,
                                            use_cache=False, experts_implementation="eager"))


@net(text(), logits, dynamic=True)
def bert():
    from transformers import BertConfig, BertForMaskedLM
    return BertForMaskedLM(BertConfig(**TINY, **NO_DROPOUT, max_position_embeddings=16))


@net({"x": (31, (2, 8)), "mask": (2, (2, 8))}, logits)
def bert_masked():
    from transformers import BertConfig, BertForSequenceClassification
    return BertForSequenceClassification(BertConfig(**TINY, **NO_DROPOUT,
                                                    max_position_embeddings=16, num_labels=5))


@net(text(), logits)
def distilbert():
    from transformers import DistilBertConfig, DistilBertForMaskedLM
    return DistilBertForMaskedLM(DistilBertConfig(
        vocab_size=31, max_position_embeddings=16, n_layers=2, n_heads=2, dim=16, hidden_dim=32,
        dropout=0.0, attention_dropout=0.0))


@net(text(), logits)
def albert():
    from transformers import AlbertConfig, AlbertForMaskedLM
    return AlbertForMaskedLM(AlbertConfig(**TINY, **NO_DROPOUT, embedding_size=8,
                                          max_position_embeddings=16))


@net({"x": (31, (2, 8)), "decoder": (31, (2, 6))}, logits)
def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    class Pair(T5ForConditionalGeneration):
        def forward(self, x, decoder):
            return super().forward(input_ids=x, decoder_input_ids=decoder, use_cache=False)
    # The default exporter cannot decompose fused attention whose mask has a gradient.
    return Pair(T5Config(vocab_size=31, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
                         dropout_rate=0.0, attn_implementation="eager"))


@net({"x": (31, (2, 8)), "decoder": (31, (2, 6))}, logits)
def bart():
    from transformers import BartConfig, BartForConditionalGeneration

    class Pair(BartForConditionalGeneration):
        def forward(self, x, decoder):
            return super().forward(input_ids=x, decoder_input_ids=decoder, use_cache=False)
    return Pair(BartConfig(
        vocab_size=31, max_position_embeddings=16, encoder_layers=1, encoder_ffn_dim=32,
        encoder_attention_heads=2,
        decoder_layers=1, decoder_ffn_dim=32, decoder_attention_heads=2, d_model=16, dropout=0.0))


@net({"x": (31, (2, 8)), "image": (2, 3, 32, 32)},
     lambda y: torch.cat((y.logits_per_text, y.text_embeds, y.image_embeds), 1))
def clip():
    from transformers import CLIPConfig, CLIPModel
    small = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    return CLIPModel(CLIPConfig(text_config=dict(small, vocab_size=31, max_position_embeddings=8,
                                                 eos_token_id=30, bos_token_id=1, pad_token_id=0),
                                vision_config=dict(small, image_size=32, patch_size=8),
                                projection_dim=8))


# Recurrent

class Tagger(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.tok, self.rnn = nn.Embedding(31, 8), kind(8, 12, 2, batch_first=True,
                                                       bidirectional=True)
        self.fc = nn.Linear(24, 5)

    def forward(self, x):
        return self.fc(self.rnn(self.tok(x))[0])


@net(text())
def lstm_tagger():
    return Tagger(nn.LSTM)


@net(text())
def gru_tagger():
    return Tagger(nn.GRU)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.encoder = nn.Embedding(31, 12), nn.GRU(12, 12, batch_first=True)
        self.decoder, self.fc = nn.LSTM(12, 12, batch_first=True), nn.Linear(24, 31)

    def forward(self, x, decoder):
        memory, h = self.encoder(self.tok(x))
        y = self.decoder(self.tok(decoder), (h, torch.zeros_like(h)))[0]
        weight = torch.softmax(y @ memory.transpose(1, 2), -1)
        return self.fc(torch.cat((y, weight @ memory), -1))


@net({"x": (31, (2, 8)), "decoder": (31, (2, 6))})
def translator():
    return Translator()


@net({"x": (2, 4, 3, 8, 8)})
def conv_lstm():
    class ConvLstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.gates = nn.Conv2d(11, 32, 3, padding=1)

        def forward(self, x):
            h = c = x.new_zeros(x.shape[0], 8, 8, 8)
            for t in range(4):
                i, f, o, g = self.gates(torch.cat((x[:, t], h), 1)).chunk(4, 1)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
            return h
    return ConvLstm()


# Graphs: x are the nodes' features, edges the two ends of each edge

GRAPH = {"x": (6, 8), "edges": (6, (2, 14))}


class Gcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 5)

    def forward(self, x, edges):
        start, end = edges[0], edges[1]
        ones = torch.ones(edges.shape[1], dtype=x.dtype)
        degree = torch.zeros(x.shape[0], dtype=x.dtype).scatter_add(0, end, ones) + 1
        norm = (degree[start] * degree[end]).rsqrt()[:, None]
        for layer in (self.a, self.b):
            x = layer(x)
            x = torch.relu(x / degree[:, None]
                           + torch.zeros_like(x).index_add(0, end, norm * x[start]))
        return x


@net(GRAPH)
def gcn():
    return Gcn()


class Gat(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.att, self.out = nn.Linear(8, 16), nn.Linear(32, 1), nn.Linear(16, 5)

    def forward(self, x, edges):
        h, start, end = self.lin(x), edges[0], edges[1]
        e = F.leaky_relu(self.att(torch.cat((h[start], h[end]), 1)), 0.2).exp()
        total = torch.zeros(x.shape[0], 1, dtype=x.dtype).scatter_add(0, end[:, None], e)
        alpha = e / (total[end] + 1e-6)
        message = (alpha * h[start])
        return self.out(torch.zeros_like(h).scatter_add(0, end[:, None].expand_as(message),
                                                        message))


@net(GRAPH)
def gat():
    return Gat()


@net(GRAPH)
def gin_max():
    class Gin(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.out = nn.Linear(8, 16), nn.Linear(16, 5)

        def forward(self, x, edges):
            h = self.lin(x)
            at = edges[1][:, None].expand(-1, 16)
            return self.out(h.scatter_reduce(0, at, h[edges[0]], "amax", include_self=True))
    return Gin()


# Diffusion

class Step(nn.Module):
    """A block of a diffusion U-Net: group norms, the time's embedding, attention over the image."""

    def __init__(self, n):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.GroupNorm(4, n) for _ in range(3))
        self.conv1, self.conv2 = nn.Conv2d(n, n, 3, padding=1), nn.Conv2d(n, n, 3, padding=1)
        self.time, self.qkv, self.out = nn.Linear(16, n), nn.Linear(n, 3 * n), nn.Linear(n, n)

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        x = x + self.conv2(F.silu(self.norm2(h)))
        n, c, height, width = x.shape
        q, k, v = self.qkv(self.norm3(x).flatten(2).transpose(1, 2)).view(n, -1, 3, 2,
                                                                          c // 2).permute(2, 0, 3,
                                                                                          1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, -1, c)
        return x + self.out(y).transpose(1, 2).view(n, c, height, width)


class Diffusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 16))
        self.first, self.a, self.down = nn.Conv2d(3, 8, 3,
                                                  padding=1), Step(8), nn.Conv2d(8, 16, 3, 2, 1)
        self.b, self.up, self.last = Step(16), nn.Conv2d(16, 8, 3,
                                                         padding=1), nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, x, t):
        angle = t[:, None].to(x.dtype) * torch.exp(torch.arange(4, dtype=x.dtype) * -2.3)
        t = self.time(torch.cat((angle.sin(), angle.cos()), 1))
        a = self.a(self.first(x), t)
        b = self.b(self.down(a), t)
        return self.last(torch.cat((a, self.up(F.interpolate(b, scale_factor=2.0, mode="nearest"))),
                                   1))


@net({"x": (2, 3, 16, 16), "t": (100, (2,))})
def diffusion_unet():
    return Diffusion()


# Audio

@net({"x": (2, 800)}, logits)
def wav2vec2():
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC
    return Wav2Vec2ForCTC(Wav2Vec2Config(
        vocab_size=12, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout=0., activation_dropout=0., attention_dropout=0., feat_proj_dropout=0.,
        final_dropout=0.,
        layerdrop=0., conv_dim=(8, 8, 8), conv_stride=(5, 4, 2), conv_kernel=(10, 8, 4),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4, apply_spec_augment=False, mask_time_prob=0.0))


@net({"x": (2, 8, 32), "decoder": (31, (2, 6))}, logits)
def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    class Pair(WhisperForConditionalGeneration):
        def forward(self, x, decoder):
            return super().forward(input_features=x, decoder_input_ids=decoder, use_cache=False,
                                   decoder_attention_mask=torch.ones_like(decoder))
    return Pair(WhisperConfig(
        vocab_size=31, num_mel_bins=8, encoder_layers=1, encoder_attention_heads=2,
        decoder_layers=1,
        decoder_attention_heads=2, decoder_ffn_dim=32, encoder_ffn_dim=32, d_model=16, dropout=0.0,
        max_source_positions=16, max_target_positions=8, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1))


@net({"x": (2, 1, 200)})
def wavenet():
    class WaveNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Conv1d(1, 8, 1), nn.Conv1d(8, 5, 1)
            self.gated = nn.ModuleList(
                nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 16, 2, dilation=2 ** i))
                for i in range(3))

        def forward(self, x):
            x = self.first(x)
            for i, conv in enumerate(self.gated):
                a, b = conv(F.pad(x, (2 ** i, 0))).chunk(2, 1)
                x = x + a.tanh() * b.sigmoid()
            return self.last(x)
    return WaveNet()


# Video

@net({"x": (2, 3, 4, 16, 16)})
def video_resnet():
    from torchvision.models.video.resnet import BasicBlock, Conv3DSimple
    down = nn.Sequential(nn.Conv3d(8, 16, 1, 2, bias=False), nn.BatchNorm3d(16))
    return nn.Sequential(nn.Conv3d(3, 8, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False),
                         nn.BatchNorm3d(8), nn.ReLU(True),
                         BasicBlock(8, 8, Conv3DSimple), BasicBlock(8, 16, Conv3DSimple, 2, down),
                         nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 5))


@net({"x": (2, 3, 4, 16, 16)})
def video_swin():
    from torchvision.models.video.swin_transformer import SwinTransformer3d
    return SwinTransformer3d([2, 4, 4], 16, [2, 2], [2, 2], [2, 2, 2], num_classes=5,
                             stochastic_depth_prob=0.0)


@net({"x": (2, 3, 4, 16, 16)})
def s3d():
    from torchvision.models.video.s3d import SepInceptionBlock3D, TemporalSeparableConv
    norm = nn.BatchNorm3d
    return nn.Sequential(TemporalSeparableConv(3, 8, 7, 2, 3, norm),
                         nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)),
                         SepInceptionBlock3D(8, 8, 8, 8, 4, 8, 8, norm), nn.AdaptiveAvgPool3d(1),
                         nn.Flatten(), nn.Linear(32, 5))
