"""The diffusion member: transformers' DiffusionGemma, its two passes over packed rows, its sampler.

The library's encoder and decoder layers are called one by one, as its forward passes call them,
with an attention that knows rows of several documents and several canvases.  Rows of different
lengths stand in one long row; only the attention takes them apart (`Span`).
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from transformers import AttentionInterface
from transformers.models.diffusion_gemma.configuration_diffusion_gemma import (
    DiffusionGemmaConfig, DiffusionGemmaTextConfig)
from transformers.models.diffusion_gemma.modeling_diffusion_gemma import (
    DiffusionGemmaForBlockDiffusion)
from transformers.models.gemma4.configuration_gemma4 import Gemma4VisionConfig

import model as family
from canvas_settings import CANVAS

_S, _F = "sliding_attention", "full_attention"
# What the members' sizes say to others than the library's configuration of the text part.
_NOT_TEXT = ("attention_k_eq_v", "hidden_size_per_layer_input", "enable_moe_block",
             "canvas_length")


def build(name, vocab_size):
    """A fresh model with trainable scales of its layers, on the CPU in float32, without a tower."""
    sizes = family.MEMBERS[name]["config"]
    settings = {k: v for k, v in sizes.items() if k not in _NOT_TEXT}
    text = DiffusionGemmaTextConfig(vocab_size=vocab_size, **settings)
    tower = Gemma4VisionConfig(hidden_size=16,
                               intermediate_size=16,
                               num_hidden_layers=1,
                               num_attention_heads=1,
                               num_key_value_heads=1,
                               head_dim=16,
                               position_embedding_size=16)
    config = DiffusionGemmaConfig(text_config=text,
                                  vision_config=tower,
                                  canvas_length=sizes["canvas_length"])
    model = DiffusionGemmaForBlockDiffusion(config).float()
    model.tie_weights()
    del model.model.encoder.vision_tower, model.model.encoder.embed_vision
    for part in _parts(model):
        part.embed_tokens.padding_idx = None  # the filler is a token like others
        for layer in part.layers:  # a buffer in the reference; here it is learnt
            del layer.layer_scalar
            layer.layer_scalar = torch.nn.Parameter(torch.ones(1))
    _check(model)
    return model


def _parts(model):
    return model.model.encoder.language_model, model.model.decoder


def _check(model):
    """Weights are shared, and layers have the shapes that the file's metadata will say."""
    encoder, decoder = _parts(model)
    own = dict(decoder.named_parameters())
    for name, parameter in encoder.named_parameters():
        if not name.endswith("layer_scalar"):
            assert parameter is own[name], f"encoder and decoder do not share {name}"
    assert model.lm_head.weight is decoder.embed_tokens.weight, "the head is not the table"
    c = model.config.text_config
    for kind, layer in zip(c.layer_types, decoder.layers):
        attention = layer.self_attn
        assert (attention.v_proj is None) == (kind == _F), "values are keys on global layers only"


def state_of(model):
    """Trained tensors as float32 arrays: the decoder's names without its path, encoder_scalar."""
    encoder, decoder = _parts(model)
    state = {f"model.{k}": v for k, v in decoder.state_dict().items()}
    for i, layer in enumerate(encoder.layers):
        state[f"model.layers.{i}.encoder_scalar"] = layer.layer_scalar
    return {k: v.detach().float().cpu().numpy() for k, v in state.items()}


@torch.no_grad()
def load_state(model, state):
    """The inverse; every tensor must find its place."""
    encoder, decoder = _parts(model)
    places = {f"model.{k}": v for k, v in decoder.state_dict().items()}
    for i, layer in enumerate(encoder.layers):
        places[f"model.layers.{i}.encoder_scalar"] = layer.layer_scalar
    assert set(places) == set(state), set(places) ^ set(state)
    for name, place in places.items():
        place.copy_(torch.from_numpy(state[name].copy()))


class Span(NamedTuple):
    """Rows of one length: how many, their tokens, and the canvases in each."""

    rows: int
    length: int
    slots: int


class Masks(NamedTuple):
    """Who sees whom in the rows of one span: sliding and global, for text and for canvases."""

    text: dict
    canvas: dict


def masks(docs, begins, window):
    """Of rows x length document numbers and rows x slots first tokens of canvases.

    A canvas sees its document before it (on sliding layers the last window - 1 tokens of that) and
    itself; a token sees its document up to itself (the last `window` tokens).
    """
    rows, length = docs.shape
    slots = begins.shape[1]
    at = torch.arange(length, device=docs.device)
    same = docs[:, :, None] == docs[:, None, :]
    text = same & (at[:, None] >= at[None, :])
    near = at[:, None] - at[None, :] < window
    # The token before a canvas is of its document: no canvas begins at a row's first token.
    doc = docs.gather(1, (begins - 1).clamp(min=0))
    prefix = (docs[:, None, :] == doc[:, :, None]) & (at < begins[:, :, None])
    close = at >= begins[:, :, None] - (window - 1)
    own = torch.eye(slots, dtype=torch.bool, device=docs.device)
    own = own.repeat_interleave(CANVAS, 0).repeat_interleave(CANVAS, 1)
    own = own.expand(rows, -1, -1)

    def canvas(seen):
        return torch.cat([seen.repeat_interleave(CANVAS, 1), own], 2)[:, None]

    return Masks({_S: (text & near)[:, None], _F: text[:, None]},
                 {_S: canvas(prefix & close), _F: canvas(prefix)})


