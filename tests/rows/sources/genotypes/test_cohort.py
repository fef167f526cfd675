"""Cohorts: joining files, lists, public frequencies, and what is refused."""

import gzip
import shutil
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factories import bed_properties
from primo.errors import InputError, PrivacyError
from primo.rows.sources.genotypes.cohort import (
    frequencies_of_panel,
    open_cohort,
    open_feature_columns,
)
from primo.rows.sources.genotypes.frequencies import read_frequencies
from primo.rows.sources.genotypes.people import read_list_of_people
from primo.variants import Variants

bed_reader = pytest.importorskip("bed_reader")

N, D = 8, 5
PEOPLE = [f"someone{i}" for i in range(N)]
FAMILIES = [f"f{i}" for i in range(N)]
GENOTYPES = np.random.default_rng(3).integers(0, 3, size=(N, D)).astype(np.float64)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with a fileset `cohort` and a phenotype file `traits.txt`."""
    monkeypatch.chdir(tmp_path)
    write_bed("cohort", GENOTYPES, FAMILIES, PEOPLE)
    (tmp_path / "traits.txt").write_text(
        "FID IID height weight q_1 q_2\n"
        + "".join(
            f"{FAMILIES[i]} {PEOPLE[i]} {i} {-9 if i == 3 else 2 * i} 1 NA\n" for i in (6, 3, 0, 5)
        )
    )
    return tmp_path


def write_bed(name, values, fid, iid, alleles="AC"):
    properties = bed_properties(fid, iid, values.shape[1], alleles)
    bed_reader.to_bed(f"{name}.bed", values, properties=properties)


def rows(source):
    blocks = list(source.blocks(3))
    features = np.vstack([block.features for block in blocks])
    return features, np.vstack([block.outcomes for block in blocks])


def cohort(**options):
    return open_cohort(**{"bfile": "cohort", "pheno": "traits.txt", **options})


def test_the_order_of_the_phenotype_file(folder):
    found = cohort(outcomes=["weight", "height"])
    features, outcomes = rows(found.source)
    order = [6, 3, 0, 5]
    np.testing.assert_array_equal(features, GENOTYPES[order])
    np.testing.assert_array_equal(outcomes, [[12, 6], [np.nan, 3], [0, 0], [10, 5]])
    assert found.source.ids().tolist() == [PEOPLE[i] for i in order]
    assert found.source.rows_per_person == 1
    assert found.frequencies is None
    assert dict(found.counts) == {
        "variants in the genotype file": 5,
        "variants used": 5,
        "people in the genotype file": 8,
        "people in traits.txt": 4,
    }
    assert "someone" not in repr(found) + repr(found.source) + str(found.counts)


def test_outcomes_by_pattern_and_all(folder):
    assert cohort().source.outcome_names == ("height", "weight", "q_1", "q_2")
    assert cohort(outcomes="q_*").source.outcome_names == ("q_1", "q_2")
    with pytest.raises(InputError, match=r"'hieght'.*did you mean 'height'"):
        cohort(outcomes=["hieght"])


def test_covariates_come_after_the_variants(folder):
    (folder / "ages.txt").write_text(
        "#IID\tage\n" + "".join(f"{PEOPLE[i]}\t{-9 if i == 6 else 30 + i}\n" for i in range(1, 8))
    )
    found = cohort(covar=["ages.txt"], outcomes="height")
    features, outcomes = rows(found.source)
    assert found.source.feature_names == ("rs0", "rs1", "rs2", "rs3", "rs4", "age")
    assert len(found.variants) == D
    # In a covariate -9 is a number.
    np.testing.assert_array_equal(features, np.c_[GENOTYPES[[6, 3, 5]], [-9, 33, 35]])
    np.testing.assert_array_equal(outcomes[:, 0], [6, 3, 5])


def test_several_phenotype_files(folder):
    (folder / "more.txt").write_text(
        "IID pulse\n" + "".join(f"{PEOPLE[i]} {60 + i}\n" for i in (0, 3, 4, 5, 6))
    )
    found = cohort(pheno=["traits.txt", "more.txt"], outcomes=["pulse", "height"])
    assert found.source.outcome_names == ("height", "pulse")
    np.testing.assert_array_equal(rows(found.source)[1][:, 1], [66, 63, 60, 65])
    only = cohort(pheno=["traits.txt", "more.txt"], outcomes=["pulse"])
    assert only.source.n == 5  # a file without chosen outcomes is not joined
    shutil.copy("traits.txt", "again.txt")
    with pytest.raises(InputError, match="'height' is in two of the files"):
        cohort(pheno=["traits.txt", "again.txt"])


def test_a_name_for_two_things(folder):
    (folder / "c.txt").write_text("IID height\n" + "".join(f"{i} 1\n" for i in PEOPLE))
    with pytest.raises(InputError, match="as features and as outcomes"):
        cohort(covar="c.txt")
    (folder / "c.txt").write_text("IID rs1\n" + "".join(f"{i} 1\n" for i in PEOPLE))
    with pytest.raises(InputError, match="'rs1' is in two of the files"):
        cohort(covar="c.txt")


def test_families_tell_people_apart_where_both_files_have_them(folder):
    write_bed("cohort", GENOTYPES, FAMILIES, ["1", "2"] * 4)
    (folder / "t.txt").write_text("FID IID y\nf1 2 1\nf4 1 4\nf4 2 9\n")
    features, outcomes = rows(cohort(pheno="t.txt").source)
    np.testing.assert_array_equal(features, GENOTYPES[[1, 4]])
    np.testing.assert_array_equal(outcomes[:, 0], [1, 4])
    (folder / "t.txt").write_text("IID y\n1 1\n2 4\n")
    with pytest.raises(InputError, match="pairs of FID and IID"):
        cohort(pheno="t.txt")


def test_family_zero_is_none(folder):
    (folder / "t.txt").write_text("FID IID y\n" + "".join(f"0 {i} 1\n" for i in PEOPLE))
    assert cohort(pheno="t.txt").source.n == N
    (folder / "t.txt").write_text("FID IID y\n" + "".join(f"other {i} 1\n" for i in PEOPLE))
    with pytest.raises(InputError, match="too few people") as caught:
        cohort(pheno="t.txt")
    assert "someone" not in str(caught.value)


def test_keep_and_remove(folder):
    (folder / "keep.txt").write_text("\n".join(f"{FAMILIES[i]} {PEOPLE[i]}" for i in (0, 1, 3, 6)))
    (folder / "gone.txt").write_text(f"#IID\n{PEOPLE[3]}\n{PEOPLE[3]}\nunknown\n")
    found = cohort(keep="keep.txt", remove="gone.txt", outcomes="height")
    assert rows(found.source)[1][:, 0].tolist() == [6, 0]
    (folder / "keep.txt").write_text("nobody\n")
    with pytest.raises(InputError, match="too few people"):
        cohort(keep="keep.txt")
    (folder / "keep.txt").write_text("\n")
    with pytest.raises(InputError, match=r"keep.txt lists no people"):
        cohort(keep="keep.txt")


@pytest.mark.parametrize("header", ["", "#FID IID\n", "FID IID SID\n"])
def test_lists_of_people(tmp_path, header):
    (tmp_path / "list").write_text(header + "f a x\n\nf b y\n")
    people = read_list_of_people(tmp_path / "list")
    assert people.iid.tolist() == ["a", "b"]
    assert people.fid.tolist() == ["f", "f"]
    assert repr(people) == "<People n=2 (private)>"


def test_extract_and_exclude(folder):
    (folder / "in.txt").write_text("rs4\nrs1 rs3\nrs99\n")
    (folder / "out.txt").write_text("rs3\n")
    found = cohort(extract="in.txt", exclude="out.txt")
    assert found.variants.names == ("rs1", "rs4")  # in the order of the file
    np.testing.assert_array_equal(rows(found.source)[0], GENOTYPES[[6, 3, 0, 5]][:, [1, 4]])
    (folder / "in.txt").write_text("1:1:A:C\n")
    with pytest.raises(InputError, match=r"leave none of the 5 variants.*'rs0'"):
        cohort(extract="in.txt")
    (folder / "in.txt").write_text("# nothing\n")
    with pytest.raises(InputError, match="is empty"):
        cohort(extract="in.txt")


AFREQ = (
    "#CHROM\tID\tREF\tALT\tALT_FREQS\tOBS_CT\n"
    "1\trs0\tC\tA\t0.3\t200\n"  # as in the cohort
    "1\trs1\tA\tC\t0.3\t200\n"  # the other allele
    "1\trs2\tG\tT\t0.3\t200\n"  # the other strand: left out
    "1\trs3\tC\tA\t0.002\t200\n"  # rare
    "1\trs9\tC\tA\t0.3\t200\n"
)


def test_public_frequencies(folder):
    (folder / "public.afreq").write_text(AFREQ)
    found = cohort(frequencies="public.afreq")
    assert found.variants.names == ("rs0", "rs1", "rs3")
    np.testing.assert_allclose(found.frequencies, [0.3, 0.7, 0.002])
    assert found.counts[1:5] == (
        ("variants with a public frequency", 3),
        ("of them with alleles swapped", 1),
        ("variants without a public frequency, left out", 1),
        ("variants with other alleles there, left out", 1),
    )
    found = cohort(frequencies=read_frequencies("public.afreq"), maf=0.01)
    assert found.variants.names == ("rs0", "rs1")
    np.testing.assert_allclose(found.frequencies, [0.3, 0.7])
    with pytest.raises(InputError, match="no variant is left"):
        cohort(frequencies="public.afreq", maf=0.4)
    with pytest.raises(InputError, match=r"maf=0\.7"):
        cohort(frequencies="public.afreq", maf=0.7)


@pytest.mark.parametrize(
    "text",
    [
        " CHR SNP A1 A2 MAF NCHROBS\n 1 rs0 A C 0.25 20\n 1 rs1 C A 0.75 20\n 1 rs2 A C NA 0\n",
        "id\tallele\tfreq\nrs0\tA\t0.25\nrs1\tC\t0.75\n.\tA\t0.1\n",
        "ID ALT AF\nrs0 a 0.25\nrs1 c 0.75\nrs2 A,G 0.1,0.2\n",
    ],
)
def test_forms_of_frequency_files(folder, text):
    (folder / "public").write_text(text)
    found = cohort(frequencies="public")
    assert found.variants.names == ("rs0", "rs1")
    np.testing.assert_allclose(found.frequencies, [0.25, 0.25])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("ID FREQ\nrs0 0.1\n", "no column for the allele"),
        ("ID A1 FREQ\nrs0 A 1.5\n", "line 2 of .*'1.5' is not a frequency"),
        ("ID A1 FREQ\nrs0 A\n", "line 2 of .* has 2 columns, not 3"),
        ("ID A1 FREQ\nrs0 A .1\nrs0 A .1\n", "variant rs0 twice"),
        ("ID A1 FREQ\nrs0 A NA\n", "holds no frequencies"),
    ],
)
def test_broken_frequency_files(folder, text, message):
    (folder / "public").write_text(text)
    with pytest.raises(InputError, match=message):
        cohort(frequencies="public")


def test_frequencies_of_the_cohort_are_refused(folder):
    with pytest.raises(PrivacyError, match=r"maf=0.05 needs public allele frequencies.*--freq"):
        cohort(maf=0.05)
    with pytest.raises(PrivacyError, match="is the private cohort itself"):
        cohort(frequencies="cohort.bed")
    with pytest.raises(PrivacyError, match="is the private cohort itself"):
        cohort(frequencies=frequencies_of_panel("cohort.bed"))


def test_the_cohort_in_disguise_is_refused(folder):
    """A copy, a link, another format, a part: a file that shares an id with the cohort is refused."""

    def refused(frequencies, match="ids in it are also in the private genotype file"):
        with pytest.raises(PrivacyError, match=match) as caught:
            cohort(frequencies=frequencies)
        assert "someone" not in str(caught.value)
        assert repr(N) not in str(caught.value).replace(str(folder), "")

    for suffix in ("bed", "bim", "fam"):
        shutil.copy(f"cohort.{suffix}", f"copy.{suffix}")
        (folder / f"hard.{suffix}").hardlink_to(f"cohort.{suffix}")
        (folder / f"soft.{suffix}").symlink_to(f"cohort.{suffix}")
    refused("copy.bed")
    refused(frequencies_of_panel("copy.bed"))
    refused("hard.bed", "is the private cohort itself")
    refused("soft.bed", "is the private cohort itself")
    strangers = [f"p{i}" for i in range(N - 1)]
    write_bed("part", GENOTYPES, ["0"] * N, [*strangers, PEOPLE[4]])
    refused("part.bed")
    joined = [f"{fid}_{iid}" for fid, iid in zip(FAMILIES, PEOPLE, strict=True)]
    write_bed("joined", GENOTYPES, ["0"] * N, joined)  # as plink2 --export vcf writes ids
    refused("joined.bed")
    panel = frequencies_of_panel("copy.bed")
    assert "someone" not in repr(panel) + repr(panel.people)


@pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")
@pytest.mark.parametrize(("form", "name"), [("--make-pgen", "p.pgen"), ("--export vcf", "p.vcf")])
def test_the_cohort_in_another_format_is_refused(folder, form, name):
    words = ["plink2", "--bfile", "cohort", *form.split(), "--out", "p"]
    subprocess.run(words, check=True, capture_output=True)
    with pytest.raises(PrivacyError, match="is not a public panel"):
        cohort(frequencies=name)


@pytest.mark.parametrize("option", ["frequencies", "ld_panel"])
def test_people_of_a_panel_are_compared_where_ids_are_matched_only(folder, option):
    """A dry run would tell without any charge who is in the cohort: a panel holds whom one likes."""
    write_bed("asks", GENOTYPES, ["0"] * N, [*(f"p{i}" for i in range(N - 1)), PEOPLE[4]])
    panel = "asks.bed" if option == "frequencies" else ["asks.bed"]
    found = cohort(**{option: panel}, matched=False)
    with pytest.raises(PrivacyError, match="is not a public panel"):
        found.source.join()


def test_a_public_panel(folder):
    panel = np.random.default_rng(4).integers(0, 3, size=(30, D)).astype(np.float64)
    panel[3, 2] = np.nan
    panel[:, 4] = np.nan
    write_bed("panel", panel, ["0"] * 30, [f"p{i}" for i in range(30)], alleles="CA")
    found = cohort(frequencies="panel.bed")
    assert found.variants.names == ("rs0", "rs1", "rs2", "rs3")
    np.testing.assert_allclose(found.frequencies, 1 - np.nanmean(panel[:, :4], axis=0) / 2)
    assert dict(found.counts)["of them with alleles swapped"] == 4


@pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")
def test_a_panel_as_plink2_counts_it(folder):
    words = ["plink2", "--bfile", "cohort", "--freq", "--nonfounders", "--out", "p"]
    subprocess.run(words, check=True, capture_output=True)
    theirs, ours = read_frequencies("p.afreq"), frequencies_of_panel("cohort.bed")
    assert (theirs.ids, theirs.allele, theirs.other) == (ours.ids, ours.allele, ours.other)
    np.testing.assert_allclose(theirs.frequency, ours.frequency, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pheno": ()}, "column of a .fam or .psam is not used"),
        ({"bfile": None}, "exactly one of bfile"),
        ({"vcf": "x.vcf"}, "exactly one of bfile.*got 2"),
        ({"haplotypes": True}, "phased VCF"),
        ({"dosages": True}, "PLINK 2 files"),
        ({"pheno": "none.txt"}, "there is no file none.txt"),
        ({"keep": "none.txt"}, "there is no file none.txt"),
        ({"extract": "none.txt"}, "there is no file none.txt"),
        ({"frequencies": "none.txt"}, "cannot read the frequency file none.txt"),
    ],
)
def test_refusals(folder, options, message):
    with pytest.raises(InputError, match=message):
        cohort(**options)


def test_broken_phenotype_files(folder):
    for text, message in (
        ("someone0 someone0 1\n", "no column IID"),
        ("someone0,x,1\n", "no column IID"),
        ("", "is empty"),
        ("FID IID\nf0 someone0\n", "id columns but no others"),
        ("FID IID y\nf0 someone0 1\nf0 someone0 2\n", "more than once"),
        ("FID,IID,y\nf0,someone0,1\n", "when its lines are split"),
        ("FID;IID;y\nf0;someone0;1\n", "when its lines are split"),
        ("fid iid y\nf0 someone0 1\n", "in capitals"),
        ('"FID" "IID" "y"\n"1" "f0" "someone0" 1\n', "row.names"),  # R's default
    ):
        (folder / "t.txt").write_text(text)
        with pytest.raises(InputError, match=message) as caught:
            cohort(pheno="t.txt")
        assert "someone0" not in str(caught.value)


def test_what_r_writes_and_gzip_by_any_name(folder):
    expected = rows(cohort().source)
    text = (folder / "traits.txt").read_text()
    quoted = "".join(
        " ".join(
            word if word.lstrip("-").isdigit() or word == "NA" else f'"{word}"' for word in line
        )
        + "\n"
        for line in map(str.split, text.splitlines())
    )
    assert '"someone6" 6' in quoted
    (folder / "quoted.txt").write_text(quoted)
    (folder / "packed.txt").write_bytes(gzip.compress(text.encode()))
    (folder / "marked.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())
    for name in ("quoted.txt", "packed.txt", "marked.txt"):
        for found, same in zip(rows(cohort(pheno=name).source), expected, strict=True):
            np.testing.assert_array_equal(found, same)


def test_text_in_a_column_of_parquet_is_refused_on_opening(folder):
    table = pa.table({"IID": PEOPLE, "y": np.arange(8.0), "note": ["secret"] * 8})
    pq.write_table(table, "t.parquet")
    with pytest.raises(InputError, match=r"'note' of t\.parquet holds text"):
        cohort(pheno="t.parquet")
    assert cohort(pheno="t.parquet", outcomes="y").source.outcome_names == ("y",)


def test_features_to_predict_for(folder):
    like = cohort().variants.select([3, 1])
    columns = open_feature_columns(bfile="cohort", like=like)
    found = np.vstack(list(columns.blocks(range(columns.n), 3)))
    np.testing.assert_array_equal(found, GENOTYPES[:, [3, 1]])
    assert columns.ids().tolist() == PEOPLE
    write_bed("swapped", 2 - GENOTYPES, FAMILIES, PEOPLE, alleles="CA")
    columns = open_feature_columns(bfile="swapped", like=like)
    found = np.vstack(list(columns.blocks(range(columns.n), 3)))
    np.testing.assert_array_equal(found, GENOTYPES[:, [3, 1]])
    assert columns.parts[0].swapped.all()
    other = Variants(
        names=("rs77",), chromosome=("1",), position=np.array([1]), counted=("A",), other=("C",)
    )
    with pytest.raises(InputError, match="1 of the 1 variants of the release are not in"):
        open_feature_columns(bfile="cohort", like=other)
    with pytest.raises(InputError, match="none of the 1 variants"):
        open_feature_columns(bfile="cohort", like=other, strict=False)


def test_several_alleles(folder):
    pytest.importorskip("cyvcf2")
    (folder / "x.vcf").write_text(
        "##fileformat=VCFv4.2\n##contig=<ID=1>\n"
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tsomeone0\tsomeone6\n"
        "1\t1\trs0\tC\tA\t.\t.\t.\tGT\t0|1\t1|1\n"
        "1\t2\trs1\tC\tA,G\t.\t.\t.\tGT\t0|1\t1|2\n"
    )
    with pytest.raises(InputError, match=r'rs1 has several ALT alleles.*multiallelic="skip"'):
        cohort(bfile=None, vcf="x.vcf")
    found = cohort(bfile=None, vcf="x.vcf", multiallelic="skip", haplotypes=True, outcomes="height")
    assert found.source.rows_per_person == 2
    assert dict(found.counts)["variants with several alleles, left out"] == 1
    assert found.source.n == 4
    features, outcomes = rows(found.source)
    assert features[:, 0].tolist() == [1, 1, 0, 1]
    assert outcomes[:, 0].tolist() == [6, 6, 0, 0]
    (folder / "out.txt").write_text("rs1")
    assert cohort(bfile=None, vcf="x.vcf", exclude="out.txt").variants.names == ("rs0",)


@pytest.mark.parametrize("families", [True, False])
def test_phenotypes_in_parquet_are_read_as_text_is(folder, families):
    lines = [line.split(" ") for line in (folder / "traits.txt").read_text().splitlines()]
    columns = dict(zip(lines[0], zip(*lines[1:], strict=True), strict=True))
    table = {name: list(columns[name]) for name in (["FID", "IID"] if families else ["IID"])}
    for name in ("height", "weight", "q_1", "q_2"):
        table[name] = [None if cell == "NA" else float(cell) for cell in columns[name]]
    pq.write_table(pa.table(table, schema=None), folder / "traits.parquet")
    text, binary = (open_cohort(bfile="cohort", pheno=[f"traits.{k}"]) for k in ("txt", "parquet"))
    assert text.source.outcome_names == binary.source.outcome_names
    for one, other in zip(text.source.blocks(3), binary.source.blocks(3), strict=True):
        np.testing.assert_array_equal(one.features, other.features)
        np.testing.assert_array_equal(one.outcomes, other.outcomes)
