"""transformers' generate() of DiffusionGemma with scripted random numbers, step by step.

Used for the golden values of random models and of trained ones; needs torch and transformers.
"""

import torch
from transformers.models import diffusion_gemma

generation = diffusion_gemma.generation_diffusion_gemma
_PATCHED = ("initialize_canvas", "accept_canvas", "renoise_canvas")


class ScriptedRun:
    """While entered, generate() takes its random numbers from a script, and shows its steps.

    `random` are whole canvases in call order, `sampled` the draws of each step.  With a generator
    instead of these two they are drawn from it, and kept.
    """

    def __init__(self, random=None, sampled=None, generator=None):
        self.given = None if generator else (iter(random), iter(sampled))
        self.generator = generator
        self.random, self.sampled = [], []
        self.steps = []

    def _canvas(self, sampler):
        if self.given:
            out = list(next(self.given[0]))
        else:
            out = torch.randint(0, sampler.vocab_size, (sampler.canvas_length,),
                                generator=self.generator).tolist()
        self.random.append(out)
        return out

    def _draws(self, probs):
        if self.given:
            out = list(next(self.given[1]))
        else:
            out = self.multinomial(probs, 1, generator=self.generator)[:, 0].tolist()
        self.sampled.append(out)
        return out

    def used_up(self):
        """Whether the script had exactly what the run took."""
        return all(next(rest, None) is None for rest in self.given)

    def __enter__(self):
        sampler, run = generation.EntropyBoundSampler, self
        kept = self.kept = {name: getattr(sampler, name) for name in _PATCHED}
        self.multinomial = torch.multinomial

        def initialize(self, batch_size, device):
            assert batch_size == 1
            return torch.tensor([run._canvas(self)], device=device)

        def accept(self, current, drawn, logits, step):
            out = kept["accept_canvas"](self, current, drawn, logits, step)
            entropy = torch.distributions.Categorical(logits=logits).entropy()
            run.steps.append({"step": int(step), "canvas": current[0].tolist(),
                              "processed": logits[0].clone(),
                              "best": logits[0].argmax(-1).tolist(), "entropy": entropy[0].clone(),
                              "accepted": self.accepted_token_mask[0].tolist()})
            return out

        def renoise(self, accepted, step):
            out = kept["renoise_canvas"](self, accepted, step)
            run.steps[-1]["after"] = out[0].tolist()
            return out

        def draw(probs, num_samples):
            assert num_samples == 1
            return torch.tensor(run._draws(probs), device=probs.device)[:, None]

        sampler.initialize_canvas, sampler.accept_canvas = initialize, accept
        sampler.renoise_canvas, torch.multinomial = renoise, draw
        return self

    def __exit__(self, *_):
        torch.multinomial = self.multinomial
        for name, method in self.kept.items():
            setattr(generation.EntropyBoundSampler, name, method)


def generate(model, ids, run, n_canvases, settings, stops, pad):
    """The new tokens, up to the first stop token (which they hold), as the library finds them."""
    length = model.config.canvas_length
    config = generation.DiffusionGemmaGenerationConfig(
        max_new_tokens=n_canvases * length, max_denoising_steps=settings.steps,
        t_min=settings.t_min, t_max=settings.t_max, stability_threshold=settings.stability,
        confidence_threshold=settings.confidence,
        sampler_config=generation.EntropyBoundSamplerConfig(entropy_bound=settings.entropy_bound),
        eos_token_id=list(stops), pad_token_id=pad, cache_implementation="dynamic")
    with run:
        out = model.generate(torch.tensor([ids]), generation_config=config)
    made = out.sequences[0, len(ids) :].tolist()
    end = next((i + 1 for i, t in enumerate(made) if t in stops), len(made))
    assert all(t == pad for t in made[end:])
    return made[:end]
