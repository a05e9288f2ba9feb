// timeline_svg and write_timeline_svg of cadre/train.h: the timeline of a run, from its store.
#include "base/file.h"
#include "cadre/train.h"
#include "train/read_timeline.h"

namespace cadre::train {

std::string timeline_svg(const std::filesystem::path& directory) { return to_svg(read_timeline(directory)); }

void write_timeline_svg(const std::filesystem::path& directory, const std::filesystem::path& file) {
  base::replace_file(file, timeline_svg(directory));
}

}  // namespace cadre::train
