"""What is known of each data set: files, published checksums, sources, licence, shape and classes.

Checksums and sizes are those of the originally published files (MNIST and Fashion-MNIST checked against the files,
the others against the list that TensorFlow Datasets keeps). Smaller files of the same format load just as well;
only `fetch` and `verify` compare with these numbers. Where no checksum is known, a data set is got by hand and read as
any folder is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Format = Literal["idx", "cifar_binary", "svhn", "dtd", "folder"]


@dataclass(frozen=True)
class PublishedFile:
    """One file as its authors published it."""

    name: str  # under <folder>/<data set>/
    size: int  # bytes
    sha256: str
    urls: tuple[str, ...]  # tried in this order


@dataclass(frozen=True)
class Entry:
    """One data set that lives on disk."""

    name: str
    format: Format
    files: tuple[PublishedFile, ...]  # none where it is got by hand
    rows: tuple[int, int] | None  # train and test rows as published; never assumed; None where versions differ
    shape: tuple[int, int, int]  # of one example as loaded
    labels: int  # number of classes as published
    classes: tuple[str, ...]  # their names; empty where the files themselves name them
    licence: str
    source: str
    by_hand: str = ""  # where to get it, and how to lay it out, where nothing can be fetched


SEE = "see the source"
DIGITS = tuple("0123456789")
GARMENTS = tuple("T-shirt/top Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag Ankle-boot".split())


def _idx_files(bases: tuple[str, ...], published: tuple[tuple[str, int, str], ...]) -> tuple[PublishedFile, ...]:
    return tuple(PublishedFile(n, size, sha, tuple(base + n for base in bases)) for n, size, sha in published)


MNIST = Entry(
    name="mnist",
    format="idx",
    files=_idx_files(
        ("https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
        (
            (
                "train-images-idx3-ubyte.gz",
                9912422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            ("train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
            ("t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
            ("t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        ),
    ),
    rows=(60000, 10000),
    shape=(1, 28, 28),
    labels=10,
    classes=DIGITS,
    licence="CC BY-SA 3.0 as commonly stated",
    source="LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, 1998",
)

FASHION_MNIST = Entry(
    name="fashion-mnist",
    format="idx",
    files=_idx_files(
        ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
        (
            (
                "train-images-idx3-ubyte.gz",
                26421880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            ("train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
            ("t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
            ("t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
        ),
    ),
    rows=(60000, 10000),
    shape=(1, 28, 28),
    labels=10,
    classes=GARMENTS,
    licence="MIT",
    source="Xiao, Rasul, Vollgraf: Fashion-MNIST, arXiv:1708.07747, 2017",
)

CIFAR_10 = Entry(
    name="cifar-10",
    format="cifar_binary",
    files=(
        PublishedFile(
            "cifar-10-binary.tar.gz",
            170052171,
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
        ),
    ),
    rows=(50000, 10000),
    shape=(3, 32, 32),
    labels=10,
    classes=(),
    licence="none known",
    source="Krizhevsky: Learning multiple layers of features from tiny images, 2009",
)

CIFAR_100 = Entry(
    name="cifar-100",
    format="cifar_binary",
    files=(
        PublishedFile(
            "cifar-100-binary.tar.gz",
            168513733,
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            ("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",),
        ),
    ),
    rows=(50000, 10000),
    shape=(3, 32, 32),
    labels=100,
    classes=(),
    licence="none known",
    source="Krizhevsky: Learning multiple layers of features from tiny images, 2009",
)

SVHN = Entry(
    name="svhn",
    format="svhn",
    files=(
        PublishedFile(
            "train_32x32.mat",
            182040794,
            "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            ("http://ufldl.stanford.edu/housenumbers/train_32x32.mat",),
        ),
        PublishedFile(
            "test_32x32.mat",
            64275384,
            "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
            ("http://ufldl.stanford.edu/housenumbers/test_32x32.mat",),
        ),
    ),
    rows=(73257, 26032),
    shape=(3, 32, 32),
    labels=10,
    classes=DIGITS,
    licence="non-commercial use only",
    source="Netzer, Wang, Coates, Bissacco, Wu, Ng: Reading digits in natural images, 2011",
)

DTD = Entry(
    name="dtd",
    format="dtd",
    files=(
        PublishedFile(
            "dtd.tar.gz",
            625239812,
            "e42855a52a4950a3b59612834602aa253914755c95b0cff9ead6d07395f8e205",
            ("https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz",),
        ),
    ),
    rows=(3760, 1880),
    shape=(3, 32, 32),
    labels=47,
    classes=(),
    licence="research use",
    source="Cimpoi, Maji, Kokkinos, Mohamed, Vedaldi: Describing textures in the wild, 2014 (r1.0.1)",
)

# The other data sets of paper 003, which takes ten classes of each. Any layout of a folder will do for them.

EMNIST = Entry(
    name="emnist",
    format="folder",
    files=(),
    rows=(697932, 116323),
    shape=(1, 28, 28),
    labels=62,
    classes=(),
    licence=SEE,
    source="Cohen, Afshar, Tapson, van Schaik: EMNIST, an extension of MNIST to handwritten letters, arXiv:1702.05373, "
    "2017; ByClass, as published: rows and columns of an image are swapped against MNIST's",
    by_hand="gzip.zip from https://www.nist.gov/itl/products-and-services/emnist-dataset, of which the four "
    "emnist-byclass-*-ubyte.gz files",
)

DEVANAGARI = Entry(
    name="devanagari",
    format="folder",
    files=(),
    rows=(78200, 13800),
    shape=(1, 32, 32),
    labels=46,
    classes=(),
    licence=SEE,
    source="Acharya, Pant, Gyawali: Deep learning based large scale handwritten Devanagari character recognition, 2015",
    by_hand="Devanagari Handwritten Character Dataset from https://archive.ics.uci.edu, of which the folders Train and "
    "Test",
)

MADBASE = Entry(
    name="madbase",
    format="folder",
    files=(),
    rows=(60000, 10000),
    shape=(1, 28, 28),
    labels=10,
    classes=(),
    licence=SEE,
    source="Abdelazeem, El-Sherif: The Arabic handwritten digits databases ADBase and MADBase, 2008",
    by_hand="MADBase's training and testing set from http://datacenter.aucegypt.edu/shazeem/, as train and test with a "
    "folder per digit, or as the four IDX files",
)

NOTMNIST = Entry(
    name="notmnist",
    format="folder",
    files=(),
    rows=(529114, 18724),
    shape=(1, 28, 28),
    labels=10,
    classes=(),
    licence=SEE,
    source="Bulatov: notMNIST dataset, 2011; rows without the few images that are broken as published",
    by_hand="notMNIST_large and notMNIST_small from http://yaroslavvb.blogspot.com/2011/09/notmnist-dataset.html, as "
    "train and test",
)

FRUITS_360 = Entry(
    name="fruits-360",
    format="folder",
    files=(),
    rows=None,
    shape=(3, 100, 100),
    labels=75,
    classes=(),
    licence=SEE,
    source="Mureșan, Oltean: Fruit recognition from images using deep learning, arXiv:1712.00580, 2018; 75 classes in "
    "the version of paper 003, more in later ones",
    by_hand="Fruits-360 of 100 x 100 pixels from https://github.com/Horea94/Fruit-Images-Dataset, of which the folders "
    "Training and Test",
)

ON_DISK = {
    e.name: e
    for e in (MNIST, FASHION_MNIST, CIFAR_10, CIFAR_100, SVHN, DTD, EMNIST, DEVANAGARI, MADBASE, NOTMNIST, FRUITS_360)
}
EMBEDDED = ("digits", "synth", "synth-strokes", "synth-textures", "synth-shapes", "synth-colours")
NAMES = (*EMBEDDED, *ON_DISK)
