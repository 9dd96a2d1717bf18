"""What a canvas is, and how it is sampled: numbers that training, sampling and files share."""

from dataclasses import dataclass

CANVAS = 32  # tokens
FILLER = 0  # <pad>: what a canvas holds after the end of the answer


@dataclass
class Settings:
    """The sampler's settings; those of the published model."""

    steps: int = 48
    t_min: float = 0.4
    t_max: float = 0.8
    entropy_bound: float = 0.1
    stability: int = 1
    confidence: float = 0.005

    def temperature(self, n):
        """Of the step that has n - 1 steps after it."""
        return self.t_min + (self.t_max - self.t_min) * (n / self.steps)
