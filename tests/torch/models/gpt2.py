# SPDX-License-Identifier: Apache-2.0
"""GPT-2 (Radford et al. 2019); names of Hugging Face without the leading "transformer.", weights as nn.Linear [out, in]."""
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Scores, their scale and the causal mask are one batched product: no further pass over the scores."""

    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(hidden, 3 * hidden)
        self.c_proj = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask):
        batch, length, width = x.shape
        depth = width // self.heads

        def heads_of(part):
            return part.view(batch, length, self.heads, depth).transpose(1, 2).reshape(batch * self.heads, length, depth)

        query, key, value = map(heads_of, self.c_attn(x).split(width, dim=2))
        scores = torch.baddbmm(mask, query, key.transpose(1, 2), alpha=depth**-0.5)
        mixed = torch.bmm(self.dropout(F.softmax(scores, -1)), value)
        merged = mixed.view(batch, self.heads, length, depth).transpose(1, 2).reshape(batch, length, width)
        return self.dropout(self.c_proj(merged))


class Mlp(nn.Module):
    def __init__(self, hidden, dropout):
        super().__init__()
        self.c_fc = nn.Linear(hidden, 4 * hidden)
        self.c_proj = nn.Linear(4 * hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(F.gelu(self.c_fc(x), approximate="tanh")))


class Block(nn.Module):
    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.ln_1 = nn.LayerNorm(hidden)
        self.attn = Attention(hidden, heads, dropout)
        self.ln_2 = nn.LayerNorm(hidden)
        self.mlp = Mlp(hidden, dropout)

    def forward(self, x, mask):
        x = x + self.attn(self.ln_1(x), mask)
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    """Takes "tokens" and "target", both [B, S]; the target is what each place should say (the shift is the caller's).

    Names: wte.weight, wpe.weight, h.N.ln_1.*, h.N.attn.c_attn.*, h.N.attn.c_proj.*, h.N.ln_2.*, h.N.mlp.c_fc.*,
    h.N.mlp.c_proj.*, ln_f.*. c_attn makes query, key and value in this order. The head is wte.
    GPT-2 small is vocab 50257, positions 1024, hidden 768, layers 12, heads 12.
    """

    inputs = ("tokens", "target")

    def __init__(self, vocab, positions, hidden, layers, heads, dropout=0.0):
        super().__init__()
        self.wte = nn.Embedding(vocab, hidden)
        self.wpe = nn.Embedding(positions, hidden)
        self.dropout = nn.Dropout(dropout)
        self.h = nn.ModuleList(Block(hidden, heads, dropout) for _ in range(layers))
        self.ln_f = nn.LayerNorm(hidden)
        mask = torch.full((positions, positions), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.dropout(self.wte(tokens) + self.wpe.weight[:length])
        mask = self.mask[:length, :length]
        for block in self.h:
            x = block(x, mask)
        return F.linear(self.ln_f(x), self.wte.weight)

    def loss(self, tokens, target):
        return F.cross_entropy(self(tokens).flatten(0, 1), target.flatten(), ignore_index=-100)
