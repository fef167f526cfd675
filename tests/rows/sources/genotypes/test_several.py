"""Several genotype files of the same people as one cohort."""

import numpy as np
import pytest

from factories import read_columns
from primo.errors import InputError, PrivacyError
from primo.ledger.key import Key
from primo.rows.person_tokens import sketch
from primo.rows.sources.genotypes.cohort import open_cohort, open_feature_columns
from primo.rows.sources.genotypes.several import expand
from primo.rows.sources.paired import Unmatched

to_bed = pytest.importorskip("bed_reader").to_bed

N = 12
WHO = [f"SENTINEL{i:02d}" for i in range(N)]
CALLS = np.random.default_rng(5).integers(0, 3, size=(N, 5)).astype(float)


def write(path, places, *, who=WHO, names=None, chromosome="1", positions=None):
    rows = [WHO.index(name) if name in WHO else 0 for name in who]
    properties = {
        "fid": ["0"] * len(who),
        "iid": list(who),
        "sid": names or [f"rs{j}" for j in places],
        "chromosome": [chromosome] * len(places),
        "bp_position": positions or [j + 1 for j in places],
        "allele_1": ["A"] * len(places),
        "allele_2": ["C"] * len(places),
    }
    to_bed(path, CALLS[rows][:, list(places)], properties=properties)


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "chr2.bed", [2, 3], who=WHO[::-1], chromosome="2")
    write(tmp_path / "chr10.bed", [4], who=[*WHO[6:], *WHO[:6]], chromosome="10")
    write(tmp_path / "chr1.bed", [0, 1])
    (tmp_path / "y").write_text("IID y\n" + "".join(f"{who} {i}\n" for i, who in enumerate(WHO)))
    return tmp_path


def features(source):
    return np.vstack([block.features for block in source.blocks(5)])


def test_a_pattern_or_a_list_is_one_cohort(folder):
    paths = [folder / "chr1", folder / "chr2", folder / "chr10"]
    for given in (str(folder / "chr*"), str(folder / "chr*.bed"), paths):
        cohort = open_cohort(bfile=given, pheno=folder / "y")
        assert cohort.variants.names == ("rs0", "rs1", "rs2", "rs3", "rs4")
        assert cohort.variants.chromosome == ("1", "1", "2", "2", "10")
        np.testing.assert_array_equal(features(cohort.source), CALLS)
        assert "SENTINEL" not in repr(cohort.source) + repr(cohort.source.features)


def test_people_are_those_of_the_ledger_whatever_the_files(folder):
    key = Key(bytes(range(32)))
    several = open_cohort(bfile=str(folder / "chr*"), pheno=folder / "y").source
    one = open_cohort(bfile=folder / "chr2", pheno=folder / "y").source
    assert np.array_equal(sketch(several, key).tokens, sketch(one, key).tokens)


def test_lists_and_new_orders_of_variants(folder):
    (folder / "some").write_text("rs4\nrs1\nrs2\n")
    keep = folder / "keep"
    keep.write_text("\n".join(WHO[3:9]))
    cohort = open_cohort(
        bfile=str(folder / "chr*"), pheno=folder / "y", extract=folder / "some", keep=keep
    )
    assert cohort.variants.names == ("rs1", "rs2", "rs4")
    np.testing.assert_array_equal(features(cohort.source), CALLS[3:9][:, [1, 2, 4]])
    # For predictions the variants come in the order of a release, and a file may hold none of them.
    like = cohort.variants.select([2, 0])
    columns = open_feature_columns(bfile=str(folder / "chr*"), like=like)
    by_name = dict(zip(columns.ids().tolist(), read_columns(columns), strict=True))
    np.testing.assert_array_equal([by_name[who] for who in WHO], CALLS[:, [4, 1]])


