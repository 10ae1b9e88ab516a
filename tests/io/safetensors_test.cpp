#include "ballast/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <cstring>

#include "ballast/io/atomic_file.h"
#include "ballast/io/hugging_face_tokenizer.h"
#include "tests/io/scratch_folder.h"
#include "tests/io/user_error.h"

namespace ballast {
namespace {

using ::testing::HasSubstr;
using testing::ScratchFolder;
using testing::user_error;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string text_of(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// A file of the given header and data, whatever they say.
std::string raw_file(const std::string& header, const std::string& data) {
  const std::uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + data;
}

void write_sample(const std::filesystem::path& path) {
  const std::vector<TensorView> tensors = {{"norm", "BF16", {3}, bytes_of("abcdef")},
                                           {"weight", "F32", {2, 1}, bytes_of("12345678")},
                                           {"steps", "I64", {}, bytes_of("ABCDEFGH")},
                                           {"none", "F64", {4, 0}, {}}};
  write_safetensors(path, tensors, {{"step", "12"}});
}

// Runs Python with the code on `path`; what it printed.
std::string run_python(const ScratchFolder& folder, const std::string& code, const std::filesystem::path& path) {
  const auto script = folder.write("script.py", code);
  const auto output = folder / "output";
  const std::string command =
      default_python() + " " + script.string() + " " + path.string() + " > " + output.string() + " 2>&1";
  const int status = std::system(command.c_str());
  EXPECT_EQ(status, 0) << read_file(output);
  return read_file(output);
}

TEST(Safetensors, GivesBackWhatWasWritten) {
  const ScratchFolder folder;
  write_sample(folder / "f");
  const SafetensorsFile file(folder / "f");
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(text_of(file.at("norm").bytes), "abcdef");
  EXPECT_EQ(file.at("norm").dtype, "BF16");
  EXPECT_EQ(text_of(file.at("weight").bytes), "12345678");
  EXPECT_EQ(file.at("weight").shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(text_of(file.at("steps").bytes), "ABCDEFGH");
  EXPECT_TRUE(file.at("none").bytes.empty());
  EXPECT_EQ(file.metadata(), (TensorMetadata{{"step", "12"}}));
}

TEST(Safetensors, AlignsEveryTensor) {
  const ScratchFolder folder;
  write_sample(folder / "f");
  const SafetensorsFile file(folder / "f");
  for (const TensorView& tensor : file.tensors()) {
    EXPECT_EQ(
        reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % static_cast<std::uintptr_t>(dtype_size(tensor.dtype)),
        0u);
  }
}

TEST(Safetensors, ReturnsTheChecksumOfTheFile) {
  const ScratchFolder folder;
  const std::vector<TensorView> tensors = {{"w", "U8", {5}, bytes_of("hello")}};
  const Checksum sum = write_safetensors(folder / "f", tensors);
  EXPECT_EQ(checksum_of_file(folder / "f"), sum);
  std::string bytes = read_file(folder / "f");
  bytes.back() ^= 1;
  folder.write("f", bytes);
  EXPECT_NE(checksum_of_file(folder / "f"), sum);
}

TEST(Safetensors, IsReadByThePythonLibrary) {
  const ScratchFolder folder;
  write_sample(folder / "f");
  EXPECT_EQ(
      run_python(folder,
                 "import sys, safetensors\n"
                 "for name, t in sorted(safetensors.deserialize(open(sys.argv[1], 'rb').read())):\n"
                 "    print(name, t['dtype'], list(t['shape']), bytes(t['data']).decode())\n"
                 "with safetensors.safe_open(sys.argv[1], 'np') as file: print(file.metadata())\n",
                 folder / "f"),
      "none F64 [4, 0] \nnorm BF16 [3] abcdef\nsteps I64 [] ABCDEFGH\nweight F32 [2, 1] 12345678\n{'step': '12'}\n");
}

TEST(Safetensors, ReadsWhatThePythonLibraryWrote) {
  const ScratchFolder folder;
  run_python(folder,
             "import ctypes, sys, safetensors\n"
             "buffers = []\n"
             "def spec(dtype, shape, data):\n"
             "    buffers.append(ctypes.create_string_buffer(data, len(data)))\n"
             "    return safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=ctypes.addressof(buffers[-1]), "
             "data_len=len(data))\n"
             "safetensors.serialize_file({'norm': spec('bfloat16', [3], b'abcdef'), 'weight': spec('float32', [2, 1], "
             "b'12345678')},\n"
             "                           sys.argv[1], {'step': '12'})\n",
             folder / "f");
  const SafetensorsFile file(folder / "f");
  EXPECT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.at("norm").dtype, "BF16");
  EXPECT_EQ(text_of(file.at("norm").bytes), "abcdef");
  EXPECT_EQ(text_of(file.at("weight").bytes), "12345678");
  EXPECT_EQ(file.metadata(), (TensorMetadata{{"step", "12"}}));
}

TEST(Safetensors, GivesBackAnyTensors) {
  rc::check([](const std::vector<std::pair<std::string, std::uint8_t>>& drawn) {
    static const std::vector<std::string> dtypes = {"F64", "F32", "BF16", "I64", "U8"};
    std::map<std::string, std::string> contents;
    std::vector<TensorView> tensors;
    for (const auto& [word, kind] : drawn) {
      std::string name = "t";
      for (const char c : word) name += static_cast<char>(32 + (static_cast<unsigned char>(c) & 63));
      if (contents.contains(name)) continue;
      const std::string& dtype = dtypes[kind % dtypes.size()];
      contents[name] = std::string(static_cast<std::size_t>((kind / 8) * dtype_size(dtype)), static_cast<char>(kind));
      tensors.push_back({name, dtype, {kind / 8, 1}, bytes_of(contents[name])});
    }
    const ScratchFolder folder;
    const Checksum sum = write_safetensors(folder / "f", tensors);
    RC_ASSERT(checksum_of_file(folder / "f") == sum);
    const SafetensorsFile file(folder / "f");
    RC_ASSERT(file.tensors().size() == tensors.size());
    for (const TensorView& tensor : tensors) {
      RC_ASSERT(file.at(tensor.name).dtype == tensor.dtype);
      RC_ASSERT(file.at(tensor.name).shape == tensor.shape);
      RC_ASSERT(text_of(file.at(tensor.name).bytes) == contents[tensor.name]);
    }
  });
}

TEST(Safetensors, NamesAMissingTensorAndTheNearest) {
  const ScratchFolder folder;
  write_sample(folder / "f");
  EXPECT_THAT(user_error([&] { SafetensorsFile(folder / "f").at("weigth"); }),
              HasSubstr("f: no tensor \"weigth\"; nearest is \"weight\""));
}

TEST(Safetensors, RefusesAFileCutAnywhere) {
  const ScratchFolder folder;
  write_sample(folder / "f");
  const std::string bytes = read_file(folder / "f");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    folder.write("f", bytes.substr(0, size));
    EXPECT_NE(user_error([&] { SafetensorsFile file(folder / "f"); }), "") << size;
  }
}

TEST(Safetensors, SurvivesAnyDamage) {
  const ScratchFolder folder;
  write_sample(folder / "f");
  const std::string good = read_file(folder / "f");
  rc::check([&] {
    std::string bytes = good;
    for (int flips = *rc::gen::inRange(1, 4); flips > 0; --flips) {
      bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] ^= static_cast<char>(1 << *rc::gen::inRange(0, 8));
    }
    folder.write("f", bytes);
    const std::string error = user_error([&] {
      const SafetensorsFile file(folder / "f");
      std::size_t total = 0;  // what it accepts, it can also read
      for (const TensorView& tensor : file.tensors()) total += text_of(tensor.bytes).size();
      RC_ASSERT(total < bytes.size());
    });
    if (!error.empty()) RC_ASSERT(error.find("/f: ") != std::string::npos);
  });
}

struct BadHeader {
  const char* name;
  const char* header;
  const char* says;
};

class BadSafetensors : public ::testing::TestWithParam<BadHeader> {};

TEST_P(BadSafetensors, IsRefusedWithTheReason) {
  const ScratchFolder folder;
  folder.write("f", raw_file(GetParam().header, "12345678"));
  EXPECT_THAT(user_error([&] { SafetensorsFile file(folder / "f"); }), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadSafetensors,
    ::testing::Values(
        BadHeader{"NotJson", "{\"w\":", "f: is not JSON"},
        BadHeader{"NumberTooLarge", "{\"w\":1e999}", "a number in it is too large"},
        BadHeader{"NotAnObject", "[1]", "f: its header is not a JSON object"},
        BadHeader{"NoShape", R"({"w":{"dtype":"F32","data_offsets":[0,8]}})", "key \"shape\" is missing"},
        BadHeader{"UnknownDtype", R"({"w":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})",
                  "dtype \"F33\" is unknown"},
        BadHeader{"NegativeExtent", R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "-2 is too small"},
        BadHeader{"ShapeOverflows", R"({"w":{"dtype":"F32","shape":[4611686018427387904,8],"data_offsets":[0,8]}})",
                  "need more than there can be"},
        BadHeader{"ShapeDisagrees", R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
                  "has 8 bytes, its shape and dtype need 12"},
        BadHeader{"OutsideTheFile", R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", "12 is too large"},
        BadHeader{"Backwards", R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "must be [begin, end]"},
        BadHeader{"ThreeOffsets", R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}})",
                  "must be [begin, end]"},
        BadHeader{
            "Overlap",
            R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
            "tensor \"b\": begins at byte 4 of the data, but the tensors before it end at 8"},
        BadHeader{"Hole", R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "begins at byte 4"},
        BadHeader{"BytesLeftOver", R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "the tensors end at 4"},
        BadHeader{"Metadata", R"({"__metadata__":{"k":1}})", "must be a string"}),
    [](const auto& bad) { return bad.param.name; });

TEST(Safetensors, RefusesAnAbsurdHeaderLength) {
  const ScratchFolder folder;
  for (const std::uint64_t size : {std::uint64_t{17}, std::uint64_t{1} << 40, UINT64_MAX, UINT64_MAX - 7}) {
    std::string bytes(24, ' ');
    std::memcpy(bytes.data(), &size, sizeof size);
    folder.write("f", bytes);
    EXPECT_THAT(user_error([&] { SafetensorsFile file(folder / "f"); }), HasSubstr("does not fit the file of 24:"));
  }
}

}  // namespace
}  // namespace ballast
