"""Population Based Training of a DCGAN: python -m cadre.tune.examples.pbt_dcgan_mnist.pbt_dcgan_mnist_func [--smoke-test]"""

import argparse
import os
import random
import tempfile

import torch
from torch import nn, optim

import cadre
from cadre import tune
from cadre.tune.examples.pbt_dcgan_mnist.common import (MODEL_PATH, Discriminator, Generator, Net, beta1, demo_gan,
                                                        get_data_loader, plot_images, train_classifier, train_func,
                                                        weights_init)
from cadre.tune.schedulers import PopulationBasedTraining


def dcgan_train(config):
    """Trains until it is stopped. `config`: netG_lr and netD_lr, the learning rates; mnist_model_ref, the ObjectRef of the
    classifier; checkpoint_interval, in results; use_gpu."""
    device = torch.device("cuda" if config.get("use_gpu") and torch.cuda.is_available() else "cpu")
    netD, netG = Discriminator().to(device).apply(weights_init), Generator().to(device).apply(weights_init)
    criterion = nn.BCELoss()
    optimizerD = optim.Adam(netD.parameters(), lr=config.get("netD_lr", 0.01), betas=(beta1, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=config.get("netG_lr", 0.01), betas=(beta1, 0.999))
    dataloader = get_data_loader()

    step = 1
    checkpoint = tune.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as directory:
            state = torch.load(os.path.join(directory, "checkpoint.pt"))
        netD.load_state_dict(state["netDmodel"])
        netG.load_state_dict(state["netGmodel"])
        optimizerD.load_state_dict(state["optimD"])
        optimizerG.load_state_dict(state["optimG"])
        step = state["step"] + 1
        # The explored learning rates in the place of those in the checkpoint.
        for optimizer, key in ((optimizerD, "netD_lr"), (optimizerG, "netG_lr")):
            for group in optimizer.param_groups:
                group["lr"] = config.get(key, group["lr"])

    while True:
        loss_g, loss_d, score = train_func(netD, netG, optimizerG, optimizerD, criterion, dataloader, step, device,
                                           config["mnist_model_ref"])
        metrics = {"lossg": loss_g, "lossd": loss_d, "is_score": score}
        if step % config.get("checkpoint_interval", 1) == 0:
            with tempfile.TemporaryDirectory() as directory:
                torch.save({"netDmodel": netD.state_dict(), "netGmodel": netG.state_dict(), "optimD": optimizerD.state_dict(),
                            "optimG": optimizerG.state_dict(), "step": step}, os.path.join(directory, "checkpoint.pt"))
                tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(directory))
        else:
            tune.report(metrics)
        step += 1


def download_mnist_cnn():
    """Trains the classifier that scores the images, unless MODEL_PATH has it, and returns that path. Nothing is downloaded."""
    if not os.path.exists(MODEL_PATH):
        print("training the classifier")
        os.makedirs(os.path.dirname(MODEL_PATH), exist_ok=True)
        torch.save(train_classifier().state_dict(), MODEL_PATH)
    return MODEL_PATH


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke-test", action="store_true", help="end after five results")
    arguments = parser.parse_args()
    if not arguments.smoke_test:
        plot_images(get_data_loader())
    classifier = Net()
    classifier.load_state_dict(torch.load(download_mnist_cnn()))
    learning_rates = tune.choice([0.0001, 0.0002, 0.0005])
    tuner = tune.Tuner(
        dcgan_train,
        param_space={"netG_lr": learning_rates, "netD_lr": learning_rates, "checkpoint_interval": 5,
                     "mnist_model_ref": cadre.put(classifier.eval())},
        tune_config=tune.TuneConfig(
            metric="is_score", mode="max", num_samples=2 if arguments.smoke_test else 8,
            scheduler=PopulationBasedTraining(
                time_attr="training_iteration", perturbation_interval=5,
                hyperparam_mutations={"netG_lr": lambda: random.uniform(1e-5, 1e-2),
                                      "netD_lr": lambda: random.uniform(1e-5, 1e-2)})),
        run_config=tune.RunConfig(name="pbt_dcgan_mnist", stop={"training_iteration": 5 if arguments.smoke_test else 300}))
    results = tuner.fit()
    if not arguments.smoke_test:
        demo_gan([result.checkpoint.path for result in results if result.checkpoint])


if __name__ == "__main__":
    main()