@pytest.mark.parametrize("who", [WHO[:-1], [*WHO[:-1], "SENTINEL-other"], [*WHO, "SENTINEL-more"]])
def test_other_people_are_refused_without_a_count(folder, who):
    write(folder / "chr3.bed", [4], who=who, chromosome="3", names=["rs9"])
    with pytest.raises(InputError, match=r"do not hold the same people.*plink2 --keep") as refused:
        open_cohort(bfile=str(folder / "chr[123]"), pheno=folder / "y")
    said = str(refused.value).replace(str(folder), "")
    assert "SENTINEL" not in said
    assert not {"11", "12", "13"} & set(said.replace(",", " ").split())


def test_ids_are_compared_only_when_people_are_matched(folder):
    """A plan that is only shown must not tell who is in a file."""
    write(
        folder / "chr3.bed", [4], who=[*WHO[:-1], "SENTINEL-other"], names=["rs9"], chromosome="3"
    )
    cohort = open_cohort(bfile=str(folder / "chr[123]"), pheno=folder / "y", matched=False)
    assert isinstance(cohort.source, Unmatched)
    assert cohort.source.n == N
    with pytest.raises(InputError, match="do not hold the same people"):
        cohort.source.join()


def test_variants_that_repeat_are_refused(folder):
    write(folder / "a.bed", [0], names=["rs1"], chromosome="7")
    with pytest.raises(InputError, match=r"variant rs1 is in two .*chr1.*a"):
        open_cohort(bfile=[folder / "chr1", folder / "a"], pheno=folder / "y")
    write(folder / "b.bed", [0], names=["other"], chromosome="chr1", positions=[2])
    with pytest.raises(InputError, match="variant other is in two"):
        open_cohort(bfile=[folder / "chr1", folder / "b"], pheno=folder / "y")
    with pytest.raises(InputError, match="variant rs0 is in two"):
        open_cohort(bfile=[folder / "chr1", folder / "chr1"], pheno=folder / "y")


def test_none_of_the_files_may_be_the_public_panel(folder):
    with pytest.raises(PrivacyError, match="is the private cohort itself"):
        open_cohort(
            bfile=str(folder / "chr*"), pheno=folder / "y", frequencies=folder / "chr10.bed"
        )


def test_exactly_one_kind_of_file(folder):
    for given in ({}, {"bfile": folder / "chr1", "bgen": "x"}, {"bfile": ()}):
        with pytest.raises(InputError, match="exactly one of"):
            open_cohort(pheno=folder / "y", **given)


def test_patterns(tmp_path):
    for name in ("c10.bed", "c9.bed", "c1.bed", "c[1].bed"):
        (tmp_path / name).touch()
        (tmp_path / name).with_suffix(".bim").touch()
    assert [path.name for path in expand(str(tmp_path / "c[0-9]*"), ".bed")] == [
        "c1.bed",
        "c9.bed",
        "c10.bed",
    ]
    assert expand(str(tmp_path / "c[1]"), ".bed") == [tmp_path / "c[1]"]  # a file of this name
    with pytest.raises(InputError, match="no file fits the pattern"):
        expand(str(tmp_path / "d*"), ".bed")
    (tmp_path / "c2blocks.bed").touch()  # blocks are in files so called, too
    with pytest.raises(InputError, match=r"fits .*c2blocks\.bed', which has no \.bim beside it"):
        expand(str(tmp_path / "c[0-9]*"), ".bed")


def test_people_keep_their_genotypes_where_the_first_file_is_left_out(folder):
    """Predictions: rows follow the first file that is used, and so must lists and covariates."""
    like = open_cohort(bfile=str(folder / "chr*"), pheno=folder / "y").variants.select([4, 2])
    keep = folder / "keep"
    keep.write_text("\n".join(WHO[3:9]))
    columns = open_feature_columns(
        bfile=str(folder / "chr*"), covar=folder / "y", keep=keep, like=like
    )
    by_name = dict(zip(columns.ids().tolist(), read_columns(columns), strict=True))
    expected = np.column_stack([CALLS[:, [4, 2]], np.arange(N)])
    assert set(by_name) == set(WHO[3:9])
    np.testing.assert_array_equal([by_name[who] for who in WHO[3:9]], expected[3:9])
