"""Genotype files, each written by another program's writer (or by hand)."""

import numpy as np
import pytest

from factories import bed_properties
from primo.rows.sources.genotypes.bgen import open_bgen
from primo.rows.sources.genotypes.cohort import open_cohort, open_feature_columns
from primo.rows.sources.genotypes.pgen import open_pgen
from primo.rows.sources.genotypes.plink import open_bed
from primo.rows.sources.genotypes.several import open_several
from primo.rows.sources.genotypes.vcf import open_vcf

PEOPLE, VARIANTS = 43, 11


def genotypes(missing=0.05):
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 3, size=(PEOPLE, VARIANTS)).astype(np.float64)
    counts[rng.random(counts.shape) < missing] = np.nan
    counts[:20, :] = np.nan_to_num(counts[:20, :])  # some blocks have nothing missing
    return counts


def ids():
    return [f"someone{i:03d}" for i in range(PEOPLE)]


def write_bed(folder, values):
    to_bed = pytest.importorskip("bed_reader").to_bed
    properties = bed_properties(ids(), ids(), VARIANTS)
    to_bed(folder / "cohort.bed", values, properties=properties)
    return folder / "cohort"


def write_pgen(folder, values, dosages=False):
    pgenlib = pytest.importorskip("pgenlib")
    with pgenlib.PgenWriter(
        str(folder / "cohort.pgen").encode(),
        PEOPLE,
        variant_ct=VARIANTS,
        nonref_flags=False,
        dosage_present=dosages,
    ) as writer:
        for column in np.where(np.isnan(values), -9, values).T:
            if dosages:
                writer.append_dosages(np.ascontiguousarray(column, dtype=np.float32))
            else:
                writer.append_biallelic(np.ascontiguousarray(column, dtype=np.int8))
    lines = [f"1\t{j + 1}\trs{j}\tC\tA\n" for j in range(VARIANTS)]
    (folder / "cohort.pvar").write_text("#CHROM\tPOS\tID\tREF\tALT\n" + "".join(lines))
    (folder / "cohort.psam").write_text("#IID\tSEX\n" + "".join(f"{i}\tNA\n" for i in ids()))
    return folder / "cohort"


def write_vcf(folder, first, second, separator="|"):
    """Write two alleles per person and variant, NaN as a dot."""
    pytest.importorskip("cyvcf2")

    def cell(allele):
        return "." if np.isnan(allele) else str(int(allele))

    lines = [
        "##fileformat=VCFv4.2",
        "##contig=<ID=1>",
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t" + "\t".join(ids()),
    ]
    for j in range(VARIANTS):
        calls = [
            cell(a) + separator + cell(b) for a, b in zip(first[:, j], second[:, j], strict=True)
        ]
        lines.append("\t".join(["1", str(j + 1), f"rs{j}", "C", "A", ".", ".", ".", "GT", *calls]))
    path = folder / "cohort.vcf"
    path.write_text("\n".join(lines) + "\n")
    return path


def write_people_table(path, values, names, order):
    with open(path, "w", encoding="utf-8") as file:
        file.write("FID IID " + " ".join(names) + "\n")
        for i in order:
            cells = ("NA" if np.isnan(value) else repr(float(value)) for value in values[i])
            file.write(f"{ids()[i]} {ids()[i]} {' '.join(cells)}\n")
    return path


def bed(folder):
    return open_bed(write_bed(folder, genotypes())), genotypes(), ids()


def bed_with_few_variants(folder):
    places = [9, 2, 5]
    columns = open_bed(write_bed(folder, genotypes(missing=0))).select(places)
    return columns, genotypes(missing=0)[:, places], ids()


def pgen(folder):
    return open_pgen(write_pgen(folder, genotypes())), genotypes(), ids()


def pgen_dosages(folder):
    values = np.round(genotypes() * 0.9 * 16384) / 16384
    columns = open_pgen(write_pgen(folder, values, dosages=True), dosages=True)
    return columns.select([3, 1, 0]), values[:, [3, 1, 0]].astype(np.float32), ids()


