# SPDX-License-Identifier: Apache-2.0
"""A language model of stacked LSTMs (Zaremba et al. 2014)."""
import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    """One layer with one bias per gate, as in the paper; PyTorch's own has two, which always appear as a sum."""

    def __init__(self, hidden):
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden, hidden))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden, hidden))
        self.bias = nn.Parameter(torch.empty(4 * hidden))
        for weight in self.parameters():
            nn.init.uniform_(weight, -0.05, 0.05)

    def forward(self, x):
        start = x.new_zeros(1, x.shape[1], self.weight_hh.shape[1])
        weights = [self.weight_ih, self.weight_hh, self.bias, torch.zeros_like(self.bias)]
        return torch.lstm(x, (start, start), weights, True, 1, 0.0, self.training, False, False)[0]


class Lstm(nn.Module):
    """Takes "tokens" and "target", both [T, B]; the state starts at zero in every step.

    Names: embedding.weight, lstm.lK.weight_ih, lstm.lK.weight_hh, lstm.lK.bias, decoder.weight, decoder.bias.
    The paper's medium network is vocab 10000, hidden 650, layers 2, on T 35 and B 20, with dropout 0.5.
    """

    inputs = ("tokens", "target")

    def __init__(self, vocab, hidden, layers, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.ModuleDict({f"l{i}": Layer(hidden) for i in range(layers)})
        self.decoder = nn.Linear(hidden, vocab)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.lstm.values():
            x = layer(self.dropout(x))
        return self.decoder(self.dropout(x).flatten(0, 1))

    def loss(self, tokens, target):
        return F.cross_entropy(self(tokens), target.flatten())
