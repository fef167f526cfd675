"""The same person with and without a family id: a .bed and its VCF are charged together."""

import numpy as np
import pytest

from primo.ledger.key import Key
from primo.ledger.people import share_people
from primo.rows.person_tokens import sketch
from primo.rows.sources.genotypes.cohort import open_cohort

bed_reader = pytest.importorskip("bed_reader")

KEY = Key(bytes(range(32)))
FAM = [(f"F{i}", f"I{i}") for i in range(6)]
CALLS = np.random.default_rng(1).integers(0, 3, size=(6, 2)).astype(np.float64)


def write(folder):
    properties = {"fid": [f for f, _ in FAM], "iid": [i for _, i in FAM], "sid": ["a", "b"]}
    properties |= {"chromosome": ["1"] * 2, "bp_position": [1, 2]}
    properties |= {"allele_1": ["A"] * 2, "allele_2": ["G"] * 2}
    bed_reader.to_bed(folder / "c.bed", CALLS, properties=properties)
    for name, ids in {"joined": [f"{f}_{i}" for f, i in FAM], "plain": [i for _, i in FAM]}.items():
        lines = ["##fileformat=VCFv4.2", "##contig=<ID=1>"]
        lines += ['##FORMAT=<ID=GT,Number=1,Type=String,Description="g">']
        lines += [
            "\t".join(["#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT".replace(" ", "\t"), *ids])
        ]
        for j in range(2):
            calls = [("0/0", "0/1", "1/1")[int(call)] for call in CALLS[:, j]]
            lines += ["\t".join(["1", str(j + 1), f"v{j}", "G", "A", ".", ".", ".", "GT", *calls])]
        (folder / f"{name}.vcf").write_text("\n".join(lines) + "\n")
        (folder / f"{name}.txt").write_text("IID y\n" + "".join(f"{i} 1\n" for i in ids))
        (folder / f"{name}.cov").write_text("IID c\n" + "".join(f"{i} 1\n" for i in ids))
    (folder / "c.txt").write_text("FID IID y\n" + "".join(f"{f} {i} 1\n" for f, i in FAM))


@pytest.mark.parametrize("name", ["joined", "plain", "sample"])
def test_a_bed_and_its_bgen_share_people(tmp_path, name):
    writer = pytest.importorskip("bgen").BgenWriter
    write(tmp_path)
    ids = {"joined": [f"{f}_{i}" for f, i in FAM], "plain": [i for _, i in FAM], "sample": []}[name]
    with writer(str(tmp_path / "c.bgen"), n_samples=6, samples=ids) as file:
        for j in range(2):
            calls = np.eye(3)[CALLS[:, j].astype(int)]
            file.add_variant(f"v{j}", f"v{j}", "1", j + 1, ["G", "A"], calls)
    rows = "".join(f"{f} {i} 0\n" for f, i in FAM)
    (tmp_path / "c.sample").write_text("ID_1 ID_2 missing\n0 0 0\n" + rows)
    bed = open_cohort(bfile=tmp_path / "c", pheno=tmp_path / "c.txt").source
    pheno = tmp_path / ("c.txt" if name == "sample" else f"{name}.txt")
    other = open_cohort(bgen=tmp_path / "c.bgen", pheno=pheno).source
    one, two = sketch(bed, KEY), sketch(other, KEY)
    assert one.person == two.person == ("IID",)
    assert np.isin(two.tokens, one.tokens).all()
    features = [
        np.vstack([block.features for block in source.blocks(4)]) for source in (bed, other)
    ]
    np.testing.assert_array_equal(*features)


@pytest.mark.parametrize("covariates", [False, True])
@pytest.mark.parametrize("name", ["joined", "plain"])
def test_a_bed_and_its_vcf_share_people(tmp_path, name, covariates):
    pytest.importorskip("cyvcf2")
    write(tmp_path)
    more = {"covar": tmp_path / "plain.cov"} if covariates else {}
    bed = open_cohort(bfile=tmp_path / "c", pheno=tmp_path / "c.txt", **more).source
    vcf = open_cohort(vcf=tmp_path / f"{name}.vcf", pheno=tmp_path / f"{name}.txt").source
    one, two = sketch(bed, KEY), sketch(vcf, KEY)
    assert one.person == two.person == ("IID",)
    assert share_people(one.tokens, two.tokens)
    assert one.rows == two.rows == 6
    # Person by person: each of the VCF is known in the other.
    assert np.isin(two.tokens, one.tokens).all()
