"""Mistakes about people: who they are, how many rows they own, and what may be asked about them."""

from benchmarks.mutants.model import Mutant, Patch

__all__ = ["PEOPLE"]

_PEOPLE = "tests/rows/test_people.py"
_NAMING = "tests/ledger/test_naming.py"
_SEVERAL = "tests/rows/sources/genotypes/test_several.py"
_DRY = "tests/cli/test_dry_run.py"

PEOPLE = (
    Mutant(
        "the index of a frame is ignored, and people are known by their values",
        (
            Patch(
                "rows/coerce.py",
                'return {"labels": first, "id_names": index_names(left)}',
                'return {"labels": None, "id_names": None}',
            ),
            Patch(
                "ledger/naming.py",
                "        if person is None:\n            raise",
                "        if person is None:\n            return\n            raise",
            ),
        ),
        (f"{_PEOPLE}::test_ten_fits_of_the_same_indexed_people_do_not_pass_a_limit_for_one",),
    ),
    Mutant(
        "positions that an index counts pass for people",
        (Patch("ledger/naming.py", 'if "" in person:', "if False:"),),
        (f"{_PEOPLE}::test_row_positions_that_are_left_over_are_not_people",),
    ),
    Mutant(
        "a charge may name people by any column",
        (Patch("ledger/naming.py", "person != self.person:", "False:"),),
        (f"{_NAMING}::test_a_pinned_column_and_no_other",),
    ),
    Mutant(
        "a ledger that pins nothing takes every column",
        (Patch("ledger/naming.py", "return replace(self, person=person)", "return self"),),
        (f"{_NAMING}::test_without_a_pin_the_first_charge_decides",),
    ),
    Mutant(
        "somebody with several rows is charged for one",
        (
            Patch(
                "rows/sources/row_owners.py",
                'if "" in rows or max(rows.values(), default=0) > most:',
                'if "" in rows:',
            ),
        ),
        (f"{_PEOPLE}::test_a_person_with_several_rows_is_refused_or_pays_for_all",),
    ),
    Mutant(
        "several rows that were declared are charged as one",
        (
            Patch(
                "workflow/fit.py",
                "rows_per_person=_rows_per_person(source, settings.rows_per_person),",
                "rows_per_person=rows_per_person_of(source),",
            ),
            Patch(
                "workflow/fit.py",
                "check_rows_per_person(source, prepared.plan.rows_per_person)",
                "pass",
            ),
            Patch(
                "rows/person_tokens.py",
                "check_ids(ids, rows_per_person or rows_per_person_of(source))",
                "pass",
            ),
        ),
        (f"{_PEOPLE}::test_one_individual_id_in_many_families",),
    ),
    Mutant(
        "bounds of a public block are read with the private columns beside it",
        (
            Patch(
                "rows/sources/paired.py",
                "if isinstance(source, SplitSource) and isinstance(source.columns, TableColumns):",
                "if False:",
            ),
        ),
        (f"{_DRY}::test_one_table_of_which_half_is_private",),
    ),
    Mutant(
        "a dry run tells whether somebody is in two files",
        (Patch("rows/sources/tabular/tables.py", "    if not matched:\n", "    if False:\n"),),
        (f"{_DRY}::test_a_join_is_not_tried_out",),
    ),
    Mutant(
        "files of one cohort are read side by side without comparing their people",
        (
            Patch(
                "rows/sources/genotypes/several.py",
                "    rows = joined.rows\n",
                "    rows = tuple(range(part.samples) for part in genotypes.parts)\n",
            ),
        ),
        (f"{_SEVERAL}::test_a_pattern_or_a_list_is_one_cohort",),
    ),
    Mutant(
        "a dry run tells whether two genotype files hold the same people",
        (
            Patch(
                "rows/sources/genotypes/cohort.py",
                "paired(genotypes, _side_by_side(genotypes, tables, keep))",
                "paired(aligned(genotypes), _side_by_side(genotypes, tables, keep))",
            ),
        ),
        (f"{_SEVERAL}::test_ids_are_compared_only_when_people_are_matched",),
    ),
    Mutant(
        "the order of a .sample file is not compared",
        (
            Patch(
                "rows/sources/genotypes/bgen.py",
                "            own is not None\n            and not any(",
                "            False\n            and not any(",
            ),
        ),
        (
            "tests/rows/sources/genotypes/test_bgen.py::test_the_order_of_the_sample_file_is_checked",
        ),
    ),
)
