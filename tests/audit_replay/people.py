"""One small cohort (alleles, an age, outcomes) and how each format writes and opens it.

`FORMS` are functions `form(folder, cohort) -> source`. Those of haplotypes have two rows for a person.
"""

import dataclasses
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.rows.sources.arrays.memory import ArraySource
from primo.rows.sources.arrays.npy import open_npy
from primo.rows.sources.arrays.zarr import open_zarr
from primo.rows.sources.genotypes.cohort import open_cohort
from primo.rows.sources.paired import PairedSource
from primo.rows.sources.tabular.tables import table_source
from primo.wall.noise import RandomBits
from primo.workflow.fit import Engine, prepare, release_rows

PEOPLE, VARIANTS, OUTCOMES = 6, 3, 2
RANGES = {"allele": (0, 1), "age": (20.0, 70.0)}
Y_NORM = 3.0
SEED = 11
IDS = [f"someone{i}" for i in range(PEOPLE)]
NAMES = [f"rs{j}" for j in range(VARIANTS)] + ["age"]
OUTCOME_NAMES = [f"y{k}" for k in range(OUTCOMES)]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Cohort:
    alleles: np.ndarray  # (people, 2, variants) of 0 and 1
    age: np.ndarray  # (people,)
    outcomes: np.ndarray  # (people, outcomes)

    def rows(self, haplotypes=False):
        """Return features and outcomes as an array holds them."""
        if haplotypes:
            age, y = np.repeat(self.age, 2), np.repeat(self.outcomes, 2, axis=0)
            return np.column_stack([self.alleles.reshape(-1, VARIANTS), age]), y
        return np.column_stack([self.alleles.sum(axis=1), self.age]), self.outcomes

    def replaced(self, person, place=0):
        """Return the neighbour in which somebody else (alleles, age, outcomes) has the place."""
        copies = [part.copy() for part in (self.alleles, self.age, self.outcomes)]
        for copy, value in zip(copies, person, strict=True):
            copy[place] = value
        return Cohort(alleles=copies[0], age=copies[1], outcomes=copies[2])


def cohort(seed=0):
    rng = np.random.default_rng(seed)
    return Cohort(
        alleles=rng.integers(0, 2, (PEOPLE, 2, VARIANTS)),
        age=rng.uniform(20, 70, PEOPLE).round(3),
        outcomes=rng.normal(size=(PEOPLE, OUTCOMES)),
    )


# How it is stored.


def arrays(folder, cohort, haplotypes=False):
    x, y = cohort.rows(haplotypes)
    return ArraySource(
        features=x, outcomes=y, feature_names=tuple(NAMES), outcome_names=tuple(OUTCOME_NAMES)
    )


def csv(folder, cohort):
    x, y = cohort.rows()
    lines = [",".join(["id", *NAMES, *OUTCOME_NAMES])]
    lines += [
        ",".join([name, *(repr(float(v)) for v in row)])
        for name, row in zip(IDS, np.hstack([x, y]), strict=True)
    ]
    path = folder / "cohort.csv"
    path.write_text("\n".join(lines) + "\n")
    return table_source(path, features=NAMES, outcomes=OUTCOME_NAMES, id_column="id")


def parquet_joined_with_feather(folder, cohort):
    """Outcomes in another file, of the same people in another order."""
    x, y = cohort.rows()
    left = pa.table({"id": IDS, **dict(zip(NAMES, x.T, strict=True))})
    right = pa.table({"id": IDS[::-1], **dict(zip(OUTCOME_NAMES, y[::-1].T, strict=True))})
    parquet.write_table(left, folder / "x.parquet", row_group_size=2)
    feather.write_feather(right, folder / "y.feather")
    return table_source(
        folder / "x.parquet",
        features=NAMES,
        outcomes=OUTCOME_NAMES,
        outcomes_table=folder / "y.feather",
        id_column="id",
    )


def npy(folder, cohort):
    for name, block in zip("xy", cohort.rows(), strict=True):
        np.save(folder / f"{name}.npy", block)
    return _side_by_side(open_npy(folder / "x.npy", NAMES, IDS, "id"), open_npy(folder / "y.npy"))


