"""Models of the kinds of the experts, tiny and with random weights, saved as checkpoints are on the hub.

They know nothing, but they are loaded, fed and read by the code that loads the real ones. Their weights are drawn
larger than usual, so that different inputs give different outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

#: The side of the pictures that the tiny models of pictures see.
SIDE = 16
WORDS = (  # noqa: SIM905  # read as lines of words
    "the a cat dog lighthouse was built in 1874 by keeper sea light red blue is on what when who how many sat mat "
    "story old new translate english to german sentence one two three good bad big small house tree river near under "
    "answer yes no continue words boat island storm and it stood went came saw there"
).split()
#: More than the real one has, so that random weights tell texts apart.
FEELINGS = ["NEGATIVE", "POSITIVE", "NEUTRAL", "GLAD", "SAD", "CALM"]
MARKS = [".", ",", "?", "!", ":"]


def tokenizer(kind: str, folder: Path, most: int = 64) -> Any:
    """A tokenizer of words, with the special tokens of a kind of model: ``bert``, ``bart``, ``t5``, ``gpt2``."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = {
        "bert": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        "bart": ["<s>", "<pad>", "</s>", "<unk>"],
        "t5": ["<pad>", "</s>", "<unk>"],
        "gpt2": ["<|endoftext|>"],
    }[kind]
    unknown = next((token for token in special if "unk" in token.lower()), special[0])
    pieces = ["##s", "##ing"] if kind == "bert" else []
    vocabulary = {token: number for number, token in enumerate([*special, *WORDS, *MARKS, *pieces])}
    if kind == "bert":
        made = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
        # What stands between brackets is a special token and not split.
    else:
        made = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if kind == "bert":
        pair = "[CLS] $A [SEP] $B:1 [SEP]:1"
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair=pair, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]", "pad_token": "[PAD]"}
    elif kind == "bart":
        made.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
        names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    elif kind == "t5":
        made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
        names = {"eos_token": "</s>", "pad_token": "<pad>"}
    else:
        names = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
    found = PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token=unknown, model_max_length=most, clean_up_tokenization_spaces=False, **names
    )
    found.save_pretrained(folder)
    return found


def save(model: Any, folder: Path, spread: float = 0.4) -> None:
    """The model with larger weights, so that it is sure of what it says."""
    with torch.no_grad():
        for name, number in model.named_parameters():
            if number.dim() > 1 and "relative_attention_bias" not in name:
                number.normal_(0, spread)
    model.save_pretrained(folder)


def _bert(**more: Any) -> dict[str, Any]:
    size = len(WORDS) + len(MARKS) + 7
    return {"vocab_size": size, "max_position_embeddings": 64, **more}


def _distil(**more: Any) -> Any:
    from transformers import DistilBertConfig

    return DistilBertConfig(**_bert(dim=16, n_layers=2, n_heads=2, hidden_dim=32, pad_token_id=0, **more))


def sentiment(folder: Path) -> None:
    from transformers import DistilBertForSequenceClassification

    tokenizer("bert", folder)
    save(DistilBertForSequenceClassification(_distil(id2label=dict(enumerate(FEELINGS)))), folder, 0.8)


def fill_mask(folder: Path) -> None:
    from transformers import DistilBertForMaskedLM

    tokenizer("bert", folder)
    save(DistilBertForMaskedLM(_distil()), folder)


def question_answering(folder: Path) -> None:
    from transformers import DistilBertForQuestionAnswering

    tokenizer("bert", folder)
    save(DistilBertForQuestionAnswering(_distil()), folder)


def summarization(folder: Path) -> None:
    from transformers import BartConfig, BartForConditionalGeneration

    size = len(tokenizer("bart", folder))
    config = BartConfig(
        vocab_size=size, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=160,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2,
    )  # fmt: skip
    save(BartForConditionalGeneration(config), folder)


