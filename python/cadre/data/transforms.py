"""Steps of ImageTransforms, with the names of torchvision's transforms. A size is one number or (height, width)."""


class Step:
    """A step in the form in which the core reads it."""

    def __init__(self, **options):
        self.stored = {"type": type(self).__name__, **options}


class Resize(Step):
    """Changes the size, by Pillow's bilinear filter."""

    def __init__(self, size):
        super().__init__(size=_size(size))


class CenterCrop(Step):
    """Keeps the part in the middle."""

    def __init__(self, size):
        super().__init__(size=_size(size))


class RandomCrop(Step):
    """Keeps a part anywhere in the image, after it has got `padding` pixels of the value `fill` on each side."""

    def __init__(self, size, padding=0, fill=0):
        super().__init__(size=_size(size), padding=padding, fill=fill)


class RandomResizedCrop(Step):
    """Keeps a part of random area (`scale`) and proportions (`ratio`), and resizes it."""

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3)):
        super().__init__(size=_size(size), scale=_range(scale), ratio=_range(ratio))


class RandomHorizontalFlip(Step):
    """Exchanges left and right with the probability p."""

    def __init__(self, p=0.5):
        super().__init__(p=float(p))


class RandomVerticalFlip(Step):
    """Exchanges top and bottom with the probability p."""

    def __init__(self, p=0.5):
        super().__init__(p=float(p))


class RandomRotation(Step):
    """Rotates by an angle between two, or from -degrees to degrees; pixels outside of the image get the value `fill`."""

    def __init__(self, degrees, fill=0):
        super().__init__(degrees=_range((-degrees, degrees) if isinstance(degrees, (int, float)) else degrees), fill=fill)


class ColorJitter(Step):
    """Changes brightness, contrast and saturation by factors that differ from 1 by at most this, and the hue, 0 to 0.5."""

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0):
        super().__init__(brightness=float(brightness), contrast=float(contrast), saturation=float(saturation),
                         hue=float(hue))


class Normalize(Step):
    """Makes (value / 255 - mean) / std in the shape (channels, height, width). The last step."""

    def __init__(self, mean, std):
        super().__init__(mean=[float(one) for one in mean], std=[float(one) for one in std])


def _size(size):
    height, width = (size, size) if isinstance(size, int) else size
    return {"height": height, "width": width}


def _range(pair):
    least, most = pair
    return [float(least), float(most)]
