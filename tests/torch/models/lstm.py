"""A language model of stacked LSTMs (Zaremba et al. 2014)."""
import torch.nn.functional as F
from torch import nn


class Lstm(nn.Module):
    """Takes "tokens" and "target", both [T, B]; the state starts at zero in every step.

    Names: embedding.weight, lstm.weight_ih_lK, lstm.weight_hh_lK, lstm.bias_ih_lK, decoder.weight, decoder.bias.
    PyTorch's second bias, lstm.bias_hh_lK, is zero and untrained, so that one bias suffices: it is neither described nor
    written, and may be left out of the weights.
    The paper's medium network is vocab 10000, hidden 650, layers 2, on T 35 and B 20, with dropout 0.5.
    """

    inputs = ("tokens", "target")

    def __init__(self, vocab, hidden, layers, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(hidden, hidden, layers, dropout=dropout)
        self.decoder = nn.Linear(hidden, vocab)
        for i in range(layers):
            nn.init.zeros_(getattr(self.lstm, f"bias_hh_l{i}")).requires_grad_(False)

    def forward(self, tokens):
        hidden, _ = self.lstm(self.dropout(self.embedding(tokens)))
        return self.decoder(self.dropout(hidden).flatten(0, 1))

    def loss(self, tokens, target):
        return F.cross_entropy(self(tokens), target.flatten())
