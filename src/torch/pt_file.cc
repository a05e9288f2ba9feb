#include "torch/pt_file.h"

#include <caffe2/serialize/inline_container.h>
#include <fcntl.h>

#include <algorithm>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/file.h"
#include "cadre/error.h"
#include "torch/pickler.h"
#include "torch/unpickler.h"
#include "torch/zip_archive.h"

namespace cadre::pt {
namespace {

constexpr std::size_t max_pickle_bytes = std::size_t{1} << 30;
constexpr std::size_t max_byteorder_bytes = 16;

// The output of PyTorch's zip writer. It hides errors from the writer, whose destructor would write again during
// unwinding and terminate the process; close() throws the first error.
class ZipSink {
 public:
  explicit ZipSink(const std::filesystem::path& path)
      : path_(path), fd_(base::open_file(path, O_WRONLY | O_CREAT | O_TRUNC, "write")) {}

  std::size_t write(const void* data, std::size_t size) {
    const std::string_view bytes(static_cast<const char*>(data), size);
    if (buffer_.size() + size > buffer_limit) flush();
    if (size > buffer_limit) {
      write_through(bytes);
    } else {
      buffer_ += bytes;
    }
    return size;
  }

  void close() {
    flush();
    if (error_) std::rethrow_exception(error_);
    base::close_written(fd_, path_);
  }

 private:
  static constexpr std::size_t buffer_limit = 256 << 10;

  void flush() {
    write_through(buffer_);
    buffer_.clear();
  }

  void write_through(std::string_view bytes) {
    if (error_) return;
    try {
      base::write_all(fd_.get(), bytes, path_);
    } catch (const StorageError&) {
      error_ = std::current_exception();
    }
  }

  std::filesystem::path path_;
  base::FileDescriptor fd_;
  std::string buffer_;
  std::exception_ptr error_;
};

// The memory of the archive's tensors; memory shared by several tensors is read once.
class Storages {
 public:
  Storages(const ZipArchive& archive, std::string file) : archive_(archive), file_(std::move(file)) {}

  c10::Storage load(const std::string& key, std::size_t size_bytes) {
    const std::string record = "data/" + key;
    const std::size_t actual = archive_.size_bytes(record);
    if (actual != size_bytes) {
      throw StorageError("cannot load " + file_ + ": record \"" + record + "\" has " + std::to_string(actual) +
                         " bytes, its tensors need " + std::to_string(size_bytes));
    }
    const auto [found, is_new] = loaded_.try_emplace(key);
    if (is_new) {
      const torch::Tensor memory = torch::empty({static_cast<std::int64_t>(size_bytes)}, torch::kUInt8);
      archive_.read(record, std::as_writable_bytes(std::span(memory.data_ptr<std::uint8_t>(), size_bytes)));
      found->second = memory.storage();
    }
    return found->second;
  }

 private:
  const ZipArchive& archive_;
  std::string file_;
  std::map<std::string, c10::Storage> loaded_;
};

}  // namespace

void write_file(const std::filesystem::path& file, const Value& value) {
  const Pickled pickled = pickle(value);
  ZipSink sink(file);
  {
    caffe2::serialize::PyTorchStreamWriter writer(
        [&sink](const void* data, std::size_t size) { return sink.write(data, size); });
    const std::string byteorder = "little";
    writer.writeRecord("data.pkl", pickled.bytes.data(), pickled.bytes.size());
    writer.writeRecord("byteorder", byteorder.data(), byteorder.size());
    for (std::size_t i = 0; i < pickled.storages.size(); ++i) {
      writer.writeRecord("data/" + std::to_string(i), pickled.storages[i].data(), pickled.storages[i].nbytes());
    }
    writer.writeEndOfFile();
  }
  sink.close();
}

Value read_file(const std::filesystem::path& file) {
  const ZipArchive archive(file);
  if (archive.contains("constants.pkl")) {
    throw StorageError("cannot load " + file.string() +
                       ": it is an archive of C++'s torch::save or of TorchScript, not " +
                       "of save_state or Python's torch.save; torch::load reads it");
  }
  if (archive.contains("byteorder") && archive.read_text("byteorder", max_byteorder_bytes) != "little") {
    throw StorageError("cannot load " + file.string() + ": it was written on a big-endian machine");
  }
  const std::string pickle = archive.read_text("data.pkl", max_pickle_bytes);
  Storages storages(archive, file.string());
  return unpickle(pickle, file.string(),
                  [&](const std::string& key, std::size_t size_bytes) { return storages.load(key, size_bytes); });
}

}  // namespace cadre::pt