def translation(folder: Path) -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    size = len(tokenizer("t5", folder))
    config = T5Config(
        vocab_size=size, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    save(T5ForConditionalGeneration(config), folder)


def text_generation(folder: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    size = len(tokenizer("gpt2", folder))
    config = GPT2Config(vocab_size=size, n_positions=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    save(GPT2LMHeadModel(config), folder)


def super_resolution(folder: Path, upscale: int = 2) -> None:
    from transformers import Swin2SRConfig, Swin2SRForImageSuperResolution, Swin2SRImageProcessorPil

    config = Swin2SRConfig(
        embed_dim=12, depths=[2], num_heads=[2], window_size=4, mlp_ratio=1.0, upscale=upscale, image_size=16,
        upsampler="nearest+conv" if upscale == 4 else "pixelshuffle",
    )  # fmt: skip
    Swin2SRForImageSuperResolution(config).save_pretrained(folder)
    Swin2SRImageProcessorPil().save_pretrained(folder)


def realworld(folder: Path) -> None:
    super_resolution(folder, upscale=4)


def classification(folder: Path) -> None:
    from transformers import ViTForImageClassification

    vit_processor(folder)
    save(ViTForImageClassification(_vit(id2label={0: "cat", 1: "dog", 2: "boat", 3: "tree"})), folder)


def _vit(**more: Any) -> Any:
    from transformers import ViTConfig

    return ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=SIDE,
        patch_size=4, **more,
    )  # fmt: skip


def vit_processor(folder: Path) -> None:
    from transformers import ViTImageProcessorPil

    ViTImageProcessorPil(size={"height": SIDE, "width": SIDE}).save_pretrained(folder)


def detection(folder: Path) -> None:
    from transformers import DetrConfig, DetrForObjectDetection, DetrImageProcessorPil, ResNetConfig

    backbone = ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage4"],
    )  # fmt: skip
    config = DetrConfig(
        backbone_config=backbone, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, num_queries=12,
        id2label=dict(enumerate(WORDS[:12])),
    )  # fmt: skip
    save(DetrForObjectDetection(config), folder)
    DetrImageProcessorPil(size={"shortest_edge": 32, "longest_edge": 48}).save_pretrained(folder)


def captioning(folder: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel, VisionEncoderDecoderModel, ViTModel

    size = len(tokenizer("gpt2", folder))
    decoder = GPT2Config(
        vocab_size=size, n_positions=64, n_embd=16, n_layer=1, n_head=2, add_cross_attention=True, is_decoder=True,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    # The published one has no weights for the pooler, which is not used.
    model = VisionEncoderDecoderModel(
        encoder=ViTModel(_vit(), add_pooling_layer=False), decoder=GPT2LMHeadModel(decoder)
    )
    for config in (model.config, model.generation_config):
        config.decoder_start_token_id = config.bos_token_id = config.eos_token_id = config.pad_token_id = 0
    save(model, folder)
    vit_processor(folder)


def visual_question_answering(folder: Path) -> None:
    from transformers import ViltConfig, ViltForQuestionAnswering, ViltImageProcessorPil

    tokenizer("bert", folder, most=40)
    answers = dict(enumerate(WORDS[:20]))
    config = ViltConfig(
        vocab_size=_bert()["vocab_size"], hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, image_size=32, patch_size=8, id2label=answers,
    )  # fmt: skip
    save(ViltForQuestionAnswering(config), folder)
    ViltImageProcessorPil(size={"shortest_edge": 32}, size_divisor=8).save_pretrained(folder)


def git(folder: Path) -> None:
    from transformers import CLIPImageProcessorPil, GitConfig, GitForCausalLM

    tokenizer("bert", folder)
    vision = {
        "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "image_size": SIDE, "patch_size": 4, "projection_dim": 16,
    }  # fmt: skip
    config = GitConfig(
        vision_config=vision, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        bos_token_id=2, eos_token_id=3, **_bert(),
    )  # fmt: skip
    save(GitForCausalLM(config), folder)
    CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}).save_pretrained(
        folder
    )


def _diffusion(folder: Path, channels: int, name: str) -> None:
    """A Stable Diffusion of parts: text encoder, autoencoder, network, schedule, safety checker."""
    import diffusers
    from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    letters = [chr(code) for code in range(33, 127)]
    tokens = [*letters, *(letter + "</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    words = CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=24)
    text = {
        "vocab_size": len(vocabulary), "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
        "num_attention_heads": 2, "max_position_embeddings": 24, "bos_token_id": len(vocabulary) - 2,
        "eos_token_id": len(vocabulary) - 1, "projection_dim": 16,
    }  # fmt: skip
    vision = {
        "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "image_size": SIDE, "patch_size": 8, "projection_dim": 16,
    }  # fmt: skip
    checker = StableDiffusionSafetyChecker(CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))
    checker.concept_embeds_weights.fill_(2.0)  # nothing is similar enough to be refused
    checker.special_care_embeds_weights.fill_(2.0)
    unet = diffusers.UNet2DConditionModel(
        sample_size=8, in_channels=channels, out_channels=4, block_out_channels=(8, 16), layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16, attention_head_dim=4, norm_num_groups=4,
    )  # fmt: skip
    vae = diffusers.AutoencoderKL(
        block_out_channels=(8, 8, 8, 8), down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4, latent_channels=4, norm_num_groups=4, sample_size=64,
    )  # fmt: skip
    pipeline = getattr(diffusers, name)(
        vae=vae,
        text_encoder=CLIPTextModel(CLIPTextConfig(**text)),
        tokenizer=words,
        unet=unet,
        scheduler=diffusers.DDIMScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", clip_sample=False,
            set_alpha_to_one=False, steps_offset=1,
        ),
        safety_checker=checker,
        feature_extractor=CLIPImageProcessorPil(
            size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}
        ),
    )  # fmt: skip
    pipeline.save_pretrained(folder)


def text_to_image(folder: Path) -> None:
    _diffusion(folder, 4, "StableDiffusionPipeline")


def colorization(folder: Path) -> None:
    _diffusion(folder, 8, "StableDiffusionInstructPix2PixPipeline")


#: What builds the checkpoint of each of the fifteen tools. Denoising and deblurring share one.
BUILDERS: dict[str, Callable[[Path], None]] = {
    "colorization": colorization,
    "super_resolution": super_resolution,
    "denoising": realworld,
    "deblurring": realworld,
    "classification": classification,
    "detection": detection,
    "captioning": captioning,
    "text_to_image": text_to_image,
    "summarization": summarization,
    "text_generation": text_generation,
    "translation": translation,
    "fill_mask": fill_mask,
    "sentiment": sentiment,
    "visual_question_answering": visual_question_answering,
    "question_answering": question_answering,
}


def build_all(folder: Path) -> dict[str, str]:
    """The checkpoint of each tool."""
    places: dict[Callable[[Path], None], Path] = {}
    for name, build in BUILDERS.items():
        if build not in places:
            places[build] = folder / name
            torch.manual_seed(3)  # each for itself, so that a change of one leaves the others as they are
            build(places[build])
    return {name: str(places[build]) for name, build in BUILDERS.items()}
