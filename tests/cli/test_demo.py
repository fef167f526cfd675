"""`primo demo --data-only` writes files that can be fitted, and nothing else."""

from click.testing import CliRunner

from primo.cli import main


def test_files_alone(tmp_path):
    folder = tmp_path / "study"
    done = CliRunner().invoke(main, ["demo", "--data-only", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    written = {"ages.tsv", "bounds.toml", "traits.tsv"}
    written |= {f"{name}.{end}" for name in ("cohort", "panel") for end in ("bed", "bim", "fam")}
    assert {path.name for path in folder.iterdir()} == written
    line = ["fit", "--bfile", str(folder / "cohort"), "--pheno", str(folder / "traits.tsv")]
    line += ["--covar", str(folder / "ages.tsv"), "--bounds", str(folder / "bounds.toml")]
    dry = CliRunner().invoke(main, [*line, "--epsilon", "2", "--delta", "1e-8", "--dry-run"])
    assert dry.exit_code == 0, dry.output
    assert "Plan: 40 regressions on 31 features" in dry.output
