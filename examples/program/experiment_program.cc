#include "program/experiment_program.h"

#include "cadre/error.h"

namespace examples {

void add_flags(CLI::App& app, ExperimentFlags& flags) {
  app.option_defaults()->always_capture_default();
  app.add_option("--num-samples", flags.num_samples, "trials in the population");
  app.add_option("--max-iterations", flags.max_iterations, "a trial stops here");
  app.add_option("--seed", flags.seed, "of all random choices");
  app.add_option("--data-dir", flags.data_dir, "folder with the four IDX files of MNIST, plain or .gz");
  app.add_option("--storage-path", flags.storage_path, "folder for experiments, also a URI as s3://bucket/folder");
  app.add_option("--name", flags.name, "of the experiment's folder");
  app.add_flag("--restore", flags.restore,
               "go on with the interrupted experiment of that name, with the flags it was begun with");
  app.add_flag("--smoke-test", flags.smoke_test,
               "only see that everything works: 2 trials of 5 iterations, whatever other flags say");
  app.final_callback([&flags] {
    if (!flags.smoke_test) return;
    flags.num_samples = 2;
    flags.max_iterations = 5;
  });
}

void add_flags(CLI::App& app, TrainingFlags& flags) {
  app.option_defaults()->always_capture_default();
  app.add_option("--num-workers", flags.num_workers, "processes that train together");
  app.add_option("--epochs", flags.epochs, "times that all images are seen");
  app.add_option("--model", flags.model, "the network")->check(CLI::IsMember({"convnet", "resnet18"}));
  app.add_option("--max-images", flags.max_images, "train and test with the first images only; 0: with all");
  app.add_option("--seed", flags.seed, "of all random choices");
  app.add_option("--data-dir", flags.data_dir, "folder with the four IDX files of Fashion-MNIST, plain or .gz");
  app.add_option("--storage-path", flags.storage_path, "folder for runs");
  app.add_option("--name", flags.name, "of the run's folder");
  app.add_flag("--restore", flags.restore,
               "go on with the interrupted run of that name, with the flags it was begun with");
  app.add_flag("--smoke-test", flags.smoke_test,
               "only see that everything works: the small network, 2 epochs of 1,024 images, whatever other flags say");
  app.final_callback([&flags] {
    if (!flags.smoke_test) return;
    flags.model = "convnet";
    flags.epochs = 2;
    flags.max_images = 1024;
  });
}

int run_program(const std::string& program, const ExperimentFlags& flags, const std::function<int()>& run) {
  try {
    return run();
  } catch (const cadre::Interrupted& interrupted) {
    std::string command = program + " --storage-path " + flags.storage_path + " --name " + flags.name + " --restore";
    if (flags.data_dir != ExperimentFlags{}.data_dir) command += " --data-dir " + flags.data_dir;
    throw cadre::Interrupted(std::string(interrupted.what()) + "\nHere that is: " + command);
  }
}

}  // namespace examples
