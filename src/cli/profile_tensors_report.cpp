// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "cli/profile_tensors.hpp"
#include "cli/table.hpp"
#include "report/bars.hpp"

namespace terrace::cli {
namespace {

using Align = Table::Align;

double percent(double part, double whole) { return whole > 0 ? part / whole * 100 : 0; }
double percent(Bytes part, Bytes whole) {
  return percent(static_cast<double>(part.count), static_cast<double>(whole.count));
}
std::string shown(double share) { return fmt::format("{:.1f}%", share); }

Bucket sum_of_buckets(const Distribution& buckets) {
  Bucket sum;
  for (const Bucket& bucket : buckets) {
    sum.tensors += bucket.tensors;
    sum.small_tensors += bucket.small_tensors;
    sum.bytes += bucket.bytes;
    sum.small_bytes += bucket.small_bytes;
  }
  return sum;
}

double share_of_tensors(const Bucket& bucket, const Bucket& sum) {
  return percent(static_cast<double>(bucket.tensors), static_cast<double>(sum.tensors));
}

void print_distribution(const char* title, const Distribution& buckets) {
  Table table({{title},
               {"tensors", Align::right},
               {"share", Align::right},
               {"small", Align::right},
               {"bytes", Align::right},
               {"share", Align::right}});
  const Bucket sum = sum_of_buckets(buckets);
  for (const Bucket& bucket : buckets) {
    table.add({bucket.label, std::to_string(bucket.tensors), shown(share_of_tensors(bucket, sum)),
               std::to_string(bucket.small_tensors), readable(bucket.bytes),
               shown(percent(bucket.bytes, sum.bytes))});
  }
  table.add({"all", std::to_string(sum.tensors), "100.0%", std::to_string(sum.small_tensors),
             readable(sum.bytes), "100.0%"});
  table.print();
  fmt::print("\n");
}

void print_sharing(const TensorProfile& profile) {
  Table table({{"pages"},
               {"all", Align::right},
               {"shared", Align::right},
               {"unlike accesses", Align::right},
               {"unlike lifetimes", Align::right},
               {"falsely shared", Align::right},
               {"share", Align::right},
               {"tensors in them", Align::right}});
  const auto add = [&](const char* name, const Sharing& one) {
    table.add({name, std::to_string(one.pages), std::to_string(one.shared),
               std::to_string(one.unlike_accesses), std::to_string(one.unlike_lifetimes),
               std::to_string(one.falsely_shared),
               shown(percent(static_cast<double>(one.falsely_shared), static_cast<double>(one.pages))),
               std::to_string(one.tensors)});
  };
  add("in allocation order", profile.as_allocated);
  add("grouped", profile.grouped);
  table.print();
  fmt::print("\n");
}

void print_levels(const TensorProfile& profile) {
  Table table({{"accesses"},
               {"bytes of tensors", Align::right},
               {"of pages, in allocation order", Align::right},
               {"of pages, grouped", Align::right}});
  const Distribution buckets = by_accesses(profile.facts);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    table.add({buckets[i].label, readable(buckets[i].bytes),
               readable(profile.as_allocated.by_page_accesses[i]),
               readable(profile.grouped.by_page_accesses[i])});
  }
  table.print();
  fmt::print("\n");
}

void print_footprint(const TensorProfile& profile) {
  Table table({{"most memory at once"}, {"one tensor per page", Align::right}, {"original", Align::right}});
  table.add({"all tensors", readable(profile.all.in_pages), readable(profile.all.original)});
  table.add({"tensors below 4 KiB", readable(profile.small.in_pages), readable(profile.small.original)});
  table.print();
}

void print_source(const TensorProfile& profile) {
  if (!profile.not_counted.empty()) {
    fmt::print("Accesses are as the graph says, not counted: {}\n\n", profile.not_counted);
    return;
  }
  fmt::print(
      "Accesses are sweeps over a tensor in memory, reads and writes, counted in one step by protecting its "
      "pages:\n{} of {} operands; the step took {:.2f} s, one without counting {:.2f} s.\n\n",
      profile.watched, profile.operands, profile.counted_step->count(), profile.step->count());
}

nlohmann::json distribution_json(const Distribution& buckets) {
  auto rows = nlohmann::json::array();
  for (const Bucket& bucket : buckets) {
    rows.push_back({{"label", bucket.label},
                    {"tensors", bucket.tensors},
                    {"small_tensors", bucket.small_tensors},
                    {"bytes", bucket.bytes.count},
                    {"small_bytes", bucket.small_bytes.count}});
  }
  return rows;
}

nlohmann::json sharing_json(const Sharing& one) {
  auto bytes = nlohmann::json::array();
  for (const Bytes amount : one.by_page_accesses) bytes.push_back(amount.count);
  return {{"pages", one.pages},
          {"shared_pages", one.shared},
          {"unlike_accesses_pages", one.unlike_accesses},
          {"unlike_lifetimes_pages", one.unlike_lifetimes},
          {"falsely_shared_pages", one.falsely_shared},
          {"falsely_shared_tensors", one.tensors},
          {"page_bytes_by_accesses", bytes}};
}

nlohmann::json footprint_json(const Footprint& one) {
  return {{"original_bytes", one.original.count}, {"in_pages_bytes", one.in_pages.count}};
}

nlohmann::json seconds(const std::optional<Seconds>& time) {
  return time ? nlohmann::json(time->count()) : nlohmann::json();
}

BarChart chart_of(const std::string& title, const Distribution& buckets) {
  BarChart chart{title, {}, {{"tensors", {}}, {"tensors below 4 KiB", {}}, {"bytes", {}}}};
  const Bucket sum = sum_of_buckets(buckets);
  for (const Bucket& bucket : buckets) {
    chart.labels.push_back(bucket.label);
    chart.series[0].percent.push_back(share_of_tensors(bucket, sum));
    chart.series[1].percent.push_back(
        percent(static_cast<double>(bucket.small_tensors), static_cast<double>(sum.small_tensors)));
    chart.series[2].percent.push_back(percent(bucket.bytes, sum.bytes));
  }
  return chart;
}

BarChart chart_of_levels(const TensorProfile& profile) {
  BarChart chart{"Bytes by accesses, of tensors and of the pages they lie in",
                 {},
                 {{"tensors", {}}, {"pages, allocation order", {}}, {"pages, grouped", {}}}};
  const Distribution buckets = by_accesses(profile.facts);
  const Bytes tensors = sum_of_buckets(buckets).bytes;
  const std::array layouts{&profile.as_allocated, &profile.grouped};
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    chart.labels.push_back(buckets[i].label);
    chart.series[0].percent.push_back(percent(buckets[i].bytes, tensors));
    for (std::size_t j = 0; j < layouts.size(); ++j) {
      const Bytes pages{layouts[j]->pages * kSmall.count};
      chart.series[j + 1].percent.push_back(percent(layouts[j]->by_page_accesses[i], pages));
    }
  }
  return chart;
}

}  // namespace

