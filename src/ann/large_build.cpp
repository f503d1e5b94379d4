// SPDX-License-Identifier: Apache-2.0
// Building an index of more vectors than memory holds. Shards of near vectors are built one after the other
// in memory; rows that belong to two shards join their graphs (shards.hpp). What every stage made stays in a
// folder `building` inside the index until the index is whole, so a build that was killed goes on from there.
//
//   building/plan             what is built from which file with which options; another plan starts anew
//   building/members, twins   of each row its shards; the rows that equal others
//   building/shard-N          the graph of a shard
//   building/links            the lowest layer, by row
//   building/order            the rows by degree

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "ann/build_options.hpp"
#include "ann/checked_file.hpp"
#include "ann/huge_memory.hpp"
#include "ann/layout.hpp"
#include "ann/links_file.hpp"
#include "ann/prepare.hpp"
#include "ann/shard_file.hpp"
#include "ann/shards.hpp"
#include "ann/team.hpp"
#include "ann/walk.hpp"
#include "ann/write_index.hpp"
#include "base/check.hpp"
#include "base/fingerprint.hpp"
#include "base/replace_file.hpp"

namespace terrace::ann {
namespace {

using std::filesystem::path;

/// A file that holds one array, replaced at once.
template <class T>
Result<void> write_array(const path& file, std::span<const T> values) {
  const std::array<std::span<const std::byte>, 1> pieces{std::as_bytes(values)};
  return replace_file(file, pieces);
}
template <class T>
std::optional<std::vector<T>> read_array(const path& file, std::optional<std::uint64_t> count = {}) {
  const auto input = InputFile::open(file);
  if (!input || input->size().count % sizeof(T) != 0) return std::nullopt;
  std::vector<T> values(input->size().count / sizeof(T));
  if (count && values.size() != *count) return std::nullopt;
  read_at(*input, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

class LargeBuild {
 public:
  LargeBuild(const VectorSource& source, path folder, const BuildOptions& options, const ShardPlan& plan,
             Bytes memory)
      : source_(source),
        folder_(std::move(folder)),
        work_(folder_ / "building"),
        options_(options),
        plan_(plan),
        memory_(memory),
        width_(2 * options.links),
        distance_(distance_function(options.metric)) {}

  Result<void> run() {
    if (const auto started = start(); !started) return started;
    if (const auto assigned = assign(); !assigned) return assigned;
    if (const auto built = build_shards(); !built) return built;
    if (const auto joined = join_shards(); !joined) return joined;
    if (const auto ordered = order_by_degree(); !ordered) return ordered;
    if (const auto written = write(); !written) return written;
    std::error_code ignored;
    std::filesystem::remove_all(work_, ignored);
    return {};
  }

 private:
  void tell(std::string_view stage, double share) const {
    const std::lock_guard lock(telling_);
    if (options_.progress) options_.progress(stage, share);
  }

  std::string fingerprint() const {
    Fingerprint print;
    print.add(source_.identity()).add(to_string(options_.metric)).add(options_.links);
    print.add(options_.ef_construction).add(options_.seed).add(plan_.most_rows).add(plan_.shards);
    return print.text();
  }

  /// Keeps what an earlier build of the same plan left, and nothing else.
  Result<void> start() {
    std::error_code failed;
    std::filesystem::create_directories(work_, failed);
    if (failed)
      return Error{ErrorCode::invalid_argument, fmt::format("cannot make the folder {} ({}): name another",
                                                            work_.native(), failed.message())};
    const std::string print = fingerprint();
    const auto before = read_array<char>(work_ / "plan");
    if (before && std::equal(before->begin(), before->end(), print.begin(), print.end())) return {};
    for (const auto& entry : std::filesystem::directory_iterator(work_))
      std::filesystem::remove(entry.path(), failed);
    return write_array<char>(work_ / "plan", print);
  }

  Result<void> assign() {
    const auto twins = read_array<Twin>(work_ / "twins");
    auto members = read_array<Membership>(work_ / "members", source_.count());
    if (twins && members) {
      twins_ = *twins;
      members_ = *std::move(members);
      mark_left_out();
      return {};
    }
    tell("reading", 0);
    std::vector<HashedRow> rows;
    rows.reserve(source_.count());
    if (const auto good = check_rows(rows); !good) return good;
    twins_ = find_twins(std::move(rows), [this](std::uint32_t a, std::uint32_t b) { return equal(a, b); });
    mark_left_out();
    members_ = assign_rows(source_, options_.metric, plan_, left_out_, options_.seed);
    if (const auto kept = write_array<Twin>(work_ / "twins", twins_); !kept) return kept;
    return write_array<Membership>(work_ / "members", members_);
  }

  void mark_left_out() {
    left_out_.assign(source_.count(), false);
    for (const Twin& twin : twins_) left_out_[twin.other] = true;
  }

  Result<void> check_rows(std::vector<HashedRow>& rows) const {
    std::optional<Error> refused;
    source_.read_all([&](std::uint64_t first, std::span<const float> values) {
      if (refused) return;
      Vectors some{source_.dimension(), {values.begin(), values.end()}};
      if (const auto good = check_vectors(some, options_.metric, "vector"); !good) {
        refused =
            Error{good.error().code, fmt::format("{} (counted from row {})", good.error().message, first)};
        return;
      }
      normalise(some.values, some.dimension, options_.metric);
      for (std::size_t i = 0; i < some.count(); ++i)
        rows.push_back({hash_of(some[i]), static_cast<std::uint32_t>(first + i)});
    });
    if (refused) return *refused;
    return {};
  }

  bool equal(std::uint32_t a, std::uint32_t b) const {
    const std::size_t dimension = source_.dimension();
    std::vector<float> both(2 * dimension);
    source_.read(a, both.data());
    source_.read(b, both.data() + dimension);
    normalise(both, dimension, options_.metric);
    const auto middle = both.begin() + static_cast<std::ptrdiff_t>(dimension);
    return std::equal(both.begin(), middle, middle);
  }

  /// The vectors of nodes `first` to `end`, ready for the distance, by node.
  HugeVector<float> load_vectors(std::uint32_t first, std::uint32_t end) const {
    const std::size_t dimension = source_.dimension();
    HugeVector<float> vectors(std::size_t{end - first} * dimension);
    source_.read_all([&](std::uint64_t begin, std::span<const float> values) {
      for (std::size_t i = 0; i < values.size() / dimension; ++i) {
        const std::uint32_t node = number_[begin + i];
        if (node < first || node >= end) continue;
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i * dimension), dimension,
                    vectors.begin() + static_cast<std::ptrdiff_t>((node - first) * dimension));
      }
    });
    normalise(vectors, dimension, options_.metric);
    return vectors;
  }
  Rows rows_over(std::span<const float> vectors) const {
    return {vectors.data(), source_.dimension(), vectors.size() / source_.dimension(), distance_,
            nullptr,        options_.metric};
  }

  path shard_path(std::uint32_t shard) const { return work_ / fmt::format("shard-{}", shard); }
  /// Records that one unit of the disk holds.
  std::uint64_t group() const {
    return SlowLayout({{1, width_}, {1, width_}}, source_.dimension(), true, element()).records_per_unit();
  }
  /// Lengths of one are no whole numbers.
  ElementType element() const {
    return options_.metric == Metric::cosine ? ElementType::f32 : source_.type();
  }

  struct ShardSize {
    std::uint64_t rows = 0, primaries = 0;
  };
  std::vector<ShardSize> shard_sizes() const {
    std::vector<ShardSize> sizes(plan_.shards);
    for (const Membership& member : members_) {
      if (member.primary == kNoShard) continue;
      ++sizes[member.primary].rows;
      ++sizes[member.primary].primaries;
      if (member.second != kNoShard) ++sizes[member.second].rows;
    }
    return sizes;
  }

  struct LoadedShard {
    std::uint32_t shard = 0;
    ShardRows rows;
    HugeVector<float> vectors;  ///< ready for the distance
  };
  /// The next shards that are not built yet, from `next` on, as many as memory has room for: the source is
  /// read once for all of them.
  std::vector<LoadedShard> load_shards(const std::vector<ShardSize>& sizes, std::uint32_t& next) const {
    constexpr std::size_t kNone = SIZE_MAX;
    std::vector<LoadedShard> loaded;
    std::vector<std::size_t> place(plan_.shards, kNone);
    for (std::uint64_t rows = 0; next < plan_.shards; ++next) {
      if (std::filesystem::exists(shard_path(next))) continue;
      rows += sizes[next].rows;
      if (!loaded.empty() && rows > plan_.loaded_rows) break;
      place[next] = loaded.size();
      loaded.push_back({next, {}, {}});
      loaded.back().rows.rows.reserve(sizes[next].rows);
      loaded.back().vectors.reserve(sizes[next].rows * source_.dimension());
    }
    if (loaded.empty()) return loaded;
    source_.read_all([&](std::uint64_t first, std::span<const float> values) {
      for (std::uint64_t row = first; row < first + values.size() / source_.dimension(); ++row) {
        const auto vector = values.subspan((row - first) * source_.dimension(), source_.dimension());
        for (const std::uint16_t shard : {members_[row].primary, members_[row].second}) {
          if (shard == kNoShard || place[shard] == kNone) continue;
          LoadedShard& to = loaded[place[shard]];
          to.rows.rows.push_back(static_cast<std::uint32_t>(row));
          to.rows.primary.push_back(shard == members_[row].primary);
          to.vectors.insert(to.vectors.end(), vector.begin(), vector.end());
        }
      }
    });
    for (LoadedShard& one : loaded) normalise(one.vectors, source_.dimension(), options_.metric);
    return loaded;
  }

  Result<void> build_shards() {
    if (std::filesystem::exists(work_ / "links")) return {};
    const auto sizes = shard_sizes();
    std::mutex mutex;
    std::optional<Error> refused;
    std::vector<double> shares(plan_.shards, 1);  // of each shard, what is done
    for (std::uint32_t shard = 0; shard < plan_.shards; ++shard) {
      if (!std::filesystem::exists(shard_path(shard))) shares[shard] = 0;
    }
    const auto report = [&](std::uint32_t shard, double share) {
      double sum = 0;
      {
        const std::lock_guard lock(mutex);
        shares[shard] = share;
        sum = std::accumulate(shares.begin(), shares.end(), 0.0);
      }
      tell("building shards", sum / plan_.shards);
    };
    Team team(std::min<unsigned>(options_.builders, plan_.shards));
    std::uint32_t next = 0;
    for (auto loaded = load_shards(sizes, next); !loaded.empty() && !refused;) {
      std::atomic<std::size_t> first{0};
      team.run([&](unsigned) {
        for (std::size_t i = first++; i < loaded.size(); i = first++) {
          const LoadedShard one = std::exchange(loaded[i], {});
          const auto built = build_one(one, [&](double share) { report(one.shard, share); });
          report(one.shard, 1);
          const std::lock_guard lock(mutex);
          if (!built) refused = built.error();
        }
      });
      loaded = {};
      loaded = load_shards(sizes, next);
    }
    if (refused) return *refused;
    return {};
  }

  Result<void> build_one(const LoadedShard& one, const std::function<void(double)>& report) const {
    const HnswOptions hnsw{options_.links, options_.ef_construction, options_.seed + one.shard, report};
    return build_shard(shard_path(one.shard), rows_over(one.vectors), one.rows, hnsw, group());
  }

  Result<std::vector<ShardReader>> open_shards() const {
    const auto sizes = shard_sizes();
    std::vector<ShardReader> readers;
    for (std::uint32_t shard = 0; shard < plan_.shards; ++shard) {
      auto reader = ShardReader::open(shard_path(shard), sizes[shard].rows, sizes[shard].primaries, width_);
      if (!reader) return reader.error();
      readers.push_back(*std::move(reader));
    }
    return readers;
  }

  Result<void> join_shards() {
    if (std::filesystem::exists(work_ / "links")) return {};
    auto readers = open_shards();
    if (!readers) return readers.error();
    tell("joining shards", 0);
    constexpr std::uint64_t kRowsAtOnce = 4096;
    std::vector<std::uint32_t> piece;
    std::uint64_t row = 0;
    const Pieces pieces{Bytes{source_.count() * width_ * sizeof(std::uint32_t)},
                        [&]() -> std::span<const std::byte> {
                          piece.clear();
                          const std::uint64_t end = std::min(row + kRowsAtOnce, source_.count());
                          for (; row < end; ++row) append_joined(members_[row], *readers, piece);
                          return std::as_bytes(std::span(piece));
                        }};
    return replace_file(work_ / "links", pieces);
  }

  /// The links of both shards in turn, the nearest first, as many as there are places.
  void append_joined(const Membership& member, std::vector<ShardReader>& readers,
                     std::vector<std::uint32_t>& out) const {
    std::array<std::vector<Link>, 2> lists;
    if (member.primary != kNoShard) lists[0] = links_in(readers[member.primary]);
    if (member.second != kNoShard) lists[1] = links_in(readers[member.second]);
    const std::size_t begin = out.size();
    for (std::size_t i = 0; i < width_; ++i) {
      for (const auto& list : lists) {
        if (i >= list.size() || out.size() == begin + width_) continue;
        if (std::find(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), list[i].node) == out.end())
          out.push_back(list[i].node);
      }
    }
    out.resize(begin + width_, kNoLink);
  }
  static std::vector<Link> links_in(ShardReader& reader) {
    std::vector<Link> links;
    for (const Link& link : reader.next()) {
      if (link.node != kNoLink) links.push_back(link);
    }
    sort_links(links);
    return links;
  }