def _attention(module, query, key, value, attention_mask, scaling=1.0, spans=(), masks=(),
               prefix=None, store=None, **_):
    """Attention inside the rows of each span; with `prefix`, keys and values of it come first."""
    out, at = [], 0
    heads = query.shape[1]
    for i, (rows, n) in enumerate(spans):
        # 1 x heads x tokens x width -> rows x heads x n x width
        q, k, v = (x[0, :, at:at + rows * n].unflatten(1, (rows, n)).transpose(0, 1)
                   for x in (query, key, value))
        if store is not None:
            store.append((k, v))
        if prefix is not None:
            k = torch.cat([prefix[i][0].to(k.dtype), k], 2)
            v = torch.cat([prefix[i][1].to(v.dtype), v], 2)
        k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
        dtype = torch.bfloat16 if torch.is_autocast_enabled(q.device.type) else q.dtype
        o = F.scaled_dot_product_attention(q.to(dtype), k.to(dtype), v.to(dtype),
                                           attn_mask=masks[i], scale=scaling)
        out.append(o.transpose(1, 2).flatten(0, 1))
        at += rows * n
    return torch.cat(out)[None].to(query.dtype), None


AttentionInterface.register("tiny_canvas", _attention)


class Passes(torch.nn.Module):
    """The two passes over spans.  `probs` collects what the routers chose, where asked to."""

    def __init__(self, model, keep_routes=False):
        super().__init__()
        self.model = model
        self.text = model.config.text_config
        for part in model.modules():
            if hasattr(part, "config"):
                part.config._attn_implementation = "tiny_canvas"
                part.config._experts_implementation = "tiny_dense"
        self.probs = []
        if keep_routes:
            for part in _parts(model):
                for layer in part.layers:
                    layer.router.register_forward_hook(
                        lambda m, args, out: self.probs.append((out[0], out[2])))

    def encode(self, ids, spans, masks):
        """Normed rows of the text, and the keys and values of each layer and span."""
        encoder = self.model.model.encoder.language_model
        at = torch.cat([torch.arange(s.length, device=ids.device).repeat(s.rows) for s in spans])
        x = encoder.embed_tokens(ids[None])
        kept = []
        shapes = [(s.rows, s.length) for s in spans]
        turns = {kind: encoder.rotary_emb(x, at[None], kind) for kind in (_S, _F)}
        for kind, layer in zip(self.text.layer_types, encoder.layers):
            store = []
            x = layer(x,
                      position_embeddings=turns[kind],
                      spans=shapes,
                      masks=[m.text[kind] for m in masks],
                      store=store)
            kept.append(store)
        return encoder.norm(x)[0], kept

    def decode(self, ids, soft, begins, kept, spans, masks):
        """Normed rows of canvases that begin at the columns `begins` of their rows."""
        decoder = self.model.model.decoder
        inside = torch.arange(CANVAS, device=ids.device)
        at = torch.cat([(b[:, :, None] + inside).flatten() for b in begins])
        x = decoder.self_conditioning(decoder.embed_tokens(ids[None]), soft[None])
        shapes = [(s.rows, s.slots * CANVAS) for s in spans]
        turns = {kind: decoder.rotary_emb(x, at[None], kind) for kind in (_S, _F)}
        for kind, layer, prefix in zip(self.text.layer_types, decoder.layers, kept):
            x = layer(x,
                      position_embeddings=turns[kind],
                      spans=shapes,
                      masks=[m.canvas[kind] for m in masks],
                      prefix=prefix)
        return decoder.norm(x)[0]

    def logits(self, rows):
        """Soft-capped logits of normed rows, in float32."""
        cap = self.text.final_logit_softcapping
        return torch.tanh(self.model.lm_head(rows).float() / cap) * cap

    def soft(self, logits, temperature):
        """What the next step is conditioned with: probabilities times the table, times sqrt(d)."""
        table = self.model.model.decoder.embed_tokens.weight
        return (torch.softmax(logits / temperature, -1) @ table).float() * table.shape[1]**0.5

    def balance_loss(self):
        """Load balancing: experts x sum over experts of (share of tokens x mean probability)."""
        loss = 0.0
        for probs, chosen in self.probs:
            n = probs.shape[-1]
            share = F.one_hot(chosen, n).float().sum(1).mean(0) / chosen.shape[-1]
            loss = loss + n * (share * probs.mean(0)).sum()
        layers = len(self.probs)
        self.probs.clear()
        return loss / layers