def vcf(folder):
    values = genotypes()
    second = np.floor(values / 2)
    return open_vcf(write_vcf(folder, values - second, second, "/")), values, ids()


def vcf_haplotypes(folder):
    values = genotypes()
    second = np.floor(values / 2)
    both = np.stack([values - second, second], axis=1).reshape(2 * PEOPLE, VARIANTS)
    columns = open_vcf(write_vcf(folder, values - second, second), haplotypes=True)
    return columns, both, np.repeat(ids(), 2).tolist()


def write_bgen(folder, values, named=True):
    """Write dosages as probabilities in 255ths, which is what the file can hold."""
    bgen = pytest.importorskip("bgen")
    path = folder / "cohort.bgen"
    samples = ids() if named else []
    with bgen.BgenWriter(str(path), n_samples=PEOPLE, samples=samples) as writer:
        for j, column in enumerate(values.T):
            two = np.clip(column - 1, 0, 1)
            one = column - 2 * two
            three = np.column_stack([1 - one - two, one, two])
            writer.add_variant(f"v{j}", f"rs{j}", "1", j + 1, ["C", "A"], three)
    if not named:
        lines = [f"{name} {name} 0\n" for name in ids()]
        (folder / "cohort.sample").write_text("ID_1 ID_2 missing\n0 0 0\n" + "".join(lines))
    return path


def imputed():
    return np.round(genotypes() * 0.9 * 255) / 255


def decoded(path):
    """Decode whole variants, front to back; the package rounds the last bit in its own way."""
    with pytest.importorskip("bgen").BgenReader(str(path)) as reader:
        found = np.column_stack([variant.alt_dosage for variant in reader])
    np.testing.assert_allclose(found, imputed(), atol=1e-6)
    return found


def bgen(folder):
    path = write_bgen(folder, imputed())
    return open_bgen(path), decoded(path), ids()


def bgen_with_sample_file(folder):
    path = write_bgen(folder, imputed(), named=False)
    return open_bgen(path).select([7, 0, 3]), decoded(path)[:, [7, 0, 3]], ids()


def write_vcf_field(folder, field, number, cells):
    """Write one field of a VCF: a cell for each person (row) and variant (column)."""
    pytest.importorskip("cyvcf2")
    lines = [
        "##fileformat=VCFv4.3",
        "##contig=<ID=1>",
        f'##FORMAT=<ID={field},Number={number},Type=Float,Description="x">',
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t" + "\t".join(ids()),
    ]
    for j, column in enumerate(zip(*cells, strict=True)):
        fixed = ["1", str(j + 1), f"rs{j}", "C", "A", ".", ".", ".", field]
        lines.append("\t".join([*fixed, *column]))
    path = folder / "cohort.vcf"
    path.write_text("\n".join(lines) + "\n")
    return path


def vcf_dosages(folder):
    values = np.round(genotypes() * 0.93, 3)
    cells = [["." if np.isnan(value) else f"{value:.3f}" for value in row] for row in values]
    columns = open_vcf(write_vcf_field(folder, "DS", "A", cells), field="DS")
    return columns.select([4, 1, 9, 0]), values[:, [4, 1, 9, 0]].astype(np.float32), ids()


def vcf_probabilities(folder):
    values = np.round(genotypes() * 0.9, 3)
    two = np.round(np.clip(values - 1, 0, 1), 3)
    one = np.round(values - 2 * two, 3)
    cells = [
        [
            ".,.,." if np.isnan(a) else f"{1 - a - b:.3f},{a:.3f},{b:.3f}"
            for a, b in zip(*row, strict=True)
        ]
        for row in zip(one, two, strict=True)
    ]
    columns = open_vcf(write_vcf_field(folder, "GP", "G", cells), field="GP")
    return columns, one.astype(np.float32) + 2 * two.astype(np.float32), ids()


