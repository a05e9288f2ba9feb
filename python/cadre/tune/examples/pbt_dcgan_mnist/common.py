"""A DCGAN of digits, a classifier that scores them, and pictures: what the example of Ray Tune's guide to Population Based
Training is made of.

Nothing is downloaded: the images are those of mnist_pytorch, and the classifier is trained when it is first asked for.
"""

import os
import pathlib
import struct
import zlib

import numpy
import torch
import torch.nn.functional as functional
from torch import nn

from cadre import get
from cadre.tune.examples.mnist_pytorch import read_images

batch_size = 64
image_size = 32
nc = 1  # channels of an image
nz = 100  # numbers that an image is made from
ngf = 32  # width of the generator
ndf = 32  # width of the discriminator
beta1 = 0.5  # of Adam
train_iterations_per_step = 5  # batches in each result

MODEL_PATH = os.path.expanduser("~/.cadre/models/mnist_cnn.pt")


def get_data_loader(data_dir=None):
    """Returns a loader of the training images, 1 x 32 x 32 from -1 to 1 as a generator's, with their labels. `data_dir`
    has no meaning here."""
    images, labels = read_images("train")
    pixels = torch.from_numpy(images).unsqueeze(1).float() / 127.5 - 1
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(pixels, torch.from_numpy(labels)),
                                       batch_size=batch_size, shuffle=True, collate_fn=_collate_resized)


def _collate_resized(items):
    images, labels = zip(*items)
    resized = functional.interpolate(torch.stack(images), (image_size, image_size), mode="bilinear", align_corners=False)
    return resized, torch.stack(labels)


def weights_init(module):
    """Initialises a layer as the paper does (Radford et al., 2016). For Module.apply()."""
    name = type(module).__name__
    if "Conv" in name:
        nn.init.normal_(module.weight.data, 0.0, 0.02)
    elif "BatchNorm" in name:
        nn.init.normal_(module.weight.data, 1.0, 0.02)
        nn.init.constant_(module.bias.data, 0)


class Generator(nn.Module):
    """Makes images of numbers: batch x 100 x 1 x 1 to batch x 1 x 32 x 32."""

    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 4, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 4), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
            nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, noise):
        return self.main(noise)


class Discriminator(nn.Module):
    """Tells real images from made ones: batch x 1 x 32 x 32 to the probabilities that they are real, batch x 1 x 1 x 1."""

    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, ndf * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 4), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 4, 1, 4, 1, 0, bias=False), nn.Sigmoid())

    def forward(self, images):
        return self.main(images)


class Net(nn.Module):
    """LeNet, which recognises digits: batch x 1 x 28 x 28 to the logarithms of ten probabilities."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = functional.relu(functional.max_pool2d(self.conv1(x), 2))
        x = functional.relu(functional.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = functional.relu(self.fc1(x.view(-1, 320)))
        x = functional.dropout(x, training=self.training)
        return functional.log_softmax(self.fc2(x), dim=1)


def train_classifier(epochs=2):
    """Returns a Net that was trained with the training images."""
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for _ in range(epochs):
        for images, labels in get_data_loader():
            optimizer.zero_grad()
            functional.nll_loss(net(_to_classify(images)), labels).backward()
            optimizer.step()
    return net.eval()


def _to_classify(images):
    return functional.interpolate(images, (28, 28), mode="bilinear", align_corners=False)


def inception_score(imgs, mnist_model_ref, batch_size=32, splits=1):
    """Returns mean and deviation, over `splits` parts, of the inception score (Salimans et al., 2016) by the classifier of an
    ObjectRef: from 1 to 10, high where each image is clearly a digit and all digits occur."""
    classifier = get(mnist_model_ref)
    with torch.no_grad():
        parts = [classifier(_to_classify(batch.detach().cpu().float())).exp() for batch in torch.split(imgs, batch_size)]
    scores = []
    for part in torch.cat(parts).chunk(splits):
        marginal = part.mean(dim=0)
        divergence = (part * (part.clamp_min(1e-30) / marginal.clamp_min(1e-30)).log()).sum(dim=1)
        scores.append(divergence.mean().exp().item())
    return float(numpy.mean(scores)), float(numpy.std(scores))


def train_func(netD, netG, optimG, optimD, criterion, dataloader, iteration, device, mnist_model_ref):
    """Trains both with a few batches. Returns their last losses, the generator's first, and the inception score."""
    for _, (images, _) in zip(range(train_iterations_per_step), dataloader):
        images = images.to(device)
        real = torch.ones(len(images), device=device)
        made = netG(torch.randn(len(images), nz, 1, 1, device=device))

        netD.zero_grad()
        loss_d = criterion(netD(images).view(-1), real) + criterion(netD(made.detach()).view(-1), torch.zeros_like(real))
        loss_d.backward()
        optimD.step()

        netG.zero_grad()
        loss_g = criterion(netD(made).view(-1), real)
        loss_g.backward()
        optimG.step()
    score, _ = inception_score(made, mnist_model_ref)
    if iteration % 10 == 0:
        print(f"[{iteration}] losses of the discriminator {loss_d.item():.4f} and the generator {loss_g.item():.4f}, "
              f"inception score {score:.4f}")
    return loss_g.item(), loss_d.item(), score


def plot_images(dataloader, file="./real.png"):
    """Writes 64 of the real images as one picture."""
    images, _ = next(iter(dataloader))
    write_png(file, images[:64])


def demo_gan(checkpoint_paths, file="./generated.png"):
    """Writes 64 images of the generator in each checkpoint, one checkpoint below the other, as one picture."""
    noise = torch.randn(64, nz, 1, 1)
    grids = []
    for path in checkpoint_paths:
        state = torch.load(os.path.join(path, "checkpoint.pt"))
        generator = Generator()
        generator.load_state_dict(state["netGmodel"])
        with torch.no_grad():
            grids.append(generator(noise))
    write_png(file, torch.cat(grids))


def write_png(file, images, columns=8):
    """Writes images from -1 to 1 of one size, batch x 1 x height x width, in rows of `columns`, as a grey PNG."""
    pixels = ((images.squeeze(1) + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)
    pixels = functional.pad(pixels, (1, 1, 1, 1))
    count, height, width = pixels.shape
    rows = -(-count // columns)
    pixels = functional.pad(pixels, (0, 0, 0, 0, 0, rows * columns - count)).view(rows, columns, height, width)
    grid = pixels.transpose(1, 2).reshape(rows * height, columns * width).numpy()

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", grid.shape[1], grid.shape[0], 8, 0, 0, 0, 0)
    lines = b"".join(b"\0" + line.tobytes() for line in grid)
    pathlib.Path(file).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) +
                                   chunk(b"IEND", b""))