def zarr(folder, cohort):
    library = pytest.importorskip("zarr")
    for name, block in zip("xy", cohort.rows(), strict=True):
        store = library.create_array(
            folder / f"{name}.zarr", shape=block.shape, chunks=(2, 2), dtype="f8", overwrite=True
        )
        store[:] = block
    x = open_zarr(folder / "x.zarr", names=NAMES, ids=IDS, id_name="id")
    return _side_by_side(x, open_zarr(folder / "y.zarr"))


def bed_with_covariate(folder, cohort):
    to_bed = pytest.importorskip("bed_reader").to_bed
    properties = {
        "fid": IDS,
        "iid": IDS,
        "sid": NAMES[:-1],
        "chromosome": ["1"] * VARIANTS,
        "bp_position": list(range(1, VARIANTS + 1)),
        "allele_1": ["A"] * VARIANTS,
        "allele_2": ["C"] * VARIANTS,
    }
    counts = cohort.alleles.sum(axis=1)
    to_bed(folder / "c.bed", counts.astype(np.float64), properties=properties)
    return open_cohort(bfile=folder / "c", **_tables(folder, cohort)).source


def beds_of_two_chromosomes(folder, cohort):
    """Two files; the second lists the people backwards."""
    to_bed = pytest.importorskip("bed_reader").to_bed
    counts, first = cohort.alleles.sum(axis=1).astype(np.float64), VARIANTS // 2
    for name, places, step in (("chr1", range(first), 1), ("chr2", range(first, VARIANTS), -1)):
        properties = {
            "fid": IDS[::step],
            "iid": IDS[::step],
            "sid": [NAMES[j] for j in places],
            "chromosome": [name[3:]] * len(places),
            "bp_position": [j + 1 for j in places],
            "allele_1": ["A"] * len(places),
            "allele_2": ["C"] * len(places),
        }
        to_bed(folder / f"{name}.bed", counts[::step][:, list(places)], properties=properties)
    return open_cohort(bfile=str(folder / "chr*"), **_tables(folder, cohort)).source


def bgen_with_covariate(folder, cohort):
    writer = pytest.importorskip("bgen").BgenWriter
    with writer(str(folder / "c.bgen"), n_samples=PEOPLE, samples=list(IDS)) as file:
        for j, counts in enumerate(cohort.alleles.sum(axis=1).T):
            file.add_variant(NAMES[j], NAMES[j], "1", j + 1, ["C", "A"], np.eye(3)[counts])
    return open_cohort(bgen=folder / "c.bgen", **_tables(folder, cohort)).source


