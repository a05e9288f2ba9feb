// Changes images with cadre::data, for a comparison with Pillow.
//
//   data_transform_tool <cases>
//
// The file of cases is JSON: a list of {"file": an image, "to": a file for the result, "calls": [[name, numbers...]]}.
// A result is "height width channels", the end of the line, and the pixels.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/json.h"
#include "cadre/data.h"
#include "cadre/error.h"

namespace {

using cadre::Value;
namespace data = cadre::data;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

data::Image call(const data::Image& image, const Value& words) {
  const auto name = words.items()[0].get<std::string>();
  const auto whole = [&](std::size_t i) { return words.items()[i].get<std::int64_t>(); };
  const auto real = [&](std::size_t i) { return words.items()[i].get<double>(); };
  const auto area = [&] { return data::ImageArea{whole(1), whole(2), whole(3), whole(4)}; };
  if (name == "resize") return data::resize(image, {whole(1), whole(2)});
  if (name == "crop") return data::crop(image, area());
  if (name == "center_crop") return data::center_crop(image, {whole(1), whole(2)});
  if (name == "resized_crop") return data::resized_crop(image, area(), {whole(5), whole(6)});
  if (name == "horizontal_flip") return data::horizontal_flip(image);
  if (name == "vertical_flip") return data::vertical_flip(image);
  if (name == "rotate") return data::rotate(image, real(1), static_cast<std::uint8_t>(whole(2)));
  if (name == "adjust_brightness") return data::adjust_brightness(image, real(1));
  if (name == "adjust_contrast") return data::adjust_contrast(image, real(1));
  if (name == "adjust_saturation") return data::adjust_saturation(image, real(1));
  if (name == "adjust_hue") return data::adjust_hue(image, real(1));
  throw cadre::InvalidArgument("there is no function " + name);
}

void run(const std::string& file) {
  const Value cases = cadre::base::parse_json(content_of(file), "the cases");
  for (const Value& one : cases.items()) {
    const cadre::Config config(one);
    data::Image image = data::decode_image(content_of(config.get<std::string>("file")));
    for (const Value& words : config.find("calls")->items()) image = call(image, words);
    std::ofstream out(config.get<std::string>("to"), std::ios::binary);
    out << image.height << ' ' << image.width << ' ' << image.channels << '\n';
    out.write(reinterpret_cast<const char*>(image.pixels.data()), std::ssize(image.pixels));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw cadre::InvalidArgument("usage: data_transform_tool <cases>");
    run(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