  std::uint64_t nodes() const { return source_.count() - twins_.size(); }

  Result<void> order_by_degree() {
    const auto promoted = promoted_for(nodes(), twins_.size(), source_.dimension(), options_);
    if (!promoted) return promoted.error();
    // The upper layer is built as a shard is, and may have the memory of all builders.
    promoted_ = std::min(*promoted, plan_.rows_in_memory * options_.builders);
    auto links = LinksFile::open(work_ / "links", source_.count(), width_);
    if (!links) return links.error();
    if (auto order = read_array<std::uint32_t>(work_ / "order", nodes())) {
      order_ = *std::move(order);
    } else {
      tell("ordering", 0);
      const auto degrees = undirected_degrees(*links, memory_ / 2);
      for (std::uint32_t row = 0; row < source_.count(); ++row) {
        if (!left_out_[row]) order_.push_back(row);
      }
      std::stable_sort(order_.begin(), order_.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return degrees[a] > degrees[b]; });
      if (const auto kept = write_array<std::uint32_t>(work_ / "order", order_); !kept) return kept;
    }
    order_.resize(promoted_);
    tell("connecting", 0);
    connect_rows(*links, order_, left_out_);
    return {};
  }

  FastPart upper_layers() {
    FastPart fast;
    fast.layers = promoted_layers(nodes(), promoted_, options_.links);
    fast.dimension = source_.dimension();
    fast.metric = options_.metric;
    fast.distance = distance_;
    fast.ids = order_;
    fast.vectors = load_vectors(0, static_cast<std::uint32_t>(promoted_));
    std::vector<std::uint32_t> identity(promoted_);
    std::iota(identity.begin(), identity.end(), 0U);
    const HnswOptions hnsw{options_.links, options_.ef_construction, options_.seed,
                           [this](double share) { tell("promoting", share); }};
    fast.links.resize(1);
    for (auto& links : build_upper_layers(rows_over(fast.vectors), identity, fast.layers, hnsw))
      fast.links.push_back(std::move(links));
    fast.twins = twins_;
    fast.marks = std::make_unique<Marks>(source_.count());
    return fast;
  }

