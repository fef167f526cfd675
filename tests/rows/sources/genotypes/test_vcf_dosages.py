"""Fields DS and GP of a VCF."""

import numpy as np
import pytest

from factories import read_columns
from primo.errors import InputError
from primo.rows.sources.genotypes.cohort import open_cohort
from primo.rows.sources.genotypes.vcf import open_vcf

pytest.importorskip("cyvcf2")

WHO = ["ann", "ben", "cat"]


def write(path, form, cells, *, chromosome="1", declared=("GT", "DS", "GP")):
    kinds = {"GT": "Number=1,Type=String", "DS": "Number=A,Type=Float", "GP": "Number=G,Type=Float"}
    lines = ["##fileformat=VCFv4.3", f"##contig=<ID={chromosome}>"]
    lines += [f'##FORMAT=<ID={name},{kinds[name]},Description="x">' for name in declared]
    fixed = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines.append("\t".join([*fixed, *WHO]))
    for j, row in enumerate(cells):
        lines.append(
            "\t".join([chromosome, str(j + 1), f"rs{j}", "C", "A", ".", ".", ".", form, *row])
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def test_dosages_and_probabilities(tmp_path):
    cells = [["0/0:0.1:0.9,0.1,0", "0/1:1.25:0,0.75,0.25", "./.:.:."]]
    path = write(tmp_path / "c.vcf", "GT:DS:GP", cells)
    calls, stated, expected = (
        read_columns(open_vcf(path, field=field))[:, 0] for field in ("GT", "DS", "GP")
    )
    np.testing.assert_array_equal(calls, [0, 1, np.nan])
    np.testing.assert_allclose(stated, [0.1, 1.25, np.nan])
    np.testing.assert_allclose(expected, [0.1, 1.25, np.nan])
    assert stated.dtype == expected.dtype == np.float32


def test_probabilities_of_one_copy_count_twice(tmp_path):
    cells = [["0,1", "0.5,0.25,0.25", "1,0"]]
    path = write(tmp_path / "x.vcf", "GP", cells, chromosome="X")
    np.testing.assert_allclose(read_columns(open_vcf(path, field="GP"))[:, 0], [2, 0.75, 0])
    path = write(tmp_path / "y.vcf", "GP", [["0.25,0.75", "1,0", "."]], chromosome="Y")
    np.testing.assert_allclose(read_columns(open_vcf(path, field="GP"))[:, 0], [1.5, 0, np.nan])


@pytest.mark.parametrize("chromosome", ["X", "chrY", "MT", "23"])
def test_dosages_of_sex_chromosomes_need_calls(tmp_path, chromosome):
    path = write(tmp_path / "c.vcf", "DS", [["0", "1", "2"]], chromosome=chromosome)
    with pytest.raises(
        InputError, match=r"variant rs0 may be haploid.*vcf_field=\"GP\""
    ) as refused:
        read_columns(open_vcf(path, field="DS"))
    assert refused.value.argument == "vcf_field"
    path = write(tmp_path / "d.vcf", "GT:DS", [["0/0:0", "0/1:1", "1/1:2"]], chromosome=chromosome)
    np.testing.assert_array_equal(read_columns(open_vcf(path, field="DS"))[:, 0], [0, 1, 2])


@pytest.mark.parametrize("cells", [["0/0:0", "1:1", "1/1:2"], ["0:0", "1:1", "1:1"]])
def test_dosages_of_haploid_calls_are_refused(tmp_path, cells):
    path = write(tmp_path / "c.vcf", "GT:DS", [cells])
    with pytest.raises(InputError, match="may be haploid"):
        read_columns(open_vcf(path, field="DS"))


def test_what_is_not_there_or_no_probability_is_refused(tmp_path):
    path = write(tmp_path / "c.vcf", "GT", [["0/0", "0/1", "1/1"]], declared=("GT",))
    with pytest.raises(InputError, match="does not declare the field DS"):
        open_vcf(path, field="DS")
    with pytest.raises(InputError, match="choose one of GT, DS, GP"):
        open_vcf(path, field="HDS")
    path = write(tmp_path / "d.vcf", "GT", [["0/0", "0/1", "1/1"]])
    with pytest.raises(InputError, match="rs0 has no numbers in the field DS"):
        read_columns(open_vcf(path, field="DS"))
    path = write(tmp_path / "e.vcf", "GP", [["0,30,60", "30,0,30", "60,30,0"]])
    with pytest.raises(InputError, match="phred scale"):
        read_columns(open_vcf(path, field="GP"))
    path = write(tmp_path / "f.vcf", "DS", [["0,1", "1,1", "2,1"]])
    with pytest.raises(InputError, match="more than one dosage"):
        read_columns(open_vcf(path, field="DS"))


def test_options_of_other_files_are_refused(tmp_path):
    path = write(tmp_path / "c.vcf", "GT:DS", [["0|0:0", "0|1:1", "1|1:2"]])
    (tmp_path / "y").write_text("IID y\n" + "".join(f"{who} 1\n" for who in WHO))
    for options, words in [
        ({"vcf": path, "dosages": True}, r"vcf_field=\"DS\""),
        ({"vcf": path, "vcf_field": "DS", "haplotypes": True}, "haplotypes are read from calls"),
        ({"vcf": path, "sample": tmp_path / "y"}, "sample goes with bgen"),
        ({"bfile": path, "vcf_field": "GP"}, "goes with vcf only"),
        ({"bgen": path, "haplotypes": True}, "phased VCF"),
    ]:
        with pytest.raises(InputError, match=words):
            open_cohort(pheno=tmp_path / "y", **options)
    source = open_cohort(vcf=path, vcf_field="DS", pheno=tmp_path / "y").source
    (block,) = source.blocks(10)
    np.testing.assert_array_equal(block.features[:, 0], [0, 1, 2])
