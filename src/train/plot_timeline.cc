// timeline_svg and write_timeline of cadre/train.h: the timeline of a run, from its store.
#include "cadre/train.h"
#include "train/read_timeline.h"
#include "view/png.h"

namespace cadre::train {

std::string timeline_svg(const std::filesystem::path& directory) { return to_svg(read_timeline(directory)); }

void write_timeline(const std::filesystem::path& directory, const std::filesystem::path& file) {
  view::write_picture(timeline_svg(directory), file);
}

}  // namespace cadre::train