def vcf_haplotypes(folder, cohort):
    pytest.importorskip("cyvcf2")
    path = folder / "c.vcf"
    lines = [
        "##fileformat=VCFv4.2",
        "##contig=<ID=1>",
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
        "\t".join(["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *IDS]),
    ]
    for j in range(VARIANTS):
        calls = [f"{a}|{b}" for a, b in cohort.alleles[:, :, j]]
        lines.append("\t".join(["1", str(j + 1), NAMES[j], "C", "A", ".", ".", ".", "GT", *calls]))
    path.write_text("\n".join(lines) + "\n")
    return open_cohort(vcf=path, haplotypes=True, **_tables(folder, cohort)).source


def vcf_zarr_haplotypes(folder, cohort):
    library = pytest.importorskip("zarr")
    group = library.create_group(folder / "c.vcz", overwrite=True)
    group.create_array("call_genotype", data=cohort.alleles.transpose(2, 0, 1).astype(np.int8))
    group.create_array("variant_contig", data=np.zeros(VARIANTS, dtype=np.int8))
    group.create_array("variant_position", data=np.arange(1, VARIANTS + 1, dtype=np.int32))
    texts = {
        "variant_allele": [["C", "A"]] * VARIANTS,
        "variant_id": NAMES[:-1],
        "contig_id": ["1"],
        "sample_id": IDS,
    }
    for name, values in texts.items():
        values = np.array(values, dtype=object)
        group.create_array(name, shape=values.shape, dtype=str)[...] = values
    return open_cohort(vcf_zarr=folder / "c.vcz", haplotypes=True, **_tables(folder, cohort)).source


def _tables(folder, cohort):
    """Write outcomes and the covariate as PLINK does, the covariate in another order."""
    outcomes = [" ".join(["FID", "IID", *OUTCOME_NAMES])]
    outcomes += [
        " ".join([name, name, *(repr(float(v)) for v in row)])
        for name, row in zip(IDS, cohort.outcomes, strict=True)
    ]
    ages = [f"{name} {name} {float(v)!r}" for name, v in zip(IDS, cohort.age, strict=True)]
    (folder / "c.pheno").write_text("\n".join(outcomes) + "\n")
    (folder / "c.cov").write_text("\n".join(["FID IID age", *ages[::-1]]) + "\n")
    return {"pheno": folder / "c.pheno", "covar": folder / "c.cov"}


def _side_by_side(features, outcomes):
    return PairedSource(
        features=features,
        outcomes=outcomes,
        feature_rows=range(PEOPLE),
        outcome_rows=range(PEOPLE),
    )


FORMS = [
    arrays,
    csv,
    parquet_joined_with_feather,
    npy,
    zarr,
    bed_with_covariate,
    beds_of_two_chromosomes,
    bgen_with_covariate,
    vcf_haplotypes,
    vcf_zarr_haplotypes,
]


# How it is released.


def has_haplotypes(form):
    return "haplotypes" in form.__name__


def prepared(source, protection, haplotypes=False, **changes):
    copies = 1 if haplotypes else 2
    genotypes = Bounds(lower=0, upper=copies)
    ages = Bounds(lower=RANGES["age"][0], upper=RANGES["age"][1])
    settings = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "protection": protection,
        "feature_bounds": Bounds.beside([(genotypes, VARIANTS), (ages, 1)]),
        "outcome_bounds": Bounds(norm=Y_NORM),
    }
    return prepare(source, Settings(**settings | changes))


def fit(source, ready, **options):
    """Return a fit to be recorded."""
    given = {"bits": RandomBits.seeded(SEED), "engine": Engine(threads=1)} | options
    return lambda: release_rows(source, ready, **given)


# Who is far apart.


def somebody(rng):
    """Draw a person, often an extreme one, with an age and outcomes that may be out of bounds."""
    alleles = rng.integers(0, 2, (2, VARIANTS)) if rng.random() < 0.5 else np.full((2, VARIANTS), 1)
    age = rng.choice([20.0, 70.0, 45.0, -1e9, 1e9])
    direction = rng.normal(size=OUTCOMES) if rng.random() < 0.5 else np.eye(OUTCOMES)[0]
    size = rng.choice([Y_NORM, 0.1, 1e6]) * rng.choice([-1, 1])
    return alleles * rng.integers(0, 2), age, size * direction / np.linalg.norm(direction)


def mixed(rng, one, other):
    """Take each trait from either."""
    return tuple(a if rng.random() < 0.5 else b for a, b in zip(one, other, strict=True))


def opposite(person):
    alleles, age, outcomes = person
    return 1 - alleles, sum(RANGES["age"]) - age, -outcomes


@cache
def worst_pair(replay, protection, haplotypes):
    """Search for the two people, in arrays, whose exchange moves the sums most.

    Random pairs and their descendants: a person beside the opposite of some of the other's traits.
    """
    rng = np.random.default_rng(5)
    base = cohort()
    ready = prepared(arrays(None, base, haplotypes), protection, haplotypes)

    def legal(one, other):
        """Keep what is public the same."""
        if protection == "features":
            return one, (*other[:2], one[2])
        return (one, (*one[:2], other[2])) if protection == "outcomes" else (one, other)

    def distance(pair):
        recordings = [
            replay.record(
                fit(arrays(None, base.replaced(person), haplotypes), ready, engine=None), dry=True
            )
            for person in pair
        ]
        return replay.squared_distance(*recordings)

    best, far = None, -1
    for step in range(150):
        one = somebody(rng) if step < 50 else mixed(rng, best[0], somebody(rng))
        other = mixed(rng, opposite(one), somebody(rng) if step < 50 else best[1])
        pair = legal(one, other)
        if (reached := distance(pair)) > far:
            best, far = pair, reached
    return best, far