void print(const ProfileRequest& request, const TensorProfile& profile) {
  fmt::print("{}: {} tensors in a step.\n", request.title(", batch "), profile.facts.size());
  print_source(profile);
  print_distribution("lifetime", by_lifetime(profile.facts));
  print_distribution("size", by_size(profile.facts));
  print_distribution("accesses", by_accesses(profile.facts));
  print_sharing(profile);
  print_levels(profile);
  print_footprint(profile);
}

nlohmann::json to_json(const ProfileRequest& request, const TensorProfile& profile) {
  const bool counted = profile.not_counted.empty();
  return {{"model", request.model},
          {"batch", request.batch_json()},
          {"threads", profile.threads},
          {"tensors", profile.facts.size()},
          {"counted", counted},
          {"reason", counted ? nlohmann::json() : nlohmann::json(profile.not_counted)},
          {"operands", profile.operands},
          {"watched_operands", profile.watched},
          {"step_seconds", seconds(profile.step)},
          {"counted_step_seconds", seconds(profile.counted_step)},
          {"lifetimes", distribution_json(by_lifetime(profile.facts))},
          {"sizes", distribution_json(by_size(profile.facts))},
          {"accesses", distribution_json(by_accesses(profile.facts))},
          {"sharing",
           {{"allocation_order", sharing_json(profile.as_allocated)},
            {"grouped", sharing_json(profile.grouped)}}},
          {"memory", {{"all", footprint_json(profile.all)}, {"small", footprint_json(profile.small)}}}};
}

std::string drawing(const ProfileRequest& request, const TensorProfile& profile) {
  const std::array charts{chart_of("Lifetimes of tensors", by_lifetime(profile.facts)),
                          chart_of("Sizes of tensors", by_size(profile.facts)),
                          chart_of("Accesses of tensors in one step", by_accesses(profile.facts)),
                          chart_of_levels(profile)};
  const char* source = profile.not_counted.empty() ? "accesses counted" : "accesses as the graph says";
  return bars_svg(fmt::format("{}, {} tensors, {}", request.title(", batch "), profile.facts.size(), source),
                  charts);
}

}  // namespace terrace::cli
