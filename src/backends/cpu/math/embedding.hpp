// Rows of a table chosen by index, and the gradient of the table. Thread-safe; the caller owns all memory.
#pragma once

#include <cstdint>

namespace terrace::math {

struct EmbeddingShape {
  std::int64_t vocabulary = 0;  ///< rows of the table
  std::int64_t width = 0;       ///< elements of a row
  std::int64_t count = 0;       ///< indices
  std::int64_t first = 0;       ///< index of the table's first row, where it is a part of a larger one
  std::int64_t whole = 0;       ///< rows of that; 0: the table is no part
};

/// What becomes of rows whose index lies in another part of the table.
enum class OtherRows : std::uint8_t { cleared, kept };

/// out[i] = table[indices[i] - first], rows of `width`. An index outside the whole vocabulary throws
/// logic_error before any element is read.
void embedding_forward(const float* table, const std::int32_t* indices, const EmbeddingShape& shape,
                       float* out, OtherRows others = OtherRows::cleared);

/// dtable[v] = the sum of dout[i] over all i with indices[i] = first + v, in the order of i for any number of
/// threads. Indices as in embedding_forward: where one is wrong, dtable keeps what it held.
void embedding_backward(const float* dout, const std::int32_t* indices, const EmbeddingShape& shape,
                        float* dtable);

}  // namespace terrace::math
