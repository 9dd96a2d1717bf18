"""The members of the tiny family, as configurations of the transformers reference classes.

A member is a small Gemma 4.  Training calls the reference layers one by one (`Trainee`), with
packed documents and a flash kernel; evaluation and golden values use the reference's own forward
pass.  Members of another kind (a drafter, towers) get their own entry in MEMBERS with another
`kind`, and their own trainee; canvas_model.py has the diffusion model's.
"""

import torch
import torch.nn.functional as F
from transformers import AttentionInterface
from transformers.integrations.moe import ExpertsInterface
from transformers.models.gemma4.configuration_gemma4 import Gemma4TextConfig
from transformers.models.gemma4.modeling_gemma4 import Gemma4ForCausalLM

from canvas_settings import CANVAS

CONTEXT = 2048

_S, _F = "sliding_attention", "full_attention"

_COMMON = dict(hidden_size=256,
               num_attention_heads=4,
               head_dim=64,
               global_head_dim=128,
               sliding_window=128,
               max_position_embeddings=CONTEXT,
               final_logit_softcapping=30.0,
               rms_norm_eps=1e-6,
               tie_word_embeddings=True,
               pad_token_id=0,
               eos_token_id=1,
               bos_token_id=2)

MEMBERS = {
    # Like E2B: per-layer embeddings; the second half has no keys and values and a double-wide MLP.
    "tiny": dict(kind="text",
                 seed=1,
                 config=dict(_COMMON,
                             num_hidden_layers=8,
                             layer_types=[_S, _S, _S, _F] * 2,
                             num_key_value_heads=1,
                             intermediate_size=256,
                             num_kv_shared_layers=4,
                             use_double_wide_mlp=True,
                             hidden_size_per_layer_input=32)),
    # Like 26B-A4B: a dense MLP and routed experts side by side; values are keys on global layers.
    "tiny-moe": dict(kind="text",
                     seed=2,
                     config=dict(_COMMON,
                                 num_hidden_layers=6,
                                 layer_types=[_S, _S, _F] * 2,
                                 num_key_value_heads=2,
                                 num_global_key_value_heads=1,
                                 attention_k_eq_v=True,
                                 intermediate_size=256,
                                 hidden_size_per_layer_input=0,
                                 enable_moe_block=True,
                                 num_experts=8,
                                 top_k_experts=2,
                                 moe_intermediate_size=64)),
}
# Of tiny-moe's shape, but it denoises canvases (canvas_model.py).
MEMBERS["tiny-diffusion"] = dict(kind="canvas",
                                 seed=3,
                                 config=dict(MEMBERS["tiny-moe"]["config"], canvas_length=CANVAS))


def build(name, vocab_size):
    """A fresh model of the family with trainable layer scalars, on the CPU in float32."""
    settings = MEMBERS[name]["config"]
    config = Gemma4TextConfig(vocab_size=vocab_size,
                              vocab_size_per_layer_input=vocab_size,
                              **settings)
    model = Gemma4ForCausalLM(config).float()
    for layer in model.model.layers:  # a buffer in the reference; here it is learnt
        del layer.layer_scalar
        layer.layer_scalar = torch.nn.Parameter(torch.ones(1))
    return model


@torch.no_grad()
def initialise(model, seed):
    """Scales that suit normed branches: unit activations, soft attention, small first branches."""
    torch.manual_seed(seed)
    config = model.config.get_text_config()
    depth = (2 * config.num_hidden_layers)**-0.5
    for name, p in model.named_parameters():
        if name.endswith("layer_scalar") or name.endswith("per_expert_scale") or name.endswith(
                "router.scale"):
            p.fill_(1.0)
        elif name.endswith(("q_norm.weight", "k_norm.weight")):
            p.fill_(p.shape[0]**-0.25)  # attention has no 1/sqrt(head_dim): the norms carry it
        elif "norm" in name:
            branch = "post_" in name and not name.endswith(("_1.weight", "_2.weight"))
            p.fill_(depth if branch else 1.0)
        elif "embed_tokens_per_layer" in name:
            p.normal_(0, config.hidden_size_per_layer_input**-0.5)
        elif name.endswith("router.proj.weight"):
            p.normal_(0, 0.5)
        else:
            p.normal_(0, p.shape[-1]**-0.5)


