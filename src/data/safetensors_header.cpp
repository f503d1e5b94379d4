// SPDX-License-Identifier: Apache-2.0
#include "data/safetensors_header.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/check.hpp"

namespace terrace::safetensors {
namespace {

using Json = nlohmann::json;

constexpr std::array kDTypes{DType::f32, DType::i32, DType::i64, DType::u8, DType::bf16};

std::optional<DType> dtype_named(std::string_view name) {
  for (const DType dtype : kDTypes)
    if (to_string(dtype) == name) return dtype;
  return std::nullopt;
}

// A SAX handler takes the header's parts one by one and stops the parser at the first that is not allowed. A
// tree of the whole text would let a small text allocate much memory, and would hide duplicate names.
class Parts : public nlohmann::json_sax<Json> {
 public:
  Header header;
  std::optional<Error> wrong;

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::outside:
        return go(State::names);
      case State::tensor:
        return go(State::fields);
      case State::metadata:
        return go(State::texts);
      default:
        return misplaced("an object");
    }
  }

  bool end_object() override {
    if (state_ == State::fields && !complete()) return false;
    return go(state_ == State::names ? State::outside : State::names);
  }

  bool key(std::string& name) override {
    switch (state_) {
      case State::names:
        return start_entry(name);
      case State::fields:
        return start_field(name);
      default:
        text_ = name;
        return !header.metadata.contains(name) || refuse(fmt::format("metadata '{}' comes twice", name));
    }
  }

  bool string(std::string& value) override {
    if (state_ == State::texts) return header.metadata.emplace(text_, value), true;
    if (state_ != State::dtype) return misplaced("a text");
    const auto dtype = dtype_named(value);
    if (!dtype)
      return refuse(fmt::format("tensor '{}' has the dtype '{}', which is none of those read here ({})",
                                entry().name, value, known_dtypes()),
                    ErrorCode::unsupported);
    entry().dtype = *dtype;
    return go(State::fields);
  }

  bool start_array(std::size_t) override {
    if (state_ == State::shape_field) return go(State::shape);
    return state_ == State::offsets_field ? go(State::offsets) : misplaced("a list");
  }

  bool end_array() override {
    if (state_ == State::offsets && offsets_ != 2)
      return refuse(fmt::format("tensor '{}' has {} data_offsets where two belong", entry().name, offsets_));
    return go(State::fields);
  }

  bool number_unsigned(std::uint64_t value) override {
    if (state_ == State::shape) return entry().shape.push_back(value), true;
    if (state_ != State::offsets) return misplaced("a number");
    (offsets_++ == 0 ? entry().begin : entry().end) = value;
    return offsets_ <= 2 || refuse(fmt::format("tensor '{}' has more than two data_offsets", entry().name));
  }

  bool null() override { return misplaced("null"); }
  bool boolean(bool) override { return misplaced("a truth value"); }
  bool number_integer(std::int64_t) override { return misplaced("a negative number"); }
  bool number_float(double, const std::string&) override { return misplaced("a fraction or a huge number"); }
  bool binary(Json::binary_t&) override { return misplaced("binary data"); }
  bool parse_error(std::size_t place, const std::string&, const Json::exception&) override {
    return refuse(fmt::format("it is not JSON at its byte {}", place));
  }

 private:
  enum class State {
    outside,
    names,   // inside the outermost object
    tensor,  // after a tensor's name
    fields,  // inside a tensor's object
    dtype,   // after `dtype`, and so on
    shape_field,
    shape,
    offsets_field,
    offsets,
    metadata,  // after `__metadata__`
    texts,     // inside the metadata object
  };

  bool go(State state) { return state_ = state, true; }
  bool refuse(const std::string& reason, ErrorCode code = ErrorCode::invalid_argument) {
    wrong = Error{code, fmt::format("has a header in which {}", reason)};
    return false;
  }
  bool misplaced(const char* what) {
    const bool inside = state_ != State::outside && state_ != State::metadata && state_ != State::texts;
    return refuse(inside && !header.entries.empty()
                      ? fmt::format("{} stands where tensor '{}' has no place for it", what, entry().name)
                      : fmt::format("{} stands where the format has no place for it", what));
  }

  Entry& entry() { return header.entries.back(); }

  bool start_entry(const std::string& name) {
    if (!names_.insert(name).second) return refuse(fmt::format("the name '{}' comes twice", name));
    if (name == kMetadataKey) return go(State::metadata);
    header.entries.push_back({name, {}, {}, 0, 0});
    offsets_ = 0;
    has_dtype_ = has_shape_ = has_offsets_ = false;
    return go(State::tensor);
  }

  bool start_field(const std::string& name) {
    if (name == "dtype") return once(has_dtype_, name) && go(State::dtype);
    if (name == "shape") return once(has_shape_, name) && go(State::shape_field);
    if (name == "data_offsets") return once(has_offsets_, name) && go(State::offsets_field);
    return refuse(fmt::format("tensor '{}' has the unknown field '{}'", entry().name, name));
  }

  bool once(bool& seen, const std::string& name) {
    return !std::exchange(seen, true) ||
           refuse(fmt::format("tensor '{}' has its {} twice", entry().name, name));
  }

  bool complete() {
    const char* missing = !has_dtype_     ? "dtype"
                          : !has_shape_   ? "shape"
                          : !has_offsets_ ? "data_offsets"
                                          : nullptr;
    return missing == nullptr || refuse(fmt::format("tensor '{}' has no {}", entry().name, missing));
  }

  static std::string known_dtypes() {
    std::string names;
    for (const DType dtype : kDTypes) names.append(names.empty() ? "" : " ").append(to_string(dtype));
    return names;
  }

  State state_ = State::outside;
  std::unordered_set<std::string> names_;
  std::string text_;  // the key of the metadata text that follows
  int offsets_ = 0;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
};

std::string printed(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    check(false, "a name or metadata is not UTF-8");
  }
  return {};
}

}  // namespace

Bytes size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return {4};
    case DType::i64:
      return {8};
    case DType::bf16:
      return {2};
    case DType::u8:
      break;
  }
  return {1};
}

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::i32:
      return "I32";
    case DType::i64:
      return "I64";
    case DType::bf16:
      return "BF16";
    case DType::u8:
      break;
  }
  return "U8";
}

Result<Header> parse_header(std::string_view text) {
  if (!text.starts_with('{'))
    return Error{ErrorCode::invalid_argument, "has a header that does not start with '{'"};
  // The parser treats a zero byte as the end of the text and would ignore the rest.
  if (text.find('\0') != text.npos)
    return Error{ErrorCode::invalid_argument, "has a header with a zero byte in it"};
  Parts parts;
  if (!Json::sax_parse(text, &parts)) return *parts.wrong;
  return std::move(parts.header);
}

std::string print_header(const Header& header) {
  std::string text = "{";
  if (!header.metadata.empty()) text += fmt::format("\"{}\":{}", kMetadataKey, printed(header.metadata));
  for (const Entry& entry : header.entries) {
    if (text.size() > 1) text += ",";
    text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", printed(entry.name),
                        to_string(entry.dtype), fmt::join(entry.shape, ","), entry.begin, entry.end);
  }
  text += "}";
  constexpr std::size_t kAlignment = 8;
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

}  // namespace terrace::safetensors
