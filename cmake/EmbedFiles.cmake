# cmake -DFOLDER=<folder> -DFILES=<path,path> -DOUTPUT=<file.cc> -P EmbedFiles.cmake
#
# Writes the definition of cadre::report::page_files(), with the texts of the files in the folder.
string(REPLACE "," ";" files "${FILES}")
set(entries)
foreach(file IN LISTS files)
  file(READ "${FOLDER}/${file}" text)
  string(APPEND entries "    {\"${file}\", R\"page_file(${text})page_file\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"report/page_file.h\"

namespace cadre::report {
namespace {

constexpr PageFile kPageFiles[] = {
${entries}};

}  // namespace

std::span<const PageFile> page_files() { return kPageFiles; }

}  // namespace cadre::report
")