class Trainee(torch.nn.Module):
    """Loss of one batch of packed documents: ids, positions and weights of one long row.

    `bounds` are the documents' borders in the row, padded at its end by repeating the last one;
    no document is longer than `longest`.
    """

    def __init__(self, model, longest, balance=0.01):
        super().__init__()
        self.model = model
        self.longest = longest
        self.balance = balance if model.config.enable_moe_block else 0.0
        model.config._attn_implementation = "tiny_packed"
        model.config._experts_implementation = "tiny_dense"
        self.probs = []
        if self.balance:
            for layer in model.model.layers:
                layer.router.register_forward_hook(lambda m, args, out: self.probs.append(
                    (out[0], out[2])))

    def forward(self, ids, positions, bounds, targets, weights):
        hidden = self._backbone(ids[None], positions[None], bounds)[0]
        logits = self.model.lm_head(hidden)
        cap = self.model.config.final_logit_softcapping
        logits = torch.tanh(logits.float() / cap) * cap
        losses = F.cross_entropy(logits, targets, reduction="none")
        loss = (losses * weights).sum() / weights.sum()
        learnt = weights == 1.0
        report = (losses * learnt).sum() / learnt.sum()
        return loss + self._balance_loss(), report.detach()

    def _backbone(self, ids, positions, bounds):
        """The reference's layers, called as its forward pass calls them."""
        m = self.model.model
        x = m.embed_tokens(ids)
        per_layer = None
        if m.hidden_size_per_layer_input:
            per_layer = m.project_per_layer_inputs(x, m.get_per_layer_inputs(ids, x))
        turns = {kind: m.rotary_emb(x, positions, kind) for kind in (_S, _F)}
        shared = {}
        for i, layer in enumerate(m.layers):
            kind = m.config.layer_types[i]
            x = layer(x,
                      per_layer[:, :, i, :] if per_layer is not None else None,
                      shared_kv_states=shared,
                      position_embeddings=turns[kind],
                      attention_mask=None,
                      position_ids=positions,
                      past_key_values=None,
                      bounds=bounds,
                      longest=self.longest)
        return m.norm(x)

    def _balance_loss(self):
        """Load balancing: experts x sum over experts of (share of tokens x mean probability)."""
        if not self.balance:
            return 0.0
        loss = 0.0
        for probs, chosen in self.probs:
            n = probs.shape[-1]
            share = F.one_hot(chosen, n).float().sum(1).mean(0) / chosen.shape[-1]
            loss = loss + n * (share * probs.mean(0)).sum()
        layers = len(self.probs)
        self.probs.clear()
        return self.balance * loss / layers


def _packed_attention(module,
                      query,
                      key,
                      value,
                      attention_mask,
                      scaling=1.0,
                      sliding_window=None,
                      bounds=None,
                      longest=None,
                      **_):
    """Causal attention inside documents: flash attention with variable lengths and a window."""
    q, k, v = (x[0].transpose(0, 1).to(torch.bfloat16) for x in (query, key, value))
    left = sliding_window - 1 if sliding_window else None  # the window counts the token itself
    right = 0 if sliding_window else None
    out = torch.ops.aten._flash_attention_forward(q,
                                                  k,
                                                  v,
                                                  bounds,
                                                  bounds,
                                                  longest,
                                                  longest,
                                                  0.0,
                                                  True,
                                                  False,
                                                  scale=scaling,
                                                  window_size_left=left,
                                                  window_size_right=right)[0]
    return out[None], None


def _dense_experts(self, hidden_states, top_k_index, top_k_weights):
    """All experts on all tokens, the unchosen weighted zero: faster than routing at this size."""
    n, width = self.num_experts, self.intermediate_dim
    weights = torch.zeros(hidden_states.shape[0],
                          n,
                          dtype=top_k_weights.dtype,
                          device=hidden_states.device)
    weights = weights.scatter(1, top_k_index, top_k_weights)
    both = F.linear(hidden_states, self.gate_up_proj.reshape(n * 2 * width,
                                                             -1)).view(-1, n, 2, width)
    inner = self.act_fn(both[:, :, 0]) * both[:, :, 1] * weights[:, :, None].to(both.dtype)
    down = self.down_proj.permute(1, 0, 2).reshape(-1, n * width)
    return F.linear(inner.reshape(-1, n * width), down).to(hidden_states.dtype)


AttentionInterface.register("tiny_packed", _packed_attention)
ExpertsInterface.register("tiny_dense", _dense_experts)