def two_files(folder):
    """The second file holds the same people in another order, and the columns alternate."""
    to_bed = pytest.importorskip("bed_reader").to_bed
    values, order = genotypes(), np.random.default_rng(3).permutation(PEOPLE)
    for k, (places, rows) in enumerate([(range(6), range(PEOPLE)), (range(6, VARIANTS), order)]):
        who = [ids()[i] for i in rows]
        properties = bed_properties(who, who, len(places))
        properties["sid"] = [f"rs{j}" for j in places]
        properties["bp_position"] = [j + 1 for j in places]
        part = values[np.asarray(rows)][:, list(places)]
        to_bed(folder / f"chr{k}.bed", part, properties=properties)
    columns = open_several([folder / "chr0.bed", folder / "chr1.bed"], open_bed)
    chosen = [7, 0, 10, 5, 6, 3]
    return columns.select(chosen), values[:, chosen], ids()


def two_files_of_haplotypes(folder):
    columns, both, names = vcf_haplotypes(folder)
    text = (folder / "cohort.vcf").read_text().replace("\trs", "\trs9")
    (folder / "more.vcf").write_text(
        text.replace("##contig=<ID=1>", "##contig=<ID=2>").replace("\n1\t", "\n2\t")
    )
    paths = [folder / "cohort.vcf", folder / "more.vcf"]
    columns = open_several(paths, lambda path: open_vcf(path, haplotypes=True))
    return columns, np.hstack([both, both]), names


def features_of_some(folder):
    keep = folder / "keep.txt"
    keep.write_text("\n".join(ids()[5:40]))
    columns = open_feature_columns(bfile=write_bed(folder, genotypes()), keep=keep)
    return columns, genotypes()[5:40], ids()[5:40]


def _tables(folder):
    rng = np.random.default_rng(8)
    outcomes = rng.normal(size=(PEOPLE, 5))
    outcomes[3, 2] = np.nan
    covariates = rng.uniform(20, 70, size=(PEOPLE, 2))
    names = [f"y{k}" for k in range(5)]
    order = rng.permutation(PEOPLE)[:38]
    first = write_people_table(folder / "a.pheno", outcomes[:, :3], names[:3], order)
    second = write_people_table(folder / "b.pheno", outcomes[:, 3:], names[3:], range(PEOPLE))
    further = write_people_table(folder / "c.cov", covariates, ["age", "weight"], range(1, PEOPLE))
    order = order[order > 0]
    return (first, second), further, outcomes, covariates, order


def cohort_of_bed(folder):
    pheno, covar, outcomes, covariates, order = _tables(folder)
    source = open_cohort(bfile=write_bed(folder, genotypes()), pheno=pheno, covar=covar).source
    features = np.hstack([genotypes(), covariates])
    return source, features[order], outcomes[order], [ids()[i] for i in order]


def cohort_of_haplotypes(folder):
    pheno, covar, outcomes, covariates, order = _tables(folder)
    _, both, names = vcf_haplotypes(folder)
    path = folder / "cohort.vcf"
    source = open_cohort(vcf=path, haplotypes=True, pheno=pheno, covar=covar).source
    features = np.hstack([both, np.repeat(covariates, 2, axis=0)])
    rows = [2 * i + k for i in order for k in (0, 1)]
    people = np.repeat(order, 2)
    return source, features[rows], outcomes[people], [names[i] for i in rows]


def cohort_of_two_files(folder):
    pheno, covar, outcomes, covariates, order = _tables(folder)
    two_files(folder)
    source = open_cohort(bfile=str(folder / "chr*"), pheno=pheno, covar=covar).source
    features = np.hstack([genotypes(), covariates])
    return source, features[order], outcomes[order], [ids()[i] for i in order]


COLUMNS = [
    bed,
    bed_with_few_variants,
    pgen,
    pgen_dosages,
    vcf,
    vcf_haplotypes,
    vcf_dosages,
    vcf_probabilities,
    bgen,
    bgen_with_sample_file,
    two_files,
    two_files_of_haplotypes,
    features_of_some,
]
SOURCES = [cohort_of_bed, cohort_of_haplotypes, cohort_of_two_files]
