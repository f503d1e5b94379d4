#include "nn/models/layers.hpp"
#include "terrace/networks.hpp"

namespace terrace::networks {

Value alexnet(Net& net, Value x, const AlexNetOptions& options) {
  const std::int64_t width = options.width;
  const Net::Pool pool{.kernel = {3, 3}, .stride = {2, 2}};
  // The numbers in names are places in torchvision's list, where relu and pooling count too.
  x = net.relu(net.conv2d("features.0", x, width,
                          {.kernel = {11, 11}, .stride = {4, 4}, .padding = {2, 2}, .initial = {}}));
  x = net.max_pool2d(x, pool);
  x = net.relu(net.conv2d("features.3", x, 3 * width, {.kernel = {5, 5}, .padding = {2, 2}, .initial = {}}));
  x = net.max_pool2d(x, pool);
  const Net::Conv small{.kernel = {3, 3}, .padding = {1, 1}, .initial = {}};
  x = net.relu(net.conv2d("features.6", x, 6 * width, small));
  x = net.relu(net.conv2d("features.8", x, 4 * width, small));
  x = net.relu(net.conv2d("features.10", x, 4 * width, small));
  x = net.flatten(net.max_pool2d(x, pool));
  x = net.relu(net.linear("classifier.1", net.dropout(x, options.dropout), options.hidden));
  x = net.relu(net.linear("classifier.4", net.dropout(x, options.dropout), options.hidden));
  return net.linear("classifier.6", x, options.classes);
}

}  // namespace terrace::networks
