// SPDX-License-Identifier: Apache-2.0
#include "ann/manifest.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include "ann/twins.hpp"
#include "base/fingerprint.hpp"
#include "base/json_reader.hpp"

namespace terrace::ann {
namespace {

constexpr std::string_view kFormat = "terrace-ann", kByteElements = "u8";
constexpr std::int64_t kVersion = 2, kMostNodes = 0xFFFFFFFE, kMostLayerLinks = 4096;

std::vector<LayerSize> read_layers(const JsonValue& value) {
  std::vector<LayerSize> layers;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const JsonObject one(value[i], {"nodes", "links"});
    const std::int64_t most = layers.empty() ? kMostNodes : static_cast<std::int64_t>(layers.back().nodes);
    layers.push_back({static_cast<std::uint64_t>(one.need("nodes").integer(1, most)),
                      static_cast<std::uint32_t>(one.need("links").integer(1, kMostLayerLinks))});
  }
  if (layers.size() == 1) value.fail("an index has no layer, or at least two");
  return layers;
}

std::vector<std::uint32_t> read_checksums(const JsonValue& value, Bytes size) {
  if (value.size() != pieces_in(size))
    value.fail(fmt::format("there are {} checksums for {} bytes, which have {}", value.size(), size.count,
                           pieces_in(size)));
  std::vector<std::uint32_t> checksums;
  for (std::size_t i = 0; i < value.size(); ++i)
    checksums.push_back(static_cast<std::uint32_t>(value[i].integer(0, 0xFFFFFFFF)));
  return checksums;
}

Manifest read(const JsonValue& value) {
  const JsonObject object(value, {"format", "version", "metric", "dimension", "layers", "code_bytes", "twins",
                                  "removed", "element", "fingerprint", "fast_checksums", "slow_checksums"});
  if (object.need("format").text() != kFormat) object.fail("it is no manifest of an index");
  object.need("version").integer(kVersion, kVersion);
  Manifest manifest;
  const auto metric = parse_metric(object.need("metric").text());
  if (!metric) object.fail(metric.error().message);
  manifest.metric = *metric;
  manifest.dimension = static_cast<std::size_t>(
      object.need("dimension").integer(1, static_cast<std::int64_t>(kMostDimensions)));
  manifest.layers = read_layers(object.need("layers"));
  manifest.code_bytes = static_cast<std::uint32_t>(
      object.need("code_bytes").integer(0, static_cast<std::int64_t>(manifest.dimension)));
  const auto nodes = manifest.layers.empty() ? 0 : static_cast<std::int64_t>(manifest.layers[0].nodes);
  manifest.twins =
      static_cast<std::uint64_t>(object.need("twins").integer(0, nodes == 0 ? 0 : kMostNodes - nodes));
  manifest.removed = static_cast<std::uint64_t>(
      object.need("removed").integer(0, nodes + static_cast<std::int64_t>(manifest.twins)));
  // Floats have no name, so that what older programs wrote is read.
  if (const auto element = object.find("element")) {
    if (element->text() != kByteElements) element->fail("the elements of vectors are floats, or u8");
    manifest.element = ElementType::u8;
  }
  manifest.fast_checksums = read_checksums(object.need("fast_checksums"), manifest.fast_bytes());
  manifest.slow_checksums = read_checksums(object.need("slow_checksums"), manifest.slow_bytes());
  if (object.need("fingerprint").text() != manifest.fingerprint())
    object.fail("its fingerprint is not that of its contents");
  return manifest;
}

}  // namespace

Bytes Manifest::fast_bytes() const {
  return fast_size(layers, dimension).total() + codes_size(layers, dimension, code_bytes) +
         Bytes{sizeof(Twin)} * twins + kIdBytes * removed;
}

std::string Manifest::fingerprint() const {
  Fingerprint print;
  print.add(to_string(metric)).add(dimension).add(code_bytes).add(twins).add(removed);
  if (element == ElementType::u8) print.add(kByteElements);
  for (const LayerSize& layer : layers) print.add(layer.nodes).add(layer.links);
  for (const auto* checksums : {&fast_checksums, &slow_checksums}) {
    print.add(checksums->size());
    for (const std::uint32_t one : *checksums) print.add(one);
  }
  return print.text();
}

std::uint32_t checksum(std::span<const std::byte> bytes, std::uint32_t before) {
  // For zlib a null pointer means a new checksum.
  if (bytes.empty()) return before;
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint64_t pieces_in(Bytes size) { return round_up(size, kCheckedPiece) / kCheckedPiece; }

std::string print_manifest(const Manifest& manifest) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerSize& layer : manifest.layers)
    layers.push_back({{"nodes", layer.nodes}, {"links", layer.links}});
  nlohmann::ordered_json json{{"format", kFormat},
                              {"version", kVersion},
                              {"fingerprint", manifest.fingerprint()},
                              {"metric", to_string(manifest.metric)},
                              {"dimension", manifest.dimension},
                              {"layers", layers},
                              {"code_bytes", manifest.code_bytes},
                              {"twins", manifest.twins},
                              {"removed", manifest.removed},
                              {"fast_checksums", manifest.fast_checksums},
                              {"slow_checksums", manifest.slow_checksums}};
  if (manifest.element == ElementType::u8) json["element"] = kByteElements;
  return json.dump(1) + "\n";
}

Result<Manifest> parse_manifest(std::string_view text) {
  try {
    const nlohmann::json json = parse_json(text);
    return read(JsonValue(json, ""));
  } catch (const JsonError& error) {
    return Error{ErrorCode::invalid_argument, error.what()};
  }
}

}  // namespace terrace::ann
