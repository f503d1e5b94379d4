# SPDX-License-Identifier: Apache-2.0
"""BERT (Devlin et al. 2019) with its masked language head; names of Hugging Face without the leading "bert."."""
import torch
import torch.nn.functional as F
from torch import nn

EPSILON = 1e-12


class Embeddings(nn.Module):
    def __init__(self, vocab, positions, hidden, token_types):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab, hidden)
        self.position_embeddings = nn.Embedding(positions, hidden)
        self.token_type_embeddings = nn.Embedding(token_types, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, EPSILON)

    def forward(self, tokens):
        places = self.position_embeddings(torch.arange(tokens.shape[1]))
        types = self.token_type_embeddings(torch.zeros_like(tokens))
        return self.LayerNorm(self.word_embeddings(tokens) + types + places)


class SelfAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def forward(self, x):
        batch, length, width = x.shape

        def heads_of(projection):
            return projection(x).view(batch, length, self.heads, -1).transpose(1, 2)

        query, key, value = heads_of(self.query), heads_of(self.key), heads_of(self.value)
        scores = (query @ key.transpose(-2, -1)) * (width // self.heads) ** -0.5
        return (F.softmax(scores, -1) @ value).transpose(1, 2).reshape(batch, length, width)


class AddAndNorm(nn.Module):
    """A projection whose result is added to the residual, then normalised."""

    def __init__(self, fan_in, hidden):
        super().__init__()
        self.dense = nn.Linear(fan_in, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, EPSILON)

    def forward(self, x, residual):
        return self.LayerNorm(self.dense(x) + residual)


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.self = SelfAttention(hidden, heads)
        self.output = AddAndNorm(hidden, hidden)

    def forward(self, x):
        return self.output(self.self(x), x)


class Dense(nn.Module):
    """One linear layer called dense, then gelu with the error function."""

    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.dense = nn.Linear(fan_in, fan_out)

    def forward(self, x):
        return F.gelu(self.dense(x))


class Layer(nn.Module):
    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.attention = Attention(hidden, heads)
        self.intermediate = Dense(hidden, intermediate)
        self.output = AddAndNorm(intermediate, hidden)

    def forward(self, x):
        x = self.attention(x)
        return self.output(self.intermediate(x), x)


class Transform(Dense):
    def __init__(self, hidden):
        super().__init__(hidden, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, EPSILON)

    def forward(self, x):
        return self.LayerNorm(super().forward(x))


class Predictions(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.transform = Transform(hidden)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, x, words):
        return F.linear(self.transform(x), words, self.bias)


class Bert(nn.Module):
    """Takes "tokens" and "target", both [B, S]; targets of -100 are ignored; every token has type 0, none is padding.

    Names: embeddings.{word,position,token_type}_embeddings.weight, embeddings.LayerNorm.*,
    encoder.layer.N.attention.self.{query,key,value}.*, encoder.layer.N.attention.output.{dense,LayerNorm}.*,
    encoder.layer.N.intermediate.dense.*, encoder.layer.N.output.{dense,LayerNorm}.*,
    cls.predictions.transform.{dense,LayerNorm}.*, cls.predictions.bias. The decoder is the word embedding.
    """

    inputs = ("tokens", "target")

    def __init__(self, vocab, positions, hidden, layers, heads, intermediate, token_types=2):
        super().__init__()
        self.embeddings = Embeddings(vocab, positions, hidden, token_types)
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Layer(hidden, heads, intermediate) for _ in range(layers))})
        self.cls = nn.ModuleDict({"predictions": Predictions(vocab, hidden)})

    def forward(self, tokens):
        x = self.embeddings(tokens)
        for layer in self.encoder["layer"]:
            x = layer(x)
        return self.cls["predictions"](x, self.embeddings.word_embeddings.weight)

    def loss(self, tokens, target):
        return F.cross_entropy(self(tokens).flatten(0, 1), target.flatten(), ignore_index=-100)