  void add_codes(FastPart& fast) const {
    if (options_.code_bytes == 0) return;
    const std::size_t dimension = source_.dimension();
    std::vector<float> row(dimension);
    // The promoted stand for all.
    fast.book = learn_codebook(
        dimension, options_.code_bytes, promoted_,
        [&](std::uint64_t i) { return fast.vector_of(static_cast<std::uint32_t>(i)); }, options_.seed);
    fast.codes.resize((nodes() - promoted_) * options_.code_bytes);
    source_.read_all([&](std::uint64_t first, std::span<const float> values) {
      for (std::size_t i = 0; i < values.size() / dimension; ++i) {
        const std::uint32_t node = number_[first + i];
        if (node == kNoLink || node < promoted_) continue;
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i * dimension), dimension, row.begin());
        normalise(row, dimension, options_.metric);
        fast.book.encode(row.data(), fast.codes.data() + (node - promoted_) * options_.code_bytes);
      }
    });
  }

  /// Promoted rows come first, then each shard's own in its order.
  Result<void> number_rows() {
    auto readers = open_shards();
    if (!readers) return readers.error();
    number_.assign(source_.count(), kNoLink);
    std::uint32_t next = 0;
    for (const std::uint32_t row : order_) number_[row] = next++;
    for (const ShardReader& reader : *readers) {
      shard_ends_.push_back(next);
      for (const std::uint32_t row : reader.packed_rows()) {
        if (number_[row] == kNoLink) number_[row] = next++;
      }
    }
    shard_ends_.push_back(next);
    check(next == nodes(), "every row but its twins has a number");
    return {};
  }

  /// What the nodes of one shard, or the promoted, have in the slow part.
  struct Loaded {
    std::uint32_t first = 0, end = 0;
    std::vector<std::uint32_t> rows, links;  // by node, from the first
    HugeVector<float> vectors;
  };
  Loaded load_nodes(const LinksFile& links, std::uint32_t first, std::uint32_t end) const {
    Loaded loaded{first, end, std::vector<std::uint32_t>(end - first), {}, {}};
    loaded.links.resize(loaded.rows.size() * width_, kNoLink);
    links.for_each([&](std::uint32_t row, std::span<const std::uint32_t> all) {
      const std::uint32_t node = number_[row];
      if (node < first || node >= end) return;
      loaded.rows[node - first] = row;
      std::transform(all.begin(), all.end(),
                     loaded.links.begin() + static_cast<std::ptrdiff_t>((node - first) * width_),
                     [&](std::uint32_t link) { return number_[link]; });
    });
    if (first >= promoted_) loaded.vectors = load_vectors(first, end);
    return loaded;
  }

  /// Where what is loaded from that node on ends: as many shards as memory has room for, one at least.
  std::uint32_t end_from(std::uint32_t node) const {
    if (node < promoted_) return static_cast<std::uint32_t>(promoted_);
    auto end = std::upper_bound(shard_ends_.begin(), shard_ends_.end(), node);
    while (end + 1 != shard_ends_.end() && *(end + 1) - node <= plan_.rows_in_memory) ++end;
    return *end;
  }

  Result<void> write() {
    if (const auto numbered = number_rows(); !numbered) return numbered;
    FastPart fast = upper_layers();
    add_codes(fast);
    const auto links = LinksFile::open(work_ / "links", source_.count(), width_);
    if (!links) return links.error();
    const SlowLayout layout(fast.layers, fast.dimension, true, element());
    Loaded loaded;
    return write_index(folder_, fast, element(), [&](std::uint32_t node, std::byte* out) {
      if (node >= loaded.end) {
        tell("writing", static_cast<double>(node) / static_cast<double>(nodes()));
        loaded = {};
        loaded = load_nodes(*links, node, end_from(node));
      }
      const std::size_t at = node - loaded.first;
      std::memcpy(out, loaded.links.data() + at * width_, layout.list_bytes().count);
      if (node < promoted_) return;
      std::memcpy(out + layout.id_at().count, &loaded.rows[at], kIdBytes.count);
      write_elements(layout.type(), {loaded.vectors.data() + at * fast.dimension, fast.dimension},
                     out + layout.vector_at().count);
    });
  }

  const VectorSource& source_;
  const path folder_, work_;
  const BuildOptions& options_;
  const ShardPlan plan_;
  const Bytes memory_;
  const std::uint32_t width_;
  const DistanceFunction distance_;
  mutable std::mutex telling_;

  std::vector<Twin> twins_;
  std::vector<bool> left_out_;  // rows that equal earlier ones
  std::vector<Membership> members_;
  std::uint64_t promoted_ = 0;
  std::vector<std::uint32_t> order_;       // rows that are promoted, by degree
  std::vector<std::uint32_t> number_;      // of each row its node, or kNoLink
  std::vector<std::uint32_t> shard_ends_;  // nodes at which shards begin and end
};

}  // namespace

Result<void> build_index(const std::filesystem::path& data, const std::filesystem::path& folder,
                         const BuildOptions& options, Bytes memory) {
  const auto source = VectorSource::open(data);
  if (!source) return source.error();
  if (source->count() == 0 || source->count() >= kNoLink)
    return Error{ErrorCode::invalid_argument, fmt::format("{} holds {} vectors where 1 to {} can be",
                                                          data.native(), source->count(), kNoLink - 1)};
  if (const auto good = check_options(options, source->dimension()); !good) return good;
  const auto plan = plan_shards(source->count(), source->dimension(), options, memory);
  if (!plan) return plan.error();
  return LargeBuild(*source, folder, options, *plan, memory).run();
}

}  // namespace terrace::ann
