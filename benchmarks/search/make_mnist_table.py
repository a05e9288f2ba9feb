"""Makes mnist_table.csv: a real network, trained on MNIST with every configuration of a grid, and its validation error
after each epoch. Benchmarks look the curves up instead of training.

    .venv/bin/python benchmarks/search/make_mnist_table.py [--processes 2] [--data data/mnist]

Needs torch and the images that `make setup` fetches. Each configuration is trained once, on one core, with its number
in the table as the seed: half a second each, ten minutes in all. Finished ones are kept in
`results/search/mnist_table.jsonl`, so a second run computes only what is missing; when all are there the table is
written."""

import argparse
import itertools
import json
import multiprocessing
import pathlib

import torch

TABLE = pathlib.Path(__file__).resolve().with_name("mnist_table.csv")
EPOCHS = 27
SIDE = 14  # of an image, in pixels
TRAINING_IMAGES, VALIDATION_IMAGES = 1000, 2000
LR = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
OWN = {"sgd": ("momentum", (0, 0.5, 0.9)), "adam": ("beta1", (0.5, 0.9))}  # exists only with this optimizer
GRID = {"batch_size": (32, 128), "width": (16, 32, 64, 128), "layers": (1, 2), "activation": ("relu", "tanh")}
ACTIVATIONS = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}


def configurations():
    optimizers = [{"optimizer": name, "lr": lr, key: value}
                  for name, (key, values) in OWN.items() for lr in LR for value in values]
    return [optimizer | dict(zip(GRID, values)) for optimizer in optimizers
            for values in itertools.product(*GRID.values())]


def read_idx(path, header, count, last=False):
    """The first or last items of an IDX file, which has one byte for each number."""
    content = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
    items = content[header:].view(60000, -1)
    return items[-count:] if last else items[:count]


def load(folder):
    """Images and labels to train with, and those to validate with, in half the resolution. MNIST's test images are not
    used."""
    sets = []
    for count, last in ((TRAINING_IMAGES, False), (VALIDATION_IMAGES, True)):
        images = read_idx(folder / "train-images-idx3-ubyte", 16, count, last).view(-1, 1, 28, 28).float() / 255
        sets += [torch.nn.functional.avg_pool2d(images, 2).flatten(1),
                 read_idx(folder / "train-labels-idx1-ubyte", 8, count, last).view(-1).long()]
    return sets


def make_network(config):
    sizes = [SIDE * SIDE] + [config["width"]] * config["layers"]
    layers = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(inputs, outputs), ACTIVATIONS[config["activation"]]()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 10))


def make_optimizer(config, parameters):
    if config["optimizer"] == "sgd":
        return torch.optim.SGD(parameters, config["lr"], momentum=config["momentum"], fused=True)
    return torch.optim.Adam(parameters, config["lr"], betas=(config["beta1"], 0.999), fused=True)


def train(config, seed, data):
    """The number of validation images that are not recognised, after each epoch."""
    images, labels, validation_images, validation_labels = data
    torch.manual_seed(seed)
    network = make_network(config)
    optimizer = make_optimizer(config, network.parameters())
    errors = []
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(config["batch_size"]):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(images[batch]), labels[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            errors.append(int((network(validation_images).argmax(1) != validation_labels).sum()))
    return errors


def begin_process(folder):
    global data
    torch.set_num_threads(1)
    data = load(folder)


def train_row(row):
    return row, train(configurations()[row], row, data)


def finished_rows(kept):
    if not kept.exists():
        return {}
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    return {line["row"]: line["errors"] for line in lines}


def write(rows):
    names = ["optimizer", "lr", *(key for key, _ in OWN.values()), *GRID]
    torch_version = torch.__version__.partition("+")[0]
    header = (f"# Made by make_mnist_table.py with torch {torch_version}: {len(rows)} configurations of a network,\n"
              f"# trained on the first {TRAINING_IMAGES} of MNIST's training images, in half the resolution.\n"
              f"# e1 to e{EPOCHS}: how many of the last {VALIDATION_IMAGES} are not recognised after that epoch.\n")
    lines = [",".join([*names, *(f"e{epoch}" for epoch in range(1, EPOCHS + 1))])]
    for row, config in enumerate(configurations()):
        lines.append(",".join(map(str, [*(config.get(name, "") for name in names), *rows[row]])))
    TABLE.write_text(header + "\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, default="data/mnist")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default="results/search/mnist_table.jsonl")
    args = parser.parse_args()
    args.keep.parent.mkdir(parents=True, exist_ok=True)
    rows = finished_rows(args.keep)
    missing = [row for row in range(len(configurations())) if row not in rows]
    with multiprocessing.get_context("spawn").Pool(args.processes, begin_process, (args.data,)) as pool, \
            args.keep.open("a") as file:
        for row, errors in pool.imap_unordered(train_row, missing):
            rows[row] = errors
            file.write(json.dumps({"row": row, "errors": errors}) + "\n")
            file.flush()
    write(rows)


if __name__ == "__main__":
    main()
